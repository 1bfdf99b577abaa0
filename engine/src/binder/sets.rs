//! UNION, INTERSECT and EXCEPT (transformSetOperationTree): the sides' columns brought to common types.

use crate::binder::coerce::{check_groupable, common_type};
use crate::binder::folded::may_be_proven_empty;
use crate::binder::query::Unknowns;
use crate::binder::select::{Selected, SelectedColumn};
use crate::binder::typed::{CollationStrength, Typed};
use crate::binder::{Binder, Bound, BoundExpr, BoundRelation, ExprType, unsupported};
use crate::catalog::Collation;
use crate::catalog::functions::CastContext;
use crate::reason::UpstreamReason;
use crate::statement::ast::{Query, SetOperation};
use crate::types::PgType;

/// The version of PostgreSQL since which INTERSECT and EXCEPT are described by their left side, as `server_version_num` has it.
const DESCRIBED_AS_LEFT: u32 = 180_000;

/// The sides of a set operation, and the columns that both have.
pub(super) struct Sides {
    pub(super) left: BoundRelation,
    pub(super) right: BoundRelation,
    pub(super) columns: Vec<SelectedColumn>,
}

impl Binder<'_> {
    pub(super) fn set_operation(
        &mut self,
        operation: SetOperation,
        is_all: bool,
        left: &Query,
        right: &Query,
    ) -> Bound<Selected> {
        let left = self.query(left, Unknowns::Stay)?;
        let right = self.query(right, Unknowns::Stay)?;
        self.combined(operation, is_all, left, right)
    }

    /// Two sides as one relation.
    pub(super) fn combined(
        &mut self,
        operation: SetOperation,
        is_all: bool,
        left: Selected,
        right: Selected,
    ) -> Bound<Selected> {
        let Sides { left, right, columns } = self.sides(operation, is_all, left, right)?;
        let types: Vec<ExprType> = columns.iter().map(|column| column.expr_type).collect();
        let relation = match operation {
            SetOperation::Union => {
                let all = BoundRelation::Append { inputs: vec![left, right], columns: types.clone() };
                match is_all {
                    true => all,
                    false => BoundRelation::Distinct { input: Box::new(all), columns: types },
                }
            }
            SetOperation::Intersect | SetOperation::Except => BoundRelation::SetOperation {
                operation,
                is_all,
                left: Box::new(left),
                right: Box::new(right),
                columns: types,
            },
        };
        Ok(Selected { relation, columns })
    }

    /// Both sides with columns of their common types.
    pub(super) fn sides(
        &mut self,
        operation: SetOperation,
        is_all: bool,
        left: Selected,
        right: Selected,
    ) -> Bound<Sides> {
        if left.columns.len() != right.columns.len() {
            return Err(UpstreamReason::UnknownColumn("sides of a set operation differ in columns".into()));
        }
        // Of a union one side may be all that is left; of the others, since 18, a result is described as the left one.
        let is_described_as_left = self.catalog.server_version >= DESCRIBED_AS_LEFT;
        let may_be_one_s = || match operation {
            SetOperation::Union => may_be_proven_empty(&left.relation) || may_be_proven_empty(&right.relation),
            SetOperation::Intersect | SetOperation::Except => is_described_as_left,
        };
        let mut columns = Vec::with_capacity(left.columns.len());
        let (mut left_cells, mut right_cells) = (Vec::new(), Vec::new());
        for (index, (ours, theirs)) in left.columns.iter().zip(&right.columns).enumerate() {
            let (ours_typed, theirs_typed) = (cell(index, ours), cell(index, theirs));
            let common = common_type(&[ours_typed.pg_type(), theirs_typed.pg_type()])
                .ok_or_else(|| UpstreamReason::UnknownFunction("no common type of a set operation".into()))?;
            let ours_typed = self.coerce(ours_typed, common, CastContext::Implicit)?;
            let theirs_typed = self.coerce(theirs_typed, common, CastContext::Implicit)?;
            let collation = match common {
                PgType::Array(element) => {
                    self.check_element_collation(ours_typed.expr_type.collation)?;
                    self.check_element_collation(theirs_typed.expr_type.collation)?;
                    self.array_type(element)?.collation
                }
                _ => self.input_collation(&[&ours_typed, &theirs_typed], common)?.0,
            };
            let (a, b) = (ours_typed.expr_type.typmod, theirs_typed.expr_type.typmod);
            let expr_type = ExprType { pg_type: common, typmod: if a == b { a } else { -1 }, collation };
            let is_open = ours.is_open || theirs.is_open || a != b && may_be_one_s();
            self.note_modifier(expr_type);
            if !(is_all && operation == SetOperation::Union) {
                check_groupable(expr_type, "set operation")?;
            }
            left_cells.push(ours_typed.expr);
            right_cells.push(theirs_typed.expr);
            columns.push(SelectedColumn { is_open, ..SelectedColumn::computed(ours.name.clone(), expr_type) });
        }
        let left = BoundRelation::Project { input: Box::new(left.relation), expressions: left_cells };
        let right = BoundRelation::Project { input: Box::new(right.relation), expressions: right_cells };
        Ok(Sides { left, right, columns })
    }
}

/// A side's column for the common one; an untyped literal as itself.
fn cell(index: usize, column: &SelectedColumn) -> Typed {
    if let Some(untyped) = &column.untyped {
        return untyped.clone();
    }
    let expr_type = column.expr_type;
    let strength =
        if expr_type.collation == Collation::None { CollationStrength::None } else { CollationStrength::Implicit };
    Typed { expr: BoundExpr::Column { index, expr_type }, expr_type, strength, origin: None }
}

/// Whether a side's column is still untyped.
pub(super) fn untyped(typed: &Typed) -> Bound<Option<Typed>> {
    match &typed.expr {
        _ if typed.pg_type() != PgType::Unknown => Ok(None),
        BoundExpr::Literal { .. } | BoundExpr::Parameter { .. } => Ok(Some(typed.clone())),
        _ => Err(unsupported("untyped column of a set operation")),
    }
}

//! What of the function table a bound statement uses: for the report of what the corpus of statements has reached.

use crate::binder::typed::children;
use crate::binder::{BoundExpr, BoundQuery, BoundRelation, WindowKind};
use crate::catalog::functions::{AggregateFunction, Function, WindowFunction};
use crate::types::PgType;

#[derive(Debug, Default)]
pub struct Used {
    pub functions: Vec<&'static Function>,
    /// With the type of the first argument.
    pub aggregates: Vec<(AggregateFunction, Option<PgType>)>,
    pub windows: Vec<WindowFunction>,
}

impl BoundQuery {
    /// Everything that is called anywhere in it.
    pub fn used(&mut self) -> Used {
        let mut used = Used::default();
        let scalars = self.scalars.iter_mut().map(|scalar| &mut scalar.relation);
        for relation in std::iter::once(&mut self.root).chain(&mut self.commons).chain(scalars) {
            used.relation(relation);
        }
        used
    }
}

impl Used {
    fn relation(&mut self, relation: &mut BoundRelation) {
        match relation {
            BoundRelation::Aggregate { aggregates, .. } => {
                let of = aggregates.iter();
                let of = of.map(|call| (call.function, call.argument.as_ref().map(|expr| expr.expr_type().pg_type)));
                self.aggregates.extend(of);
            }
            BoundRelation::Window { calls, .. } => {
                for call in calls {
                    match call.function {
                        WindowKind::Function(function) => self.windows.push(function),
                        WindowKind::Aggregate(function) => {
                            let argument = call.arguments.first().map(|expr| expr.expr_type().pg_type);
                            self.aggregates.push((function, argument));
                        }
                    }
                }
            }
            _ => {}
        }
        relation.expressions_mut().into_iter().for_each(|expr| self.expression(expr));
        relation.inputs_mut().into_iter().for_each(|input| self.relation(input));
    }

    fn expression(&mut self, expr: &BoundExpr) {
        match expr {
            BoundExpr::Call { function, .. }
            | BoundExpr::IsDistinct { equal: function, .. }
            | BoundExpr::Extreme { less: function, .. }
            | BoundExpr::InList { equal: function, .. } => self.functions.push(function),
            _ => {}
        }
        children(expr).into_iter().for_each(|child| self.expression(child));
    }
}

//! From a text to a [`Prepared`] statement: parsed, bound, planned, and what the audit must know of it.

use std::any::Any;
use std::sync::Arc;

use crate::binder::{self, BindContext, BoundExpr, BoundQuery, BoundRelation, OpenColumns, Reader, Summed};
use crate::catalog::Catalog;
use crate::executor;
use crate::planner::Plan;
use crate::reason::UpstreamReason;
use crate::result_cache::{HeldPlan, Reads};
use crate::statement::fingerprint::{self, Shape};
use crate::statement::{self, Statement, second_reading};
use crate::types::{FormatSettings, Oid};

/// What a statement's meaning depends on besides its text.
pub struct PrepareContext<'a> {
    pub catalog: &'a Catalog,
    /// Equal exactly for equal role, search path and settings.
    pub settings_id: u64,
    pub search_path: &'a [Arc<str>],
    pub settings: &'a FormatSettings,
    /// As declared by the client; 0: to be inferred.
    pub parameter_types: &'a [Oid],
}

impl PrepareContext<'_> {
    /// The key of the plan cache: everything above and the text.
    pub(crate) fn key(&self, sql: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(sql.len() + 24 + 4 * self.parameter_types.len());
        key.extend_from_slice(&self.settings_id.to_le_bytes());
        key.extend_from_slice(&self.catalog.version.to_le_bytes());
        key.extend_from_slice(&(self.parameter_types.len() as u64).to_le_bytes());
        for oid in self.parameter_types {
            key.extend_from_slice(&oid.to_le_bytes());
        }
        key.extend_from_slice(sql.as_bytes());
        key
    }
}

/// A statement that the engine can answer. Read-only, shared.
#[derive(Debug)]
pub struct Prepared {
    pub plan: Plan,
    /// What replies to it depend on.
    pub reads: Arc<Reads>,
    /// For the audit: all rows that the outermost LIMIT and OFFSET may keep, as which they keep among equals is free. From the first
    /// row of the order to the last one's equals, or, without an order, all.
    pub unlimited: Option<Plan>,
    /// Output columns of the outermost ORDER BY, as far as its keys are output columns.
    pub order_columns: Vec<usize>,
    /// What PostgreSQL may choose besides: another answer may be right, too.
    pub choice: Choice,
    /// What of the answer hangs on the order in which floats are added up.
    pub summed: Summed,
    pub shape: Shape,
    /// What a verdict of the audit is about: the shape, the parameters' types, the tables and the result's description.
    /// Equal for statements that differ only in lifted literals, and after changes of the catalog that do not concern it.
    pub identity: Arc<str>,
    pub catalog_version: u64,
    /// What may be names of zones in definitions that the text names.
    pub zone_names: Vec<String>,
    /// What all of it takes, about.
    pub bytes: usize,
}

impl Prepared {
    /// For the upkeep of replies to it.
    pub fn held_plan(self: &Arc<Self>) -> HeldPlan<'_> {
        let holder: Arc<dyn Any + Send + Sync> = Arc::clone(self) as _;
        HeldPlan { plan: &self.plan, catalog_version: self.catalog_version, holder: Arc::downgrade(&holder) }
    }
}

/// What hangs on the order of rows that no ORDER BY tells apart, other than which of them the outermost LIMIT keeps.
#[derive(Debug)]
pub enum Choice {
    Nothing,
    /// The values of some output columns.
    Values(OpenColumns),
    /// Rows besides: those of an answer are among those of `among`.
    Rows {
        open: OpenColumns,
        among: Box<Plan>,
    },
    /// Only an equal answer says something.
    Anything,
}

/// Parses, binds and plans one query; an `UpstreamReason` says what is not answered here.
pub fn prepare(sql: &str, context: &PrepareContext<'_>) -> Result<Prepared, UpstreamReason> {
    let statement = single(sql)?;
    let bind = BindContext {
        search_path: context.search_path,
        settings: context.settings,
        parameter_types: context.parameter_types,
    };
    let query = binder::bind(&statement, context.catalog, &bind)?;
    let named = query.tables.iter().chain(&query.views).filter(|table| table.reader == Reader::Session);
    let names = named.filter_map(|table| context.catalog.described(table.table)).map(|schema| &*schema.name);
    second_reading::confirm(&statement.text, names)?;
    let shape = fingerprint::shape(&statement.text);
    let identity: Arc<str> = identity(&shape, &query, context).into();
    let order_columns = order_columns(&query);
    // A recursion may end only because it is not asked for more: which rows it gives first is then part of the answer.
    let is_cut = query.is_recursion_cut();
    let unlimited = without_limit(&query).filter(|_| !is_cut);
    let mut choice = if is_cut { Choice::Anything } else { choice(unlimited.as_ref().unwrap_or(&query)) };
    let summed = query.summed();
    let zone_names = query.zone_names.clone();
    let mut plan = executor::plan(query)?;
    let mut unlimited = match unlimited {
        Some(_) if plan.outermost_sort().is_some() => Some(Plan { with_ties: true, ..plan.clone() }),
        unlimited => unlimited.map(executor::plan).transpose()?,
    };
    let reads = Arc::new(Reads::of(&plan));
    let among = if let Choice::Rows { among, .. } = &mut choice { among.bytes() } else { 0 };
    let plans = plan.bytes() + unlimited.as_mut().map_or(0, Plan::bytes) + among;
    let counted = size_of::<Prepared>() + plans + reads.bytes + shape.text.len() + str::len(&identity);
    // Lists have room to grow, and the allocator rounds up: measured (tests/tests/storm.rs).
    let bytes = counted * 3 / 2;
    Ok(Prepared {
        bytes,
        reads,
        plan,
        unlimited,
        order_columns,
        choice,
        summed,
        shape,
        identity,
        catalog_version: context.catalog.version,
        zone_names,
    })
}

/// A plan that cannot be made tells nothing.
fn choice(query: &BoundQuery) -> Choice {
    match query.choice() {
        binder::Choice::Nothing => Choice::Nothing,
        binder::Choice::Values(open) => Choice::Values(open),
        binder::Choice::Rows { open, among } => match executor::plan(*among) {
            Ok(among) => Choice::Rows { open, among: Box::new(among) },
            Err(_) => Choice::Anything,
        },
        binder::Choice::Anything => Choice::Anything,
    }
}

fn single(sql: &str) -> Result<Statement, UpstreamReason> {
    let mut statements = statement::parse(sql)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement), true) => Ok(statement),
        (Some(_), false) => Err(UpstreamReason::UnitForm("several statements in one query string")),
        (None, _) => Err(UpstreamReason::NotAQuery("empty")),
    }
}

/// What one comparison with upstream's answer speaks for: the shape, what its names mean and how that is defined, and the style in
/// which values are printed.
fn identity(shape: &Shape, query: &BoundQuery, context: &PrepareContext<'_>) -> String {
    use std::fmt::Write as _;
    let PrepareContext { catalog, settings, .. } = *context;
    let mut text = shape.text.clone();
    // However many of one type follow each other: the length of an IN list is no other statement.
    for run in query.parameters.chunk_by(|a, b| a == b) {
        let _ = write!(text, "|${}{}", run[0].oid(), if run.len() > 1 { "..." } else { "" });
    }
    for table in query.tables.iter().chain(&query.views) {
        let _ = write!(text, "|t{}", table.table.0);
        let schema = catalog.described(table.table);
        for column in table.columns.iter().filter_map(|column| schema?.columns.get(*column)) {
            let _ = write!(text, ",{}:{}:{}:{:?}", column.attnum, column.type_oid, column.typmod, column.collation);
        }
    }
    if query.definitions != 0 {
        let _ = write!(text, "|d{:x}", query.definitions);
    }
    for column in &query.output {
        let kind = column.expr_type;
        let _ = write!(
            text,
            "|c{}:{}:{}:{}:{}",
            column.name,
            column.table_oid,
            column.attnum,
            kind.pg_type.oid(),
            kind.typmod
        );
    }
    // Also of what is printed within expressions. It stands last: see the audit.
    let FormatSettings { date_style, date_order, interval_style, extra_float_digits, bytea_output, .. } = settings;
    let _ = write!(
        text,
        "|s{date_style:?}{date_order:?}{interval_style:?}{}{bytea_output:?}",
        // All from 1 on print the shortest text that is read back as the same.
        (*extra_float_digits).min(1)
    );
    text
}

/// The query without its outermost limit; None if it has none, or one that leaves nothing open: WITH TIES, from the first row on.
fn without_limit(query: &BoundQuery) -> Option<BoundQuery> {
    fn strip(relation: &BoundRelation) -> Option<BoundRelation> {
        match relation {
            BoundRelation::Limit { offset: None, with_ties: true, .. } => None,
            BoundRelation::Limit { input, .. } => Some((**input).clone()),
            BoundRelation::Project { input, expressions } => {
                Some(BoundRelation::Project { input: Box::new(strip(input)?), expressions: expressions.clone() })
            }
            _ => None,
        }
    }
    let root = strip(&query.root)?;
    Some(BoundQuery { root, ..query.clone() })
}

fn order_columns(query: &BoundQuery) -> Vec<usize> {
    /// The output positions of `relation` that its sort orders by, most significant first; ends at the first key that
    /// is not an output column.
    fn of(relation: &BoundRelation) -> Vec<usize> {
        let column = |expr: &BoundExpr| match expr {
            BoundExpr::Column { index, .. } => Some(*index),
            _ => None,
        };
        match relation {
            BoundRelation::Limit { input, .. } => of(input),
            BoundRelation::Sort { keys, .. } => keys.iter().map_while(|key| column(&key.expr)).collect(),
            BoundRelation::Project { input, expressions } => {
                let place = |key: usize| expressions.iter().position(|expr| column(expr) == Some(key));
                of(input).into_iter().map_while(place).collect()
            }
            _ => Vec::new(),
        }
    }
    of(&query.root)
}

//! What the names of relations and of users' functions, and the labels of enums, in a prepared statement mean. PostgreSQL analyses it again when a relation of
//! it, or the search path, has changed (plancache.c: RevalidateCachedQuery, PlanCacheRelCallback); by another one that would be found
//! first now (created, renamed or moved there) it is not disturbed, nor by a label that has another name now, while a plan that is made
//! here finds that one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use freshet_engine::catalog::{Catalog, EnumEntry, FunctionEntry, RelationId};
use freshet_engine::planner::Plan;
use freshet_engine::statement::lexer;
use freshet_engine::types::{EnumType, Oid, PgType};
use parking_lot::Mutex;

use crate::session::cursor;

/// Enum types by OID, as [`Catalog::enum_types`].
type EnumTypes = HashMap<Oid, EnumEntry>;

/// What the names of one statement mean upstream, once that is known.
#[derive(Debug, Default)]
pub struct Meant {
    names: Mutex<Option<Names>>,
    /// By the catalog that was in use when it was parsed.
    enums: Option<Arc<EnumTypes>>,
    functions: Functions,
}

/// A relation under the name that it had.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Relation {
    id: RelationId,
    schema: Arc<str>,
    name: Arc<str>,
}

impl Relation {
    fn of(id: RelationId, catalog: &Catalog) -> Option<Self> {
        let table = || catalog.tables.get(&id);
        let view = || catalog.views.get(&id).map(|view| &view.schema);
        let materialized = || catalog.materialized.get(&id).map(|materialized| &materialized.schema);
        let schema = table().or_else(view).or_else(materialized)?;
        Some(Self { id, schema: Arc::clone(&schema.schema), name: Arc::clone(&schema.name) })
    }

    /// Upstream has told every plan that uses it.
    fn has_gone(&self, catalog: &Catalog) -> bool {
        Self::of(self.id, catalog).as_ref() != Some(self)
    }

    /// Another one of the path has its name.
    fn has_namesake(&self, path: &[Arc<str>], catalog: &Catalog) -> bool {
        let has_name =
            |schema: &Arc<str>| catalog.schemas.get(&**schema).is_some_and(|all| all.contains_key(&*self.name));
        path.iter().any(|schema| *schema != self.schema && has_name(schema))
    }
}

/// The enums that constants may be of: those of the columns of the plan's relations, and of types that the text names.
fn enums_of(plan: &Plan, sql: &[u8], catalog: &Catalog) -> Box<[EnumEntry]> {
    if catalog.enum_types.is_empty() || !has_string(sql) {
        return Box::default();
    }
    let tables = plan.relations();
    let columns = tables.iter().filter_map(|id| catalog.tables.get(id)).flat_map(|table| &table.columns);
    let types: HashSet<Oid> = columns.filter_map(|column| column.pg_type).map(PgType::oid).collect();
    let is_meant = |labels: EnumType| types.contains(&labels.oid()) || cursor::names(sql, labels.name().as_bytes());
    catalog.enum_types.values().filter(|entry| is_meant(entry.labels)).cloned().collect()
}

/// By name, all functions of those names in a text that functions in SQL have: which of them is called was decided when it was analysed, and
/// one that is added since is none of those. Another body of the same one counts for PostgreSQL's plans, too.
type Functions = Box<[(Arc<str>, Box<[Oid]>)]>;

fn functions_of(sql: &[u8], catalog: &Catalog) -> Functions {
    if catalog.sql_functions.is_empty() {
        return Box::default();
    }
    let tokens = std::str::from_utf8(sql).ok().and_then(|sql| lexer::tokens(sql).ok());
    let names: BTreeSet<_> = tokens.iter().flatten().filter_map(lexer::Token::name).collect();
    let known = names.iter().filter_map(|name| catalog.sql_functions.get_key_value(&**name));
    let oids = |(name, functions): (&Arc<str>, &Vec<FunctionEntry>)| {
        let mut oids: Box<[Oid]> = functions.iter().map(|function| function.oid).collect();
        oids.sort_unstable();
        (Arc::clone(name), oids)
    };
    known.map(oids).collect()
}

/// Each label is still there by its name.
fn keeps_labels(before: &EnumEntry, catalog: &Catalog) -> bool {
    let Some(now) = catalog.enum_types.get(&before.labels.oid()) else { return false };
    let is_same = |(place, oid): (i64, &Oid)| {
        let there = before.labels.label(place).and_then(|label| now.labels.place(label));
        there.and_then(|place| now.label_oids.get(usize::try_from(place).ok()?)) == Some(oid)
    };
    (0..).zip(before.label_oids.iter()).all(is_same)
}

/// Whether a constant in quotes may be in it.
fn has_string(sql: &[u8]) -> bool {
    let is_tag = |pair: &[u8]| pair[0] == b'$' && !pair[1].is_ascii_digit();
    sql.contains(&b'\'') || sql.windows(2).any(is_tag)
}

/// What a plan takes the names to mean.
#[derive(Debug)]
pub struct Names {
    relations: Box<[Relation]>,
    enums: Box<[EnumEntry]>,
    functions: Functions,
}

impl Names {
    /// `sql`: the statement that it is a plan of.
    pub fn of(plan: &Plan, sql: &[u8], catalog: &Catalog) -> Self {
        let relations = plan.relations().into_iter().filter_map(|id| Relation::of(id, catalog)).collect();
        Self { relations, enums: enums_of(plan, sql, catalog), functions: functions_of(sql, catalog) }
    }
}

impl Meant {
    /// `catalog`: the one in use, if one is. `kept`: of a statement that may be used under another one.
    pub fn new(kept: Option<&[u8]>, catalog: Option<&Catalog>) -> Self {
        let functions = kept.zip(catalog).map(|(sql, catalog)| functions_of(sql, catalog));
        Self {
            names: Mutex::default(),
            enums: catalog.map(|catalog| Arc::clone(&catalog.enum_types)),
            functions: functions.unwrap_or_default(),
        }
    }

    pub fn is_known(&self) -> bool {
        self.names.lock().is_some()
    }

    pub fn set(&self, names: Names) {
        *self.names.lock() = Some(names);
    }

    /// Whether upstream takes the names for what the plan, which is of this catalog, takes them for. `path`: the search path, which
    /// is the one that upstream analysed it under.
    pub fn is(&self, names: &Names, path: &[Arc<str>], catalog: &Catalog) -> bool {
        match &*self.names.lock() {
            Some(before) => {
                before.relations.iter().any(|relation| relation.has_gone(catalog))
                    || before.relations == names.relations
                        && before.functions == names.functions
                        && before.enums.iter().all(|entry| keeps_labels(entry, catalog))
            }
            None => {
                // One that the catalog did not have was new then.
                let at_parse = |entry: &EnumEntry| self.enums.as_ref()?.get(&entry.labels.oid());
                let is_it = |(name, now): &(Arc<str>, Box<[Oid]>)| {
                    let before = self.functions.iter().find(|(known, _)| known == name);
                    before.map_or(now.len() == 1, |(_, before)| before == now)
                };
                names.functions.iter().all(is_it)
                    && names.enums.iter().filter_map(at_parse).all(|entry| keeps_labels(entry, catalog))
                    && !names.relations.iter().any(|relation| relation.has_namesake(path, catalog))
            }
        }
    }
}

//! What the names of relations in a prepared statement mean. PostgreSQL analyses it again when a relation of it, or the search path,
//! has changed (plancache.c: RevalidateCachedQuery, PlanCacheRelCallback); by another one that would be found first now (created,
//! renamed or moved there) it is not disturbed, while a plan that is made here finds that one.

use std::sync::Arc;

use freshet_engine::catalog::{Catalog, RelationId};
use freshet_engine::planner::Plan;
use parking_lot::Mutex;

/// What the names of one statement mean upstream, once that is known.
#[derive(Debug, Default)]
pub struct Meant(Mutex<Option<Box<[Relation]>>>);

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

/// What a plan takes the names to mean.
#[derive(Debug)]
pub struct Names(Box<[Relation]>);

impl Names {
    pub fn of(plan: &Plan, catalog: &Catalog) -> Self {
        Self(plan.relations().into_iter().filter_map(|id| Relation::of(id, catalog)).collect())
    }
}

impl Meant {
    pub fn is_known(&self) -> bool {
        self.0.lock().is_some()
    }

    pub fn set(&self, names: Names) {
        *self.0.lock() = Some(names.0);
    }

    /// Whether upstream takes the names for what the plan, which is of this catalog, takes them for. `path`: the search path, which
    /// is the one that upstream analysed it under.
    pub fn is(&self, names: &Names, path: &[Arc<str>], catalog: &Catalog) -> bool {
        match &*self.0.lock() {
            Some(before) => *before == names.0 || before.iter().any(|relation| relation.has_gone(catalog)),
            None => !names.0.iter().any(|relation| relation.has_namesake(path, catalog)),
        }
    }
}

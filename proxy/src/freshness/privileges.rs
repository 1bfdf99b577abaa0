//! May this role read these columns? Asked of upstream once per role, table and catalog version.
//!
//! PostgreSQL checks each range-table entry: USAGE on the schema where the name is looked up; SELECT on the table, or on
//! every column used, or on any column where none is used (execMain.c, ExecCheckRTEPermsModified and its kin). A grant
//! or revocation changes the catalog fingerprint and with it the version.
//!
//! What roles are (superusers, say) can be changed and changed back between two looks at the catalog, and its fingerprint is
//! what it was: an answer counts only if the fingerprint was the catalog's when it was given.

use std::collections::HashSet;
use std::sync::Arc;

use ahash::HashMap;
use freshet_engine::binder::{Reader, TableUse};
use freshet_engine::catalog::{Catalog, RelationId};
use freshet_engine::reason::UpstreamReason;
use parking_lot::RwLock;

use crate::replication::catalog::common_digest_sql;
use crate::replication::supervise::Replication;
use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Whether the role may see what others do and have asked, as in pg_stat_activity and pg_stat_statements. It may not where upstream does not
/// say.
pub async fn sees_statistics(pool: &ServicePool, role: &str) -> bool {
    let asked = async {
        let sees = "SELECT pg_has_role(oid, 'pg_read_all_stats', 'USAGE') FROM pg_roles WHERE rolname = $1";
        let row = pool.connection().await?.query_opt(sees, &[&role]).await?;
        Ok::<_, UpstreamError>(row.is_some_and(|row| row.get(0)))
    };
    asked.await.unwrap_or(false)
}

/// Answers kept; past it all are asked again.
const ANSWERS_MAX: usize = 100_000;

/// Remembers upstream's answers.
pub struct Privileges {
    replication: Replication,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    catalog_version: u64,
    roles: HashMap<Arc<str>, HashMap<RelationId, Grant>>,
    count: usize,
}

/// What a role may do with a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    /// Look it up: USAGE on its schema. What a view reads was looked up when the view was made.
    is_visible: bool,
    rights: Rights,
}

/// What a role may read of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rights {
    All,
    /// These columns (`attnum`).
    Columns(HashSet<i16>),
}

impl Privileges {
    pub(super) fn new(replication: Replication) -> Self {
        Self { replication, known: RwLock::default() }
    }

    /// Whether `role` may run a statement that uses these tables and views, by privileges as of `catalog`. An error is the
    /// reason why upstream must decide.
    pub async fn check<'u>(
        &self,
        session_role: &str,
        uses: impl Iterator<Item = &'u TableUse> + Clone,
        catalog: &Catalog,
    ) -> Result<(), UpstreamReason> {
        if let Some(answer) = self.check_known(session_role, uses.clone(), catalog) {
            return answer;
        }
        for table_use in uses.clone().filter(|table_use| table_use.reader != Reader::Heir) {
            let role = role_of(table_use, session_role);
            if self.grant(role, table_use.table, catalog.version, |_| ()).is_some() {
                continue;
            }
            let asked = self.ask(role, table_use.table, catalog.digest).await;
            let grant = asked
                .map_err(|error| UpstreamReason::Privilege(format!("upstream could not be asked: {error}").into()))?
                .ok_or(UpstreamReason::CatalogChanged)?;
            self.remember(role, table_use.table, catalog.version, grant);
        }
        let unknown = || Err(UpstreamReason::CatalogChanged);
        self.check_known(session_role, uses, catalog).unwrap_or_else(unknown)
    }

    /// The same without asking: None if not everything is known.
    pub fn check_known<'u>(
        &self,
        session_role: &str,
        uses: impl Iterator<Item = &'u TableUse>,
        catalog: &Catalog,
    ) -> Option<Result<(), UpstreamReason>> {
        for table_use in uses.filter(|table_use| table_use.reader != Reader::Heir) {
            let role = role_of(table_use, session_role);
            let judged = self.grant(role, table_use.table, catalog.version, |grant| grant.judge(table_use, catalog))?;
            if judged.is_err() {
                return Some(judged);
            }
        }
        Some(Ok(()))
    }

    fn grant<T>(&self, role: &str, relation: RelationId, version: u64, read: impl Fn(&Grant) -> T) -> Option<T> {
        let known = self.known.read();
        if known.catalog_version != version {
            return None;
        }
        known.roles.get(role)?.get(&relation).map(read)
    }

    fn remember(&self, role: &str, relation: RelationId, version: u64, grant: Grant) {
        let mut known = self.known.write();
        if version > known.catalog_version || known.count >= ANSWERS_MAX {
            *known = Known { catalog_version: version, ..Known::default() };
        }
        // An answer for a catalog that is no longer in use is of no use.
        if version == known.catalog_version {
            known.count += 1;
            known.roles.entry(role.into()).or_default().insert(relation, grant);
        }
    }

    /// See [`sees_statistics`].
    pub async fn sees_statistics(&self, role: &str) -> bool {
        sees_statistics(self.replication.pool(), role).await
    }

    /// None: the catalog is another than that of `digest`.
    async fn ask(&self, role: &str, relation: RelationId, digest: i64) -> Result<Option<Grant>, UpstreamError> {
        let client = self.replication.pool().connection().await?;
        let digest_sql = common_digest_sql();
        let grants = format!(
            "SELECT coalesce(has_schema_privilege(r.oid, relnamespace, 'USAGE'), false),
                        coalesce(has_table_privilege(r.oid, c.oid, 'SELECT'), false),
                        ARRAY (SELECT attnum FROM pg_attribute
                                WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped
                                  AND has_column_privilege(r.oid, c.oid, attnum, 'SELECT')),
                    {digest_sql}, c.oid IS NOT NULL
               FROM pg_roles r LEFT JOIN pg_class c ON c.oid = $2 WHERE r.rolname = $1"
        );
        let row = client.query_opt(&grants, &[&role, &relation.0]).await?;
        // has_table_privilege and its kin see what is newer than the statement's snapshot: looked at once more behind them.
        let behind: i64 = client.query_one(&format!("SELECT {digest_sql}"), &[]).await?.get(0);
        if behind != digest || row.as_ref().is_some_and(|row| row.get::<_, i64>(3) != digest) {
            return Ok(None);
        }
        // No barrier looks at a relation that was never answered from: dropped, it would be refused for ever.
        if row.as_ref().is_some_and(|row| !row.get::<_, bool>(4)) {
            self.replication.request_reload();
            return Ok(None);
        }
        let Some(row) = row else {
            return Ok(Some(Grant { is_visible: false, rights: Rights::Columns(HashSet::new()) }));
        };
        let rights = match row.get(1) {
            true => Rights::All,
            false => Rights::Columns(row.get::<_, Vec<i16>>(2).into_iter().collect()),
        };
        Ok(Some(Grant { is_visible: row.get(0), rights }))
    }
}

/// Whose rights count.
fn role_of<'r>(table_use: &'r TableUse, session_role: &'r str) -> &'r str {
    match &table_use.reader {
        Reader::View { owner: Some(owner) } => owner,
        // An heir is not asked about.
        Reader::View { owner: None } | Reader::Session | Reader::Body | Reader::Heir => session_role,
    }
}

impl Grant {
    fn judge(&self, table_use: &TableUse, catalog: &Catalog) -> Result<(), UpstreamReason> {
        let Some(table) = catalog.described(table_use.table) else {
            return Err(UpstreamReason::CatalogChanged);
        };
        let refuse = |what: String| Err(UpstreamReason::Privilege(what.into()));
        if matches!(table_use.reader, Reader::Session | Reader::Body) && !self.is_visible {
            return refuse(format!("schema {}", table.schema));
        }
        match &self.rights {
            Rights::All => Ok(()),
            Rights::Columns(granted) if table_use.columns.is_empty() => {
                if granted.is_empty() {
                    refuse(format!("table {}", table.name))
                } else {
                    Ok(())
                }
            }
            Rights::Columns(granted) => {
                let mut used = table_use.columns.iter().filter_map(|column| table.columns.get(*column));
                match used.find(|column| !granted.contains(&column.attnum)) {
                    Some(column) => refuse(format!("column {}.{}", table.name, column.name)),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use freshet_engine::catalog::{Collation, ColumnSchema, ReplicaIdentity, TableSchema};

    use super::*;

    fn catalog() -> Catalog {
        let column = |name: &str, attnum| ColumnSchema {
            name: name.into(),
            attnum,
            type_oid: 23,
            typmod: -1,
            pg_type: None,
            not_null: false,
            collation: Collation::None,
        };
        let table = TableSchema {
            id: RelationId(7),
            schema: "public".into(),
            name: "t".into(),
            columns: vec![column("a", 1), column("c", 3)],
            primary_key: vec![],
            identity: ReplicaIdentity::Full,
        };
        Catalog { tables: [(RelationId(7), Arc::new(table))].into(), ..Catalog::default() }
    }

    #[test]
    fn columns_are_judged_by_attribute_number_and_count_star_needs_any() {
        let catalog = catalog();
        let uses = |columns: &[usize]| {
            let reader = Reader::Session;
            TableUse { table: RelationId(7), reader, columns: columns.to_vec() }
        };
        let grant = |rights| Grant { is_visible: true, rights };
        let granted = grant(Rights::Columns(HashSet::from([3])));
        assert_eq!(granted.judge(&uses(&[1]), &catalog), Ok(()));
        assert_eq!(granted.judge(&uses(&[]), &catalog), Ok(()));
        assert_eq!(granted.judge(&uses(&[0, 1]), &catalog), Err(UpstreamReason::Privilege("column t.a".into())));
        assert!(grant(Rights::Columns(HashSet::new())).judge(&uses(&[]), &catalog).is_err());
        assert_eq!(grant(Rights::All).judge(&uses(&[0, 1]), &catalog), Ok(()));
        let hidden = Grant { is_visible: false, rights: Rights::All };
        assert!(hidden.judge(&uses(&[]), &catalog).is_err());
        let of_view = TableUse { reader: Reader::View { owner: None }, ..uses(&[]) };
        assert_eq!(hidden.judge(&of_view, &catalog), Ok(()), "a view has found it already");
    }
}

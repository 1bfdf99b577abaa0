//! [`Neighbours`]: what the other databases of upstream are, asked in the one that is mirrored in any case.

use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Asks about other databases.
#[derive(Clone)]
pub struct Neighbours(ServicePool);

/// A database of upstream, and why it cannot be mirrored beside this one, as far as that is known without a look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    pub name: String,
    pub obstacle: Option<String>,
}

/// What has sessions cannot be copied, and CREATE DATABASE copies template1 if it is told nothing else (dbcommands.c, createdb).
const OBSTACLE: &str = "CASE WHEN datname = current_database() THEN 'it is that of upstream.url'
         WHEN datistemplate OR datname = 'template1' THEN 'it is a template of others'
         WHEN NOT datallowconn OR datconnlimit = -2 THEN 'it takes no connections'
         WHEN NOT has_database_privilege(oid, 'CONNECT') THEN format('role %I may not connect to it', current_user)
         WHEN pg_encoding_to_char(encoding) <> 'UTF8'
         THEN format('its encoding is %s, and only UTF8 text can be compared and measured exactly', pg_encoding_to_char(encoding))
       END";

impl Neighbours {
    pub fn new(pool: ServicePool) -> Self {
        Self(pool)
    }

    /// Those beside this one, by name.
    pub async fn all(&self) -> Result<Vec<Neighbour>, UpstreamError> {
        let sql =
            format!("SELECT datname::text, {OBSTACLE} FROM pg_database WHERE datname <> current_database() ORDER BY 1");
        let rows = self.0.connection().await?.query(&sql, &[]).await?;
        Ok(rows.iter().map(|row| Neighbour { name: row.get(0), obstacle: row.get(1) }).collect())
    }

    /// Why the database of this name cannot be mirrored beside this one.
    pub async fn obstacle(&self, name: &str) -> Result<Option<String>, UpstreamError> {
        let sql = format!("SELECT {OBSTACLE} FROM pg_database WHERE datname = $1");
        let row = self.0.connection().await?.query_opt(&sql, &[&name]).await?;
        Ok(row.map_or_else(|| Some("there is no such database".into()), |row| row.get(0)))
    }

    /// Those that freshet's role can log in to, templates and all, beside this one.
    pub async fn within_reach(&self) -> Result<Vec<String>, UpstreamError> {
        let sql = "SELECT datname::text FROM pg_database
                    WHERE datallowconn AND datconnlimit <> -2 AND datname <> current_database()
                      AND has_database_privilege(oid, 'CONNECT') ORDER BY 1";
        Ok(self.0.connection().await?.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
    }

    /// Whether who logged in as `user` could drop, rename, move or copy the database: as its owner or as a superuser, or as a role
    /// that SET ROLE lets it become; a template may be copied by whoever may create databases. Others only get an error
    /// (dbcommands.c).
    pub async fn may_dispose(&self, user: &str, name: &str, is_copy: bool) -> Result<bool, UpstreamError> {
        let sql = "SELECT EXISTS (
                       SELECT FROM pg_database d, pg_roles r
                        WHERE datname = $2 AND (r.oid = datdba OR r.rolsuper OR $3 AND datistemplate AND r.rolcreatedb)
                          AND pg_has_role((SELECT oid FROM pg_roles WHERE rolname = $1), r.oid, 'MEMBER'))";
        Ok(self.0.connection().await?.query_one(sql, &[&user, &name, &is_copy]).await?.get(0))
    }
}

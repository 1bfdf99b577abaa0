//! The optional event trigger (`mirror.event_trigger`): every DDL statement leaves a message in the log at its commit, so that
//! modes `session` and `standby` need not wait for the next look at the catalog; and a table that loses its replica identity
//! leaves the publication in the same transaction, so that nobody's UPDATE or DELETE fails for it.
//!
//! What it does not fire for (roles and their membership, settings of roles and databases; its own removal) the fingerprint
//! finds as ever. It has a schema of its own, named like the process's publication, and goes with it.

use crate::replication::catalog::UNFIT_IDENTITY;
use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Prefix of the messages.
pub const PREFIX: &str = "freshet.ddl";

/// What [`state`] says where all is well, and where none is wanted.
pub const ON: &str = "on";
pub const OFF: &str = "off";

/// No EXCEPTION block: the message belongs to the statement's own transaction. SECURITY DEFINER: the publication is freshet's.
const CREATE: &str = "
    CREATE SCHEMA NAME;
    CREATE FUNCTION NAME.note() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $freshet$
    DECLARE
        lost record;
    BEGIN
        FOR lost IN
            SELECT c.oid AS id, format('%I.%I', nspname, relname) AS name
              FROM pg_publication p JOIN pg_publication_rel r ON prpubid = p.oid
              JOIN pg_class c ON c.oid = prrelid JOIN pg_namespace n ON n.oid = relnamespace
             WHERE pubname = 'NAME' AND UNFIT_IDENTITY
        LOOP
            -- That is DDL, too: for the first of several this has run again, and taken out the others.
            IF EXISTS (SELECT FROM pg_publication p JOIN pg_publication_rel r ON prpubid = p.oid
                        WHERE pubname = 'NAME' AND prrelid = lost.id) THEN
                EXECUTE format('ALTER PUBLICATION NAME DROP TABLE ONLY %s', lost.name);
            END IF;
        END LOOP;
        PERFORM pg_logical_emit_message(true, 'PREFIX', '');
    END $freshet$;
    CREATE EVENT TRIGGER NAME ON ddl_command_end EXECUTE FUNCTION NAME.note();
    ALTER EVENT TRIGGER NAME ENABLE ALWAYS;";

/// Makes it anew; only a superuser may.
pub(super) async fn create(pool: &ServicePool, name: &str) -> Result<(), UpstreamError> {
    drop_trigger(pool, name).await?;
    let client = pool.connection().await?;
    let create = CREATE.replace("NAME", name).replace("PREFIX", PREFIX).replace("UNFIT_IDENTITY", UNFIT_IDENTITY);
    Ok(client.batch_execute(&create).await?)
}

/// Whether it fires, to be read by people. Nobody is told by its own removal.
pub(super) async fn state(pool: &ServicePool, name: &str) -> Result<&'static str, UpstreamError> {
    let client = pool.connection().await?;
    let sql = "SELECT evtenabled = 'A' FROM pg_event_trigger WHERE evtname = $1";
    Ok(match client.query_opt(sql, &[&name]).await?.map(|row| row.get(0)) {
        Some(true) => ON,
        Some(false) => "disabled",
        None => "missing",
    })
}

/// Nothing is left of it.
pub(super) async fn drop_trigger(pool: &ServicePool, name: &str) -> Result<(), UpstreamError> {
    let client = pool.connection().await?;
    let drop = format!("DROP EVENT TRIGGER IF EXISTS {name}; DROP SCHEMA IF EXISTS {name} CASCADE");
    Ok(client.batch_execute(&drop).await?)
}

/// Names of event triggers of freshet's naming (`pattern`) that no running freshet has.
pub(super) async fn abandoned(pool: &ServicePool, pattern: &str) -> Result<Vec<String>, UpstreamError> {
    let client = pool.connection().await?;
    let sql = "SELECT evtname::text FROM pg_event_trigger
                WHERE evtname ~ $1 AND pg_has_role(evtowner, 'USAGE')
                  AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = evtname)";
    Ok(client.query(sql, &[&pattern]).await?.iter().map(|row| row.get(0)).collect())
}

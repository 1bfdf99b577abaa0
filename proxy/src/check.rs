//! The operator's questions, asked of upstream without changing it: `freshet check`, `freshet explain`; and
//! `freshet uninstall`, which removes what freshets left behind.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use freshet_config::{DatabaseChoice, FreshnessMode, Mirror as MirrorSettings, Settings, TableChoice};
use freshet_engine::PrepareContext;
use freshet_engine::binder::computed_columns;
use freshet_engine::catalog::{RelationEntry, TableSchema, View, with_article};
use freshet_engine::planner::explain::explain as show_plan;
use freshet_engine::reason::UpstreamReason;
use freshet_engine::statement::dependencies::dependencies;
use freshet_engine::types::FormatSettings;
use tokio_postgres::Client;

use crate::freshness::neighbours::{Neighbour, Neighbours};
use crate::replication::bootstrap::Left;
use crate::replication::catalog::{self, LoadedCatalog};
use crate::replication::choice::{Chosen, LEFT_OUT};
use crate::replication::preflight::{self, Finding, Needs, ServerFacts, Severity};
use crate::replication::release::{self, Releaser};
use crate::replication::standby;
use crate::replication::stream::Walsender;
use crate::replication::supervise;
use crate::room;
use crate::server::{LET_NOBODY_ELSE, client_leg, exposed_keys};
use crate::startup::binding;
use crate::tls::serve::ServerTls;
use crate::upstream::UpstreamError;
use crate::upstream::address::UpstreamAddress;
use crate::upstream::connection::Connection;
use crate::upstream::service::ServicePool;

/// SQLSTATE syntax_error.
const SYNTAX_ERROR: &str = "42601";
/// SQLSTATE too_many_connections.
const TOO_MANY_CONNECTIONS: &str = "53300";

/// What was found out, for people; and whether all is well.
pub struct Report {
    pub text: String,
    pub is_fine: bool,
}

/// Per requirement and per table: fine, or what is missing, why, and the SQL that mends it.
pub async fn check(settings: &Settings) -> Result<Report, UpstreamError> {
    let address = UpstreamAddress::of(&settings.upstream)?;
    let pool = ServicePool::new(&address, 1)?;
    let mut client = pool.connection().await?;
    let is_standby = settings.freshness.mode == FreshnessMode::Standby;
    let own = format!("{}_", settings.mirror.publication);
    let needs = Needs { standby: is_standby.then_some(&*settings.freshness.standby_name), own: Some(&own) };
    let facts = preflight::gather(&client, needs).await?;
    let mut findings = preflight::assess(&facts, needs);
    if settings.mirror.tables != TableChoice::None && findings.iter().all(|of| of.severity != Severity::Blocks) {
        findings.extend(obstacle_to_replication(&address).await);
        findings.extend(held_up(&client).await?);
    }
    let loaded = catalog::load(&mut client, 1, Arc::default(), &LoadedCatalog::default(), &HashSet::new()).await?;
    let mut report = Report { text: String::new(), is_fine: true };
    let text = &mut report.text;
    let _ = writeln!(text, "upstream   {address}");
    let version = (facts.version / 10_000, facts.version % 10_000);
    let _ = writeln!(
        text,
        "server     PostgreSQL {}.{}, role {}, database {}",
        version.0, version.1, facts.role, facts.database
    );
    let tls = ServerTls::load(settings).ok().flatten();
    let clients = client_leg(tls.as_ref(), settings);
    for binding in binding::assess(&clients, &address, address.connect_timeout).await? {
        report.is_fine &= binding.works();
        let word = if binding.works() { "log-in" } else { "MISSING" };
        let _ = writeln!(text, "{word:10} {}", binding.text());
        if let Some(remedy) = binding.remedy() {
            let _ = writeln!(text, "           mend: {remedy}");
        }
    }
    for exposed in exposed_keys(settings, &address) {
        let _ = writeln!(text, "note       {exposed}\n           mend: {LET_NOBODY_ELSE}");
    }
    if settings.mirror.tables != TableChoice::None
        && let Some(shortage) = room::shortage(settings)
    {
        let _ = writeln!(text, "note       {shortage}");
    }
    if findings.is_empty() {
        let _ = writeln!(text, "ready      wal_level, REPLICATION, slots, walsenders, publication: fine");
    }
    report.is_fine &= tell_findings(&findings, text);
    let chosen = Chosen::of(&settings.mirror.tables, &loaded.catalog);
    // With several databases a name need not be of each.
    report.is_fine &= chosen.unknown.is_empty() || settings.mirror.databases != DatabaseChoice::One;
    report.is_fine &= tables(&loaded, &settings.mirror, &chosen, text);
    derived(&loaded, text);
    hidden(&loaded, &settings.admin.schema, text);
    report.is_fine &= wishes(&client, settings, text).await?;
    if settings.mirror.databases != DatabaseChoice::One {
        drop(client);
        report.is_fine &= other_databases(&pool, settings, &facts, text).await?;
    }
    Ok(report)
}

/// What the settings want beside tables; false if it cannot be had.
async fn wishes(client: &Client, settings: &Settings, text: &mut String) -> Result<bool, UpstreamError> {
    let mut is_fine = true;
    let mut tell = |what: &str, why: &str| {
        is_fine = false;
        let _ = writeln!(text, "MISSING    {what}\n           why:  {why}");
    };
    let role = client
        .query_one(
            "SELECT rolsuper, rolsuper OR pg_has_role(oid, 'pg_read_all_stats', 'USAGE') FROM pg_roles WHERE rolname = current_user",
            &[],
        )
        .await?;
    if settings.mirror.event_trigger && !role.get::<_, bool>(0) {
        tell("mirror.event_trigger", "only a superuser can make one");
    }
    if settings.freshness.mode == FreshnessMode::Standby {
        if !role.get::<_, bool>(1) {
            tell(
                "freshness.mode standby",
                "the state of commits cannot be seen: GRANT pg_read_all_stats to freshet's role",
            );
        }
        let mut session = Connection::open(&UpstreamAddress::of(&settings.upstream)?, &[]).await?;
        let could_be = standby::could_be(&mut session, &settings.freshness.standby_name).await?;
        session.terminate().await;
        if let Err(why) = could_be {
            tell("freshness.mode standby", &why);
        }
    }
    Ok(is_fine)
}

/// Databases that would be mirrored beside that of the URL; false if one that the settings name cannot be.
async fn other_databases(
    pool: &ServicePool,
    settings: &Settings,
    facts: &ServerFacts,
    text: &mut String,
) -> Result<bool, UpstreamError> {
    let address = UpstreamAddress::of(&settings.upstream)?;
    let neighbours = Neighbours::new(pool.clone());
    let (others, is_named) = match &settings.mirror.databases {
        DatabaseChoice::One => (Vec::new(), false),
        DatabaseChoice::Auto => (neighbours.all().await?, false),
        DatabaseChoice::List(names) => {
            let mut others = Vec::new();
            for name in names.iter().filter(|name| **name != address.database) {
                others.push(Neighbour { name: name.clone(), obstacle: neighbours.obstacle(name).await? });
            }
            (others, true)
        }
    };
    let mut is_fine = true;
    for Neighbour { name, obstacle } in &others {
        if let Some(why) = obstacle {
            is_fine &= !is_named;
            let _ = writeln!(text, "database   {name}: relayed\n           why:  {why}");
            continue;
        }
        let _ = writeln!(text, "database   {name}");
        match database(&address.with_database(name), settings).await {
            Ok(of_database) => {
                text.push_str(&of_database.text);
                is_fine &= of_database.is_fine || !is_named;
            }
            Err(error) => {
                is_fine &= !is_named;
                let _ = writeln!(text, "MISSING    it cannot be looked at\n           why:  {error}");
            }
        }
    }
    let mirrors = 1 + others.iter().filter(|other| other.obstacle.is_none()).count();
    let mirrors = mirrors.min(settings.mirror.databases_max) as i64;
    let free = (facts.slots_max - facts.slots_used).min(facts.walsenders_max - facts.walsenders_used);
    if free < mirrors {
        let _ = writeln!(
            text,
            "note       {mirrors} databases may be mirrored at a time\n           why:  of slots and walsenders, {free} are free \
             (less those of a freshet that runs)\n           mend: raise max_replication_slots and max_wal_senders, \
             or lower mirror.databases_max"
        );
    }
    Ok(is_fine)
}

/// Why there is no line for replication where the server would have one: the URL may lead to a pooler, which takes it for another client.
async fn obstacle_to_replication(address: &UpstreamAddress) -> Option<Finding> {
    let error = match Walsender::connect(address, "freshet check").await {
        Ok(walsender) => {
            walsender.close().await;
            return None;
        }
        Err(error) => error,
    };
    // An ordinary session takes the command for SQL (exec_replication_command is not reached).
    let is_ordinary = error.code() == Some(SYNTAX_ERROR);
    let (why, remedy) = match is_ordinary {
        true => (
            format!("an ordinary session answers where one for replication was asked for, as poolers do ({error})"),
            "let upstream.url lead to PostgreSQL itself: a pooler belongs in front of freshet",
        ),
        false if error.code() == Some(TOO_MANY_CONNECTIONS) => (
            format!(
                "no further connection for replication can be had, unless that is freshet's own, which runs: {error}"
            ),
            "raise max_wal_senders, or end what uses them (pg_stat_replication)",
        ),
        false => (
            format!("a connection for replication cannot be had: {error}"),
            "allow it (pg_hba.conf, the role's REPLICATION), and let upstream.url lead to PostgreSQL itself",
        ),
    };
    let what = "replication".to_owned();
    Some(Finding { severity: Severity::Blocks, what, why, remedy: remedy.to_owned() })
}

/// Transactions that the start of the mirror would wait for (snapbuild.c: all that have written), if they are not over soon.
async fn held_up(client: &Client) -> Result<Option<Finding>, UpstreamError> {
    const WHO: &str = "SELECT string_agg(who, '; ') FROM (
        SELECT format('process %s of %I in %I, %s, open since %s', pid, usename, datname, state, xact_start) AS who
          FROM pg_stat_activity
         WHERE backend_xid IS NOT NULL AND xact_start < clock_timestamp() - interval '2 seconds' AND pid <> pg_backend_pid()
        UNION ALL
        SELECT format('prepared transaction %L of %I in %I', gid, owner, database) FROM pg_prepared_xacts) AS of";
    let whom: Option<String> = client.query_one(WHO, &[]).await?.get(0);
    Ok(whom.map(|whom| Finding {
        severity: Severity::Warns,
        what: "open transactions".to_owned(),
        why: format!("a mirror starts when every transaction that has written is over: {whom}"),
        remedy: "end them (COMMIT, ROLLBACK, or pg_terminate_backend(pid))".to_owned(),
    }))
}

/// False if one of them keeps the mirror from running.
fn tell_findings(findings: &[Finding], text: &mut String) -> bool {
    let mut is_fine = true;
    for finding in findings {
        let word = match finding.severity {
            Severity::Blocks => "MISSING",
            Severity::Warns => "note",
        };
        is_fine &= finding.severity != Severity::Blocks;
        let _ = writeln!(
            text,
            "{word:10} {}\n           why:  {}\n           mend: {}",
            finding.what, finding.why, finding.remedy
        );
    }
    is_fine
}

/// What is different from database to database.
async fn database(address: &UpstreamAddress, settings: &Settings) -> Result<Report, UpstreamError> {
    let mirror = &settings.mirror;
    let pool = ServicePool::new(address, 1)?;
    let mut client = pool.connection().await?;
    // Commits wait for the mirror of the URL's database only.
    let own = format!("{}_", mirror.publication);
    let needs = Needs { standby: None, own: Some(&own) };
    let findings = preflight::assess(&preflight::gather(&client, needs).await?, needs);
    let loaded = catalog::load(&mut client, 1, Arc::default(), &LoadedCatalog::default(), &HashSet::new()).await?;
    let mut text = String::new();
    let chosen = Chosen::of(&mirror.tables, &loaded.catalog);
    let is_fine = tell_findings(&findings, &mut text) & tables(&loaded, mirror, &chosen, &mut text);
    derived(&loaded, &mut text);
    hidden(&loaded, &settings.admin.schema, &mut text);
    Ok(Report { text, is_fine })
}

/// A line for each table; false if one that the settings name cannot be mirrored.
fn tables(loaded: &LoadedCatalog, mirror: &MirrorSettings, chosen: &Chosen, text: &mut String) -> bool {
    let choice = &mirror.tables;
    for (name, why) in &chosen.unknown {
        let _ = writeln!(text, "note       mirror.tables names {name}\n           why:  {why}");
    }
    let left_out = if *choice == TableChoice::None { "mirror.tables is \"none\"" } else { LEFT_OUT };
    let mut all: Vec<_> = loaded.tables.values().collect();
    all.sort_by(|a, b| (&a.schema.schema, &a.schema.name).cmp(&(&b.schema.schema, &b.schema.name)));
    let (mut is_fine, mut refused) = (true, Vec::<(&str, Vec<String>, Vec<&str>)>::new());
    for facts in all {
        let name = format!("{}.{}", facts.schema.schema, facts.schema.name);
        let (why, mends) = match &facts.refusal {
            _ if !chosen.has(facts.schema.id) => (left_out, None),
            Some(refusal) if !refusal.stands(mirror.set_replica_identity_full) => {
                let left_out = columns_left_out(loaded, &facts.schema);
                let _ = writeln!(
                    text,
                    "table      {name}: can be mirrored, by REPLICA IDENTITY FULL, which freshet sets{left_out}"
                );
                continue;
            }
            Some(refusal) => {
                is_fine &= !matches!(choice, TableChoice::List(_));
                (&*refusal.why, refusal.remedy.as_deref())
            }
            None => {
                let _ = writeln!(text, "table      {name}: can be mirrored{}", columns_left_out(loaded, &facts.schema));
                continue;
            }
        };
        match refused.iter_mut().find(|(known, ..)| *known == why) {
            Some((_, names, known)) => {
                names.push(name);
                known.extend(mends.filter(|mend| !known.contains(mend)));
            }
            None => refused.push((why, vec![name], mends.into_iter().collect())),
        }
    }
    for (why, names, mends) in refused {
        let _ = writeln!(text, "table      {}: relayed\n           why:  {why}", names.join(", "));
        mends.iter().for_each(|mend| {
            let _ = writeln!(text, "           mend: {mend}");
        });
    }
    is_fine
}

/// Whether upstream has a schema of the name that freshet's own tables go by.
fn hidden(loaded: &LoadedCatalog, own: &str, text: &mut String) {
    if loaded.catalog.schemas.keys().any(|schema| **schema == *own) {
        let _ = writeln!(
            text,
            "note       schema {own}: upstream has one of this name\n           why:  reads that name it find freshet's own tables only\n           \
             mend: set admin.schema to another name"
        );
    }
}

fn columns_left_out(loaded: &LoadedCatalog, schema: &TableSchema) -> String {
    let computed = computed_columns(&loaded.catalog, schema);
    let columns = schema.columns.iter().enumerate();
    let left_out = columns.filter(|(at, column)| column.pg_type.is_none() && !computed.contains(at));
    let left_out: Vec<&str> = left_out.map(|(_, column)| &*column.name).collect();
    if left_out.is_empty() { String::new() } else { format!(" (columns not mirrored: {})", left_out.join(", ")) }
}

/// A line for each relation that is made of others, and for each that statements can name but that is not answered from.
fn derived(loaded: &LoadedCatalog, text: &mut String) {
    let mut lines = Vec::new();
    for (schema, entries) in &loaded.catalog.schemas {
        if matches!(&**schema, "pg_catalog" | "information_schema") {
            continue;
        }
        for (name, entry) in entries {
            let name = format!("{schema}.{name}");
            match entry {
                RelationEntry::Table(table) => {
                    if let Some(partitioned) = loaded.catalog.partitioned.get(&table.id) {
                        lines.push(format!("table      {name}: made of {} partitions", partitioned.leaves.len()));
                    }
                    match loaded.catalog.heirs.get(&table.id) {
                        Some(Ok(heirs)) => lines.push(format!("table      {name}: with {} that inherit", heirs.len())),
                        Some(Err(kind)) => lines.push(format!(
                            "relation   {name}: relayed without ONLY\n           why:  it is {}",
                            with_article(kind)
                        )),
                        None => {}
                    }
                }
                RelationEntry::View(view) => lines.push(match can_be_read(loaded, view) {
                    Ok(()) => format!("view       {name}: can be answered"),
                    Err(reason) if reads_materialized(loaded, view) => {
                        format!("view       {name}: replies are kept\n           why:  {reason}")
                    }
                    Err(reason) => format!("view       {name}: relayed\n           why:  {reason}"),
                }),
                RelationEntry::Materialized(_) => {
                    lines.push(format!("view       {name}: materialized, replies are kept until it is refreshed"));
                }
                RelationEntry::Other { kind, .. } if kind.contains("table") || kind.contains("view") => {
                    let kind = with_article(kind);
                    lines.push(format!("relation   {name}: relayed\n           why:  it is {kind}"));
                }
                RelationEntry::Other { .. } => {}
            }
        }
    }
    lines.sort_unstable();
    lines.iter().for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
}

/// Whether a view that is not understood reads materialized ones, and nothing that replies cannot be kept by.
fn reads_materialized(loaded: &LoadedCatalog, view: &View) -> bool {
    dependencies(&all_of(view), &loaded.catalog, &[]).is_ok_and(|found| !found.materialized.is_empty())
}

fn all_of(view: &View) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    format!("SELECT * FROM {}.{}", quoted(&view.schema.schema), quoted(&view.schema.name))
}

/// Whether all of a view is understood.
fn can_be_read(loaded: &LoadedCatalog, view: &View) -> Result<(), UpstreamReason> {
    let format = FormatSettings::default();
    let context = PrepareContext {
        catalog: &loaded.catalog,
        settings_id: 0,
        search_path: &[],
        settings: &format,
        parameter_types: &[],
    };
    freshet_engine::prepare(&all_of(view), &context).map(drop)
}

/// How a statement would be answered, by upstream's catalog of this moment and default settings.
pub async fn explain(settings: &Settings, sql: &str) -> Result<Report, UpstreamError> {
    let address = UpstreamAddress::of(&settings.upstream)?;
    let pool = ServicePool::new(&address, 1)?;
    let mut client = pool.connection().await?;
    let needs = Needs { standby: None, own: Some(&format!("{}_", settings.mirror.publication)) };
    let findings = preflight::assess(&preflight::gather(&client, needs).await?, needs);
    let obstacles: String = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Blocks)
        .map(|finding| format!("reason: nothing is mirrored: {finding}\n"))
        .collect();
    let loaded = catalog::load(&mut client, 1, Arc::default(), &LoadedCatalog::default(), &HashSet::new()).await?;
    // As a session of this role sees it; the pool's own search path is another.
    let mut session = Connection::open(&address, &[]).await?;
    let found = session.simple_query("SELECT unnest(current_schemas(true))").await?;
    session.terminate().await;
    let names = found.iter().filter_map(|row| row.first()?.as_ref());
    let search_path: Vec<Arc<str>> = names.map(|name| String::from_utf8_lossy(name).as_ref().into()).collect();
    let format = FormatSettings::default();
    let context = PrepareContext {
        catalog: &loaded.catalog,
        settings_id: 0,
        search_path: &search_path,
        settings: &format,
        parameter_types: &[],
    };
    let prepared = match freshet_engine::prepare(sql, &context) {
        Ok(prepared) => prepared,
        Err(reason) => {
            let kept_by = dependencies(sql, &loaded.catalog, &search_path);
            let is_kept = obstacles.is_empty()
                && kept_by.is_ok_and(|found| reason.leaves_reply_to_keep() || !found.materialized.is_empty());
            let route = if is_kept { "capture, if repeated (then hit, until what it reads changes)" } else { "relay" };
            return Ok(Report { text: format!("route: {route}\nreason: {reason}\n{obstacles}"), is_fine: true });
        }
    };
    let mut is_mirrored = obstacles.is_empty();
    let mut text = obstacles;
    let chosen = Chosen::of(&settings.mirror.tables, &loaded.catalog);
    for table in &prepared.plan.tables {
        let Some(facts) = loaded.tables.get(&table.table) else { continue };
        let name = format!("{}.{}", facts.schema.schema, facts.schema.name);
        if !chosen.has(facts.schema.id) {
            is_mirrored = false;
            let _ = writeln!(text, "reason: {name} is not mirrored: {LEFT_OUT}");
        } else if let Some(refusal) = &facts.refusal
            && refusal.stands(settings.mirror.set_replica_identity_full)
        {
            is_mirrored = false;
            let mend = refusal.remedy.as_ref().map(|sql| format!("; mend: {sql}")).unwrap_or_default();
            let _ = writeln!(text, "reason: {name} is not mirrored: {}{mend}", refusal.why);
        }
    }
    let route = if is_mirrored {
        "local, once its tables are mirrored and its first execution has been compared (then hit, if repeated)"
    } else {
        "relay"
    };
    text.insert_str(0, &format!("route: {route}\n"));
    let _ = writeln!(text, "shape: {}", prepared.shape.text);
    let columns: Vec<String> =
        prepared.plan.output.iter().map(|c| format!("{} {}", c.name, c.expr_type.pg_type.name())).collect();
    let _ = writeln!(text, "result: {}", columns.join(", "));
    let _ = write!(text, "plan:\n{}", show_plan(&prepared.plan, &loaded.catalog));
    Ok(Report { text, is_fine: true })
}

/// Frees writers that wait for a freshet that does not come back; goes on until the connection ends.
pub async fn release(settings: &Settings) -> Result<Report, UpstreamError> {
    let address = UpstreamAddress::of(&settings.upstream)?;
    let name = &settings.freshness.standby_name;
    if release::is_connected(&address, name).await? {
        let text = format!(
            "a standby named {name} is connected: commits wait for that one. Stop it first; if it hangs or its host is \
             gone, end its line: SELECT pg_terminate_backend(pid) FROM pg_stat_replication WHERE application_name = '{name}'\n"
        );
        return Ok(Report { text, is_fine: false });
    }
    // A freshet that is cut off from upstream believes for so long that it is waited for.
    tokio::time::sleep(Duration::from_millis(settings.freshness.max_lag_ms)).await;
    let releaser = Releaser::connect(&address, name).await?;
    tracing::info!(standby = %name, "acknowledging every commit in freshet's stead, until this is ended (Ctrl-C)");
    Err(releaser.run().await)
}

/// Drops what freshets that no longer run left behind; says what.
pub async fn uninstall(settings: &Settings) -> Result<Report, UpstreamError> {
    let address = UpstreamAddress::of(&settings.upstream)?;
    let mut report = Report { text: String::new(), is_fine: true };
    let mut is_clean = uninstall_one(&address, settings, "", &mut report).await?;
    let pool = ServicePool::new(&address, 1)?;
    let others = Neighbours::new(pool).within_reach().await?;
    // Whatever is configured now: it may have been otherwise.
    for database in others {
        let of = format!(" of database {database}");
        match uninstall_one(&address.with_database(&database), settings, &of, &mut report).await {
            Ok(had_nothing) => is_clean &= had_nothing,
            Err(error) => {
                // What admits nobody (pg_hba.conf) has never been mirrored, unless the operator says that it is to be.
                let is_named =
                    matches!(&settings.mirror.databases, DatabaseChoice::List(names) if names.contains(&database));
                report.is_fine &= !is_named;
                let _ = writeln!(report.text, "database {database} cannot be looked at: {error}");
            }
        }
    }
    if is_clean {
        report.text.push_str("nothing to remove\n");
    }
    Ok(report)
}

/// Whether nothing of freshet's was there.
async fn uninstall_one(
    address: &UpstreamAddress,
    settings: &Settings,
    of: &str,
    report: &mut Report,
) -> Result<bool, UpstreamError> {
    let prefix = &settings.mirror.publication;
    let dropped = supervise::uninstall(address, prefix).await?;
    for name in &dropped {
        let _ = writeln!(report.text, "dropped publication {name}{of}");
    }
    let left = supervise::left_behind(address, prefix).await?;
    for Left { name, why, is_ours } in &left {
        report.is_fine &= is_ours;
        let _ = writeln!(report.text, "left publication {name}{of}: {why}");
    }
    Ok(dropped.is_empty() && left.is_empty())
}

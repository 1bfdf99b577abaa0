//! The demo's table: every dashboard query by PostgreSQL, by freshet's engine and as a hit, rows compared; then one
//! UPDATE past freshet and the very next read through it.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use freshet_engine::types::PgType;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::DemoError;
use crate::audit::compare::{ComparedColumn, Freedom, Nearness, Row, compare};

/// Timed runs of each query on each side; the median is shown.
const RUNS: usize = 7;
/// Executions through freshet until a shape must have been verified and answered locally.
const VERIFY_ATTEMPTS: usize = 50;

struct Query {
    name: String,
    sql: String,
}

struct Line {
    upstream: Duration,
    local: Duration,
    hit: Duration,
    routes: (String, String),
    rows: usize,
    is_equal: bool,
}

/// Prints the table and the bypass; an error if a claim does not hold.
pub(super) async fn show(direct: &Client, through: &Client, data: &Path) -> Result<(), DemoError> {
    let queries = read_queries(&data.join("dashboard.sql"))?;
    say(&format!(
        "\n{:34} {:>12} {:>14} {:>14} {:>8}  {}",
        "query", "PostgreSQL", "freshet local", "freshet hit", "rows", "equal"
    ));
    let mut failures = Vec::new();
    for query in &queries {
        let line = measure(direct, through, query).await?;
        say(&format!(
            "{:34} {:>12} {:>14} {:>14} {:>8}  {}",
            query.name,
            milliseconds(line.upstream),
            milliseconds(line.local),
            milliseconds(line.hit),
            line.rows,
            if line.is_equal { "yes" } else { "NO" }
        ));
        if !line.is_equal {
            failures.push(format!("{}: the rows differ", query.name));
        }
        if line.routes != ("local".to_string(), "hit".to_string()) {
            failures.push(format!("{}: answered by {} and {}", query.name, line.routes.0, line.routes.1));
        }
        if line.hit >= line.upstream {
            failures.push(format!("{}: the hit is not faster", query.name));
        }
    }
    bypass(direct, through).await?;
    if failures.is_empty() { Ok(()) } else { Err(DemoError::Claim(failures.join("\n"))) }
}

fn read_queries(path: &Path) -> Result<Vec<Query>, DemoError> {
    let text = std::fs::read_to_string(path).map_err(|e| DemoError::data(path.display(), e))?;
    let sections = text.split("-- name:").skip(1).filter_map(|section| section.split_once('\n'));
    Ok(sections
        .map(|(name, sql)| Query { name: name.trim().into(), sql: sql.trim().trim_end_matches(';').into() })
        .collect())
}

async fn measure(direct: &Client, through: &Client, query: &Query) -> Result<Line, DemoError> {
    let upstream_rows = rows(direct, &query.sql).await?;
    let upstream = median(direct, &query.sql).await?;
    // The first execution is relayed and is the oracle; the engine answers once the shape is verified.
    through.batch_execute("SET freshet.route = 'local'").await?;
    let mut local_rows = Vec::new();
    let mut route = String::new();
    for _ in 0..VERIFY_ATTEMPTS {
        local_rows = rows(through, &query.sql).await?;
        route = last_route(through).await?;
        if route == "local" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let local = median(through, &query.sql).await?;
    through.batch_execute("SET freshet.route = 'auto'").await?;
    rows(through, &query.sql).await?;
    let hit_rows = rows(through, &query.sql).await?;
    let hit_route = last_route(through).await?;
    let hit = median(through, &query.sql).await?;
    let columns = columns(direct, &query.sql).await?;
    let agrees = |ours: &[Row]| compare(&columns, &Freedom::default(), &upstream_rows, ours, None).is_ok();
    let is_equal = agrees(&local_rows) && agrees(&hit_rows);
    Ok(Line { upstream, local, hit, routes: (route, hit_route), rows: upstream_rows.len(), is_equal })
}

/// Types by PostgreSQL's own description; the rows compared are in text.
async fn columns(direct: &Client, sql: &str) -> Result<Vec<ComparedColumn>, DemoError> {
    let statement = direct.prepare(sql).await?;
    let pg_type = |oid| PgType::from_oid(oid).unwrap_or(PgType::Text);
    Ok(statement
        .columns()
        .iter()
        .map(|column| ComparedColumn {
            pg_type: pg_type(column.type_().oid()),
            is_binary: false,
            nearness: Nearness::Summed,
        })
        .collect())
}

async fn median(client: &Client, sql: &str) -> Result<Duration, DemoError> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let started = Instant::now();
        client.simple_query(sql).await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    Ok(times[RUNS / 2])
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<Row>, DemoError> {
    let messages = client.simple_query(sql).await?;
    let cell = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    Ok(messages
        .iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|at| row.get(at).map(cell)).collect()),
            _ => None,
        })
        .collect())
}

async fn last_route(through: &Client) -> Result<String, DemoError> {
    let messages = through.simple_query("SHOW freshet.last").await?;
    let route = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get("route").map(ToString::to_string),
        _ => None,
    });
    Ok(route.unwrap_or_default())
}

const BYPASS_READ: &str = "SELECT count(*) FROM flights WHERE carrier = 'UA' AND distance > 2000";

/// One UPDATE directly on PostgreSQL, then the very next read through freshet.
async fn bypass(direct: &Client, through: &Client) -> Result<(), DemoError> {
    let mut before = Vec::new();
    for _ in 0..3 {
        before = rows(through, BYPASS_READ).await?;
    }
    let update = "UPDATE flights SET distance = 1 WHERE carrier = 'UA' AND distance > 2000 AND month = 12";
    let changed = direct.execute(update, &[]).await?;
    let after = rows(through, BYPASS_READ).await?;
    let truth = rows(direct, BYPASS_READ).await?;
    let shown = |rows: &[Row]| {
        rows.first()
            .and_then(|row| row[0].as_ref())
            .map(|cell| String::from_utf8_lossy(cell).into_owned())
            .unwrap_or_default()
    };
    say(&format!(
        "\nUPDATE of {changed} rows sent directly to PostgreSQL, past freshet.\n\
         The read through freshet said {} before; the very next one says {}; PostgreSQL says {}.",
        shown(&before),
        shown(&after),
        shown(&truth)
    ));
    if after == truth && after != before {
        Ok(())
    } else {
        Err(DemoError::Claim("the read after the bypassing UPDATE was stale".into()))
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1000.0)
}

/// The demo's output is for the person who runs it: standard output, not the log.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

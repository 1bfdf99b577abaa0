//! What a kept reply depends on: every relation that PostgreSQL looks at for a query, by its plan and by the locks that it
//! takes, is among what freshet has found, by its binder and by the text; or freshet has refused the text.
//!
//! `FRESHET_TEST_QUERIES` sets how many queries (default 800), `FRESHET_TEST_SEED` the first random number.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet::freshness::{Freshness, FreshnessOptions};
use freshet::metrics::wait_histogram;
use freshet::replication::supervise::MirrorOptions;
use freshet::upstream::address::UpstreamAddress;
use freshet_engine::catalog::{Catalog, RelationId};
use freshet_engine::prepare;
use freshet_engine::statement::dependencies::dependencies;
use freshet_engine::{PrepareContext, types::FormatSettings};
use freshet_tests::cluster::Cluster;
use freshet_tests::fuzz::Chance;
use tokio::runtime::Handle;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

/// The same names in several schemas, everything that can stand for a table, and functions, operators, types and rules that
/// read `hidden` without naming it.
const SETUP: &str = r#"
    CREATE SCHEMA one; CREATE SCHEMA two;
    CREATE TABLE t (id int PRIMARY KEY, x int); CREATE TABLE u (id int PRIMARY KEY, x int);
    CREATE TABLE one.t (id int PRIMARY KEY, x int); CREATE TABLE two.u (id int PRIMARY KEY, x int);
    CREATE TABLE "T" (id int PRIMARY KEY, x int); CREATE TABLE two."odd name" (id int PRIMARY KEY, x int);
    CREATE TABLE hidden (id int PRIMARY KEY, x int); CREATE TABLE one.x (id int PRIMARY KEY, x int);
    CREATE TABLE parted (id int PRIMARY KEY, x int) PARTITION BY RANGE (id);
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
    CREATE TABLE one.parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
    CREATE TABLE two.parted_21 PARTITION OF one.parted_2 DEFAULT;
    CREATE TABLE parent (id int PRIMARY KEY, x int); CREATE TABLE two.child () INHERITS (parent);
    CREATE VIEW v AS SELECT t.id, u.x FROM t JOIN u USING (id);
    CREATE VIEW one.v AS SELECT id, (SELECT max(x) FROM one.t) AS x FROM public.v;
    CREATE VIEW two.t AS WITH u AS (SELECT * FROM one.v) SELECT id, x FROM u UNION SELECT id, x FROM parted;
    CREATE VIEW over_parent AS SELECT * FROM parent;
    CREATE MATERIALIZED VIEW one.mat AS SELECT id, x FROM hidden;
    CREATE VIEW over_mat AS SELECT * FROM one.mat;
    CREATE FUNCTION inlined(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT $1 + (SELECT count(*)::int FROM public.hidden)';
    CREATE FUNCTION plain(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1';
    CREATE FUNCTION opaque(int) RETURNS int LANGUAGE plpgsql STABLE AS
        'BEGIN RETURN $1 + (SELECT count(*) FROM public.hidden); END';
    CREATE FUNCTION one.abs(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT count(*)::int FROM public.hidden';
    CREATE FUNCTION of_rows() RETURNS SETOF hidden LANGUAGE sql STABLE AS 'SELECT * FROM public.hidden';
    CREATE FUNCTION agree(int, int) RETURNS bool LANGUAGE sql STABLE AS 'SELECT $1 = $2 AND EXISTS (SELECT FROM public.hidden)';
    CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = agree);
    CREATE DOMAIN checked AS int CHECK (opaque(VALUE) > 0);
    CREATE TABLE of_domain (id int PRIMARY KEY, x checked);
    CREATE VIEW of_functions AS SELECT id, inlined(x) AS x FROM u;
    INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (1, 1); INSERT INTO one.t VALUES (1, 3);
    INSERT INTO hidden VALUES (1, 1); INSERT INTO parted VALUES (1, 1), (11, 2);
"#;

const PATHS: [&[&str]; 6] =
    [&["public"], &["one", "public"], &["two", "one", "public"], &["one"], &["two"], &["public", "two"]];

const RELATIONS: [&str; 38] = [
    "t",
    "u",
    "v",
    "x",
    "T",
    "\"T\"",
    "\"t\"",
    "U&\"t\"",
    "U&\"\\0074\"",
    "one.t",
    "two.t",
    "two.u",
    "one . v",
    "\"one\".\"t\"",
    "public.t",
    "public/* two.*/.u",
    "\"odd name\"",
    "two.\"odd name\"",
    "parted",
    "parted_1",
    "one.parted_2",
    "two.parted_21",
    "parent",
    "ONLY parent",
    "parent *",
    "ONLY (public.parent)",
    "two.child",
    "over_parent",
    "one.mat",
    "over_mat",
    "of_domain",
    "of_functions",
    "one.x",
    "ONE.T",
    "public. v",
    "hidden",
    "u -- hidden\n",
    "two.T",
];
/// Names given to what is no table, most of them a table's as well.
const NAMES: [&str; 9] = ["t", "u", "v", "x", "a", "b", "\"T\"", "parted", "hidden"];

/// Writes queries of one integer column named id.
struct Writer(Chance);

impl Writer {
    fn one_of(&mut self, of: usize) -> bool {
        self.0.below(of) == 0
    }

    fn query(&mut self, depth: usize) -> String {
        if depth == 0 {
            return format!("SELECT id FROM {}", self.0.pick(&RELATIONS));
        }
        match self.0.below(9) {
            0 => format!("TABLE {}", self.0.pick(&["t", "two.t", "v", "one.v"])),
            1 => format!("VALUES ({}), (2)", self.value(depth - 1, "1")),
            2 => {
                let word = self.0.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT ALL"]);
                format!("({}) {word} ({})", self.query(depth - 1), self.query(depth - 1))
            }
            3 | 4 => self.with(depth),
            _ => self.select(depth),
        }
    }

    fn with(&mut self, depth: usize) -> String {
        let mut text = String::from(if self.one_of(3) { "WITH RECURSIVE " } else { "WITH " });
        let mut names = BTreeSet::new();
        for at in 0..=self.0.below(2) {
            let name = self.0.pick(&NAMES);
            if !names.insert(name) {
                continue;
            }
            let how = self.0.pick(&["", "", " MATERIALIZED", " NOT MATERIALIZED"]);
            let comma = if at > 0 { ", " } else { "" };
            text += &format!("{comma}{name} (id) AS{how} ({})", self.query(depth - 1));
        }
        // The name itself, a table's of that name with its schema, or something else.
        let last = match self.0.below(3) {
            0 => format!("SELECT id FROM {}", self.0.pick(&NAMES)),
            1 => format!("SELECT a.id FROM {} a, public.t b", self.0.pick(&NAMES)),
            _ => self.query(depth - 1),
        };
        text + " " + &last
    }

    fn select(&mut self, depth: usize) -> String {
        let name = self.0.pick(&NAMES);
        let (from, column) = self.from(depth, name);
        let value = self.value(depth - 1, &column);
        let mut text = format!("SELECT {value} AS id FROM {from}");
        if self.one_of(2) {
            text += &format!(" WHERE {}", self.predicate(depth - 1, &column));
        }
        match self.0.below(8) {
            0 => text += &format!(" GROUP BY {column}, 1"),
            1 => text += " ORDER BY 1 LIMIT 3",
            2 => text += &format!(" GROUP BY 1, {column} HAVING {}", self.predicate(depth - 1, "count(*)::int")),
            3 => text += &format!(" LIMIT (SELECT count(*) FROM {})", self.0.pick(&RELATIONS)),
            _ => {}
        }
        text
    }

    /// The items, and a column of theirs.
    fn from(&mut self, depth: usize, name: &str) -> (String, String) {
        let relation = self.0.pick(&RELATIONS);
        let other = self.0.pick(&RELATIONS);
        let inner = self.query(depth - 1);
        let column = format!("{name}.id");
        let text = match self.0.below(11) {
            0 => return (relation.to_owned(), "id".to_owned()),
            1 => return (format!("{relation} a JOIN {other} b USING (id)"), "id".to_owned()),
            2 => return (format!("{relation} a NATURAL LEFT JOIN ({inner}) b (id)"), "id".to_owned()),
            3 => format!("({inner}) AS {name} (id)"),
            4 => format!("{relation} s, LATERAL ({inner}) {name} (id)"),
            5 => format!("(VALUES (1), (2)) {name} (id) LEFT JOIN {other} s ON {name}.id = s.id"),
            6 => format!("generate_series(1, 3) {name} (id), {relation} s"),
            7 => format!("{relation} {name}, ({relation} AS k CROSS JOIN {other} AS l)"),
            8 => format!("{relation} AS {name} (id, y) JOIN ({inner}) s (z) ON s.z = {name}.id"),
            9 => format!("of_rows() {name}"),
            _ => format!("{relation} {name}"),
        };
        (text, column)
    }

    fn value(&mut self, depth: usize, column: &str) -> String {
        let relation = self.0.pick(&RELATIONS);
        if depth == 0 {
            return column.to_owned();
        }
        match self.0.below(16) {
            0 => format!("(SELECT max(s.id) FROM {relation} s WHERE s.id = {column})"),
            1 => format!("coalesce((SELECT id FROM {relation} LIMIT 1), {column})"),
            2 => format!("CASE WHEN EXISTS ({}) THEN {column} END", self.query(depth - 1)),
            3 => format!("cardinality(ARRAY(SELECT x FROM {relation}))"),
            4 => format!("inlined({column})"),
            5 => format!("opaque({column})"),
            6 => format!("plain({column})"),
            7 => format!("abs({column})"),
            8 => format!("({column})::checked"),
            9 => format!("(SELECT count(*) FILTER (WHERE k.id > 0) FROM {relation} k)::int"),
            10 => format!("length((SELECT k FROM {relation} k LIMIT 1)::text)"),
            11 => format!("octet_length(cash_words(({column})::int::money))"),
            12 => format!("one.abs({column})"),
            _ => column.to_owned(),
        }
    }

    fn predicate(&mut self, depth: usize, column: &str) -> String {
        match self.0.below(8) {
            0 => format!("{column} IN ({})", self.query(depth)),
            1 => format!("NOT EXISTS ({})", self.query(depth)),
            2 => format!("{column} > ALL (SELECT x FROM {})", self.0.pick(&RELATIONS)),
            3 => format!("{column} === 1"),
            4 => format!("{column} OPERATOR(public.===) 1"),
            5 => format!("({column}, 1) IN (SELECT id, x FROM {})", self.0.pick(&RELATIONS)),
            _ => format!("{column} = 1"),
        }
    }
}

/// A database's catalog, as freshet has loaded it.
async fn catalog(url: &str) -> Arc<Catalog> {
    let shutdown = CancellationToken::new();
    let options = MirrorOptions::new(UpstreamAddress::parse(url).expect("an address"));
    let freshness = FreshnessOptions::default();
    let freshness =
        Freshness::start(options, freshness, wait_histogram(), &Handle::current(), shutdown.clone()).expect("starts");
    let limit = Instant::now() + Duration::from_secs(60);
    while !freshness.report().is_ready {
        assert!(Instant::now() < limit, "{:?}", freshness.report());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let catalog = freshness.catalog();
    shutdown.cancel();
    freshness.stopped().await;
    catalog
}

/// The relations outside the system's schemas that PostgreSQL looks at, by name. None: it refuses the query.
async fn looked_at(client: &Client, path: &str, sql: &str) -> Option<BTreeMap<RelationId, String>> {
    client.batch_execute(&format!("BEGIN; SET LOCAL search_path = {path}")).await.expect("a block");
    let explained = client.simple_query(&format!("EXPLAIN (VERBOSE, FORMAT JSON) {sql}")).await;
    let is_run = client.batch_execute(sql).await.is_ok();
    let found = if is_run { Some(locked(client, &explained.ok()?).await) } else { None };
    client.batch_execute("ROLLBACK").await.expect("ends");
    found
}

async fn locked(client: &Client, plan: &[SimpleQueryMessage]) -> BTreeMap<RelationId, String> {
    let mut named = Vec::new();
    for message in plan {
        if let SimpleQueryMessage::Row(row) = message {
            let plan: serde_json::Value = serde_json::from_str(row.get(0).expect("a plan")).expect("JSON");
            names(&plan, &mut named);
        }
    }
    let named: Vec<String> = named.iter().map(|name| format!("to_regclass('{}')", name.replace('\'', "''"))).collect();
    let sql = format!(
        "SELECT c.oid, c.oid::regclass FROM pg_class c WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
            AND relnamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
            AND (c.oid = ANY (ARRAY[{}]::regclass[]::oid[]) OR c.oid IN
                (SELECT relation FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'))",
        named.join(", ")
    );
    let mut found = BTreeMap::new();
    for message in client.simple_query(&sql).await.expect("answers") {
        if let SimpleQueryMessage::Row(row) = message {
            let oid = row.get(0).and_then(|oid| oid.parse().ok()).expect("an OID");
            found.insert(RelationId(oid), row.get(1).unwrap_or_default().to_owned());
        }
    }
    found
}

/// Of every relation in the plan: schema.name, quoted.
fn names(plan: &serde_json::Value, found: &mut Vec<String>) {
    let quoted = |key: &str| plan.get(key)?.as_str().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    if let (Some(name), Some(schema)) = (quoted("Relation Name"), quoted("Schema")) {
        found.push(format!("{schema}.{name}"));
    }
    let inner = plan.as_object().map(|object| object.values().collect::<Vec<_>>());
    let inner = inner.or_else(|| plan.as_array().map(|array| array.iter().collect())).unwrap_or_default();
    inner.into_iter().for_each(|part| names(part, found));
}

/// How often a relation that PostgreSQL looked at was known; and what was missed.
#[derive(Default)]
struct Tally {
    known: usize,
    by_relation: BTreeMap<String, usize>,
    missed: Vec<String>,
}

impl Tally {
    fn check(&mut self, sql: &str, path: &str, found: &[RelationId], expected: &BTreeMap<RelationId, String>) {
        self.known += 1;
        for (id, name) in expected {
            if found.contains(id) {
                *self.by_relation.entry(name.clone()).or_default() += 1;
            } else {
                self.missed.push(format!("{name} of {sql} (search_path {path})"));
            }
        }
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::test]
async fn every_relation_that_postgresql_looks_at_is_known() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, SETUP);
    let catalog = catalog(&cluster.url(&database)).await;
    let (client, connection) = tokio_postgres::connect(&cluster.url(&database), NoTls).await.expect("connects");
    tokio::spawn(connection);
    let mut writer = Writer(Chance::new(setting("FRESHET_TEST_SEED", 0x5e_ed0f_de9e)));
    let count = setting("FRESHET_TEST_QUERIES", 800);
    let (mut run, mut bound, mut by_text) = (0, Tally::default(), Tally::default());
    for _ in 0..count {
        let sql = writer.query(3);
        let path = PATHS[writer.0.below(PATHS.len())];
        let listed = path.join(", ");
        let Some(expected) = looked_at(&client, &listed, &sql).await else { continue };
        run += 1;
        let search_path: Vec<Arc<str>> = ["pg_catalog"].iter().chain(path).map(|name| Arc::from(*name)).collect();
        let context = PrepareContext {
            catalog: &catalog,
            settings_id: 0,
            search_path: &search_path,
            settings: &FormatSettings::default(),
            parameter_types: &[],
        };
        if let Ok(prepared) = prepare(&sql, &context) {
            bound.check(&sql, &listed, &catalog.expand(&prepared.plan.relations()), &expected);
        }
        if let Ok(found) = dependencies(&sql, &catalog, &search_path) {
            let relations: Vec<RelationId> = found.relations().collect();
            by_text.check(&sql, &listed, &catalog.expand(&relations), &expected);
        }
    }
    println!("{run} of {count} run upstream; {} bound, {} read as texts", bound.known, by_text.known);
    println!("bound: {:?}\nread: {:?}", bound.by_relation, by_text.by_relation);
    for (how, tally) in [("bound", &bound), ("read as a text", &by_text)] {
        assert!(tally.missed.is_empty(), "{how}:\n{}", tally.missed.join("\n"));
        // Else nothing was tested.
        assert!(tally.known * 20 > run && tally.by_relation.len() > 9, "{how}: {} of {run}", tally.known);
    }
}

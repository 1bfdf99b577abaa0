//! The same statements against PostgreSQL and through freshet: equal descriptions, tags and rows, in simple and extended
//! protocol, text and binary, and answered the way they should be.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use freshet::audit::compare::{ComparedColumn, Freedom, Row, compare};
use freshet_engine::types::PgType;
use freshet_tests::cluster::Cluster;
use freshet_tests::corpus::nearness;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply};
use freshet_tests::world::will_pass;

/// One statement of a script.
struct Case {
    sql: String,
    parameters: Vec<String>,
    is_relayed: bool,
}

fn script(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let (mut sql, mut is_relayed) = (String::new(), false);
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("--") {
            is_relayed |= comment.trim_start().starts_with("relay:");
            continue;
        }
        sql.push_str(line);
        if let Some(whole) = sql.trim().strip_suffix(';') {
            cases.push(Case { sql: whole.to_string(), parameters: Vec::new(), is_relayed });
            (sql, is_relayed) = (String::new(), false);
        } else {
            sql.push('\n');
        }
    }
    cases
}

fn parameter_script(text: &str) -> Vec<Case> {
    let mut is_relayed = false;
    let cases = text.lines().filter_map(|line| {
        if let Some(comment) = line.strip_prefix("--") {
            is_relayed = comment.trim_start().starts_with("relay:");
            return None;
        }
        let (sql, parameters) = line.split_once(" => ")?;
        let parameters = parameters.split(" | ").map(str::to_string).collect();
        Some(Case { sql: sql.to_string(), parameters, is_relayed: std::mem::take(&mut is_relayed) })
    });
    cases.collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Simple,
    ExtendedText,
    ExtendedBinary,
}

fn ask(client: &mut RawClient, protocol: Protocol, case: &Case) -> RawReply {
    let parameters: Vec<Option<&str>> =
        case.parameters.iter().map(|p| Some(p.as_str()).filter(|p| *p != "\\N")).collect();
    match protocol {
        Protocol::Simple => client.simple(&case.sql),
        Protocol::ExtendedText => client.extended(&case.sql, &parameters, 0),
        Protocol::ExtendedBinary => client.extended(&case.sql, &parameters, 1),
    }
    .unwrap_or_else(|error| panic!("{}: {error}", case.sql))
}

struct Pair {
    direct: RawClient,
    through: RawClient,
}

impl Pair {
    fn new(direct: SocketAddr, through: SocketAddr, database: &str, settings: &[&str]) -> Self {
        let connect = |address| {
            let mut client = RawClient::connect(address, "postgres", database).expect("connects");
            for setting in settings {
                assert_eq!(client.simple(setting).expect("answers").error(), None, "{setting}");
            }
            client
        };
        let mut pair = Self { direct: connect(direct), through: connect(through) };
        pair.through.simple("SET freshet.route = 'local'").expect("answers");
        pair
    }

    /// What is wrong with one case, if anything.
    fn check(&mut self, protocol: Protocol, case: &Case) -> Option<String> {
        let expected = ask(&mut self.direct, protocol, case);
        let limit = Instant::now() + Duration::from_secs(4);
        let wanted = if case.is_relayed { "relay" } else { "local" };
        let mut executions = 0;
        loop {
            let got = ask(&mut self.through, protocol, case);
            executions += 1;
            if let Some(difference) = differs(&case.sql, &expected, &got, protocol == Protocol::ExtendedBinary) {
                return Some(format!("{protocol:?} {}: {difference}", case.sql));
            }
            let (route, reason) = self.through.last().expect("answers");
            // What is relayed must stay so after the first run, too.
            if route == wanted && (!case.is_relayed || executions > 1) {
                return None;
            }
            if !will_pass(&reason) && executions > 1 || Instant::now() > limit {
                return Some(format!("{protocol:?} {}: answered by {route} ({reason}), not {wanted}", case.sql));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Descriptions and tags byte for byte; rows as far as PostgreSQL is bound (every script statement that returns more than
/// one row orders them, so: in order).
fn differs(sql: &str, expected: &RawReply, got: &RawReply, is_binary: bool) -> Option<String> {
    if expected.envelope() != got.envelope() {
        let shown = |reply: &RawReply| {
            format!(
                "{:?}",
                reply.envelope().iter().map(|(t, b)| (char::from(*t), String::from_utf8_lossy(b))).collect::<Vec<_>>()
            )
        };
        return Some(format!("messages differ:\n  expected {}\n  got      {}", shown(expected), shown(got)));
    }
    let columns = columns(sql, expected, is_binary);
    let (theirs, ours) = (rows(expected), rows(got));
    let freedom = Freedom { order_columns: (0..columns.len()).collect(), is_limited: false };
    let difference = compare(&columns, &freedom, &theirs, &ours, None).err()?;
    let shown = |rows: &[Row]| {
        rows.iter()
            .map(|r| {
                format!(
                    "{:?}",
                    r.iter().map(|c| c.as_ref().map(|c| String::from_utf8_lossy(c).into_owned())).collect::<Vec<_>>()
                )
            })
            .collect::<Vec<_>>()
            .join("\n    ")
    };
    Some(format!("{difference:?}\n  expected\n    {}\n  got\n    {}", shown(&theirs), shown(&ours)))
}

fn rows(reply: &RawReply) -> Vec<Row> {
    reply.rows().into_iter().map(|row| row.into_iter().map(|cell| cell.map(Bytes::from)).collect()).collect()
}

fn columns(sql: &str, reply: &RawReply, is_binary: bool) -> Vec<ComparedColumn> {
    let Some(body) = reply.bodies(b'T').first().copied() else { return Vec::new() };
    let fields = freshet::wire::query::row_description(body).expect("a RowDescription");
    let pg_type = |oid| PgType::from_oid(oid).unwrap_or(PgType::Text);
    let nearness = nearness(sql);
    fields.iter().map(|field| ComparedColumn { pg_type: pg_type(field.type_oid), is_binary, nearness }).collect()
}

fn setup() -> (&'static Cluster, String, Freshet) {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, include_str!("../sql/edge.setup.sql"));
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    (cluster, database, freshet)
}

fn direct(cluster: &Cluster) -> SocketAddr {
    cluster.address()
}

fn report(problems: &[String], total: usize) {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for problem in problems {
        *kinds.entry(problem.split_whitespace().next().unwrap_or_default()).or_default() += 1;
    }
    assert!(problems.is_empty(), "{} of {total} differ {kinds:?}\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn edge_statements_have_upstreams_answers() {
    let (cluster, database, freshet) = setup();
    let mut pair = Pair::new(direct(cluster), freshet.address(), &database, &[]);
    let cases = script(include_str!("../sql/edge.sql"));
    assert!(cases.len() > 130, "the script was read");
    let mut problems = Vec::new();
    for protocol in [Protocol::Simple, Protocol::ExtendedText, Protocol::ExtendedBinary] {
        problems.extend(cases.iter().filter_map(|case| pair.check(protocol, case)));
    }
    report(&problems, cases.len() * 3);
}

#[test]
fn structured_queries_have_upstreams_answers() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, include_str!("../sql/queries.setup.sql"));
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut pair = Pair::new(direct(cluster), freshet.address(), &database, &[]);
    let cases = script(include_str!("../sql/queries.sql"));
    assert!(cases.len() > 170, "the script was read");
    let with_parameters = parameter_script(include_str!("../sql/queries.parameters.sql"));
    assert!(with_parameters.len() > 12, "the script was read");
    let mut problems = Vec::new();
    for (protocol, cases) in [
        (Protocol::Simple, &cases),
        (Protocol::ExtendedBinary, &cases),
        (Protocol::ExtendedText, &with_parameters),
        (Protocol::ExtendedBinary, &with_parameters),
    ] {
        problems.extend(cases.iter().filter_map(|case| pair.check(protocol, case)));
    }
    report(&problems, (cases.len() + with_parameters.len()) * 2);
}

/// Settings that an answer may depend on.
const OTHERS: [&str; 3] =
    ["SET TimeZone = 'America/New_York'", "SET DateStyle = 'German'", "SET extra_float_digits = 0"];

/// Settings, and the protocols to ask in.
type Run<'r> = (&'r [&'r str], &'r [Protocol]);

/// A script and one with parameters, in all protocols and under two sets of settings.
fn check_scripts(setup: &str, plain: &str, with_parameters: &str) {
    let all = [Protocol::Simple, Protocol::ExtendedText, Protocol::ExtendedBinary];
    check_runs(setup, plain, with_parameters, &[(&[], &all), (&OTHERS, &all)]);
}

fn check_runs(setup: &str, plain: &str, with_parameters: &str, runs: &[Run<'_>]) {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, setup);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let (cases, with_parameters) = (script(plain), parameter_script(with_parameters));
    assert!(cases.len() > 15 && with_parameters.len() >= 5, "the scripts were read");
    let mut problems = Vec::new();
    for (settings, protocols) in runs {
        let mut pair = Pair::new(direct(cluster), freshet.address(), &database, settings);
        for protocol in *protocols {
            problems.extend(cases.iter().filter_map(|case| pair.check(*protocol, case)));
        }
        for protocol in [Protocol::ExtendedText, Protocol::ExtendedBinary] {
            problems.extend(with_parameters.iter().filter_map(|case| pair.check(protocol, case)));
        }
    }
    report(&problems, cases.len() * runs.len() * 3 + with_parameters.len() * runs.len() * 2);
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn arrays_have_upstreams_answers() {
    let parameters = include_str!("../sql/arrays.parameters.sql");
    check_scripts(include_str!("../sql/arrays.setup.sql"), include_str!("../sql/arrays.sql"), parameters);
}

#[test]
fn bits_have_upstreams_answers() {
    let parameters = include_str!("../sql/bits.parameters.sql");
    check_scripts(include_str!("../sql/bits.setup.sql"), include_str!("../sql/bits.sql"), parameters);
}

#[test]
fn networks_have_upstreams_answers() {
    let parameters = include_str!("../sql/networks.parameters.sql");
    check_scripts(include_str!("../sql/networks.setup.sql"), include_str!("../sql/networks.sql"), parameters);
}

#[test]
fn domains_have_upstreams_answers() {
    let parameters = include_str!("../sql/domains.parameters.sql");
    check_scripts(include_str!("../sql/domains.setup.sql"), include_str!("../sql/domains.sql"), parameters);
}

#[test]
fn json_has_upstreams_answers() {
    let parameters = include_str!("../sql/json.parameters.sql");
    check_scripts(include_str!("../sql/json.setup.sql"), include_str!("../sql/json.sql"), parameters);
}

#[test]
fn windows_have_upstreams_answers() {
    let parameters = include_str!("../sql/windows.parameters.sql");
    let runs: [Run<'_>; 2] = [(&[], &[Protocol::Simple]), (&OTHERS, &[Protocol::ExtendedBinary])];
    check_runs(include_str!("../sql/windows.setup.sql"), include_str!("../sql/windows.sql"), parameters, &runs);
}

#[test]
fn recursive_queries_have_upstreams_answers() {
    let parameters = include_str!("../sql/recursive.parameters.sql");
    check_scripts(include_str!("../sql/recursive.setup.sql"), include_str!("../sql/recursive.sql"), parameters);
}

#[test]
fn functions_in_from_have_upstreams_answers() {
    let parameters = include_str!("../sql/rows.parameters.sql");
    check_scripts(include_str!("../sql/rows.setup.sql"), include_str!("../sql/rows.sql"), parameters);
}

#[test]
fn regular_expressions_have_upstreams_answers() {
    let parameters = include_str!("../sql/regular.parameters.sql");
    check_scripts(include_str!("../sql/regular.setup.sql"), include_str!("../sql/regular.sql"), parameters);
}

/// Order of text under ICU's collations and the C library's, as defaults of the database and by column.
#[test]
fn text_under_other_collations_has_upstreams_order() {
    let mut problems = Vec::new();
    let cases = script(include_str!("../sql/collations.sql"));
    assert!(cases.len() > 50, "the script was read");
    let mut check = |cluster: &Cluster, database: &str, options: &str| {
        cluster.psql("postgres", &format!("CREATE DATABASE {database} TEMPLATE template0 {options}"));
        cluster.psql(database, include_str!("../sql/collations.setup.sql"));
        let freshet = Freshet::start(&cluster.url(database), |_| {});
        let mut pair = Pair::new(direct(cluster), freshet.address(), database, &[]);
        for protocol in [Protocol::Simple, Protocol::ExtendedBinary] {
            let found = cases.iter().filter_map(|case| pair.check(protocol, case));
            problems.extend(found.map(|problem| format!("{database} {problem}")));
        }
        assert_eq!(freshet.status(database, "wrong_answers"), "0");
    };
    let shared = Cluster::shared();
    check(shared, "by_icu", "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'");
    check(shared, "by_c_utf8", "LOCALE 'C.UTF-8'");
    check(shared, "by_c_order", "LC_COLLATE 'C' LC_CTYPE 'C.UTF-8'");
    match Cluster::with_locale("en_US") {
        Some(cluster) => check(&cluster, "by_en_us", "LOCALE 'en_US.utf8'"),
        None => println!("no locale en_US can be made here"),
    }
    report(&problems, cases.len() * 8);
}

/// Which of the shapes that tools send are answered here, and why the others are not.
#[test]
fn templates_of_tools_are_answered_here() {
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, include_str!("../sql/queries.setup.sql"));
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut pair = Pair::new(direct(cluster), freshet.address(), &database, &[]);
    let text = include_str!("../sql/templates.sql");
    let classes = text.lines().filter_map(|line| line.strip_prefix("-- ").filter(|c| ["must", "should"].contains(c)));
    let cases = script(text);
    assert_eq!(classes.clone().count(), cases.len(), "a class for each statement");
    let mut shares: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut relayed, mut wrong) = (Vec::new(), Vec::new());
    for (class, case) in classes.zip(&cases) {
        let share = shares.entry(class).or_default();
        share.1 += 1;
        match pair.check(Protocol::Simple, case) {
            None => share.0 += 1,
            Some(problem) if problem.contains("answered by relay") => relayed.push(format!("{class} {problem}")),
            Some(problem) => wrong.push(problem),
        }
    }
    println!("{shares:?}\n{}", relayed.join("\n"));
    report(&wrong, cases.len());
    let percent = |class| shares.get(class).map_or(0, |(here, all)| here * 100 / all);
    assert!(percent("must") >= 95, "{shares:?}\n{}", relayed.join("\n"));
    assert!(percent("should") >= 90, "{shares:?}\n{}", relayed.join("\n"));
}

#[test]
fn parameters_are_read_as_upstream_reads_them() {
    let (cluster, database, freshet) = setup();
    let mut pair = Pair::new(direct(cluster), freshet.address(), &database, &[]);
    let cases = parameter_script(include_str!("../sql/edge.parameters.sql"));
    assert!(cases.len() >= 15, "the script was read");
    let mut problems = Vec::new();
    for protocol in [Protocol::ExtendedText, Protocol::ExtendedBinary] {
        problems.extend(cases.iter().filter_map(|case| pair.check(protocol, case)));
    }
    report(&problems, cases.len() * 2);
}

#[test]
fn formats_follow_the_sessions_settings() {
    let (cluster, database, freshet) = setup();
    let sets: &[&[&str]] = &[
        &["SET TimeZone = 'America/New_York'"],
        &["SET TimeZone = 'Europe/Berlin'", "SET DateStyle = 'German, DMY'"],
        &["SET DateStyle = 'SQL, DMY'", "SET IntervalStyle = 'postgres_verbose'"],
        &["SET DateStyle = 'Postgres, MDY'", "SET IntervalStyle = 'iso_8601'"],
        &["SET IntervalStyle = 'sql_standard'", "SET extra_float_digits = 0", "SET bytea_output = 'escape'"],
    ];
    let statements = [
        "SELECT * FROM times WHERE id <> 7 ORDER BY id",
        "SELECT * FROM numbers ORDER BY id",
        "SELECT id, x FROM texts ORDER BY id",
        "SELECT id FROM times WHERE tz >= '2024-03-31 03:00' ORDER BY id",
        "SELECT id, date_trunc('day', tz), extract(hour FROM tz), tz::date FROM times WHERE id NOT IN (5, 6, 7) ORDER BY id",
    ];
    let mut problems = Vec::new();
    for set in sets {
        let mut pair = Pair::new(direct(cluster), freshet.address(), &database, set);
        for sql in statements {
            let case = Case { sql: sql.to_string(), parameters: Vec::new(), is_relayed: false };
            problems.extend(pair.check(Protocol::Simple, &case).map(|problem| format!("{set:?} {problem}")));
        }
    }
    report(&problems, sets.len() * statements.len());
}

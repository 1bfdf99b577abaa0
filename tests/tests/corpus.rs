//! A corpus of statements by chapter (`differential/corpus`): every operator and function over its edge values, asked of
//! PostgreSQL and through freshet. Prints the share that is answered here, the most frequent reasons of what is not, and which
//! rows of the function table no statement has reached (there must be none).
//!
//! A line that begins with `let` names values, separated by `;;`; a statement with `{name}` stands for as many statements as
//! there are combinations. Statements that PostgreSQL refuses count, too: freshet must relay them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet::replication::catalog::{LoadedCatalog, load};
use freshet_engine::binder::{BindContext, bind};
use freshet_engine::catalog::Catalog;
use freshet_engine::catalog::functions::{all_aggregates, all_functions};
use freshet_engine::catalog::order::Orders;
use freshet_engine::statement;
use freshet_engine::types::FormatSettings;
use freshet_tests::cluster::Cluster;
use freshet_tests::corpus::{Chapter, chapters, connect, connect_through, differs, setup};
use freshet_tests::freshet::Freshet;
use freshet_tests::generator::check::Verdict;
use freshet_tests::generator::script;
use freshet_tests::raw::RawClient;
use freshet_tests::world::will_pass;

/// What a chapter must reach, in percent of the statements that PostgreSQL answers.
const LOCAL_PERCENT_MIN: usize = 80;

enum Outcome {
    Local,
    /// PostgreSQL raises an error, and so it came through.
    Refused,
    Relayed(String),
    Differs(String),
}

struct Pair {
    direct: RawClient,
    through: RawClient,
}

impl Pair {
    fn new(direct: SocketAddr, through: SocketAddr, database: &str) -> Self {
        Self { direct: connect(direct, database), through: connect_through(through, database) }
    }

    fn ask(&mut self, sql: &str) -> Outcome {
        let expected = self.direct.simple(sql).expect("answers");
        let limit = Instant::now() + Duration::from_secs(4);
        let mut executions = 0;
        loop {
            let got = self.through.simple(sql).expect("answers");
            executions += 1;
            if let Some(difference) = differs(sql, &expected, &got) {
                return Outcome::Differs(difference);
            }
            let (route, reason) = self.through.last().expect("answers");
            if expected.error().is_some() {
                return if route == "local" { Outcome::Differs("no error".to_string()) } else { Outcome::Refused };
            }
            if route == "local" {
                return Outcome::Local;
            }
            // No statement of the corpus leaves PostgreSQL a choice.
            let verdicts = ["quarantined", "shape_mismatch", "unsupported: rows that no ORDER BY tells apart"];
            if verdicts.iter().any(|verdict| reason.starts_with(verdict)) {
                return Outcome::Differs(reason);
            }
            if !will_pass(&reason) && executions > 1 || Instant::now() > limit {
                return Outcome::Relayed(reason);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// What no statement calls.
fn unreached(catalog: &Catalog, statements: &[String]) -> Vec<String> {
    let settings = FormatSettings::default();
    let search_path: Vec<Arc<str>> = vec!["pg_catalog".into(), "public".into()];
    let context = BindContext { search_path: &search_path, settings: &settings, parameter_types: &[] };
    let (mut functions, mut aggregates, mut windows) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for sql in statements {
        let parsed = statement::parse(sql).ok().and_then(|mut statements| statements.pop());
        let Some(mut query) = parsed.and_then(|statement| bind(&statement, catalog, &context).ok()) else { continue };
        let used = query.used();
        functions.extend(used.functions.into_iter().map(|function| (function.name, function.arguments)));
        aggregates.extend(used.aggregates.into_iter().map(|used| format!("{used:?}")));
        windows.extend(used.windows.into_iter().map(|function| format!("{function:?}")));
    }
    // What the binder puts in place of what depends on the collation's letters.
    let stands_for = |name| match name {
        "lower" | "~~*" | "!~~*" => Some("ascii_lower"),
        "upper" => Some("ascii_upper"),
        _ => None,
    };
    let is_called = |name: &str| functions.iter().any(|(known, _)| *known == name);
    let mut missing: Vec<String> = all_functions()
        .filter(|function| !functions.contains(&(function.name, function.arguments)))
        .filter(|function| !stands_for(function.name).is_some_and(is_called))
        .map(|function| format!("{}{:?}", function.name, function.arguments))
        .collect();
    let is_reached = |aggregate: &&freshet_engine::catalog::functions::Aggregate| match aggregate.argument {
        None => aggregates.iter().any(|used| used.starts_with(&format!("({:?},", aggregate.function))),
        Some(_) => aggregates.contains(&format!("({:?}, {:?})", aggregate.function, aggregate.argument)),
    };
    let aggregates = all_aggregates().filter(|aggregate| !is_reached(aggregate));
    missing.extend(aggregates.map(|aggregate| format!("{}({:?})", aggregate.name, aggregate.argument)));
    assert_eq!(windows.len(), 11, "every window function: {windows:?}");
    missing
}

fn catalog_of(cluster: &Cluster, database: &str) -> Arc<Catalog> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (mut client, connection) =
            tokio_postgres::connect(&cluster.url(database), tokio_postgres::NoTls).await.expect("connects");
        tokio::spawn(connection);
        let loaded = load(&mut client, 1, Arc::new(Orders::new(0)), &LoadedCatalog::default(), &HashSet::new()).await;
        loaded.expect("the catalog").catalog
    })
}

#[derive(Default)]
struct Share {
    all: usize,
    refused: usize,
    local: usize,
}

#[test]
fn the_corpus_has_upstreams_answers() {
    let cluster = Cluster::shared();
    let database = setup(cluster);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let direct = cluster.address();
    let chapters = chapters();
    let total: usize = chapters.iter().map(|chapter| chapter.statements.len()).sum();
    let started = Instant::now();
    let ask = |chapter: &Chapter| {
        let mut pair = Pair::new(direct, freshet.address(), &database);
        chapter.statements.iter().map(|sql| (sql.clone(), pair.ask(sql))).collect::<Vec<_>>()
    };
    let outcomes: Vec<Vec<(String, Outcome)>> = std::thread::scope(|scope| {
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(|| ask(chapter))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a chapter")).collect()
    });
    let (mut problems, mut few, mut reasons) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (chapter, outcomes) in chapters.iter().zip(outcomes) {
        let mut share = Share { all: outcomes.len(), ..Share::default() };
        for (sql, outcome) in outcomes {
            match outcome {
                Outcome::Local => share.local += 1,
                Outcome::Refused => share.refused += 1,
                Outcome::Relayed(reason) => reasons.entry(reason).or_insert_with(Vec::new).push(sql),
                Outcome::Differs(difference) => problems.push(format!("{sql}: {difference}")),
            }
        }
        let answered = share.all - share.refused;
        println!(
            "{}: {} statements, {} of them errors; {} of {answered} answered here",
            chapter.name, share.all, share.refused, share.local
        );
        // What is all but refused is mostly upstream's.
        let is_odd = chapter.name.ends_with("refused");
        if !is_odd && share.local * 100 < answered * LOCAL_PERCENT_MIN {
            few.push(chapter.name.clone());
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, statements)| std::cmp::Reverse(statements.len()));
    for (reason, statements) in reasons.iter().take(if std::env::var_os("FRESHET_ALL").is_some() { 1_000 } else { 10 })
    {
        println!("- {:>5} {reason}: {}", statements.len(), statements[0]);
    }
    println!("{total} statements in {:?}", started.elapsed());
    let every: Vec<String> = chapters.into_iter().flat_map(|chapter| chapter.statements).collect();
    let missing = unreached(&catalog_of(cluster, &database), &every);
    println!("rows of the function table that no statement reaches: {} {missing:?}", missing.len());
    assert!(problems.is_empty(), "{} of {total} differ:\n{}", problems.len(), problems.join("\n"));
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
    assert!(few.is_empty(), "too few are answered here: {few:?}");
    assert!(missing.is_empty(), "not reached: {missing:?}");
    assert!(total >= 3_000, "{total} statements");
}

/// What the generator once found (`differential/regressions`).
#[test]
fn regressions_stay_mended() {
    let cluster = Cluster::shared();
    let verdicts = script::all().into_iter().map(|(path, script)| (path, script.verdict(cluster)));
    let wrong: Vec<String> = verdicts
        .filter(|(_, verdict)| matches!(verdict, Verdict::Differs(_) | Verdict::Skipped))
        .map(|(path, verdict)| format!("{}: {verdict:?}", path.display()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Each mistake that can be planted in the engine is found by the corpus.
#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bugs_are_found() {
    use std::sync::atomic::{AtomicBool, Ordering};

    use freshet_engine::planted::{ENGINE_BUGS, plant};

    let cluster = Cluster::shared();
    let database = setup(cluster);
    let direct = cluster.address();
    let chapters = chapters();
    let only = std::env::var("FRESHET_BUG").ok();
    for (name, _) in ENGINE_BUGS.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        plant(name).expect("a known mistake");
        let freshet = Freshet::start(&cluster.url(&database), |_| {});
        let started = Instant::now();
        let is_found = AtomicBool::new(false);
        let find = |chapter: &Chapter| {
            let mut pair = Pair::new(direct, freshet.address(), &database);
            let mut asked = chapter.statements.iter().take_while(|_| !is_found.load(Ordering::Relaxed));
            asked.find_map(|sql| match pair.ask(sql) {
                Outcome::Differs(_) => {
                    is_found.store(true, Ordering::Relaxed);
                    Some((started.elapsed(), sql.clone()))
                }
                Outcome::Local | Outcome::Refused | Outcome::Relayed(_) => None,
            })
        };
        let found = std::thread::scope(|scope| {
            let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(|| find(chapter))).collect();
            threads.into_iter().filter_map(|thread| thread.join().expect("a chapter")).min()
        });
        let (elapsed, sql) = found.unwrap_or_else(|| panic!("{name} was not found"));
        println!("{name}: found after {elapsed:?} by {sql}");
        assert!(elapsed < Duration::from_secs(120), "{name} was found late");
    }
}

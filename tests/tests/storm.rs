//! A storm of statements that never come again: the caches stay within their bounds, and what is repeated stays kept. A suite of
//! its own, since the memory of the whole process is looked at.

use std::sync::Arc;
use std::time::{Duration, Instant};

use freshet_config::FreshnessMode;
use freshet_engine::result_cache::{
    Basis, CachedReply, Found, Keep, KeyParts, Keys, Repeated, ResultCache, ResultKey, Share, Withdrawn,
};
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const CAP: u64 = 24 << 20;
const KEYS: u32 = 400_000;

/// Without what is mapped from files: pages of the program itself come in as it runs, 7 to 10 MB of them.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("known for a running process");
    let kb: usize = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number of KB");
    kb * 1024
}

fn key(number: u32) -> ResultKey {
    let mut key = ResultKey::default();
    let parameters = number.to_be_bytes();
    let sql = b"SELECT id, tenant, amount FROM orders WHERE tenant = $1 ORDER BY id DESC LIMIT 20";
    key.set(&KeyParts { settings_id: 1, is_extended: true, sql, parameters: &parameters, ..KeyParts::default() });
    key
}

fn reply(bytes: usize) -> Arc<CachedReply> {
    Arc::new(CachedReply {
        row_description: vec![b'T'; 80].into(),
        rows: vec![b'D'; bytes].into(),
        row_count: 1,
        relations: Vec::new(),
        basis: Basis::default(),
        catalog_version: 1,
        folds_settings: false,
        // Replies to quick reads would not be kept at all.
        elapsed_us: 1_000,
        reads: None,
        share: Share::default(),
        last: u64::MAX,
        parameters: Box::default(),
        keys: Keys::default(),
        barrier: 0,
        configuration: 0,
        keep: Keep::default(),
        found: Found::default(),
        repeated: Repeated::default(),
        withdrawn: Withdrawn::default(),
        attachment: Arc::new(()),
    })
}

/// As one test: the process's memory is one.
#[test]
fn a_storm_of_distinct_parameters_stays_within_bounds() {
    the_cache_by_itself();
    through_freshet();
    plans();
}

/// Statements that share no plan: a number that is part of an expression is not lifted.
#[expect(clippy::print_stdout, reason = "the figures of a run, for whoever reads its log")]
fn plans() {
    const CAP: u64 = 32 << 20;
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(
        &database,
        "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 100) i",
    );
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = FreshnessMode::Session;
        settings.cache.result_bytes_max = 0;
        settings.cache.plan_bytes_max = CAP;
    });
    let mut client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let mut ask = |n: u32| {
        let sql = format!(
            "SELECT a.v, count(*) FROM t a JOIN t b USING (id) WHERE a.id > 0 - {n} GROUP BY 1 ORDER BY 2, 1 LIMIT 3"
        );
        assert_eq!(client.simple(&sql).expect("answers").rows().len(), 3);
    };
    let size = |name: &str| -> u64 { freshet.status(&database, name).parse().expect("a number") };
    (0..500).for_each(&mut ask);
    let (before, plans, bytes) = (resident_bytes(), size("plans"), size("plan_bytes"));
    (500..1_000).for_each(&mut ask);
    let grown = resident_bytes().saturating_sub(before) as f64;
    let (more, weighed) = (size("plans") - plans, (size("plan_bytes") - bytes) as f64);
    println!("{more} plans: {weighed} bytes weighed, {grown} bytes more resident");
    assert!(more > 400, "nothing was measured: {more} plans");
    assert!(grown < 1.25 * weighed + f64::from(1 << 20), "{grown} bytes more resident, {weighed} weighed");
    (1_000..6_000).for_each(&mut ask);
    assert!(size("plan_bytes") <= CAP, "{} bytes of plans", size("plan_bytes"));
    assert!(size("plans") < 3_000, "{} plans", size("plans"));
}

#[expect(clippy::print_stdout, reason = "the figures of a run, for whoever reads its log")]
fn the_cache_by_itself() {
    let before = resident_bytes();
    let cache = ResultCache::new(CAP, usize::MAX);
    // Hot: asked for again and again.
    let hot: Vec<ResultKey> = (0..50).map(|number| key(u32::MAX - number)).collect();
    hot.iter().for_each(|key| assert!(cache.insert(key, reply(300))));
    let mut peak = 0;
    for number in 0..KEYS {
        cache.insert(&key(number), reply(120));
        let asked = &hot[number as usize % hot.len()];
        if cache.get(asked).is_none() {
            cache.insert(asked, reply(300));
        }
        if number % 20_000 == 0 {
            peak = peak.max(resident_bytes());
        }
    }
    let (entries, bytes) = cache.size();
    let grown = peak.max(resident_bytes()).saturating_sub(before);
    println!("{KEYS} keys: {entries} entries of {bytes} bytes, {grown} bytes more resident, cap {CAP}");
    assert!(bytes <= CAP);
    assert!(grown as f64 <= CAP as f64 * 1.10, "{grown} bytes more resident than before, cap {CAP}");
    let kept = hot.iter().filter(|key| cache.get(key).is_some()).count();
    assert!(kept * 10 >= hot.len() * 9, "{kept} of {} hot replies are still kept", hot.len());
    // One huge reply does not drive out the others.
    assert!(!cache.insert(&key(KEYS), reply(CAP as usize / 2)));
    assert!(cache.get(&hot[0]).is_some() || cache.get(&hot[1]).is_some());
}

#[expect(clippy::print_stdout, reason = "the figures of a run, for whoever reads its log")]
fn through_freshet() {
    const CAP: u64 = 1 << 20;
    let cluster = Cluster::shared();
    let database = cluster.database();
    cluster.psql(&database, "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 20000) i");
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = FreshnessMode::Session;
        settings.cache.result_bytes_max = CAP;
    });
    let mut client = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let mut ask = |id: &str| {
        let reply = client.extended("SELECT v FROM t WHERE id = $1", &[Some(id)], 0).expect("answers");
        assert_eq!(reply.error(), None);
        let value = reply.rows()[0][0].clone().expect("no NULL");
        assert_eq!(String::from_utf8(value).expect("text"), format!("v{id}"));
        client.last().expect("answers").0
    };
    let limit = Instant::now() + Duration::from_secs(30);
    while ask("1") != "hit" {
        assert!(Instant::now() < limit, "no hit");
    }
    for id in 2..6_000 {
        ask(&id.to_string());
        if id % 20 == 0 {
            ask("1");
        }
    }
    assert_eq!(ask("1"), "hit", "what is repeated stays");
    let bytes: u64 = freshet.status(&database, "result_cache_bytes").parse().expect("a number");
    let entries: u64 = freshet.status(&database, "result_cache_entries").parse().expect("a number");
    println!("through freshet: {entries} entries of {bytes} bytes, cap {CAP}");
    assert!(bytes <= CAP && entries < 5_000, "{entries} entries of {bytes} bytes");
}

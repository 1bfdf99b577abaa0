//! A table that others inherit from is answered with their rows, by its own columns and privileges, and every change of who
//! inherits counts at once.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const SCHEMA: &str = "
    CREATE ROLE joe LOGIN; CREATE ROLE ann LOGIN;
    CREATE TABLE cities (id int PRIMARY KEY, name text, elevation numeric(10, 2), note varchar(20));
    CREATE TABLE capitals (state char(2), PRIMARY KEY (id)) INHERITS (cities);
    -- Another order of columns, and one that is gone.
    CREATE TABLE villages (well bool, note varchar(20), name text, gone int, id int PRIMARY KEY, elevation numeric(10, 2));
    ALTER TABLE villages DROP COLUMN gone;
    ALTER TABLE villages INHERIT cities;
    CREATE TABLE hamlets (households int, PRIMARY KEY (id)) INHERITS (villages);
    -- By two ways from the same table.
    CREATE TABLE seaside (coast text, PRIMARY KEY (id)) INHERITS (capitals, villages);
    CREATE TABLE lonely (id int PRIMARY KEY, note varchar(20), name text, elevation numeric(10, 2));
    CREATE TABLE regions (note varchar(20) PRIMARY KEY, label text);
    INSERT INTO cities SELECT n, 'city ' || n, n * 1.5, 'note ' || n % 3 FROM generate_series(1, 40) n;
    INSERT INTO capitals SELECT n, 'capital ' || n, n * 2, 'note ' || n % 4, 'AB' FROM generate_series(30, 60) n;
    INSERT INTO villages (id, name, well, note, elevation) SELECT n, 'village ' || n, n % 2 = 0, 'note 1', n / 3.0 FROM generate_series(5, 50, 3) n;
    INSERT INTO hamlets (id, name, note, households) SELECT n, 'hamlet ' || n, 'note 2', n FROM generate_series(7, 30, 4) n;
    INSERT INTO seaside (id, name, coast, elevation) SELECT n, 'port ' || n, 'west', 0 FROM generate_series(1, 9) n;
    INSERT INTO lonely SELECT n, 'note 9', 'alone', 1 FROM generate_series(1, 3) n;
    INSERT INTO regions VALUES ('note 0', 'North'), ('note 1', 'East'), ('note 7', 'None');
    CREATE VIEW high AS SELECT id, name FROM cities WHERE elevation > 50;
    CREATE VIEW own AS SELECT id FROM ONLY cities;
    -- Of a type that is not mirrored: upstream's replies are kept.
    CREATE TABLE shapes (id int PRIMARY KEY, ring circle); CREATE TABLE wheels (PRIMARY KEY (id)) INHERITS (shapes);
    INSERT INTO shapes VALUES (1, '<(0,0),1>'); INSERT INTO wheels VALUES (2, '<(0,0),2>');
    GRANT SELECT ON cities TO joe; GRANT SELECT (id) ON cities TO ann; GRANT SELECT ON capitals TO ann;";

const QUERIES: &[&str] = &[
    "SELECT * FROM cities ORDER BY id, name",
    "SELECT * FROM ONLY cities ORDER BY id, name",
    "SELECT count(*), sum(elevation), max(name) FROM cities",
    "SELECT name FROM cities WHERE id = 12 ORDER BY name",
    "SELECT note, count(*) FROM public.cities WHERE elevation > 10 GROUP BY note ORDER BY note",
    "SELECT c.name, v.well FROM cities c JOIN villages v ON v.id = c.id ORDER BY 1, 2",
    "SELECT count(*) FROM ONLY villages v LEFT JOIN only hamlets USING (id)",
    "SELECT name FROM cities WHERE id IN (SELECT id FROM capitals) ORDER BY 1",
    "SELECT r.label, (SELECT count(*) FROM cities c WHERE c.note = r.note) FROM regions r ORDER BY 1",
    "SELECT r.label, count(c.id) FROM regions r LEFT JOIN cities c ON c.note = r.note AND c.id > 8 GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM high",
    "SELECT count(*) FROM own",
    "SELECT radius(ring) FROM shapes ORDER BY id, 1",
];

/// Each statement is compared at once. Those in the middle make some statements upstream's: they name a table whose heirs are
/// not all mirrored.
const CHANGES: &[&str] = &[
    "UPDATE cities SET elevation = elevation + 1 WHERE id < 30",
    "UPDATE ONLY cities SET note = 'note 7' WHERE id = 12",
    "DELETE FROM cities WHERE id = 8",
    "INSERT INTO capitals VALUES (8, 'Eight', 8, 'note 0', 'XY')",
    "UPDATE wheels SET ring = '<(0,0),9>'",
    "ALTER TABLE lonely INHERIT cities",
    "INSERT INTO lonely VALUES (12, 'note 0', 'twelve', 12)",
    "ALTER TABLE villages NO INHERIT cities",
    "INSERT INTO villages (id, name) VALUES (1000, 'new'); INSERT INTO hamlets (id, name) VALUES (1000, 'new')",
    "ALTER TABLE villages INHERIT cities",
    "BEGIN; ALTER TABLE hamlets NO INHERIT villages; ALTER TABLE hamlets INHERIT lonely; COMMIT",
    "BEGIN; ALTER TABLE hamlets NO INHERIT lonely; ALTER TABLE hamlets INHERIT villages; COMMIT",
    "DROP TABLE hamlets",
    "CREATE TABLE hamlets (households int, PRIMARY KEY (id)) INHERITS (villages)",
    "INSERT INTO hamlets (id, name, elevation) VALUES (3, 'three', 300), (12, 'twelve', 0)",
    "ALTER TABLE cities ADD COLUMN founded int DEFAULT 1200",
    "UPDATE cities SET founded = 1300 WHERE id = 12",
    "ALTER TABLE cities DROP COLUMN founded",
    "ALTER TABLE cities ALTER COLUMN note TYPE varchar(30)",
    "CREATE TABLE keyless () INHERITS (cities)",
    "INSERT INTO keyless VALUES (12, 'twelfth', 0, 'note 1')",
    "DROP TABLE keyless",
    "ALTER TABLE lonely ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE lonely DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE cities ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE cities DISABLE ROW LEVEL SECURITY",
    "TRUNCATE ONLY cities",
    "INSERT INTO cities VALUES (12, 'the only', 12, 'note 1')",
    "TRUNCATE villages",
    "DROP TABLE lonely",
    "TRUNCATE cities",
];

/// What upstream answers after the change, for as long as it is so.
fn is_upstreams(change: &str, sql: &str) -> bool {
    let only_its_own = sql.contains("ONLY cities") || sql.contains("own");
    let of_cities = sql.contains("cities") || sql.contains("high") || sql.contains("own");
    match change {
        "CREATE TABLE keyless () INHERITS (cities)"
        | "INSERT INTO keyless VALUES (12, 'twelfth', 0, 'note 1')"
        | "ALTER TABLE lonely ENABLE ROW LEVEL SECURITY" => of_cities && !only_its_own,
        "ALTER TABLE cities ENABLE ROW LEVEL SECURITY" => of_cities,
        "DROP TABLE hamlets" => sql.contains("hamlets"),
        _ => false,
    }
}

fn follow(mode: FreshnessMode) {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |settings| {
        settings.freshness.mode = mode;
    });
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let mut joe = Both::open(&freshet, &cluster, "joe", &database, QUERIES);
    // In session mode changes past freshet take a moment; through it they count at once.
    let mut writer = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    both.assert_computed(|sql| sql.contains("shapes"));
    for change in CHANGES {
        let reply =
            if mode == FreshnessMode::Exact { writer.direct.simple(change) } else { writer.through.simple(change) };
        assert_eq!(reply.expect("answers").error(), None, "{change}");
        both.compare_all(change);
        joe.compare_all(change);
        both.settle(change, |sql| is_upstreams(change, sql));
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn every_change_of_who_inherits_counts_at_once() {
    follow(FreshnessMode::Exact);
}

#[test]
fn in_session_mode_writes_to_parents_and_children_through_freshet_count_at_once() {
    follow(FreshnessMode::Session);
}

#[test]
fn privileges_are_those_of_the_table_that_is_named() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut postgres = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    postgres.settle("the start", |_| false);
    let (mut joe, mut ann) = (
        Both::open(&freshet, &cluster, "joe", &database, QUERIES),
        Both::open(&freshet, &cluster, "ann", &database, QUERIES),
    );
    let all = "SELECT count(*), max(name) FROM cities";
    let (ids, children) = ("SELECT sum(id) FROM cities", "SELECT count(*), max(name) FROM capitals");
    for _ in 0..3 {
        [all, ids, children].iter().for_each(|sql| {
            joe.compare("the grants", sql);
            ann.compare("the grants", sql);
        });
    }
    assert!(joe.compare("the grants", all).is_none(), "joe may read the parent, and with it what inherits");
    assert!(joe.compare("the grants", children).is_some(), "but not a child by its name");
    assert!(ann.compare("the grants", ids).is_none(), "ann may read the parent's numbers");
    assert!(ann.compare("the grants", all).is_some(), "but not its names");
    assert!(ann.compare("the grants", children).is_none(), "ann may read a child, and with it what inherits from that");
}

#[test]
fn what_is_not_answered_here_is_relayed() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    for sql in [
        "SELECT tableoid::regclass, id FROM cities ORDER BY 1, 2",
        "SELECT ctid, id FROM ONLY cities WHERE id = 1",
        // The key is one table's only.
        "SELECT id, count(name) FROM cities GROUP BY id HAVING id = 12 ORDER BY name",
        "SELECT * FROM ONLY (cities) ORDER BY id",
        "SELECT count(*) FROM ONLY high",
    ] {
        for _ in 0..2 {
            let (route, _) = both.routed("the start", sql);
            assert!(route == "relay" || route == "capture", "{sql}: {route}");
        }
    }
    // Another session's own child is nobody else's.
    let mut owner = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let made = owner.simple("CREATE TEMP TABLE mine () INHERITS (cities)").expect("answers");
    assert_eq!(made.error(), None);
    assert_eq!(owner.simple("INSERT INTO mine VALUES (-1, 'mine', 0, '')").expect("answers").error(), None);
    let least = "SELECT min(id) FROM cities";
    assert!(both.compare("a temporary child", least).is_some());
    let rows = owner.simple(least).expect("answers").rows();
    assert_eq!(rows[0][0].as_deref(), Some(&b"-1"[..]));
    assert_eq!(owner.simple("DROP TABLE mine").expect("answers").error(), None);
    both.settle("the temporary child's end", |_| false);
}

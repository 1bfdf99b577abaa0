//! Partitioned tables are answered from their leaves: rows, descriptions, privileges and every change of the set of partitions
//! as PostgreSQL has them.

use freshet_config::FreshnessMode;
use freshet_tests::both::Both;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::RawClient;

const SCHEMA: &str = "
    CREATE ROLE joe LOGIN; CREATE ROLE ann LOGIN;
    CREATE TABLE sales (id int, region text, amount numeric(10, 2), PRIMARY KEY (id, region)) PARTITION BY LIST (region);
    CREATE TABLE sales_north PARTITION OF sales FOR VALUES IN ('north');
    -- Another order of columns, and one that is gone.
    CREATE TABLE sales_south (amount numeric(10, 2), gone int, region text NOT NULL, id int NOT NULL, PRIMARY KEY (id, region));
    ALTER TABLE sales_south DROP COLUMN gone;
    ALTER TABLE sales ATTACH PARTITION sales_south FOR VALUES IN ('south');
    -- A level between.
    CREATE TABLE sales_east PARTITION OF sales FOR VALUES IN ('east') PARTITION BY RANGE (id);
    CREATE TABLE sales_east_low PARTITION OF sales_east FOR VALUES FROM (0) TO (1000);
    CREATE TABLE sales_east_high PARTITION OF sales_east FOR VALUES FROM (1000) TO (2000);
    CREATE TABLE sales_west (id int, region text, amount numeric(10, 2), PRIMARY KEY (id, region));
    INSERT INTO sales SELECT n, (ARRAY['north', 'south', 'east'])[n % 3 + 1], n * 1.25 FROM generate_series(1, 1999, 7) n;
    INSERT INTO sales_west SELECT n, 'west', n FROM generate_series(1, 40) n;
    CREATE TABLE regions (region text PRIMARY KEY, name text);
    INSERT INTO regions VALUES ('north', 'North'), ('east', 'East'), ('west', 'West');
    GRANT SELECT ON sales TO joe; GRANT SELECT ON sales_north TO ann;";

const QUERIES: &[&str] = &[
    "SELECT * FROM sales ORDER BY id, region",
    "SELECT region, count(*), sum(amount), max(id) FROM sales GROUP BY region ORDER BY region",
    "SELECT amount FROM sales WHERE id = 8 AND region = 'east'",
    "SELECT s.id, s.amount FROM sales s WHERE id < 100 AND region <> 'north' ORDER BY amount DESC, id LIMIT 5",
    "SELECT r.name, count(s.id) FROM regions r LEFT JOIN sales s ON s.region = r.region GROUP BY r.name ORDER BY r.name",
    "SELECT count(*) FROM sales_east",
    "SELECT id, amount FROM sales_south ORDER BY id",
];

/// Each statement is compared at once: exact mode finds every change in force.
const CHANGES: &[&str] = &[
    "UPDATE sales SET amount = amount + 1 WHERE id < 50",
    "UPDATE sales SET region = 'south' WHERE region = 'north' AND id < 200",
    "UPDATE sales SET id = id + 1000 WHERE region = 'east' AND id = 8",
    "DELETE FROM sales WHERE id = 15",
    "ALTER TABLE sales ATTACH PARTITION sales_west FOR VALUES IN ('west')",
    "INSERT INTO sales VALUES (5000, 'west', 7)",
    "TRUNCATE sales_north",
    "ALTER TABLE sales DETACH PARTITION sales_north",
    "INSERT INTO sales_north VALUES (1, 'north', 1)",
    "ALTER TABLE sales ATTACH PARTITION sales_north FOR VALUES IN ('north')",
    "DROP TABLE sales_east_high",
    "CREATE TABLE sales_east_high PARTITION OF sales_east FOR VALUES FROM (1000) TO (3000)",
    "INSERT INTO sales VALUES (1001, 'east', 3), (2500, 'east', 4)",
    "ALTER TABLE sales ADD COLUMN note text DEFAULT 'x'",
    "ALTER TABLE sales DROP COLUMN note",
    "ALTER TABLE sales ALTER COLUMN amount TYPE numeric(12, 3)",
    "ALTER TABLE sales DETACH PARTITION sales_west CONCURRENTLY",
    "DROP TABLE sales_west",
    "CREATE TABLE sales_other PARTITION OF sales DEFAULT",
    "INSERT INTO sales VALUES (1, 'else', 9)",
    "TRUNCATE sales_east",
    "TRUNCATE sales",
];

fn start(cluster: &Cluster, database: &str, mode: FreshnessMode) -> Freshet {
    Freshet::start(&cluster.url(database), |settings| {
        settings.freshness.mode = mode;
    })
}

#[test]
fn every_change_of_a_partitioned_table_is_followed() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = start(&cluster, &database, FreshnessMode::Exact);
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    let mut writer = Both::open(&freshet, &cluster, "postgres", &database, QUERIES).direct;
    both.settle("the start", |_| false);
    both.assert_computed(|_| false);
    for change in CHANGES {
        let reply = writer.simple(change).expect("answers");
        assert_eq!(reply.error(), None, "{change}");
        both.compare_all(change);
        if !change.contains("sales_west") {
            both.settle(change, |_| false);
        }
    }
    let tables = both.through.simple("SELECT name, state FROM freshet.tables").expect("answers").rows();
    let text = |cell: &Option<Vec<u8>>| String::from_utf8_lossy(cell.as_deref().unwrap_or_default()).into_owned();
    let tables: Vec<Vec<String>> = tables.iter().map(|row| row.iter().map(text).collect()).collect();
    assert!(tables.contains(&vec!["public.sales".to_string(), "mirrored".to_string()]), "{tables:?}");
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

#[test]
fn privileges_are_those_of_the_partitioned_table() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = start(&cluster, &database, FreshnessMode::Exact);
    let open = |user| Both::open(&freshet, &cluster, user, &database, QUERIES);
    open("postgres").settle("the start", |_| false);
    let (mut joe, mut ann) = (open("joe"), open("ann"));
    let (root, leaf) = ("SELECT count(*) FROM sales", "SELECT count(*) FROM sales_north");
    for _ in 0..3 {
        joe.compare("the grant", root);
        ann.compare("the grant", leaf);
    }
    assert!(joe.compare("the grant", root).is_none(), "joe may read the partitioned table");
    assert!(joe.compare("the grant", leaf).is_some(), "but not a partition");
    assert!(ann.compare("the grant", leaf).is_none(), "ann may read a partition");
    assert!(ann.compare("the grant", root).is_some(), "but not all");
    cluster.psql(&database, "REVOKE SELECT ON sales FROM joe");
    assert!(joe.compare("the revocation", root).is_some());
}

#[test]
fn session_mode_sees_writes_to_partitions_and_changes_of_their_set() {
    let cluster = Cluster::start(&[]);
    let database = cluster.database();
    cluster.psql(&database, SCHEMA);
    let freshet = start(&cluster, &database, FreshnessMode::Session);
    let mut both = Both::open(&freshet, &cluster, "postgres", &database, QUERIES);
    both.settle("the start", |_| false);
    // Another session's writes through freshet, to the whole and to a part; DDL through freshet, too.
    let mut writer = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let changes =
        CHANGES.iter().filter(|change| !change.contains("CONCURRENTLY") && !change.contains("DROP TABLE sales_west"));
    for (change, part) in
        changes.zip((0..).map(|n| format!("INSERT INTO sales_south (id, region, amount) VALUES (1, 'south', {n})")))
    {
        for sql in [*change, "DELETE FROM sales_south WHERE id = 1", &part] {
            let reply = writer.simple(sql).expect("answers");
            assert_eq!(reply.error(), None, "{sql}");
            both.compare_all(sql);
        }
        if !change.contains("sales_west") {
            both.settle(change, |_| false);
        }
    }
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
}

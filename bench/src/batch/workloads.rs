//! The batch workloads: tables, statements and how often they are asked, as a published suite of another project has
//! them, corrected (bench/README.md says how).

use crate::batch::{analytics, reads};
use crate::data::{Table, float, int, score, star, table, text, word};
use crate::rows::Same;
use crate::star;

/// Workloads over the same tables.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) tables: Box<dyn Fn() -> Vec<Table>>,
    pub(crate) workloads: Vec<Workload>,
    /// Too large for a quick run.
    pub(crate) is_large: bool,
}

impl Group {
    pub(super) fn writes(&self) -> bool {
        self.workloads.iter().any(|workload| matches!(workload.asks, Asks::Writes { .. }))
    }
}

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) asks: Asks,
}

pub(crate) enum Asks {
    /// One text again and again, with variants that no cached reply fits.
    Same { sql: &'static str, varied: &'static str, same: Same },
    /// Another text each time: the published suite calls it cache resistant, but keys come again. `varied`: a text that was
    /// not there before.
    Different { sql: fn(u64) -> String, varied: fn(u64) -> String },
    /// Statements of one iteration; before each round `reset`, after the last the rows of `check` are compared.
    Writes { reset: &'static str, sql: fn(u64) -> Vec<String>, iterations: u64, check: &'static str },
}

fn asks(name: &'static str, sql: &'static str, varied: &'static str) -> Workload {
    asks_free(name, sql, varied, Same::All)
}

pub(super) fn asks_free(name: &'static str, sql: &'static str, varied: &'static str, same: Same) -> Workload {
    Workload { name, asks: Asks::Same { sql, varied, same } }
}

pub(crate) fn all() -> Vec<Group> {
    let mut groups: Vec<Group> = reads::groups().collect();
    groups.extend(lookups());
    groups.extend(writes());
    groups.push(Group { name: "star", tables: Box::new(|| star(50_000)), workloads: of_star(), is_large: false });
    groups.push(analytics::group());
    groups.extend(worst_cases());
    groups.push(stress());
    groups
}

fn small(name: &'static str, tables: fn() -> Vec<Table>, workloads: Vec<Workload>) -> Group {
    Group { name, tables: Box::new(tables), workloads, is_large: false }
}

fn id() -> crate::data::Column {
    int("id", |n| n)
}

/// Another key each time.
fn lookups() -> Vec<Group> {
    vec![
        small(
            "index_lookup",
            || vec![table("t", 10_000, vec![id(), text("val", |n| format!("value_{n}"))]).with_index("id")],
            vec![Workload {
                name: "index_lookup",
                asks: Asks::Different {
                    sql: |i| format!("SELECT * FROM t WHERE id = {}", i % 2_000),
                    varied: |i| format!("SELECT * FROM t WHERE id = {} AND id > -{i}", i % 2_000),
                },
            }],
        ),
        small(
            "composite_index_lookup",
            || {
                let columns = vec![int("a", |n| n % 100), int("b", |n| n / 100), text("val", |n| format!("value_{n}"))];
                vec![table("t", 10_000, columns).with_index("a, b")]
            },
            vec![Workload {
                name: "composite_index_lookup",
                asks: Asks::Different {
                    sql: |i| format!("SELECT * FROM t WHERE a = {} AND b = {}", i % 100, 7 * i % 100),
                    varied: |i| format!("SELECT * FROM t WHERE a = {} AND b = {} AND a > -{i}", i % 100, 7 * i % 100),
                },
            }],
        ),
    ]
}

fn writes() -> Vec<Group> {
    let pairs = || vec![table("t", 1_000, vec![id(), int("val", |n| n)])];
    vec![
        small(
            "insert_bulk",
            || vec![table("t", 0, vec![id(), text("name", |n| format!("user_{n}")), float("score", score)])],
            vec![Workload {
                name: "insert_bulk",
                asks: Asks::Writes {
                    reset: "DELETE FROM t",
                    sql: |n| vec![format!("INSERT INTO t VALUES ({n}, 'user_{n}', {}.{})", n % 100, n % 10)],
                    iterations: 10_000,
                    check: "SELECT * FROM t",
                },
            }],
        ),
        small(
            "update",
            || vec![table("t", 5_000, vec![id(), int("val", |n| n)])],
            vec![Workload {
                name: "update",
                asks: Asks::Writes {
                    reset: "UPDATE t SET val = id",
                    sql: |_| vec!["UPDATE t SET val = 0 WHERE id < 1000".into()],
                    iterations: 200,
                    check: "SELECT * FROM t",
                },
            }],
        ),
        small(
            "delete",
            Vec::new,
            vec![Workload {
                name: "delete",
                asks: Asks::Writes {
                    reset: "DROP TABLE IF EXISTS t",
                    sql: |_| {
                        let mut all =
                            vec!["DROP TABLE IF EXISTS t".to_owned(), "CREATE TABLE t (id int, val int)".to_owned()];
                        all.extend((0..2_000).map(|n| format!("INSERT INTO t VALUES ({n}, {n})")));
                        all.push("DELETE FROM t WHERE id >= 1000".to_owned());
                        all
                    },
                    iterations: 10,
                    check: "SELECT * FROM t",
                },
            }],
        ),
        small(
            "transaction",
            pairs,
            vec![Workload {
                name: "transaction",
                asks: Asks::Writes {
                    reset: "DELETE FROM t WHERE id >= 10000",
                    sql: |i| {
                        let inserts = (0..50).map(|j| format!("INSERT INTO t VALUES ({}, {j})", 10_000 + 50 * i + j));
                        std::iter::once("BEGIN".to_owned())
                            .chain(inserts)
                            .chain(std::iter::once("COMMIT".to_owned()))
                            .collect()
                    },
                    iterations: 100,
                    check: "SELECT * FROM t",
                },
            }],
        ),
    ]
}

fn of_star() -> Vec<Workload> {
    star::ALL.iter().map(|query| asks_free(query.name, query.sql, query.varied, query.same)).collect()
}

fn worst_cases() -> Vec<Group> {
    vec![
        small(
            "wc_large_dataset",
            || {
                let columns = vec![
                    id(),
                    int("a", |n| n % 1_000),
                    int("b", |n| 31_337 * n % 100_000),
                    text("c", |n| format!("row_{}", n % 5_000)),
                    int("d", |n| 7 * n % 10_000),
                ];
                vec![table("big", 200_000, columns)]
            },
            vec![asks(
                "wc_large_dataset",
                "SELECT a, SUM(b), AVG(d) FROM big GROUP BY a ORDER BY a",
                "SELECT a, SUM(b), AVG(d) FROM big WHERE id > -@ GROUP BY a ORDER BY a",
            )],
        ),
        small(
            "wc_correlated_subq",
            || {
                let (reference, score) = (int("ref_id", |n| n % 2_000), int("score", |n| 17 * n % 1_000));
                vec![
                    table("csq_master", 2_000, vec![id(), int("val", |n| 3 * n)]),
                    table("csq_detail", 10_000, vec![id(), reference, score]),
                ]
            },
            vec![asks(
                "wc_correlated_subq",
                "SELECT csq_master.id, csq_master.val, (SELECT MAX(csq_detail.score) FROM csq_detail \
                 WHERE csq_detail.ref_id = csq_master.id) AS max_score FROM csq_master WHERE csq_master.val > 3000",
                "SELECT csq_master.id, csq_master.val, (SELECT MAX(csq_detail.score) FROM csq_detail \
                 WHERE csq_detail.ref_id = csq_master.id) AS max_score FROM csq_master \
                 WHERE csq_master.val > 3000 AND csq_master.id > -@",
            )],
        ),
        small(
            "wc_multi_index",
            || {
                let columns = vec![
                    id(),
                    int("status", |n| n % 5),
                    int("category", |n| n % 50),
                    int("region", |n| n % 4),
                    int("score", |n| 31_337 * n % 10_000),
                    text("name", |n| format!("user_{n}")),
                ];
                vec![table("midx", 100_000, columns).with_index("status").with_index("category")]
            },
            vec![asks_free(
                "wc_multi_index",
                "SELECT * FROM midx WHERE status = 2 AND category = 17 AND score > 5000 ORDER BY score DESC LIMIT 50",
                "SELECT * FROM midx WHERE status = 2 AND category = 17 AND score > 5000 AND id > -@ \
                 ORDER BY score DESC LIMIT 50",
                Same::Columns(&[4]),
            )],
        ),
        small(
            "wc_string_heavy",
            || {
                let columns = vec![
                    id(),
                    text("first_name", |n| format!("FirstName_{n}")),
                    text("last_name", |n| format!("LastName_{n}")),
                    text("email", |n| format!("user_{n}@example.com")),
                ];
                vec![table("strtbl", 10_000, columns)]
            },
            vec![asks(
                "wc_string_heavy",
                "SELECT id, CONCAT(UPPER(first_name), ' ', UPPER(last_name)) AS full_name, LENGTH(email), \
                 REPLACE(email, 'example.com', 'test.org') FROM strtbl WHERE first_name LIKE 'FirstName_1%' ORDER BY id",
                "SELECT id, CONCAT(UPPER(first_name), ' ', UPPER(last_name)) AS full_name, LENGTH(email), \
                 REPLACE(email, 'example.com', 'test.org') FROM strtbl \
                 WHERE first_name LIKE 'FirstName_1%' AND id > -@ ORDER BY id",
            )],
        ),
        small(
            "wc_wide_output",
            || {
                let mut columns = vec![int("c0", |n| n)];
                let factors = [3, 7, 11, 13, 17, 19, 23, 29, 31];
                let names = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
                columns.extend(names.into_iter().zip(factors).map(|(name, by)| int(name, move |n| by * n % 10_000)));
                vec![table("wide", 50_000, columns)]
            },
            vec![asks(
                "wc_wide_output",
                "SELECT * FROM wide ORDER BY c1 DESC",
                "SELECT * FROM wide WHERE c0 > -@ ORDER BY c1 DESC",
            )],
        ),
    ]
}

const KINDS: &[&str] = &[
    "groceries",
    "dining",
    "travel",
    "fuel",
    "utilities",
    "entertainment",
    "healthcare",
    "insurance",
    "clothing",
    "electronics",
    "education",
    "subscriptions",
    "home",
    "auto",
    "gifts",
    "charity",
    "sports",
    "pets",
    "beauty",
    "office",
];
const CLOUD_REGIONS: &[&str] = &["us_east", "us_west", "us_central", "eu_west", "eu_east", "apac", "latam", "africa"];
const PLANS: &[&str] = &["free", "basic", "premium", "enterprise"];

/// Five million transactions, in tables on every engine.
fn stress() -> Group {
    let tables = || {
        vec![
            table(
                "st_txn",
                5_000_000,
                vec![
                    id(),
                    int("account_id", |n| n % 100_000),
                    int("merchant_id", |n| n % 20_000),
                    int("amount", |n| 1 + 13 * n % 9_999),
                    int("fee", |n| 7 * n % 50),
                    int("ts_day", |n| n % 730),
                    word("category", KINDS),
                ],
            ),
            table(
                "st_acct",
                100_000,
                vec![
                    id(),
                    text("name", |n| format!("acct_{n}")),
                    word("region", CLOUD_REGIONS),
                    word("tier", PLANS),
                    int("balance", |n| 100 + 31 * n % 99_900),
                    int("created_day", |n| n % 730),
                ],
            ),
            table(
                "st_merch",
                20_000,
                vec![
                    id(),
                    text("name", |n| format!("merch_{n}")),
                    word("category", KINDS),
                    text("city", |n| format!("city_{}", n % 200)),
                    int("rating", |n| 1 + 17 * n % 5),
                ],
            ),
        ]
    };
    let workloads = vec![
        asks(
            "stress_full_agg",
            "SELECT category, COUNT(*), SUM(amount), AVG(fee) FROM st_txn GROUP BY category ORDER BY category",
            "SELECT category, COUNT(*), SUM(amount), AVG(fee) FROM st_txn WHERE id > -@ GROUP BY category ORDER BY category",
        ),
        asks_free(
            "stress_high_card_gb",
            "SELECT account_id, SUM(amount) AS total, COUNT(*) FROM st_txn GROUP BY account_id \
             HAVING SUM(amount) > 50000 ORDER BY total DESC LIMIT 100",
            "SELECT account_id, SUM(amount) AS total, COUNT(*) FROM st_txn WHERE id > -@ GROUP BY account_id \
             HAVING SUM(amount) > 50000 ORDER BY total DESC LIMIT 100",
            Same::Columns(&[1]),
        ),
        asks_free(
            "stress_large_sort",
            "SELECT id, account_id, amount, fee FROM st_txn ORDER BY amount DESC LIMIT 1000",
            "SELECT id, account_id, amount, fee FROM st_txn WHERE id > -@ ORDER BY amount DESC LIMIT 1000",
            Same::Columns(&[2]),
        ),
        asks(
            "stress_join_2way",
            "SELECT a.region, COUNT(*), SUM(t.amount) FROM st_txn t JOIN st_acct a ON t.account_id = a.id \
             GROUP BY a.region ORDER BY a.region",
            "SELECT a.region, COUNT(*), SUM(t.amount) FROM st_txn t JOIN st_acct a ON t.account_id = a.id \
             WHERE t.id > -@ GROUP BY a.region ORDER BY a.region",
        ),
        asks(
            "stress_join_3way",
            "SELECT a.region, m.category, COUNT(*), SUM(t.amount) FROM st_txn t JOIN st_acct a ON t.account_id = a.id \
             JOIN st_merch m ON t.merchant_id = m.id GROUP BY a.region, m.category ORDER BY a.region, m.category",
            "SELECT a.region, m.category, COUNT(*), SUM(t.amount) FROM st_txn t JOIN st_acct a ON t.account_id = a.id \
             JOIN st_merch m ON t.merchant_id = m.id WHERE t.id > -@ GROUP BY a.region, m.category \
             ORDER BY a.region, m.category",
        ),
        asks_free(
            "stress_filtered_expr",
            "SELECT id, account_id, amount - fee AS net, category FROM st_txn \
             WHERE category = 'dining' AND amount > 5000 ORDER BY net DESC LIMIT 500",
            "SELECT id, account_id, amount - fee AS net, category FROM st_txn \
             WHERE category = 'dining' AND amount > 5000 AND id > -@ ORDER BY net DESC LIMIT 500",
            Same::Columns(&[2, 3]),
        ),
        asks_free(
            "stress_window",
            "SELECT id, category, amount, RANK() OVER (PARTITION BY category ORDER BY amount DESC) FROM st_txn \
             WHERE ts_day < 30 ORDER BY category, amount DESC LIMIT 200",
            "SELECT id, category, amount, RANK() OVER (PARTITION BY category ORDER BY amount DESC) FROM st_txn \
             WHERE ts_day < 30 AND id > -@ ORDER BY category, amount DESC LIMIT 200",
            Same::Columns(&[1, 2, 3]),
        ),
        asks(
            "stress_nested_cte",
            "WITH totals AS (SELECT account_id, SUM(amount) AS total FROM st_txn GROUP BY account_id), \
             large AS (SELECT a.region, t.total FROM totals t JOIN st_acct a ON t.account_id = a.id WHERE t.total > 10000) \
             SELECT region, COUNT(*) AS n, SUM(total) AS revenue FROM large GROUP BY region ORDER BY revenue DESC",
            "WITH totals AS (SELECT account_id, SUM(amount) AS total FROM st_txn WHERE id > -@ GROUP BY account_id), \
             large AS (SELECT a.region, t.total FROM totals t JOIN st_acct a ON t.account_id = a.id WHERE t.total > 10000) \
             SELECT region, COUNT(*) AS n, SUM(total) AS revenue FROM large GROUP BY region ORDER BY revenue DESC",
        ),
    ];
    Group { name: "stress", tables: Box::new(tables), workloads, is_large: true }
}

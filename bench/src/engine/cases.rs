//! What the engine suite asks: sixteen small statements, and the star's at several sizes.

use crate::data::{Table, float, int, score, star, table, text};
use crate::rows::Same;
use crate::star;

/// Tables of one database and what is asked of them.
pub(crate) struct Group {
    pub(crate) name: String,
    /// Rows of its large tables, where groups differ in them alone.
    pub(crate) size: Option<i64>,
    pub(crate) tables: Vec<Table>,
    pub(crate) cases: Vec<Case>,
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) sql: String,
    pub(crate) same: Same,
    /// Not measured, and why.
    pub(crate) skip: Option<&'static str>,
}

fn case(name: &'static str, sql: &str) -> Case {
    Case { name, sql: sql.to_owned(), same: Same::All, skip: None }
}

/// The statements that are usual for embedded engines, over 1,000 to 100,000 rows.
pub(crate) fn small() -> Group {
    let id = || int("id", |n| n);
    let grp = || int("grp", |n| n % 100);
    let tables = vec![
        table("t", 10_000, vec![id(), text("name", |n| format!("user_{n}")), float("score", score)]),
        table("t_left", 10_000, vec![id(), grp(), int("val", |n| 7 * n % 10_000)]),
        table("t_right", 1_000, vec![id(), text("label", |n| format!("label_{n}"))]),
        table("t_gb", 50_000, vec![grp(), int("val", |n| 7 * n % 50_000)]),
        table(
            "big",
            100_000,
            vec![int("id", |n| n + 1), int("grp", |n| (n + 1) % 100), int("val", |n| 7 * (n + 1) % 100_000)],
        ),
        table("labels", 1_000, vec![id(), int("label", |n| 3 * n)]),
        table("sf", 10_000, vec![id(), text("name", |n| format!("user_{n}")), int("val", |n| n - 5_000)]),
        table("lines", 50_000, vec![id(), int("quantity", |n| 1 + n % 20), int("price", |n| 10 + 13 * n % 990)]),
    ];
    let insert = "freshet sends every write upstream: see the batch suite";
    let cases = vec![
        Case { skip: Some(insert), ..case("insert_bulk", "") },
        case("select_full_scan", "SELECT * FROM t"),
        case("select_where", "SELECT * FROM t WHERE score > 50.0"),
        case("aggregate", "SELECT COUNT(*), SUM(score), AVG(score) FROM t"),
        case("order_by", "SELECT * FROM t ORDER BY score DESC"),
        case("join", "SELECT t_left.id, t_left.val, t_right.label FROM t_left JOIN t_right ON t_left.grp = t_right.id"),
        case("group_by", "SELECT grp, SUM(val), COUNT(*), AVG(val) FROM t_gb GROUP BY grp"),
        case("generate_series", "SELECT * FROM generate_series(1, 100000)"),
        case("large_sort", "SELECT * FROM big ORDER BY val DESC"),
        case("large_join", "SELECT big.id, big.val, labels.label FROM big JOIN labels ON big.grp = labels.id"),
        case("distinct", "SELECT DISTINCT grp FROM big"),
        case("window", "SELECT grp, val, ROW_NUMBER() OVER (PARTITION BY grp ORDER BY val) FROM t_gb"),
        case(
            "cte",
            "WITH sums AS (SELECT grp, SUM(val) AS total, COUNT(*) AS n FROM t_gb GROUP BY grp) \
             SELECT * FROM sums WHERE total > 100000 ORDER BY total DESC",
        ),
        case("scalar_functions", "SELECT id, UPPER(name), ABS(val), val * 2 + 1 FROM sf"),
        Case { same: Same::Columns(&[2]), ..case("top_n", "SELECT * FROM big ORDER BY val DESC LIMIT 100") },
        case("expression_agg", "SELECT SUM(quantity * price), AVG(quantity * price), COUNT(*) FROM lines"),
    ];
    Group { name: "small".into(), size: None, tables, cases }
}

/// The star's statements over fact tables of `rows` rows.
pub(crate) fn of_star(rows: i64) -> Group {
    let name = if rows < 1_000_000 { format!("{}K", rows / 1_000) } else { format!("{}M", rows / 1_000_000) };
    let fan_out = "the join yields rows in proportion to the square of the table's: 800 millions at this size";
    let cases = star::ALL.iter().map(|query| Case {
        skip: (query.name == "wc_join_reorder" && rows > 1_000_000).then_some(fan_out),
        same: query.same,
        ..case(query.name, query.sql)
    });
    Group { name, size: Some(rows), tables: star(rows), cases: cases.collect() }
}

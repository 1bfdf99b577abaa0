//! The reads over small tables, as data: each has tables of its own and one statement.

use crate::batch::workloads::{Group, asks_free};
use crate::data::{CATEGORIES, Column, REGIONS, Table, float, int, score, table, text, word};
use crate::rows::Same;

struct Read {
    name: &'static str,
    tables: &'static [(&'static str, i64, &'static [Values])],
    sql: &'static str,
    /// `@` is another number each time.
    varied: &'static str,
    same: Same,
}

/// A column by what it holds in row `n`.
#[derive(Clone, Copy)]
enum Values {
    /// `(factor * n + first) % modulus`.
    Int {
        name: &'static str,
        factor: i64,
        first: i64,
        modulus: i64,
    },
    /// The prefix and `(n + first) % modulus`.
    Numbered {
        name: &'static str,
        prefix: &'static str,
        first: i64,
        modulus: i64,
    },
    /// One of them by turns.
    Words(&'static str, &'static [&'static str]),
    Score(&'static str),
}

const UNBOUNDED: i64 = i64::MAX;
const ID: Values = times("id", 1, UNBOUNDED);

const fn times(name: &'static str, factor: i64, modulus: i64) -> Values {
    Values::Int { name, factor, first: 0, modulus }
}

const fn numbered(name: &'static str, prefix: &'static str, modulus: i64) -> Values {
    Values::Numbered { name, prefix, first: 0, modulus }
}

impl Values {
    fn column(self) -> Column {
        match self {
            Self::Int { name, factor, first, modulus } => int(name, move |n| (factor * n + first) % modulus),
            Self::Numbered { name, prefix, first, modulus } => {
                text(name, move |n| format!("{prefix}{}", (n + first) % modulus))
            }
            Self::Words(name, words) => word(name, words),
            Self::Score(name) => float(name, score),
        }
    }
}

const READS: [Read; 14] = [
    Read {
        name: "select_full_scan",
        tables: &[("t", 5_000, &[ID, numbered("name", "row_", UNBOUNDED), times("val", 7, UNBOUNDED)])],
        sql: "SELECT * FROM t",
        varied: "SELECT * FROM t WHERE id > -@",
        same: Same::All,
    },
    Read {
        name: "select_where",
        tables: &[("t", 5_000, &[ID, numbered("category", "cat_", 10), times("amount", 1, UNBOUNDED)])],
        sql: "SELECT * FROM t WHERE amount > 2500",
        varied: "SELECT * FROM t WHERE amount > 2500 AND id > -@",
        same: Same::All,
    },
    Read {
        name: "aggregate",
        tables: &[("sales", 5_000, &[ID, Values::Words("region", REGIONS), times("amount", 13, 1_000)])],
        sql: "SELECT region, SUM(amount) FROM sales GROUP BY region",
        varied: "SELECT region, SUM(amount) FROM sales WHERE id > -@ GROUP BY region",
        same: Same::All,
    },
    Read {
        name: "order_by",
        tables: &[("t", 5_000, &[ID, times("val", 31_337, 100_000)])],
        sql: "SELECT * FROM t ORDER BY val DESC",
        varied: "SELECT * FROM t WHERE id > -@ ORDER BY val DESC",
        same: Same::All,
    },
    Read {
        name: "join",
        tables: &[
            ("users", 500, &[ID, numbered("name", "user_", UNBOUNDED)]),
            ("orders", 2_000, &[ID, times("user_id", 1, 500), times("total", 17, 1_000)]),
        ],
        sql: "SELECT users.name, orders.total FROM users JOIN orders ON users.id = orders.user_id",
        varied: "SELECT users.name, orders.total FROM users JOIN orders ON users.id = orders.user_id WHERE orders.id > -@",
        same: Same::All,
    },
    Read {
        name: "window_functions",
        tables: &[("t", 5_000, &[ID, times("grp", 1, 20), times("val", 7, 1_000)])],
        sql: "SELECT id, grp, val, ROW_NUMBER() OVER (PARTITION BY grp ORDER BY val) FROM t",
        varied: "SELECT id, grp, val, ROW_NUMBER() OVER (PARTITION BY grp ORDER BY val) FROM t WHERE id > -@",
        same: Same::Columns(&[1, 2, 3]),
    },
    Read {
        name: "distinct",
        tables: &[("t", 5_000, &[ID, numbered("category", "cat_", 100), times("val", 1, UNBOUNDED)])],
        sql: "SELECT DISTINCT category FROM t",
        varied: "SELECT DISTINCT category FROM t WHERE id > -@",
        same: Same::All,
    },
    Read {
        name: "subquery",
        tables: &[("t1", 5_000, &[ID, times("val", 3, UNBOUNDED)]), ("t2", 5_000, &[ID, times("flag", 1, 1_000)])],
        sql: "SELECT * FROM t1 WHERE id IN (SELECT id FROM t2 WHERE flag > 500)",
        varied: "SELECT * FROM t1 WHERE id IN (SELECT id FROM t2 WHERE flag > 500) AND val > -@",
        same: Same::All,
    },
    Read {
        name: "cte",
        tables: &[("t", 5_000, &[ID, times("val", 3, UNBOUNDED), numbered("category", "cat_", 10)])],
        sql: "WITH filtered AS (SELECT * FROM t WHERE val > 500) SELECT * FROM filtered WHERE category = 'cat_3'",
        varied: "WITH filtered AS (SELECT * FROM t WHERE val > 500 AND id > -@) \
                 SELECT * FROM filtered WHERE category = 'cat_3'",
        same: Same::All,
    },
    Read {
        name: "generate_series",
        tables: &[],
        sql: "SELECT * FROM generate_series(1, 10000)",
        varied: "SELECT * FROM generate_series(1, 10000) AS g(n) WHERE n > -@",
        same: Same::All,
    },
    Read {
        name: "scalar_functions",
        tables: &[("t", 5_000, &[ID, numbered("name", "user_", UNBOUNDED), Values::Score("score")])],
        sql: "SELECT UPPER(name), LENGTH(name), ABS(score), ROUND(score::numeric, 2) FROM t",
        varied: "SELECT UPPER(name), LENGTH(name), ABS(score), ROUND(score::numeric, 2) FROM t WHERE id > -@",
        same: Same::All,
    },
    Read {
        name: "expression_agg",
        tables: &[(
            "t",
            5_000,
            &[ID, Values::Words("category", CATEGORIES), times("price", 17, 500), times("quantity", 7, 100)],
        )],
        sql: "SELECT category, SUM(price * quantity) FROM t GROUP BY category",
        varied: "SELECT category, SUM(price * quantity) FROM t WHERE id > -@ GROUP BY category",
        same: Same::All,
    },
    Read {
        name: "multi_sort",
        tables: &[("t", 5_000, &[ID, times("a", 31_337, 1_000), times("b", 7_919, 1_000)])],
        sql: "SELECT * FROM t ORDER BY a DESC, b ASC",
        varied: "SELECT * FROM t WHERE id > -@ ORDER BY a DESC, b ASC",
        same: Same::All,
    },
    Read {
        name: "set_ops",
        tables: &[
            ("t1", 2_000, &[ID, numbered("val", "a_", UNBOUNDED)]),
            (
                "t2",
                2_000,
                &[
                    Values::Int { name: "id", factor: 1, first: 1_000, modulus: UNBOUNDED },
                    Values::Numbered { name: "val", prefix: "b_", first: 1_000, modulus: UNBOUNDED },
                ],
            ),
        ],
        sql: "SELECT id, val FROM t1 UNION SELECT id, val FROM t2",
        varied: "SELECT id, val FROM t1 WHERE id > -@ UNION SELECT id, val FROM t2",
        same: Same::All,
    },
];

pub(super) fn groups() -> impl Iterator<Item = Group> {
    READS.iter().map(|read| Group {
        name: read.name,
        tables: Box::new(|| read.tables.iter().map(table_of).collect()),
        workloads: vec![asks_free(read.name, read.sql, read.varied, read.same)],
        is_large: false,
    })
}

fn table_of(&(name, rows, columns): &(&'static str, i64, &[Values])) -> Table {
    table(name, rows, columns.iter().map(|column| column.column()).collect())
}

//! The fifteen throughput workloads: tables, and the statements that each thread sends in turn.

use crate::data::{Table, float, int, region, score, star, table, text};
use crate::star;

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) statements: Vec<Statement>,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Reads,
    /// Most read, some write: what a read returns is one of two things.
    Mixed,
    Inserts,
}

/// A text with `$n`, and what stands for each: a literal of SQL.
pub(crate) struct Statement {
    pub(crate) sql: &'static str,
    pub(crate) arguments: Vec<String>,
}

impl Statement {
    /// With its literals.
    pub(crate) fn text(&self) -> String {
        let numbered = self.arguments.iter().enumerate();
        numbered.fold(self.sql.to_owned(), |text, (at, argument)| text.replace(&format!("${}", at + 1), argument))
    }

    /// As Bind carries them.
    pub(crate) fn values(&self) -> Vec<Option<&str>> {
        self.arguments.iter().map(|argument| Some(argument.trim_matches('\''))).collect()
    }
}

/// Every table of the workloads below.
pub(crate) fn tables() -> Vec<Table> {
    let id = || int("id", |n| n);
    let mut tables = star(50_000);
    tables.extend([
        table("bench_pr", 10_000, vec![id(), text("val", |n| format!("value_{n}"))]).with_index("id"),
        table("bench_fs", 5_000, vec![id(), text("name", |n| format!("row_{n}")), int("val", |n| 7 * n)]),
        table("bench_fw", 5_000, vec![id(), text("category", |n| format!("cat_{}", n % 10)), int("amount", |n| n)]),
        table("bench_agg", 5_000, vec![id(), region(), int("amount", |n| 13 * n % 1_000)]),
        table("bench_users", 500, vec![id(), text("name", |n| format!("user_{n}"))]),
        table("bench_orders", 2_000, vec![id(), int("user_id", |n| n % 500), int("total", |n| 17 * n % 1_000)]),
        table("bench_ins", 0, vec![id(), text("name", |n| format!("user_{n}")), float("score", score)]),
        table("bench_mix", 5_000, vec![id(), int("val", |n| 3 * n)]).with_index("id"),
        table(
            "wc_big",
            50_000,
            vec![id(), int("val", |n| 31_337 * n % 100_000), text("payload", |n| format!("payload_{n}"))],
        )
        .with_index("id"),
    ]);
    tables
}

pub(crate) fn all() -> Vec<Workload> {
    let point = "SELECT * FROM bench_pr WHERE id = $1";
    let by_id = "SELECT * FROM wc_big WHERE id = $1";
    let mut all = vec![
        of("point_read", (0..100).map(|i| with(point, &[(100 * i).to_string()]))),
        of("full_scan", [plain("SELECT * FROM bench_fs")]),
        of("filtered_scan", [plain("SELECT * FROM bench_fw WHERE amount > 2500")]),
        of("aggregate", [plain("SELECT region, SUM(amount) FROM bench_agg GROUP BY region")]),
        of(
            "join",
            [plain(
                "SELECT bench_users.name, bench_orders.total FROM bench_users \
                 JOIN bench_orders ON bench_users.id = bench_orders.user_id",
            )],
        ),
        Workload { name: "insert", statements: (0..200).map(insert).collect(), kind: Kind::Inserts },
        Workload { name: "mixed_rw", statements: (0..100).map(mixed).collect(), kind: Kind::Mixed },
    ];
    let published = |name: &str| !name.starts_with("wc_");
    let of_star = star::ALL.iter().filter(|query| published(query.name));
    all.extend(of_star.map(|query| of(query.name, [plain(query.sql)])));
    all.push(of("wc_concurrent_read", (0..200).map(|i| with(by_id, &[(251 * i % 50_000).to_string()]))));
    all
}

fn of(name: &'static str, statements: impl IntoIterator<Item = Statement>) -> Workload {
    Workload { name, statements: statements.into_iter().collect(), kind: Kind::Reads }
}

fn plain(sql: &'static str) -> Statement {
    with(sql, &[])
}

fn with(sql: &'static str, arguments: &[String]) -> Statement {
    Statement { sql, arguments: arguments.to_vec() }
}

fn insert(i: i32) -> Statement {
    let arguments = [i.to_string(), format!("'user_{i}'"), format!("{}.{}", i % 100, i % 10)];
    with("INSERT INTO bench_ins VALUES ($1, $2, $3)", &arguments)
}

/// 80 reads, then 20 writes.
fn mixed(i: i32) -> Statement {
    if i < 80 {
        return with("SELECT * FROM bench_mix WHERE id = $1", &[(61 * i % 5_000).to_string()]);
    }
    let arguments = [(7 * i).to_string(), (251 * i % 5_000).to_string()];
    with("UPDATE bench_mix SET val = $1 WHERE id = $2", &arguments)
}

//! The statements of the matrix, their parameters, and the tables that they read.

use crate::data::{Table, int, table, text};

pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) sql: &'static str,
    parameters: fn(i32) -> Vec<i32>,
}

impl Query {
    /// Each execution has the next ones, by turns.
    pub(super) fn parameters(&self) -> Vec<Vec<i32>> {
        (0..VARIETY).map(self.parameters).collect()
    }
}

/// Different parameters that a statement is executed with.
const VARIETY: i32 = 50;

pub(super) const QUERIES: [Query; 5] = [
    Query { name: "point", sql: "SELECT id, name FROM harbors WHERE id = $1", parameters: |n| vec![n * 97 % 10_000] },
    Query { name: "wide_rows", sql: "SELECT * FROM wide WHERE id < $1", parameters: |n| vec![50 + n % 10] },
    Query { name: "large_rows", sql: "SELECT id, body FROM large WHERE id < $1", parameters: |n| vec![5 + n % 5] },
    Query {
        name: "many_params",
        sql: "SELECT id, name FROM harbors WHERE id IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        parameters: |n| (0..10).map(|at| (n * 31 + at * 997) % 10_000).collect(),
    },
    Query {
        name: "aggregate",
        sql: "SELECT country, count(*), sum(berths) FROM harbors WHERE berths > $1 GROUP BY country",
        parameters: |n| vec![n % 5],
    },
];

/// Which rows a LIMIT without ORDER BY returns is free: how many is not.
pub(super) const BATCH: &str = "SELECT id, name FROM harbors LIMIT $1";

pub(super) fn batch_parameters(executions: usize) -> Vec<Vec<i32>> {
    (0..executions).map(|n| vec![1 + n as i32 % 10]).collect()
}

/// Rows of all executions together.
pub(super) fn batch_rows(executions: usize) -> usize {
    batch_parameters(executions).iter().flatten().map(|limit| *limit as usize).sum()
}

/// Whether `harbors` has this (id, name).
pub(super) fn is_harbor(row: &[Option<String>]) -> bool {
    let [Some(id), Some(name)] = row else { return false };
    id.parse::<u32>().is_ok_and(|id| id < 10_000 && *name == format!("harbor_{id}"))
}

pub(super) fn tables() -> Vec<Table> {
    let id = || int("id", |n| n);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "o", "p", "q", "r", "s", "t"];
    let wide = names.iter().zip(1..).map(|(name, by)| int(name, move |n| by * n % 1_000));
    vec![
        table(
            "harbors",
            10_000,
            vec![
                id(),
                text("name", |n| format!("harbor_{n}")),
                text("country", |n| format!("country_{}", n % 40)),
                int("berths", |n| 13 * n % 60),
            ],
        )
        .with_index("id"),
        table("wide", 1_000, std::iter::once(id()).chain(wide).collect()).with_index("id"),
        table("large", 100, vec![id(), text("body", |n| format!("{n:06}").repeat(1_700))]).with_index("id"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_the_rows_of_its_limits_and_rows_are_known() {
        assert_eq!(batch_rows(10), 55);
        let row = |id: &str, name: &str| [Some(id.to_owned()), Some(name.to_owned())];
        assert!(is_harbor(&row("7", "harbor_7")));
        assert!(!is_harbor(&row("7", "harbor_8")) && !is_harbor(&row("10000", "harbor_10000")) && !is_harbor(&[]));
    }
}

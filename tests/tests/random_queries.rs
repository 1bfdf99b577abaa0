//! Random queries over small tables with NULLs and duplicates, against PostgreSQL and through freshet: the same rows, however
//! the query is nested. Each is asked twice, so that the second answer is freshet's own.
//!
//! `FRESHET_TEST_QUERIES` sets how many (default 200), `FRESHET_TEST_SEED` the first random number.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bytes::Bytes;
use freshet::audit::compare::{ComparedColumn, Freedom, Nearness, Row, compare};
use freshet_engine::types::PgType;
use freshet_tests::cluster::Cluster;
use freshet_tests::freshet::Freshet;
use freshet_tests::raw::{RawClient, RawReply};

const COLUMNS: [&str; 4] = ["id", "x", "y", "z"];
/// Of column `t`, which base tables have besides.
const TEXTS: [&str; 8] = ["b", "B", "a-b", "ab", "", "co op", "Co-op", "x"];
const TABLES: [&str; 3] = ["ta", "tb", "tc"];

struct Dice {
    state: u64,
    names: usize,
}

/// What a FROM item offers: its name, and how many columns `id`, `x`... it has.
type Items = Vec<(String, usize)>;

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("s{}", self.names)
    }

    /// A column of the items, innermost level last; sometimes of an outer level.
    fn column(&mut self, levels: &[Items]) -> String {
        let outer = levels.len() > 1 && self.roll(3) == 0;
        let level =
            if outer { &levels[self.roll(levels.len() as u64 - 1) as usize] } else { &levels[levels.len() - 1] };
        let (name, width) = &level[self.roll(level.len() as u64) as usize];
        format!("{name}.{}", COLUMNS[self.roll(*width as u64) as usize])
    }

    fn own_column(&mut self, levels: &[Items]) -> String {
        self.column(&levels[levels.len() - 1..])
    }

    fn value(&mut self, levels: &[Items], depth: u32) -> String {
        match self.roll(if depth == 0 { 7 } else { 10 }) {
            0 => self.roll(5).to_string(),
            1 => format!("{} + {}", self.column(levels), self.roll(3)),
            2 => format!("coalesce({}, {})", self.column(levels), self.roll(4)),
            3 => format!(
                "CASE WHEN {} THEN {} ELSE {} END",
                self.predicate(levels, 0),
                self.column(levels),
                self.roll(3)
            ),
            4..=6 => self.column(levels),
            7 => format!("({})", self.scalar_query(levels, depth - 1)),
            8 => format!("(CASE WHEN {} THEN 1 ELSE 0 END)", self.predicate(levels, depth - 1)),
            _ => format!("nullif({}, {})", self.column(levels), self.roll(4)),
        }
    }

    /// One row: an aggregate, tied to the outer level or not.
    fn scalar_query(&mut self, levels: &[Items], depth: u32) -> String {
        let aggregate = self.pick(&["count(*)", "max", "min", "sum", "count", "count(DISTINCT"]);
        let (from, items) = self.from(depth, 1);
        let mut inner = levels.to_vec();
        inner.push(items);
        let column = self.own_column(&inner);
        let target = match aggregate {
            "count(*)" => "count(*)".to_owned(),
            "count(DISTINCT" => format!("count(DISTINCT {column})"),
            name => format!("{name}({column})"),
        };
        let filter = self.tied(levels, &inner, depth);
        format!("SELECT ({target})::int FROM {from}{filter}")
    }

    /// WHERE with an equality between this level and an outer one, most of the time.
    fn tied(&mut self, levels: &[Items], inner: &[Items], depth: u32) -> String {
        let mut parts = Vec::new();
        if self.roll(4) > 0 {
            parts.push(format!("{} = {}", self.own_column(inner), self.own_column(levels)));
        }
        if self.roll(3) == 0 {
            parts.push(self.predicate(&inner[inner.len() - 1..], depth.min(1)));
        }
        if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
    }

    fn predicate(&mut self, levels: &[Items], depth: u32) -> String {
        let compare = ["=", "<>", "<", "<=", ">", ">="];
        match self.roll(if depth == 0 { 6 } else { 12 }) {
            0 | 1 => format!("{} {} {}", self.column(levels), self.pick(&compare), self.column(levels)),
            2 => format!("{} {} {}", self.column(levels), self.pick(&compare), self.roll(5)),
            3 => format!("{} IS {}NULL", self.column(levels), self.pick(&["", "NOT "])),
            4 => format!("{} IN ({}, {}, NULL)", self.column(levels), self.roll(4), self.roll(4)),
            5 => {
                format!("{} IS {}DISTINCT FROM {}", self.column(levels), self.pick(&["", "NOT "]), self.column(levels))
            }
            6 => format!("NOT ({})", self.predicate(levels, depth - 1)),
            7 => {
                let word = self.pick(&["AND", "OR"]);
                format!("({} {word} {})", self.predicate(levels, depth - 1), self.predicate(levels, depth - 1))
            }
            8 | 9 => {
                let (from, items) = self.from(depth - 1, 1);
                let mut inner = levels.to_vec();
                inner.push(items);
                let filter = self.tied(levels, &inner, depth - 1);
                format!("{}EXISTS (SELECT 1 FROM {from}{filter})", self.pick(&["", "NOT "]))
            }
            10 => {
                let (from, items) = self.from(depth - 1, 1);
                let mut inner = levels.to_vec();
                inner.push(items);
                let column = self.own_column(&inner);
                let filter = self.tied(levels, &inner, depth - 1);
                format!("{} {}IN (SELECT {column} FROM {from}{filter})", self.column(levels), self.pick(&["", "NOT "]))
            }
            _ => format!("{} {} ({})", self.column(levels), self.pick(&compare), self.scalar_query(levels, depth - 1)),
        }
    }

    /// FROM items, joined; each has the columns `id`, `x`... as far as its width goes.
    fn from(&mut self, depth: u32, most: u64) -> (String, Items) {
        let count = 1 + self.roll(most);
        let (mut text, first) = self.item(depth);
        let mut items = vec![first];
        for _ in 1..count {
            let (next, item) = self.item(depth);
            let equality = {
                let left = self.own_column(&[items.clone()]);
                let right = self.own_column(&[vec![item.clone()]]);
                format!("{left} = {right}")
            };
            items.push(item);
            let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN", "JOIN", "LEFT JOIN"]);
            let condition = match kind {
                "CROSS JOIN" => String::new(),
                "FULL JOIN" => format!(" ON {equality}"),
                _ => match self.roll(4) {
                    0 => format!(" ON {equality} AND {}", self.predicate(&[items.clone()], 0)),
                    1 => format!(" ON {}", self.predicate(&[items.clone()], 0)),
                    _ => format!(" ON {equality}"),
                },
            };
            let _ = write!(text, " {kind} {next}{condition}");
        }
        (text, items)
    }

    fn item(&mut self, depth: u32) -> (String, (String, usize)) {
        let name = self.name();
        if depth == 0 || self.roll(3) > 0 {
            return (format!("{} {name}", self.pick(&TABLES)), (name, COLUMNS.len()));
        }
        let width = 1 + self.roll(3) as usize;
        let query = self.query(depth - 1, width);
        (format!("({query}) {name} ({})", COLUMNS[..width].join(", ")), (name, width))
    }

    /// A query with so many integer columns.
    fn query(&mut self, depth: u32, width: usize) -> String {
        match self.roll(if depth == 0 { 6 } else { 8 }) {
            0 if depth > 0 => {
                let word = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"]);
                format!("({}) {word} ({})", self.query(depth - 1, width), self.query(depth - 1, width))
            }
            1 => self.grouped(depth, width),
            6 => self.windowed(depth, width),
            7 => {
                let name = self.name();
                let common = self.query(depth - 1, 3);
                let list = COLUMNS[..3].join(", ");
                let items = vec![("c1".to_owned(), 3), ("c2".to_owned(), 3)];
                let levels = [items];
                let targets: Vec<String> = (0..width).map(|_| self.own_column(&levels)).collect();
                format!(
                    "WITH {name} ({list}) AS ({common}) SELECT {} FROM {name} c1 LEFT JOIN {name} c2 ON c1.id = c2.id",
                    targets.join(", ")
                )
            }
            _ => {
                let (from, items) = self.from(depth, 2);
                let levels = [items];
                let targets: Vec<String> = (0..width).map(|_| self.value(&levels, depth)).collect();
                let filter =
                    if self.roll(3) > 0 { format!(" WHERE {}", self.predicate(&levels, depth)) } else { String::new() };
                let distinct = self.pick(&["", "", "DISTINCT "]);
                format!("SELECT {distinct}{} FROM {from}{filter}", targets.join(", "))
            }
        }
    }

    fn grouped(&mut self, depth: u32, width: usize) -> String {
        let (from, items) = self.from(depth, 2);
        let levels = [items];
        let keys: Vec<String> = (0..1 + self.roll(2)).map(|_| self.own_column(&levels)).collect();
        let aggregate = |dice: &mut Self| {
            let column = dice.own_column(&levels);
            let name = dice.pick(&["sum", "max", "min", "count", "count(DISTINCT"]);
            let call =
                if name.ends_with("DISTINCT") { format!("{name} {column})") } else { format!("{name}({column})") };
            let filter = if dice.roll(4) == 0 {
                format!(" FILTER (WHERE {})", dice.predicate(&levels, 0))
            } else {
                String::new()
            };
            format!("({call}{filter})::int")
        };
        let mut targets = Vec::new();
        for _ in 0..width {
            let key = keys[self.roll(keys.len() as u64) as usize].clone();
            targets.push(if self.roll(2) == 0 { key } else { aggregate(self) });
        }
        let filter = match self.roll(8) {
            0..4 => format!(" WHERE {}", self.predicate(&levels, depth)),
            // A key that is a constant, which PostgreSQL may take it to be above grouping sets, too.
            4 => format!(" WHERE {} = {}", keys[0], self.roll(4)),
            _ => String::new(),
        };
        let distinct = self.pick(&["", "", "", "DISTINCT "]);
        let having = if self.roll(3) == 0 { " HAVING count(*) > 1" } else { "" };
        let by = match self.roll(5) {
            0 => format!("ROLLUP ({})", keys.join(", ")),
            1 => format!("GROUPING SETS (({}), ())", keys.join(", ")),
            _ => keys.join(", "),
        };
        format!("SELECT {distinct}{} FROM {from}{filter} GROUP BY {by}{having}", targets.join(", "))
    }

    /// Over a table, whose key makes every order total.
    fn windowed(&mut self, _depth: u32, width: usize) -> String {
        let table = self.pick(&TABLES);
        let calls = [
            "row_number()",
            "rank()",
            "dense_rank()",
            "sum(w.x)",
            "count(*)",
            "max(w.y)",
            "lag(w.x)",
            "lead(w.y, 2, 7)",
            "first_value(w.z)",
            "last_value(w.x)",
            "ntile(3)",
            "count(w.z)",
            "min(w.x)",
            "nth_value(w.y, 2)",
            "max(length(w.t))",
            "length(min(w.t))",
            "ascii(max(w.t))",
            "cardinality(array_agg(w.t))",
        ];
        let mut targets = Vec::new();
        for _ in 0..width {
            let call = self.pick(&calls);
            let partition = self.pick(&["", "PARTITION BY w.x ", "PARTITION BY w.y, w.z "]);
            let order = self.pick(&[
                "ORDER BY w.id",
                "ORDER BY w.y DESC, w.id",
                "ORDER BY w.z NULLS FIRST, w.id DESC",
                "ORDER BY w.t, w.id",
                "ORDER BY w.t DESC NULLS LAST, w.id",
            ]);
            let frame = self.pick(&[
                "",
                "",
                " ROWS UNBOUNDED PRECEDING",
                " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
                " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
                " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            ]);
            targets.push(format!("({call} OVER ({partition}{order}{frame}))::int"));
        }
        let filter = match self.roll(5) {
            0 => format!(" WHERE w.t {} '{}'", self.pick(&["<", ">=", "<>"]), self.pick(&TEXTS)),
            1 => format!(" WHERE w.x = ANY (ARRAY[{}, w.y, NULL])", self.roll(4)),
            2 => format!(" WHERE NOT w.t ~* '{}'", self.pick(&["^b", "o$", "[^a-c]", "x|y"])),
            _ => String::new(),
        };
        format!("SELECT {} FROM {table} w{filter}", targets.join(", "))
    }
}

fn rows(reply: &RawReply) -> Vec<Row> {
    reply.rows().into_iter().map(|row| row.into_iter().map(|cell| cell.map(Bytes::from)).collect()).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[test]
fn random_queries_have_upstreams_answers() {
    let cluster = Cluster::shared();
    // Text in an order that is not bytewise.
    let database = "random_queries".to_owned();
    cluster.psql(
        "postgres",
        &format!("CREATE DATABASE {database} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"),
    );
    let mut dice = Dice { state: setting("FRESHET_TEST_SEED", 0x9e37_79b9_7f4a_7c15), names: 0 };
    for (table, rows) in TABLES.iter().zip([7, 9, 5]) {
        let mut sql = format!("CREATE TABLE {table} (id int PRIMARY KEY, x int, y int, z int, t text);");
        for id in 0..rows {
            let mut cell = || if dice.roll(4) == 0 { "NULL".to_owned() } else { dice.roll(4).to_string() };
            let (x, y, z) = (cell(), cell(), cell());
            let t = if dice.roll(5) == 0 { "NULL".to_owned() } else { format!("'{}'", dice.pick(&TEXTS)) };
            let _ = write!(sql, "INSERT INTO {table} VALUES ({id}, {x}, {y}, {z}, {t});");
        }
        cluster.psql(&database, &sql);
    }
    let freshet = Freshet::start(&cluster.url(&database), |_| {});
    let upstream = cluster.address();
    let mut direct = RawClient::connect(upstream, "postgres", &database).expect("connects");
    let mut through = RawClient::connect(freshet.address(), "postgres", &database).expect("connects");
    let limit = std::time::Instant::now() + std::time::Duration::from_secs(30);
    for table in TABLES {
        while through.last().map_or(true, |(route, _)| route == "relay" || route.is_empty()) {
            through.simple(&format!("SELECT count(*) FROM {table}")).expect("answers");
            assert!(std::time::Instant::now() < limit, "{table} is not mirrored");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        through.simple("BEGIN; SELECT 1; COMMIT").expect("answers");
    }
    let count = setting("FRESHET_TEST_QUERIES", 200);
    let mut reasons: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let (mut local, mut problems) = (0, Vec::new());
    for _ in 0..count {
        let width = 1 + dice.roll(3) as usize;
        dice.names = 0;
        let sql = dice.query(2, width);
        let expected = direct.simple(&sql).expect("answers");
        for _ in 0..3 {
            let got = through.simple(&sql).expect("answers");
            if expected.envelope() != got.envelope() && expected.error().is_none() {
                problems.push(format!("{sql}\n  descriptions differ"));
                break;
            }
            let columns =
                vec![ComparedColumn { pg_type: PgType::Int4, is_binary: false, nearness: Nearness::Exact }; width];
            if let Err(difference) = compare(&columns, &Freedom::default(), &rows(&expected), &rows(&got), None) {
                problems.push(format!("{sql}\n  {difference:?}: {:?} {:?}", rows(&expected), rows(&got)));
                break;
            }
            let (route, reason) = through.last().expect("answers");
            if route == "local" || route == "hit" {
                local += 1;
                break;
            }
            if expected.error().is_some() {
                break;
            }
            if !reason.starts_with("first_run") {
                let entry = reasons.entry(reason).or_insert_with(|| (0, sql.clone()));
                entry.0 += 1;
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(4));
        }
    }
    println!("{local} of {count} answered here; else: {reasons:#?}");
    assert!(problems.is_empty(), "{} of {count}:\n{}", problems.len(), problems.join("\n"));
    assert_eq!(freshet.status(&database, "wrong_answers"), "0");
    assert!(local * 10 > count as usize * 6, "{local} of {count} answered here; else: {reasons:#?}");
}

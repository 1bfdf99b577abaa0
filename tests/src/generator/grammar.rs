//! Queries: FROM, joins, grouping, windows, set operations, subqueries, WITH; each of wanted column types.

use freshet_engine::types::PgType;

use super::dice::Dice;
use super::expression::{has_order, is_grouped};
use super::schema::{Key, Table};
use super::sentence::{Kind, Sentence};
use super::values::TYPES;

/// A column that can be named.
#[derive(Clone, Debug)]
pub struct Column {
    pub text: String,
    pub pg_type: PgType,
    /// Of a table without edges: floats in it may be added in any order.
    pub is_exact: bool,
}

/// The columns of one level.
pub type Scope = Vec<Column>;

pub struct Grammar<'w> {
    pub dice: Dice,
    pub tables: &'w [Table],
    pub is_wild: bool,
    names: usize,
    /// What is bound now is the outermost query: a float may differ in its last bits there.
    is_outermost: bool,
}

/// What PostgreSQL may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    Nothing,
    /// Which rows there are, but not how many.
    Rows,
}

/// A statement, and how far its answer is bound.
#[derive(Clone, Debug)]
pub struct Statement {
    pub query: Sentence,
    /// ORDER BY: positions of output columns, with how.
    pub order: Vec<(usize, &'static str)>,
    pub limit: Option<&'static str>,
    /// Output columns whose values hang on the order of rows that no ORDER BY tells apart.
    pub free: Vec<usize>,
    pub choice: Choice,
}

impl Statement {
    pub fn new(query: Sentence) -> Self {
        Self { query, order: Vec::new(), limit: None, free: Vec::new(), choice: Choice::Nothing }
    }

    /// The whole.
    pub fn sentence(&self) -> Sentence {
        let mut whole = self.query.clone();
        if !self.order.is_empty() {
            let keys: Vec<String> = self.order.iter().map(|(at, how)| format!("{}{how}", at + 1)).collect();
            whole = whole.then(format!(" ORDER BY {}", keys.join(", ")));
        }
        whole.then(self.limit.unwrap_or_default())
    }

    /// Every statement that says one thing less.
    pub fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.limit.is_some() {
            found.push(Self { limit: None, ..self.clone() });
        } else if !self.order.is_empty() {
            found.push(Self { order: Vec::new(), ..self.clone() });
        }
        found.extend(self.query.simpler().into_iter().map(|query| Self { query, ..self.clone() }));
        found
    }
}

impl<'w> Grammar<'w> {
    pub fn new(dice: Dice, tables: &'w [Table]) -> Self {
        let is_wild = tables.iter().any(|table| table.is_wild);
        Self { dice, tables, is_wild, names: 0, is_outermost: false }
    }

    pub fn statement(&mut self) -> Statement {
        self.names = 0;
        if self.dice.percent(8)
            && let Some(statement) = self.tied()
        {
            return statement;
        }
        let types: Vec<PgType> = (0..1 + self.dice.roll(4)).map(|_| *self.dice.pick(&*TYPES)).collect();
        let depth = 1 + self.dice.roll(3);
        self.is_outermost = true;
        let query = self.query(depth, &types);
        let mut statement = Statement::new(query);
        if self.dice.percent(50) {
            let ordered: Vec<usize> = (0..types.len()).filter(|at| is_sorted_by(types[*at])).collect();
            let is_total = ordered.len() == types.len();
            let keep = if self.dice.percent(60) { ordered.len() } else { 1 };
            for at in ordered.into_iter().take(keep) {
                let how = *self.dice.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                statement.order.push((at, how));
            }
            // Equal values that print differently may be cut anywhere.
            let is_bound = types.iter().all(|pg_type| is_grouped(*pg_type));
            if is_total && is_bound && keep == types.len() && self.dice.percent(50) {
                statement.limit = Some(*self.dice.pick(&[" LIMIT 3", " OFFSET 2", " LIMIT 2 OFFSET 1", " LIMIT 0"]));
            }
        }
        statement
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("s{}", self.names)
    }

    /// A query of these columns that stands by itself.
    pub fn query(&mut self, depth: usize, types: &[PgType]) -> Sentence {
        let is_set = types.iter().all(|pg_type| is_grouped(*pg_type));
        match self.dice.roll(if depth == 0 { 6 } else { 9 }) {
            0 | 1 => self.grouped(depth, types),
            2 => self.windowed(types).unwrap_or_else(|| self.plain(depth, types, &[])),
            6 if is_set => {
                self.is_outermost = false;
                let words = [" UNION ", " UNION ALL ", " INTERSECT ", " EXCEPT ", " INTERSECT ALL ", " EXCEPT ALL "];
                let word = *self.dice.pick(&words);
                let (left, right) = (self.query(depth - 1, types), self.query(depth - 1, types));
                Sentence::text(Kind::Query, "(").with(left).then(format!("){word}(")).with(right).then(")")
            }
            7 => self.with(depth, types),
            _ => self.plain(depth, types, &[]),
        }
    }

    /// SELECT ... FROM ... WHERE, within levels around it.
    fn plain(&mut self, depth: usize, types: &[PgType], outer: &[Scope]) -> Sentence {
        let was_outermost = std::mem::take(&mut self.is_outermost);
        let (from, scope) = self.from(depth, 2);
        let mut levels = outer.to_vec();
        levels.push(scope);
        let targets: Vec<Sentence> = types.iter().map(|pg_type| self.value(&levels, *pg_type, depth + 1)).collect();
        let is_grouped = types.iter().all(|pg_type| is_grouped(*pg_type));
        let distinct = if is_grouped && self.dice.percent(20) { "DISTINCT " } else { "" };
        let filter = self.filter(&levels, depth, 60);
        self.is_outermost = was_outermost;
        Sentence::text(Kind::Query, format!("SELECT {distinct}"))
            .list(targets, ", ")
            .then(" FROM ")
            .with(from)
            .with(filter)
    }

    fn filter(&mut self, levels: &[Scope], depth: usize, percent: usize) -> Sentence {
        let filter = Sentence::new(Kind::Optional);
        if !self.dice.percent(percent) {
            return filter;
        }
        let predicate = self.predicate(levels, depth + 1);
        filter.then(" WHERE ").with(predicate)
    }

    /// FROM items, joined, and their columns.
    fn from(&mut self, depth: usize, most: usize) -> (Sentence, Scope) {
        let (first, mut scope) = self.item(depth);
        let mut from = Sentence::new(Kind::Plain).with(first);
        for _ in 0..self.dice.roll(most) {
            let (next, own) = self.item(depth);
            let equality = self.equality(&scope, &own);
            let match_on = equality.as_ref().map(|(left, right)| self.match_on(left, right, &scope, &own));
            let equality = equality.map(|(left, right)| format!("{left} = {right}"));
            let both: Scope = scope.iter().chain(&own).cloned().collect();
            let mut join = Sentence::new(Kind::Optional);
            join = match (equality.zip(match_on), self.dice.roll(8)) {
                // Upstream joins these by equality alone.
                (Some((equality, _)), 0) => join.then(" FULL JOIN ").with(next).then(format!(" ON {equality}")),
                (Some((_, match_on)), roll @ 1..=6) => {
                    let kind = ["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN"][roll - 1];
                    let more = match self.dice.percent(30) {
                        true => {
                            Sentence::text(Kind::Optional, " AND ").with(self.predicate(std::slice::from_ref(&both), 0))
                        }
                        false => Sentence::new(Kind::Optional),
                    };
                    join.then(format!(" {kind} ")).with(next).then(format!(" ON {match_on}")).with(more)
                }
                (Some(_), _) => {
                    let kind = *self.dice.pick(&["JOIN", "LEFT JOIN"]);
                    let on = self.predicate(std::slice::from_ref(&both), 1);
                    join.then(format!(" {kind} ")).with(next).then(" ON ").with(on)
                }
                (None, _) => join.then(" CROSS JOIN ").with(next),
            };
            from = from.with(join);
            scope = both;
        }
        (from, scope)
    }

    /// A column of each that can be compared.
    fn equality(&mut self, left: &Scope, right: &Scope) -> Option<(String, String)> {
        let is_number = |of: PgType| matches!(of, PgType::Int2 | PgType::Int4 | PgType::Int8 | PgType::Numeric);
        let pairs: Vec<(String, String)> = left
            .iter()
            .flat_map(|left| right.iter().map(move |right| (left, right)))
            .filter(|(left, right)| {
                left.pg_type == right.pg_type || is_number(left.pg_type) && is_number(right.pg_type)
            })
            .filter(|(left, _)| has_order(left.pg_type))
            .map(|(left, right)| (left.text.clone(), right.text.clone()))
            .collect();
        (!pairs.is_empty()).then(|| self.dice.pick(&pairs).clone())
    }

    /// Rows that match: by these columns as such, with NULL equal to NULL in the ways that people write it, or by another pair, too.
    fn match_on(&mut self, left: &str, right: &str, lefts: &Scope, rights: &Scope) -> String {
        match self.dice.roll(10) {
            0 => format!("{left} IS NOT DISTINCT FROM {right}"),
            1 => format!("({left} = {right} OR ({left} IS NULL AND {right} IS NULL))"),
            2 => match self.equality(lefts, rights) {
                Some((also, to)) => format!("{left} = {right} AND {also} IS NOT DISTINCT FROM {to}"),
                None => format!("{left} = {right}"),
            },
            _ => format!("{left} = {right}"),
        }
    }

    fn item(&mut self, depth: usize) -> (Sentence, Scope) {
        let name = self.name();
        let named = |types: &[PgType], is_exact: bool| -> Scope {
            let column =
                |(at, pg_type): (usize, &PgType)| Column { text: format!("{name}.x{at}"), pg_type: *pg_type, is_exact };
            types.iter().enumerate().map(column).collect()
        };
        let aliases = |count: usize| (0..count).map(|at| format!("x{at}")).collect::<Vec<_>>().join(", ");
        match self.dice.roll(if depth == 0 { 9 } else { 14 }) {
            0 => {
                let types = [*self.dice.pick(&*TYPES), PgType::Int4];
                let mut rows = Sentence::text(Kind::Plain, "(VALUES ");
                for row in 0..1 + self.dice.roll(4) {
                    let cells = types.map(|pg_type| self.value(&[], pg_type, 0));
                    rows = rows.then(if row > 0 { ", (" } else { "(" }).list(cells, ", ").then(")");
                }
                (rows.then(format!(") {name} ({})", aliases(2))), named(&types, false))
            }
            1 if self.dice.percent(50) => {
                let (start, end) = (self.dice.roll(4), self.dice.roll(8));
                let sql = format!("generate_series({start}, {end}) {name} (x0)");
                (Sentence::text(Kind::Plain, sql), named(&[PgType::Int4], false))
            }
            9..=12 => {
                let types: Vec<PgType> = (0..1 + self.dice.roll(3)).map(|_| *self.dice.pick(&*TYPES)).collect();
                let query = self.query(depth - 1, &types);
                let sentence =
                    Sentence::text(Kind::Plain, "(").with(query).then(format!(") {name} ({})", aliases(types.len())));
                (sentence, named(&types, false))
            }
            13 => {
                let step = *self.dice.pick(&["x0 + 1, x1 || 'z'", "x0 + 2, upper(x1)", "x0 * 2 + 1, x1"]);
                let all = *self.dice.pick(&["UNION ALL", "UNION"]);
                let sql = format!(
                    "(WITH RECURSIVE r (x0, x1) AS (SELECT 1, 'a'::text {all} SELECT {step} FROM r WHERE x0 < 9) SELECT x0, x1 FROM r) {name}"
                );
                (Sentence::text(Kind::Plain, sql), named(&[PgType::Int4, PgType::Text], false))
            }
            _ => {
                let table = self.dice.pick(self.tables);
                let column = |(column, pg_type): &(String, PgType)| Column {
                    text: format!("{name}.{column}"),
                    pg_type: *pg_type,
                    is_exact: !table.is_wild,
                };
                let scope = table.columns.iter().map(column).collect();
                (Sentence::text(Kind::Plain, format!("{} {name}", table.name)), scope)
            }
        }
    }

    fn with(&mut self, depth: usize, types: &[PgType]) -> Sentence {
        let was_outermost = std::mem::take(&mut self.is_outermost);
        let name = self.name();
        let mut inner = types.to_vec();
        inner.push(PgType::Int4);
        let common = self.query(depth - 1, &inner);
        let list: Vec<String> = (0..inner.len()).map(|at| format!("x{at}")).collect();
        let scope = |alias: &str| -> Scope {
            let column = |(at, pg_type): (usize, &PgType)| Column {
                text: format!("{alias}.x{at}"),
                pg_type: *pg_type,
                is_exact: false,
            };
            inner.iter().enumerate().map(column).collect()
        };
        let levels = [scope("w1").into_iter().chain(scope("w2")).collect::<Scope>()];
        let targets: Vec<Sentence> = types.iter().map(|pg_type| self.value(&levels, *pg_type, 1)).collect();
        let how = *self.dice.pick(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
        let join = *self.dice.pick(&["JOIN", "LEFT JOIN"]);
        let key = inner.len() - 1;
        let equals = *self.dice.pick(&["=", "=", "IS NOT DISTINCT FROM"]);
        self.is_outermost = was_outermost;
        Sentence::text(Kind::Query, format!("WITH {name} ({}) AS {how}(", list.join(", ")))
            .with(common)
            .then(") SELECT ")
            .list(targets, ", ")
            .then(format!(" FROM {name} w1 {join} {name} w2 ON w1.x{key} {equals} w2.x{key}"))
    }

    /// One row with one column: a grouped query without keys.
    pub fn scalar_query(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        let was_outermost = std::mem::take(&mut self.is_outermost);
        let (from, scope) = self.from(0, 1);
        let target = self.aggregate(std::slice::from_ref(&scope), pg_type);
        let filter = self.tied_to(levels, &scope, depth);
        self.is_outermost = was_outermost;
        match target {
            Some(target) => Sentence::text(Kind::Value(pg_type), "(SELECT ")
                .with(target)
                .then(" FROM ")
                .with(from)
                .with(filter)
                .then(")"),
            None => self.value(levels, pg_type, 0),
        }
    }

    /// WHERE with an equality between this level and an outer one, mostly.
    fn tied_to(&mut self, levels: &[Scope], inner: &Scope, depth: usize) -> Sentence {
        let around = levels.last().cloned().unwrap_or_default();
        let mut filter = Sentence::new(Kind::Optional);
        let mut word = " WHERE ";
        if self.dice.percent(75)
            && let Some(equality) = self.equality(inner, &around)
        {
            let (left, right) = equality;
            filter = filter.then(format!("{word}{left} = {right}"));
            word = " AND ";
        }
        if self.dice.percent(35) {
            let predicate = self.predicate(std::slice::from_ref(inner), depth.min(1));
            filter = filter.then(word).with(predicate);
        }
        filter
    }

    pub fn exists(&mut self, levels: &[Scope], depth: usize) -> Sentence {
        let (from, scope) = self.from(depth.min(1), 1);
        let filter = self.tied_to(levels, &scope, depth);
        let word = *self.dice.pick(&["EXISTS (SELECT 1 FROM ", "NOT EXISTS (SELECT 1 FROM "]);
        Sentence::text(Kind::Value(PgType::Bool), word).with(from).with(filter).then(")")
    }

    pub fn in_query(&mut self, levels: &[Scope], pg_type: PgType, depth: usize) -> Sentence {
        let (from, scope) = self.from(depth.min(1), 1);
        let target = self.value(std::slice::from_ref(&scope), pg_type, 0);
        let filter = self.tied_to(levels, &scope, depth);
        let operand = self.value(levels, pg_type, 0);
        let word = *self.dice.pick(&[" IN (SELECT ", " NOT IN (SELECT "]);
        Sentence::text(Kind::Value(PgType::Bool), "(")
            .with(operand)
            .then(word)
            .with(target)
            .then(" FROM ")
            .with(from)
            .with(filter)
            .then("))")
    }

    fn grouped(&mut self, depth: usize, types: &[PgType]) -> Sentence {
        let was_outermost = self.is_outermost;
        self.is_outermost = false;
        let (from, scope) = self.from(depth, 2);
        self.is_outermost = was_outermost;
        let levels = [scope];
        let keys: Vec<Column> = {
            let able: Vec<&Column> = levels[0].iter().filter(|column| is_grouped(column.pg_type)).collect();
            (0..self.dice.roll(3)).filter(|_| !able.is_empty()).map(|_| (*self.dice.pick(&able)).clone()).collect()
        };
        let mut targets = Vec::new();
        for pg_type in types {
            let key = keys.iter().find(|key| key.pg_type == *pg_type).filter(|_| self.dice.percent(60));
            targets.push(match key {
                Some(key) => Sentence::text(Kind::Value(*pg_type), key.text.clone()),
                None => match self.aggregate(&levels, *pg_type) {
                    Some(aggregate) => aggregate,
                    None => self.value(&[], *pg_type, 0),
                },
            });
        }
        self.is_outermost = false;
        let filter = self.filter(&levels, depth, 50);
        let mut query = Sentence::text(Kind::Query, if self.dice.percent(20) { "SELECT DISTINCT " } else { "SELECT " })
            .list(targets, ", ")
            .then(" FROM ")
            .with(from)
            .with(filter);
        if !keys.is_empty() {
            let list = keys.iter().map(|key| key.text.as_str()).collect::<Vec<_>>().join(", ");
            query = query.then(match self.dice.roll(8) {
                0 => format!(" GROUP BY ROLLUP ({list})"),
                1 => format!(" GROUP BY CUBE ({list})"),
                2 => format!(" GROUP BY GROUPING SETS (({list}), ())"),
                _ => format!(" GROUP BY {list}"),
            });
        }
        let having = match self.dice.roll(5) {
            0 => Sentence::text(Kind::Optional, " HAVING count(*) > 1"),
            1 => match self.aggregate(&levels, PgType::Int8) {
                Some(aggregate) => Sentence::text(Kind::Optional, " HAVING ").with(aggregate).then(" IS NOT NULL"),
                None => Sentence::new(Kind::Optional),
            },
            _ => Sentence::new(Kind::Optional),
        };
        self.is_outermost = was_outermost;
        query.with(having)
    }

    /// Whether a float may differ in its last bits here.
    pub fn allows_last_bits(&self) -> bool {
        self.is_outermost
    }

    /// Windows over a table with a key, which makes every order total.
    fn windowed(&mut self, types: &[PgType]) -> Option<Sentence> {
        let tables: Vec<&Table> = self.tables.iter().filter(|table| table.key != Key::None).collect();
        if tables.is_empty() {
            return None;
        }
        let was_outermost = self.is_outermost;
        let table = *self.dice.pick(&tables);
        let scope = table_scope(table, "w");
        let total = table.unique().iter().map(|name| format!("w.{name}")).collect::<Vec<_>>().join(", ");
        let mut targets = Vec::new();
        for pg_type in types {
            let target = self.window_call(&scope, *pg_type, &total);
            targets.push(target.unwrap_or_else(|| self.value(std::slice::from_ref(&scope), *pg_type, 1)));
        }
        self.is_outermost = false;
        let filter = self.filter(&[scope], 1, 30);
        self.is_outermost = was_outermost;
        Some(
            Sentence::text(Kind::Query, "SELECT ")
                .list(targets, ", ")
                .then(format!(" FROM {} w", table.name))
                .with(filter),
        )
    }

    fn window_call(&mut self, scope: &Scope, pg_type: PgType, total: &str) -> Option<Sentence> {
        let levels = [scope.clone()];
        let call = match (pg_type, self.dice.roll(3)) {
            (PgType::Int8, 0) => {
                let name = *self.dice.pick(&["row_number()", "rank()", "dense_rank()", "count(*)"]);
                Sentence::text(Kind::Plain, name)
            }
            (PgType::Int4, 0) => Sentence::text(Kind::Plain, "ntile(3)"),
            (PgType::Float8, 0) => Sentence::text(Kind::Plain, *self.dice.pick(&["percent_rank()", "cume_dist()"])),
            (_, 1) => self.plain_aggregate(&levels, pg_type)?,
            _ => {
                let value = self.value(&levels, pg_type, 1);
                let (name, rest) = *self.dice.pick(&[
                    ("lag(", ")"),
                    ("lead(", ", 2)"),
                    ("first_value(", ")"),
                    ("last_value(", ")"),
                    ("nth_value(", ", 2)"),
                ]);
                Sentence::text(Kind::Plain, name).with(value).then(rest)
            }
        };
        let able: Vec<&Column> = scope.iter().filter(|column| is_grouped(column.pg_type)).collect();
        let partition = match self.dice.roll(3) {
            0 => String::new(),
            _ => format!("PARTITION BY {} ", self.dice.pick(&able).text),
        };
        let lead: Vec<&Column> = scope.iter().filter(|column| has_order(column.pg_type)).collect();
        let lead = match self.dice.roll(3) {
            0 => String::new(),
            _ => {
                let how = *self.dice.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
                format!("{}{how}, ", self.dice.pick(&lead).text)
            }
        };
        let mut frames = vec![
            "",
            "",
            " ROWS UNBOUNDED PRECEDING",
            " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW",
        ];
        if lead.is_empty() && !total.contains(',') {
            frames.extend([" RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING", " RANGE 3 PRECEDING EXCLUDE GROUP"]);
        }
        let frame = *self.dice.pick(&frames);
        let over = format!(" OVER ({partition}ORDER BY {lead}{total}{frame})");
        Some(Sentence::new(Kind::Value(pg_type)).with(call).then(over))
    }

    /// Statements in which rows that are not told apart decide: PostgreSQL is free in a column, or in which rows there are.
    fn tied(&mut self) -> Option<Statement> {
        let table = self.dice.pick(self.tables);
        let scope = table_scope(table, "w");
        let able: Vec<&Column> =
            scope.iter().filter(|column| is_grouped(column.pg_type) && !column.text.ends_with(".id")).collect();
        let (by, then) = (self.dice.pick(&able).text.clone(), self.dice.pick(&able).text.clone());
        let over = match self.dice.roll(3) {
            0 => format!("OVER (ORDER BY {by})"),
            1 => format!("OVER (PARTITION BY {by})"),
            _ => format!("OVER (PARTITION BY {by} ORDER BY {then} DESC)"),
        };
        let free = match self.dice.roll(5) {
            0 | 1 => "row_number()",
            2 => "ntile(2)",
            3 => "lag(w.id)",
            _ => "first_value(w.id)",
        };
        let mut statement = match self.dice.roll(4) {
            0 | 1 => {
                let sql = format!("SELECT {by}, {then}, {free} {over}, rank() {over}, w.id FROM {} w", table.name);
                Statement { free: vec![2], ..Statement::new(Sentence::text(Kind::Query, sql)) }
            }
            2 => {
                let name = &table.name;
                let sql = format!(
                    "SELECT * FROM (SELECT {by} AS k, w.id, row_number() {over} AS r FROM {name} w) q WHERE r <= 2"
                );
                Statement { choice: Choice::Rows, ..Statement::new(Sentence::text(Kind::Query, sql)) }
            }
            _ => {
                let sql = format!("SELECT DISTINCT ON ({by}) {by} AS k, w.id FROM {} w ORDER BY {by}", table.name);
                let statement = Statement::new(Sentence::text(Kind::Query, sql));
                // ORDER BY stands in the text already.
                return Some(Statement { free: vec![1], choice: Choice::Nothing, ..statement });
            }
        };
        if self.dice.percent(40) {
            statement.order.push((0, ""));
        }
        Some(statement)
    }
}

/// Types by which whole answers are ordered: equal intervals may print differently, and then the order is not seen.
fn is_sorted_by(pg_type: PgType) -> bool {
    has_order(pg_type) && pg_type != PgType::Interval
}

fn table_scope(table: &Table, alias: &str) -> Scope {
    let column = |(column, pg_type): &(String, PgType)| Column {
        text: format!("{alias}.{column}"),
        pg_type: *pg_type,
        is_exact: !table.is_wild,
    };
    table.columns.iter().map(column).collect()
}

//! Random tables and rows: types, keys, skew, NULLs, edges, duplicates, empty tables; and what changes them later.

use std::fmt::Write as _;

use freshet_engine::types::PgType;

use super::dice::Dice;
use super::sentence::sql_name;
use super::values::{TYPES, any, skewed};

/// How rows are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// The first column, `id`.
    One,
    /// The first two, `id` and `part`.
    Two,
    /// REPLICA IDENTITY FULL: rows may be equal.
    None,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<(String, PgType)>,
    /// As written in CREATE TABLE.
    types: Vec<String>,
    pub key: Key,
    pub rows: Vec<Vec<Option<String>>>,
    /// Has values at the edges of its types.
    pub is_wild: bool,
}

impl Table {
    pub fn random(dice: &mut Dice, name: &str) -> Self {
        let is_wild = dice.percent(35);
        let key = *dice.pick(&[Key::One, Key::One, Key::One, Key::Two, Key::None]);
        let mut columns = vec![("id".to_owned(), PgType::Int4)];
        if key == Key::Two {
            columns.push(("part".to_owned(), PgType::Text));
        }
        // Always something to join and to group by.
        columns.push(("a".to_owned(), PgType::Int4));
        columns.push(("t".to_owned(), PgType::Text));
        for at in 0..3 + dice.roll(5) {
            columns.push((format!("c{at}"), *dice.pick(&*TYPES)));
        }
        let types = columns.iter().map(|(_, pg_type)| column_type(dice, *pg_type, is_wild)).collect();
        let mut table = Self { name: name.to_owned(), columns, types, key, rows: Vec::new(), is_wild };
        // Empty, small, now and then larger than a batch.
        let count = match dice.roll(20) {
            0 => 0,
            1 => 400,
            _ => 1 + dice.skewed(24),
        };
        for id in 0..count {
            let row = table.row(dice, id);
            table.rows.push(row);
        }
        table
    }

    fn row(&self, dice: &mut Dice, id: usize) -> Vec<Option<String>> {
        let keys = match self.key {
            Key::One | Key::None => 1,
            Key::Two => 2,
        };
        let mut row = Vec::with_capacity(self.columns.len());
        for (at, (_, pg_type)) in self.columns.iter().enumerate() {
            row.push(match (self.key, at) {
                (Key::None, 0) => Some((id / 2).to_string()),
                (Key::Two, 0) => Some((id % 5).to_string()),
                (_, 0) => Some(id.to_string()),
                (Key::Two, 1) => Some(format!("k{}", id / 5)),
                // A duplicate now and then, of the row before.
                _ if self.key == Key::None && id % 2 == 1 => self.rows[id - 1][at].clone(),
                _ if at < keys + 2 => skewed(dice, *pg_type, false).map(str::to_owned),
                _ => skewed(dice, *pg_type, self.is_wild).map(str::to_owned),
            });
        }
        row
    }

    /// Columns that, together, no two rows share. Empty: there are none.
    pub fn unique(&self) -> &'static [&'static str] {
        match self.key {
            Key::One => &["id"],
            Key::Two => &["id", "part"],
            Key::None => &[],
        }
    }

    /// CREATE TABLE and INSERT.
    pub fn setup(&self) -> Vec<String> {
        let columns = self.columns.iter().zip(&self.types).map(|((name, _), pg_type)| format!("{name} {pg_type}"));
        let mut definition: Vec<String> = columns.collect();
        if self.key != Key::None {
            definition.push(format!("PRIMARY KEY ({})", self.unique().join(", ")));
        }
        let mut setup = vec![format!("CREATE TABLE {} ({})", self.name, definition.join(", "))];
        if self.key == Key::None {
            setup.push(format!("ALTER TABLE {} REPLICA IDENTITY FULL", self.name));
        }
        setup.extend(self.rows.chunks(50).map(|rows| self.insert(rows)));
        setup
    }

    fn insert(&self, rows: &[Vec<Option<String>>]) -> String {
        let mut sql = format!("INSERT INTO {} VALUES ", self.name);
        for (at, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row
                .iter()
                .map(|cell| cell.as_ref().map_or("NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''"))))
                .collect();
            let _ = write!(sql, "{}({})", if at > 0 { ", " } else { "" }, cells.join(", "));
        }
        sql
    }

    /// A change to be made while the table is mirrored.
    pub fn change(&mut self, dice: &mut Dice) -> String {
        match dice.roll(4) {
            0 => {
                let id = dice.roll(20);
                format!("DELETE FROM {} WHERE id = {id}", self.name)
            }
            1 if self.key != Key::None => {
                let at = self.unique().len() + dice.roll(self.columns.len() - self.unique().len());
                let (name, pg_type) = self.columns[at].clone();
                let value = any(dice, pg_type, self.is_wild && at > self.unique().len() + 1);
                let value = value.map_or("NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''")));
                format!("UPDATE {} SET {name} = {value} WHERE id % 3 = {}", self.name, dice.roll(3))
            }
            2 => format!("UPDATE {} SET a = a + 1 WHERE id > {}", self.name, dice.roll(20)),
            _ => {
                let id = 1_000 + dice.roll(1_000_000) * 2;
                let row = match self.key {
                    Key::Two => {
                        let mut row = self.row(dice, 0);
                        row[1] = Some(format!("new{id}"));
                        row
                    }
                    Key::One | Key::None => {
                        let mut row = self.row(dice, 0);
                        row[0] = Some(id.to_string());
                        row
                    }
                };
                format!("{} ON CONFLICT DO NOTHING", self.insert(&[row]))
            }
        }
    }
}

/// The type of a column; lengths only where every value that may come fits.
fn column_type(dice: &mut Dice, pg_type: PgType, is_wild: bool) -> String {
    match pg_type {
        PgType::Varchar => "varchar(12)".to_owned(),
        PgType::Numeric if !is_wild && dice.percent(60) => {
            (*dice.pick(&["numeric(12,3)", "numeric(8,1)", "numeric(30,10)"])).to_owned()
        }
        PgType::Timestamp if dice.percent(20) => "timestamp(3)".to_owned(),
        other => sql_name(other),
    }
}

/// One to four tables.
pub fn random_tables(dice: &mut Dice) -> Vec<Table> {
    (0..2 + dice.roll(3)).map(|at| Table::random(dice, &format!("t{at}"))).collect()
}

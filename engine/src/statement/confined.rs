//! To which keys of its table a writing statement is confined, by its tokens alone: [`ConfinedWrite`].
//!
//! A column confines a write if every row that it takes away or makes has one of a few constants there: `WHERE column =
//! constant` where the statement does not set the column; the constants of VALUES. Only a few plain forms are read, each to its
//! last token ([`reader`]): a text with anything else in it (another table, OR, a query, a call) confines nothing. What the names mean,
//! and what a constant is in its column's type, is for who knows the table.

mod reader;

use crate::statement::confined::reader::Reader;
use crate::statement::lexer::Token;

/// Longer lists of constants confine nothing.
const CONSTANTS_MAX: usize = 16;
/// Columns beyond these are not kept.
const COLUMNS_MAX: usize = 8;

/// By any of the columns. One table, which the statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinedWrite {
    pub columns: Vec<ConfinedColumn>,
    /// Of an upsert: it may update the row that is like the new one in these columns.
    pub upserts_by: Option<Vec<String>>,
    /// The constants are stored, not compared: a column's length limit applies.
    pub is_insert: bool,
    /// What the text was read by; it says nothing where one of them is not what it looks like.
    pub names: Names,
}

/// Names in a text, folded: columns of its table, and what is taken for pg_catalog's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub columns: Vec<String>,
    pub types: Vec<&'static str>,
    pub functions: Vec<&'static str>,
    pub operators: Vec<&'static str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfinedColumn {
    pub column: String,
    pub constants: Vec<Constant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub value: ConstantValue,
    /// A type that it is written with.
    pub cast: Option<Cast>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstantValue {
    /// A number as written, with its sign.
    Integer(String),
    /// A string's value, ASCII: of whatever type stands on the other side.
    Text(String),
    /// `$n`, counted from 0. `is_alone`: the statement has it nowhere else, so that its type is decided here (parse_param.c: the
    /// first use in the order of analysis decides, which is not the order of the text).
    Parameter { index: usize, is_alone: bool },
}

/// Types that a constant may be cast to and still be told by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    Integer,
    Text,
    Uuid,
    /// inet or cidr: what both accept is one value.
    Network,
}

/// What confines this INSERT, UPDATE or DELETE, given its tokens without the semicolon.
pub fn confined(tokens: &[Token<'_>]) -> Option<ConfinedWrite> {
    let mut reader = Reader::new(tokens);
    let write = match () {
        () if reader.takes_word("update") => update(&mut reader)?,
        () if reader.takes_word("delete") => delete(&mut reader)?,
        () if reader.takes_word("insert") => insert(&mut reader)?,
        () => return None,
    };
    (!write.columns.is_empty()).then(|| ConfinedWrite { names: reader.names(), ..write })
}

/// `UPDATE [ONLY] table [[AS] alias] SET column = value, ... WHERE condition [RETURNING ...]`.
fn update(reader: &mut Reader<'_, '_>) -> Option<ConfinedWrite> {
    reader.takes_word("only");
    reader.target()?;
    reader.alias("set")?;
    let assigned = assignments(reader)?;
    let mut columns = where_clause(reader)?;
    columns.retain(|confined| !assigned.contains(&confined.column));
    reader.returning()?;
    Some(ConfinedWrite { columns, upserts_by: None, is_insert: false, names: Names::default() })
}

/// `DELETE FROM [ONLY] table [[AS] alias] WHERE condition [RETURNING ...]`.
fn delete(reader: &mut Reader<'_, '_>) -> Option<ConfinedWrite> {
    reader.word("from")?;
    reader.takes_word("only");
    reader.target()?;
    reader.alias("where")?;
    let columns = where_clause(reader)?;
    reader.returning()?;
    Some(ConfinedWrite { columns, upserts_by: None, is_insert: false, names: Names::default() })
}

/// `INSERT INTO table [AS alias] (columns) VALUES (...), ... [ON CONFLICT ...] [RETURNING ...]`.
fn insert(reader: &mut Reader<'_, '_>) -> Option<ConfinedWrite> {
    reader.word("into")?;
    reader.target()?;
    reader.alias("(")?;
    let names = reader.columns_in_parentheses()?;
    reader.word("values")?;
    // By column; None: not always a constant.
    let mut constants: Vec<Option<Vec<Constant>>> = vec![Some(Vec::new()); names.len()];
    let mut rows = 0;
    loop {
        let row = reader.row()?;
        rows += 1;
        if row.len() != names.len() || rows > CONSTANTS_MAX {
            return None;
        }
        for (all, item) in constants.iter_mut().zip(row) {
            match item {
                Some(constant) => all.iter_mut().for_each(|all| all.push(constant.clone())),
                None => *all = None,
            }
        }
        if !reader.takes_symbol(",") {
            break;
        }
    }
    let upserts_by = if reader.takes_word("on") { on_conflict(reader)? } else { None };
    reader.returning()?;
    let columns = names.into_iter().zip(constants);
    let columns = columns.filter_map(|(column, constants)| Some(ConfinedColumn { column, constants: constants? }));
    let columns = columns.take(COLUMNS_MAX).collect();
    Some(ConfinedWrite { columns, upserts_by, is_insert: true, names: Names::default() })
}

/// The columns by which the row that CONFLICT updates is like the one that was to come. Inner None: nothing is updated.
fn on_conflict(reader: &mut Reader<'_, '_>) -> Option<Option<Vec<String>>> {
    reader.word("conflict")?;
    let arbiters = if reader.is_symbol("(") { Some(reader.columns_in_parentheses()?) } else { None };
    reader.word("do")?;
    if reader.takes_word("nothing") {
        return Some(None);
    }
    let mut arbiters = arbiters?;
    reader.word("update")?;
    reader.word("set")?;
    reader.knows_excluded();
    let assigned = assignments(reader)?;
    if reader.takes_word("where") {
        reader.condition()?;
    }
    arbiters.retain(|name| !assigned.contains(name));
    Some(Some(arbiters))
}

/// The columns that `a = value, b = value` sets.
fn assignments(reader: &mut Reader<'_, '_>) -> Option<Vec<String>> {
    let mut names = Vec::new();
    loop {
        names.push(reader.column_name()?);
        reader.symbol("=")?;
        reader.value()?;
        if !reader.takes_symbol(",") {
            return Some(names);
        }
    }
}

fn where_clause(reader: &mut Reader<'_, '_>) -> Option<Vec<ConfinedColumn>> {
    reader.word("where")?;
    let mut columns = reader.condition()?;
    columns.truncate(COLUMNS_MAX);
    Some(columns)
}

#[cfg(test)]
mod tests;

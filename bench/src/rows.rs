//! When two engines' rows are the same: compared as multisets of cells, numbers by value, and in the order that the statement
//! asks for: what it sorts by comes in the same sequence everywhere, also where ties are broken otherwise.

/// None for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// Which columns have to be equal. Where ORDER BY leaves ties and LIMIT or a row number chooses among them, engines
/// are free in the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Same {
    All,
    Columns(&'static [usize]),
}

/// The columns of the result that a statement sorts by, first key first, up to the first key that is no column of it.
/// `names` are the result's.
pub(crate) fn sorted_by(sql: &str, names: &[String]) -> Vec<usize> {
    let Some(keys) = outer_order(sql) else { return Vec::new() };
    let place = |key: &str| {
        let key = key.trim().trim_end_matches(" DESC").trim_end_matches(" ASC").trim();
        let name = key.rsplit('.').next().unwrap_or(key);
        names.iter().position(|other| other.eq_ignore_ascii_case(name))
    };
    keys.split(',').map_while(place).collect()
}

/// What stands behind the last ORDER BY that is in no parentheses.
fn outer_order(sql: &str) -> Option<&str> {
    let depths = sql.bytes().scan(0_i32, |depth, byte| {
        *depth += i32::from(byte == b'(') - i32::from(byte == b')');
        Some(*depth)
    });
    let is_outer: Vec<bool> = depths.map(|depth| depth == 0).collect();
    let (at, found) = sql.match_indices("ORDER BY ").filter(|(at, _)| is_outer[*at]).last()?;
    let rest = &sql[at + found.len()..];
    let end = [" LIMIT ", " /*", ";"].iter().filter_map(|end| rest.find(end)).min();
    Some(&rest[..end.unwrap_or(rest.len())])
}

/// An error says how they differ. `sorted_by`: the columns whose values come in a certain order.
pub(crate) fn compare(expected: &[Row], found: &[Row], same: Same, sorted_by: &[usize]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} rows instead of {}", found.len(), expected.len()));
    }
    if !sorted_by.is_empty() {
        compare_order(expected, found, sorted_by)?;
    }
    let (expected, found) = (normal(expected, same), normal(found, same));
    match expected.iter().zip(&found).find(|(expected, found)| expected != found) {
        None => Ok(()),
        Some((expected, found)) => Err(format!("({found}) instead of ({expected})")),
    }
}

fn compare_order(expected: &[Row], found: &[Row], sorted_by: &[usize]) -> Result<(), String> {
    let key = |row: &Row| -> Vec<String> { sorted_by.iter().filter_map(|at| row.get(*at)).map(cell).collect() };
    for (at, (expected, found)) in expected.iter().zip(found).enumerate() {
        let (expected, found) = (key(expected), key(found));
        if expected != found {
            return Err(format!("row {at} in another order: {found:?} instead of {expected:?}"));
        }
    }
    Ok(())
}

fn normal(rows: &[Row], same: Same) -> Vec<String> {
    let row = |row: &Row| {
        let cells: Vec<String> = match same {
            Same::All => row.iter().map(cell).collect(),
            Same::Columns(columns) => columns.iter().filter_map(|column| row.get(*column)).map(cell).collect(),
        };
        cells.join(", ")
    };
    let mut rows: Vec<String> = rows.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// An average is a numeric here and a double there: ten digits are compared.
fn cell(cell: &Option<String>) -> String {
    let Some(text) = cell else { return "NULL".into() };
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    match text.parse::<f64>() {
        Ok(number) if is_number && number.fract() == 0.0 && number.abs() < 1e15 => format!("{number:.0}"),
        Ok(number) if is_number && text.contains(['.', 'e']) => format!("{number:.9e}"),
        _ => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Vec<Row> {
        rows.iter().map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect()).collect()
    }

    #[test]
    fn rows_are_compared_by_value_and_without_order() {
        let expected = rows(&[&["a", "495.5000000000000000"], &["b", "3.0000000000000000"]]);
        assert!(compare(&expected, &rows(&[&["b", "3"], &["a", "495.5"]]), Same::All, &[]).is_ok());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["a", "495.6"]]), Same::All, &[]).is_err());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["c", "495.5"]]), Same::All, &[]).is_err());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["c", "495.5"]]), Same::Columns(&[1]), &[]).is_ok());
        assert!(compare(&expected, &rows(&[&["b", "3"]]), Same::All, &[]).is_err());
    }

    #[test]
    fn a_wrong_order_is_found_and_ties_are_free() {
        let names = ["id", "total"].map(String::from);
        let none: [usize; 0] = [];
        let by = |sql: &str| sorted_by(sql, &names);
        assert_eq!(by("SELECT id, total FROM t ORDER BY t.total DESC, id LIMIT 5"), [1, 0]);
        assert_eq!(by("SELECT id, rank() OVER (ORDER BY id) AS total FROM t"), none);
        assert_eq!(by("SELECT * FROM t ORDER BY id + 1, total /* nc7 */"), none, "the first key is no column");
        assert_eq!(by("SELECT * FROM t ORDER BY total DESC /* nc7 */"), [1]);
        let expected = rows(&[&["1", "9"], &["2", "9"], &["3", "8"]]);
        let tied = rows(&[&["2", "9"], &["1", "9"], &["3", "8"]]);
        let wrong = rows(&[&["3", "8"], &["1", "9"], &["2", "9"]]);
        assert!(compare(&expected, &tied, Same::All, &[1]).is_ok());
        assert!(compare(&expected, &wrong, Same::All, &[1]).is_err());
        assert!(compare(&expected, &wrong, Same::All, &[]).is_ok());
    }

    #[test]
    fn a_text_is_no_number() {
        assert!(compare(&rows(&[&["inf"]]), &rows(&[&["infinity"]]), Same::All, &[]).is_err());
        assert!(compare(&[vec![None]], &rows(&[&["NULL "]]), Same::All, &[]).is_err());
    }
}

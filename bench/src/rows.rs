//! When two engines' rows are the same: compared as multisets of cells, numbers by value.

/// None for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// Which columns have to be equal. Where ORDER BY leaves ties and LIMIT or a row number chooses among them, engines
/// are free in the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Same {
    All,
    Columns(&'static [usize]),
}

/// An error says how they differ.
pub(crate) fn compare(expected: &[Row], found: &[Row], same: Same) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} rows instead of {}", found.len(), expected.len()));
    }
    let (expected, found) = (normal(expected, same), normal(found, same));
    match expected.iter().zip(&found).find(|(expected, found)| expected != found) {
        None => Ok(()),
        Some((expected, found)) => Err(format!("({found}) instead of ({expected})")),
    }
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
        assert!(compare(&expected, &rows(&[&["b", "3"], &["a", "495.5"]]), Same::All).is_ok());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["a", "495.6"]]), Same::All).is_err());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["c", "495.5"]]), Same::All).is_err());
        assert!(compare(&expected, &rows(&[&["b", "3"], &["c", "495.5"]]), Same::Columns(&[1])).is_ok());
        assert!(compare(&expected, &rows(&[&["b", "3"]]), Same::All).is_err());
    }

    #[test]
    fn a_text_is_no_number() {
        assert!(compare(&rows(&[&["inf"]]), &rows(&[&["infinity"]]), Same::All).is_err());
        assert!(compare(&[vec![None]], &rows(&[&["NULL "]]), Same::All).is_err());
    }
}

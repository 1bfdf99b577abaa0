//! Statements that tools send, with one thing or another changed: another constant, comparison, aggregate, join, direction.

use super::dice::Dice;

/// Words that stand for each other.
const GROUPS: [&[&str]; 9] = [
    &["<", "<=", ">", ">=", "=", "<>"],
    &["sum", "avg", "min", "max", "count", "stddev", "bool_or", "var_pop"],
    &["asc", "desc"],
    &["and", "or"],
    &["first", "last"],
    &["left", "right", "full", "inner"],
    &["+", "-", "*", "/", "%"],
    &["'day'", "'month'", "'hour'", "'week'", "'year'", "'quarter'", "'minute'"],
    &["rank", "dense_rank", "percent_rank", "cume_dist", "row_number"],
];

/// Columns of `queries.setup.sql` that stand for each other: of one type.
const COLUMNS: [&[&str]; 4] = [
    &["id", "team", "boss", "person", "took", "v"],
    &["name", "page", "title", "city", "tag"],
    &["salary", "score", "budget", "weight"],
    &["born", "at"],
];

const NUMBERS: [&str; 9] = ["0", "1", "2", "3", "7", "100", "-1", "2.5", "1000000"];
const TEXTS: [&str; 7] = ["'p1'", "'a'", "'%'", "''", "'x'", "'2024-01-02'", "'ann'"];

/// One to three changes.
pub fn mutated(dice: &mut Dice, sql: &str) -> String {
    let mut tokens = tokens(sql);
    for _ in 0..1 + dice.roll(3) {
        let places: Vec<usize> = (0..tokens.len()).filter(|at| !alternatives(&tokens[*at]).is_empty()).collect();
        if places.is_empty() {
            break;
        }
        let at = *dice.pick(&places);
        let others = alternatives(&tokens[at]);
        tokens[at] = (*dice.pick(&others)).to_owned();
    }
    let changed = tokens.concat();
    match dice.roll(12) {
        0 => format!("SELECT count(*) FROM ({changed}) AS whole"),
        1 => format!("SELECT DISTINCT whole.* FROM ({changed}) AS whole"),
        2 => format!("WITH whole AS ({changed}) SELECT * FROM whole UNION ALL SELECT * FROM whole"),
        _ => changed,
    }
}

fn alternatives(token: &str) -> Vec<&'static str> {
    let lower = token.to_lowercase();
    let bare = lower.trim_matches('"');
    let groups = GROUPS.iter().chain(&COLUMNS).filter(|group| group.contains(&bare));
    let mut found: Vec<&'static str> =
        groups.flat_map(|group| group.iter().copied()).filter(|word| *word != bare).collect();
    if token.starts_with(|first: char| first.is_ascii_digit()) {
        found.extend(NUMBERS);
    } else if token.starts_with('\'') && !token.contains('{') {
        found.extend(TEXTS);
    }
    found
}

/// Words, constants, quoted names, symbols and what stands between them.
fn tokens(sql: &str) -> Vec<String> {
    let characters: Vec<char> = sql.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < characters.len() {
        let start = at;
        let first = characters[at];
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        at += 1;
        if first == '\'' || first == '"' {
            while at < characters.len() && characters[at] != first {
                at += 1;
            }
            at += 1;
        } else if first.is_ascii_digit() {
            while at < characters.len() && (characters[at].is_ascii_digit() || characters[at] == '.') {
                at += 1;
            }
        } else if is_word(first) {
            while at < characters.len() && is_word(characters[at]) {
                at += 1;
            }
        } else if "<>=!:|~".contains(first) {
            while at < characters.len() && "<>=!:|~*".contains(characters[at]) {
                at += 1;
            }
        }
        tokens.push(characters[start..at.min(characters.len())].iter().collect());
    }
    tokens
}

/// Whether the order of rows that are not told apart may show in the answer, as far as the text tells.
pub fn may_choose(sql: &str) -> bool {
    let lower = sql.to_lowercase();
    [" limit ", "offset ", "fetch ", "distinct on", " over ", " over(", "string_agg", "array_agg", "_agg("]
        .iter()
        .any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_put_together_are_the_statement() {
        let sql = "SELECT \"a\".b, 'it''s' || 2.50::numeric FROM t WHERE a<>1 AND b ~~* '%x'";
        assert_eq!(tokens(sql).concat(), sql);
        assert!(tokens(sql).iter().any(|token| token == "<>"));
    }

    #[test]
    fn something_is_changed() {
        let mut dice = Dice::new(1);
        let sql = "SELECT sum(took) FROM visits WHERE took > 3 ORDER BY 1 DESC";
        assert!((0..20).all(|_| mutated(&mut dice, sql) != sql));
    }
}

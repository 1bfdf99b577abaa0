//! Is freshet's answer one that PostgreSQL could have given? Equal, and free exactly where PostgreSQL is free.
//!
//! Free are: the order of rows where no ORDER BY fixes it (ties included), which rows a LIMIT keeps among those that
//! its order does not tell apart, the last bits of floats that were summed in another order, and columns that hang on the
//! order of such rows (`row_number() OVER (ORDER BY tie)`), whatever the rest of their rows is.

use std::cmp::Ordering;
use std::collections::HashMap;

use bytes::Bytes;
use freshet_engine::binder::OpenColumns;
use freshet_engine::types::{Numeric, PgType};

/// One row: NULL or the cell's bytes as they go over the wire.
pub type Row = Vec<Option<Bytes>>;

/// What of a column the comparison must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComparedColumn {
    pub pg_type: PgType,
    pub is_binary: bool,
    /// Of a float.
    pub nearness: Nearness,
}

/// How near two floats have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearness {
    /// The same.
    Exact,
    /// Made of sums, whose last bits are those of the order in which they were made.
    Summed,
    /// Likewise where what was added up may nearly have cancelled itself out.
    Cancelled,
}

impl ComparedColumn {
    fn is_near(&self) -> bool {
        self.nearness != Nearness::Exact && is_float(self.pg_type)
    }

    /// How much of the value is free, and how much whatever it is.
    fn tolerances(&self) -> (f64, f64) {
        let relative = if self.pg_type == PgType::Float4 { FLOAT4_TOLERANCE } else { FLOAT8_TOLERANCE };
        match (self.nearness, self.pg_type) {
            (Nearness::Cancelled, PgType::Float4) => (relative, FLOAT4_TOLERANCE),
            (Nearness::Cancelled, _) => (relative, CANCELLED_TOLERANCE),
            (Nearness::Exact | Nearness::Summed, _) => (relative, 0.0),
        }
    }
}

/// What the statement fixes about order and choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freedom {
    /// Output columns of the outermost ORDER BY, as far as its keys are output columns.
    pub order_columns: Vec<usize>,
    /// The outermost LIMIT may cut between rows that its order does not tell apart.
    pub is_limited: bool,
}

/// Why two answers are not the same answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    RowCount {
        upstream: usize,
        local: usize,
    },
    /// The n-th row of one answer has another ORDER BY key than the other's.
    Order {
        row: usize,
    },
    /// A row that the other answer does not have.
    Row {
        row: usize,
    },
}

/// Relative tolerance for float8: sums of some hundred thousand terms in any order agree to about 1e-11.
const FLOAT8_TOLERANCE: f64 = 1e-9;
/// float4 aggregates round at every step to 24 bits.
const FLOAT4_TOLERANCE: f64 = 1e-3;
/// What is left of sums of some millions that cancel out.
const CANCELLED_TOLERANCE: f64 = 1e-6;

/// Compares upstream's rows with ours. Where the statement is limited, `local_unlimited` holds our rows without the
/// LIMIT: every row of upstream must be among them.
pub fn compare(
    columns: &[ComparedColumn],
    freedom: &Freedom,
    upstream: &[Row],
    local: &[Row],
    local_unlimited: Option<&[Row]>,
) -> Result<(), Difference> {
    if upstream.len() != local.len() {
        return Err(Difference::RowCount { upstream: upstream.len(), local: local.len() });
    }
    for (row, (theirs, ours)) in upstream.iter().zip(local).enumerate() {
        let differs = |c: &&usize| !cells_agree(columns[**c], &theirs[**c], &ours[**c]);
        // Where equal values may print differently, either may come first, and of what is ordered by next nothing is known.
        if freedom.order_columns.iter().find(differs).is_some_and(|&c| !has_many_forms(columns[c].pg_type)) {
            return Err(Difference::Order { row });
        }
    }
    match local_unlimited {
        Some(all) if freedom.is_limited => is_contained(columns, upstream, all),
        _ => is_contained(columns, upstream, local),
    }
}

/// Every row of `rows` is in `within`, counted with multiplicity.
fn is_contained(columns: &[ComparedColumn], rows: &[Row], within: &[Row]) -> Result<(), Difference> {
    let floats: Vec<usize> = (0..columns.len()).filter(|&c| columns[c].is_near()).collect();
    let mut available = grouped(columns, &floats, within);
    for (exact, wanted) in grouped(columns, &floats, rows) {
        let candidates = available.remove(&exact).unwrap_or_default();
        find_all(columns, &floats, &wanted, &candidates)?;
    }
    Ok(())
}

/// The cells of a row that need only be near, and its number.
type FloatPart = (Vec<Option<f64>>, usize);

/// Rows by their exact cells; within a group sorted by the cells that need only be near, so that such meet.
fn grouped<'a>(
    columns: &[ComparedColumn],
    floats: &[usize],
    rows: &'a [Row],
) -> HashMap<ExactPart<'a>, Vec<FloatPart>> {
    let mut groups: HashMap<ExactPart<'a>, Vec<FloatPart>> = HashMap::new();
    for (number, row) in rows.iter().enumerate() {
        groups.entry(exact_part(columns, row)).or_default().push((float_part(columns, floats, row), number));
    }
    if !floats.is_empty() {
        for group in groups.values_mut() {
            group.sort_by(|a, b| compare_floats(&a.0, &b.0));
        }
    }
    groups
}

/// How many candidates a row is compared with from its place among the sorted ones, and from where those begin that may agree with it.
const AT_ITS_PLACE: usize = 64;
const NEARBY: usize = 4096;

/// Which candidates are left: for each the next that may be, as far as it is known.
struct Left(Vec<usize>);

impl Left {
    fn all(count: usize) -> Self {
        Self((0..=count).collect())
    }

    /// The first from this one on; the number of all where there is none.
    fn from(&mut self, at: usize) -> usize {
        let mut found = at;
        while self.0[found] != found {
            found = self.0[found];
        }
        let mut passed = at;
        while passed != found {
            passed = std::mem::replace(&mut self.0[passed], found);
        }
        found
    }

    fn take(&mut self, at: usize) {
        self.0[at] = at + 1;
    }
}

/// Pairs both sorted lists in one pass. A pair whose order differs only by last bits in an earlier column is looked
/// for among those around; beyond that it counts as a difference, which costs speed, not truth.
fn find_all(
    columns: &[ComparedColumn],
    floats: &[usize],
    wanted: &[FloatPart],
    candidates: &[FloatPart],
) -> Result<(), Difference> {
    let agree = |a: &FloatPart, b: &FloatPart| {
        a.0.iter().zip(&b.0).zip(floats).all(|((a, b), &c)| floats_agree(columns[c], *a, *b))
    };
    let mut left = Left::all(candidates.len());
    for row in wanted {
        let lowest: Vec<Option<f64>> =
            row.0.iter().zip(floats).map(|(cell, &c)| cell.map(|cell| lowest(columns[c], cell))).collect();
        let place =
            |of: &[Option<f64>]| candidates.partition_point(|candidate| compare_floats(&candidate.0, of).is_lt());
        let mut find = |from: usize, tries: usize| {
            let mut at = left.from(from);
            for _ in 0..tries {
                if at == candidates.len() {
                    return None;
                }
                if agree(row, &candidates[at]) {
                    return Some(at);
                }
                at = left.from(at + 1);
            }
            None
        };
        let found = find(place(&row.0), AT_ITS_PLACE).or_else(|| find(place(&lowest), NEARBY));
        match found {
            Some(candidate) => left.take(candidate),
            None => return Err(Difference::Row { row: row.1 }),
        }
    }
    Ok(())
}

/// The answers agree but for what PostgreSQL chooses of some columns: the rest of each row is compared, and of `permuted`
/// columns, where no row is left out, all values taken together.
pub fn compare_open(
    columns: &[ComparedColumn],
    freedom: &Freedom,
    open: &OpenColumns,
    [upstream, local]: [&[Row]; 2],
    among: Option<&[Row]>,
) -> Result<(), Difference> {
    let is_open = |column: &usize| open.columns.contains(column);
    let bound = Freedom {
        // Rows whose first keys are open come in an order of which nothing is known.
        order_columns: freedom.order_columns.iter().copied().take_while(|column| !is_open(column)).collect(),
        is_limited: freedom.is_limited,
    };
    let masked = |rows: &[Row]| without(&open.columns, rows);
    let among = among.map(masked);
    compare(columns, &bound, &masked(upstream), &masked(local), among.as_deref())?;
    if freedom.is_limited {
        return Ok(());
    }
    for column in open.permuted.iter().copied() {
        let alone = |rows: &[Row]| rows.iter().map(|row| vec![row[column].clone()]).collect::<Vec<Row>>();
        is_contained(&columns[column..=column], &alone(upstream), &alone(local))?;
    }
    Ok(())
}

fn without(columns: &[usize], rows: &[Row]) -> Vec<Row> {
    let cell = |(at, cell): (usize, &Option<Bytes>)| cell.clone().filter(|_| !columns.contains(&at));
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect()
}

/// Of types whose equal values may have different cells, beside those that [`cells_agree`] reads: `1 mon` and `30 days`, `a` and `a `.
fn has_many_forms(pg_type: PgType) -> bool {
    matches!(pg_type, PgType::Interval | PgType::Bpchar | PgType::Jsonb | PgType::Array(_))
}

fn is_float(pg_type: PgType) -> bool {
    matches!(pg_type, PgType::Float4 | PgType::Float8)
}

/// Cells that are compared to the last byte.
type ExactPart<'a> = Vec<Option<&'a [u8]>>;

fn exact_part<'a>(columns: &[ComparedColumn], row: &'a Row) -> ExactPart<'a> {
    let exact = row.iter().zip(columns).filter(|(_, column)| !column.is_near());
    exact.map(|(cell, column)| cell.as_ref().map(|cell| one_form(*column, cell))).collect()
}

/// The two zeros are equal, and so are all NaNs: which of them stands for a group of both is free.
fn one_form(column: ComparedColumn, cell: &Bytes) -> &[u8] {
    match is_float(column.pg_type).then(|| float_of(column, cell)).flatten() {
        Some(0.0) => b"0",
        Some(value) if value.is_nan() => b"NaN",
        _ => cell,
    }
}

fn float_part(columns: &[ComparedColumn], floats: &[usize], row: &Row) -> Vec<Option<f64>> {
    // NaNs of either sign have one place.
    let of = |value: f64| if value.is_nan() { f64::NAN } else { value };
    floats.iter().map(|&c| row[c].as_ref().and_then(|cell| float_of(columns[c], cell)).map(of)).collect()
}

fn float_of(column: ComparedColumn, cell: &Bytes) -> Option<f64> {
    match (column.is_binary, column.pg_type) {
        (false, _) => std::str::from_utf8(cell).ok()?.parse().ok(),
        (true, PgType::Float4) => Some(f64::from(f32::from_be_bytes(cell.as_ref().try_into().ok()?))),
        (true, _) => Some(f64::from_be_bytes(cell.as_ref().try_into().ok()?)),
    }
}

fn numeric_of(column: ComparedColumn, cell: &Bytes) -> Option<Numeric> {
    match column.is_binary {
        true => Numeric::decode_binary(cell).ok(),
        false => Numeric::parse(std::str::from_utf8(cell).ok()?).ok(),
    }
}

/// The least that may agree with it, in the order of [`compare_floats`].
fn lowest(column: ComparedColumn, value: f64) -> f64 {
    let (relative, absolute) = column.tolerances();
    if value == 0.0 && absolute == 0.0 {
        return -0.0;
    }
    let lowered = value - 2.0 * (relative * value.abs() + absolute);
    if lowered.is_finite() { lowered } else { value }
}

/// NULL has a place of its own: it agrees with NULL alone.
fn compare_floats(a: &[Option<f64>], b: &[Option<f64>]) -> Ordering {
    let compared = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(b),
        _ => a.is_none().cmp(&b.is_none()),
    };
    a.iter().zip(b).map(compared).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn floats_agree(column: ComparedColumn, a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let (relative, absolute) = column.tolerances();
            // `==` covers equal infinities and the two zeros.
            let are_near = || (a - b).abs() <= relative * a.abs().max(b.abs()) + absolute;
            a == b || (a.is_nan() && b.is_nan()) || (a.is_finite() && b.is_finite() && are_near())
        }
        _ => false,
    }
}

fn cells_agree(column: ComparedColumn, a: &Option<Bytes>, b: &Option<Bytes>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if column.is_near() => floats_agree(column, float_of(column, a), float_of(column, b)),
        (Some(a), Some(b)) if is_float(column.pg_type) => one_form(column, a) == one_form(column, b),
        // Equal numerics may print differently, and then either may come first.
        (Some(a), Some(b)) if column.pg_type == PgType::Numeric && a != b => {
            numeric_of(column, a).zip(numeric_of(column, b)).is_some_and(|(a, b)| a.cmp(b).is_eq())
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: ComparedColumn = ComparedColumn { pg_type: PgType::Text, is_binary: false, nearness: Nearness::Exact };
    const FLOAT: ComparedColumn =
        ComparedColumn { pg_type: PgType::Float8, is_binary: false, nearness: Nearness::Summed };

    fn rows(cells: &[&[&str]]) -> Vec<Row> {
        let cell = |text: &&str| (*text != "NULL").then(|| Bytes::copy_from_slice(text.as_bytes()));
        cells.iter().map(|row| row.iter().map(cell).collect()).collect()
    }

    #[test]
    fn order_is_free_without_order_by_and_bound_with_it() {
        let (upstream, local) = (rows(&[&["a"], &["b"]]), rows(&[&["b"], &["a"]]));
        assert_eq!(compare(&[TEXT], &Freedom::default(), &upstream, &local, None), Ok(()));
        let ordered = Freedom { order_columns: vec![0], is_limited: false };
        assert_eq!(compare(&[TEXT], &ordered, &upstream, &local, None), Err(Difference::Order { row: 0 }));
    }

    #[test]
    fn ties_may_come_in_any_order() {
        let ordered = Freedom { order_columns: vec![0], is_limited: false };
        let (upstream, local) = (rows(&[&["1", "x"], &["1", "y"]]), rows(&[&["1", "y"], &["1", "x"]]));
        assert_eq!(compare(&[TEXT, TEXT], &ordered, &upstream, &local, None), Ok(()));
    }

    #[test]
    fn multiplicity_counts() {
        let (upstream, local) = (rows(&[&["a"], &["a"], &["b"]]), rows(&[&["a"], &["b"], &["b"]]));
        assert_eq!(compare(&[TEXT], &Freedom::default(), &upstream, &local, None), Err(Difference::Row { row: 1 }));
    }

    #[test]
    fn a_limit_may_choose_among_its_ties_but_not_invent() {
        let limited = Freedom { order_columns: vec![0], is_limited: true };
        let all = rows(&[&["1", "x"], &["1", "y"], &["2", "z"]]);
        let local = rows(&[&["1", "x"]]);
        assert_eq!(compare(&[TEXT, TEXT], &limited, &rows(&[&["1", "y"]]), &local, Some(&all)), Ok(()));
        assert_eq!(
            compare(&[TEXT, TEXT], &limited, &rows(&[&["1", "w"]]), &local, Some(&all)),
            Err(Difference::Row { row: 0 })
        );
        assert_eq!(
            compare(&[TEXT, TEXT], &limited, &rows(&[&["2", "z"]]), &local, Some(&all)),
            Err(Difference::Order { row: 0 })
        );
    }

    #[test]
    fn floats_agree_but_for_their_last_bits() {
        let free = Freedom::default();
        let upstream = rows(&[&["0.30000000000000004", "a"]]);
        assert_eq!(compare(&[FLOAT, TEXT], &free, &upstream, &rows(&[&["0.3", "a"]]), None), Ok(()));
        let difference = Err(Difference::Row { row: 0 });
        assert_eq!(compare(&[FLOAT, TEXT], &free, &upstream, &rows(&[&["0.31", "a"]]), None), difference);
        assert_eq!(compare(&[FLOAT, TEXT], &free, &upstream, &rows(&[&["NULL", "a"]]), None), difference);
        for (one, other) in [("Infinity", "5"), ("5", "Infinity"), ("Infinity", "-Infinity"), ("NaN", "5")] {
            assert_eq!(
                compare(&[FLOAT], &free, &rows(&[&[one]]), &rows(&[&[other]]), None),
                difference,
                "{one} {other}"
            );
        }
        let special = rows(&[&["NaN"], &["Infinity"], &["-0"]]);
        assert_eq!(compare(&[FLOAT], &free, &special, &rows(&[&["0"], &["Infinity"], &["NaN"]]), None), Ok(()));
    }

    #[test]
    fn floats_that_nobody_added_up_are_compared_to_the_last_digit() {
        let exact = ComparedColumn { nearness: Nearness::Exact, ..FLOAT };
        let free = Freedom::default();
        let with = |theirs: &str, ours: &str| compare(&[exact], &free, &rows(&[&[theirs]]), &rows(&[&[ours]]), None);
        assert_eq!(with("0.30000000000000004", "0.3"), Err(Difference::Row { row: 0 }));
        assert_eq!(with("1e+06", "1000000"), Err(Difference::Row { row: 0 }));
        assert_eq!(with("-0", "0"), Ok(()));
        let ordered = Freedom { order_columns: vec![0], is_limited: false };
        let (zeros, others) = (rows(&[&["-0"], &["0"], &["1"]]), rows(&[&["0"], &["-0"], &["1"]]));
        assert_eq!(compare(&[exact], &ordered, &zeros, &others, None), Ok(()));
    }

    #[test]
    fn equal_numerics_that_print_differently_are_ties() {
        const NUMERIC: ComparedColumn =
            ComparedColumn { pg_type: PgType::Numeric, is_binary: false, nearness: Nearness::Exact };
        let ordered = Freedom { order_columns: vec![0], is_limited: false };
        let (upstream, local) = (rows(&[&["5.00"], &["5"], &["6"]]), rows(&[&["5"], &["5.00"], &["6"]]));
        assert_eq!(compare(&[NUMERIC], &ordered, &upstream, &local, None), Ok(()));
        let other = rows(&[&["5"], &["5.0"], &["6"]]);
        assert_eq!(compare(&[NUMERIC], &ordered, &upstream, &other, None), Err(Difference::Row { row: 0 }));
        let swapped = rows(&[&["5"], &["6"], &["5.00"]]);
        assert_eq!(compare(&[NUMERIC], &ordered, &upstream, &swapped, None), Err(Difference::Order { row: 1 }));
    }

    #[test]
    fn a_float_is_found_among_many_others() {
        let limited = Freedom { order_columns: vec![0], is_limited: true };
        let mut all: Vec<Row> = (0..500).flat_map(|n| rows(&[&[&n.to_string()]])).collect();
        all.extend(rows(&[&["NULL"], &["NULL"], &["NaN"]]));
        for wanted in ["NULL", "NaN", "0", "250", "499"] {
            let wanted = rows(&[&[wanted]]);
            assert_eq!(compare(&[FLOAT], &limited, &wanted, &wanted, Some(&all)), Ok(()), "{wanted:?}");
        }
        let twice = rows(&[&["7"], &["7"]]);
        assert_eq!(compare(&[FLOAT], &limited, &twice, &twice, Some(&all)), Err(Difference::Row { row: 1 }));
    }

    /// Sums in another order, the same in many rows: they were looked for on one side only.
    #[test]
    fn many_equal_floats_agree_with_as_many_near_ones() {
        let columns = [
            ComparedColumn { pg_type: PgType::Text, is_binary: false, nearness: Nearness::Exact },
            ComparedColumn { pg_type: PgType::Float8, is_binary: false, nearness: Nearness::Summed },
            ComparedColumn { pg_type: PgType::Float8, is_binary: false, nearness: Nearness::Summed },
        ];
        let of = |first: &str, second: &str, count: usize| -> Vec<Row> {
            let cell = |text: &str| Some(Bytes::from(text.to_owned()));
            vec![vec![cell("a"), cell(first), cell(second)]; count]
        };
        for (theirs, ours) in
            [("0.1", "0.10000000000000002"), ("0.10000000000000002", "0.1"), ("-5", "-5.000000000000001")]
        {
            let (upstream, local) = (of(theirs, "7", 5_000), of(ours, "7", 5_000));
            assert_eq!(compare(&columns, &Freedom::default(), &upstream, &local, None), Ok(()), "{theirs} {ours}");
            let (upstream, local) = (of("7", theirs, 5_000), of("7", ours, 5_000));
            assert_eq!(compare(&columns, &Freedom::default(), &upstream, &local, None), Ok(()), "{theirs} {ours}");
        }
        let (upstream, local) = (of("0", "7", 5_000), of("-0", "7", 5_000));
        assert_eq!(compare(&columns, &Freedom::default(), &upstream, &local, None), Ok(()));
        let mixed = [of("0.1", "7", 200), of("0.10000000000000002", "8", 200), of("0.3", "9", 100)].concat();
        let near = [of("0.10000000000000002", "7", 200), of("0.1", "8", 200), of("0.3", "9", 100)].concat();
        assert_eq!(compare(&columns, &Freedom::default(), &mixed, &near, None), Ok(()));
        let fewer = [of("0.10000000000000002", "7", 199), of("0.1", "8", 201), of("0.3", "9", 100)].concat();
        assert!(compare(&columns, &Freedom::default(), &mixed, &fewer, None).is_err());
    }

    #[test]
    fn equal_values_of_different_forms_are_ties() {
        let columns = [
            ComparedColumn { pg_type: PgType::Interval, is_binary: false, nearness: Nearness::Exact },
            ComparedColumn { pg_type: PgType::Int4, is_binary: false, nearness: Nearness::Exact },
        ];
        let freedom = Freedom { order_columns: vec![0, 1], is_limited: false };
        let upstream = rows(&[&["1 mon", "1"], &["30 days", "2"], &["2 mons", "3"]]);
        let local = rows(&[&["30 days", "2"], &["1 mon", "1"], &["2 mons", "3"]]);
        assert_eq!(compare(&columns, &freedom, &upstream, &local, None), Ok(()));
        let other = rows(&[&["30 days", "2"], &["1 mon", "2"], &["2 mons", "3"]]);
        assert!(compare(&columns, &freedom, &upstream, &other, None).is_err());
    }

    /// NULLs were sorted among NaNs, and an answer with many of both was taken for a wrong one.
    #[test]
    fn many_nulls_and_nans_are_told_apart() {
        let columns = [ComparedColumn { pg_type: PgType::Float8, is_binary: false, nearness: Nearness::Summed }];
        let of = |is_null: &dyn Fn(usize) -> bool| -> Vec<Row> {
            (0..1_000).map(|at| vec![(!is_null(at)).then(|| Bytes::from_static(b"NaN"))]).collect()
        };
        let (mixed, nulls_first) = (of(&|at| at % 2 == 0), of(&|at| at < 500));
        assert_eq!(compare(&columns, &Freedom::default(), &mixed, &nulls_first, None), Ok(()));
        assert_eq!(compare(&columns, &Freedom::default(), &nulls_first, &mixed, None), Ok(()));
        let one_more = of(&|at| at <= 500);
        assert!(compare(&columns, &Freedom::default(), &mixed, &one_more, None).is_err());
    }

    #[test]
    fn only_open_columns_are_free() {
        let open = OpenColumns { columns: vec![1], permuted: vec![1] };
        let upstream = rows(&[&["a", "1"], &["b", "2"], &["c", "3"]]);
        let with = |local: &[&[&str]]| {
            compare_open(&[TEXT, TEXT], &Freedom::default(), &open, [&upstream, &rows(local)], None)
        };
        assert_eq!(with(&[&["a", "2"], &["b", "3"], &["c", "1"]]), Ok(()));
        assert_eq!(with(&[&["a", "2"], &["b", "3"], &["d", "1"]]), Err(Difference::Row { row: 2 }));
        assert_eq!(with(&[&["a", "1"], &["b", "1"], &["c", "3"]]), Err(Difference::Row { row: 1 }));
        let any = OpenColumns { columns: vec![1], permuted: Vec::new() };
        let other = rows(&[&["a", "7"], &["b", "7"], &["c", "NULL"]]);
        assert_eq!(compare_open(&[TEXT, TEXT], &Freedom::default(), &any, [&upstream, &other], None), Ok(()));
    }

    #[test]
    fn order_by_an_open_column_is_no_order() {
        let open = OpenColumns { columns: vec![0], permuted: Vec::new() };
        let (upstream, local) = (rows(&[&["1", "x"], &["2", "y"]]), rows(&[&["1", "y"], &["2", "x"]]));
        let ordered = Freedom { order_columns: vec![0, 1], is_limited: false };
        assert_eq!(compare_open(&[TEXT, TEXT], &ordered, &open, [&upstream, &local], None), Ok(()));
        let first = Freedom { order_columns: vec![1, 0], is_limited: false };
        let difference = Err(Difference::Order { row: 0 });
        assert_eq!(compare_open(&[TEXT, TEXT], &first, &open, [&upstream, &local], None), difference);
    }

    #[test]
    fn chosen_rows_are_among_those_to_choose_from() {
        let open = OpenColumns { columns: vec![1], permuted: Vec::new() };
        let chosen = Freedom { order_columns: Vec::new(), is_limited: true };
        let among = rows(&[&["a", "1"], &["b", "2"], &["b", "3"]]);
        let with = |upstream: &[&[&str]]| {
            let local = rows(&[&["a", "1"], &["b", "2"]]);
            compare_open(&[TEXT, TEXT], &chosen, &open, [&rows(upstream), &local], Some(&among))
        };
        assert_eq!(with(&[&["b", "1"], &["b", "1"]]), Ok(()));
        assert_eq!(with(&[&["a", "1"], &["a", "2"]]), Err(Difference::Row { row: 1 }));
        assert_eq!(with(&[&["a", "1"]]), Err(Difference::RowCount { upstream: 1, local: 2 }));
    }

    #[test]
    fn null_differs_from_empty() {
        let difference = Err(Difference::Row { row: 0 });
        assert_eq!(compare(&[TEXT], &Freedom::default(), &rows(&[&["NULL"]]), &rows(&[&[""]]), None), difference);
    }
}

//! Tests of `parse`.

use super::*;
use crate::statement::lexer::tokens;

fn parse(sql: &str) -> Result<Query, UpstreamReason> {
    parse_query(&tokens(sql).expect("lexes"))
}

fn expr(text: &str) -> String {
    let query = parse(&format!("SELECT {text} AS x")).unwrap_or_else(|reason| panic!("{text}: {reason}"));
    match query.targets.into_iter().next() {
        Some(Target::Expr { expr, .. }) => show(&expr),
        other => panic!("{other:?}"),
    }
}

/// Fully parenthesised.
fn show(expr: &Expr) -> String {
    let list = |items: &[Expr], by: &str| items.iter().map(show).collect::<Vec<_>>().join(by);
    match expr {
        Expr::Column(names) => names.join("."),
        Expr::Number(text) => text.clone(),
        Expr::String(text) => format!("'{text}'"),
        Expr::Bool(value) => value.to_string(),
        Expr::Null => "null".into(),
        Expr::Parameter(number) => format!("${number}"),
        Expr::Cast { operand, to } => format!("({}::{}{:?})", show(operand), to.name, to.modifiers),
        Expr::Operator { symbol, left: Some(left), right } => format!("({} {symbol} {})", show(left), show(right)),
        Expr::Operator { symbol, left: None, right } => format!("({symbol} {})", show(right)),
        Expr::And(items) => format!("({})", list(items, " and ")),
        Expr::Or(items) => format!("({})", list(items, " or ")),
        Expr::Not(operand) => format!("(not {})", show(operand)),
        Expr::IsNull { operand, negated } => format!("({} isnull {negated})", show(operand)),
        Expr::IsDistinct { left, right, .. } => format!("({} distinct {})", show(left), show(right)),
        Expr::Between { operand, low, high, .. } => {
            format!("({} between {} and {})", show(operand), show(low), show(high))
        }
        Expr::In { operand, list: items, .. } => format!("({} in {})", show(operand), list(items, ",")),
        Expr::Call(call) => format!("{}({})", call.name, list(&call.arguments, ",")),
        other => format!("{other:?}"),
    }
}

#[test]
fn precedence_is_gram_y_s() {
    for (text, expected) in [
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("-2 ^ 2", "(-2 ^ 2)"),
        ("-a ^ 2", "((- a) ^ 2)"),
        ("- 5::int", "(- (5::int4[]))"),
        ("-(5)", "-5"),
        ("- -5", "5"),
        ("a - -5", "(a - -5)"),
        ("a || b + c", "(a || (b + c))"),
        ("a = b || c", "(a = (b || c))"),
        ("a < b IS NULL", "((a < b) isnull false)"),
        ("NOT a = b AND c OR d", "(((not (a = b)) and c) or d)"),
        ("a AND (b AND c) AND d", "(a and (b and c) and d)"),
        ("(a AND b) AND c", "(a and b and c)"),
        ("a BETWEEN 1 AND 2 AND c", "((a between 1 and 2) and c)"),
        ("a BETWEEN b + 1 AND c * 2 = d", "((a between (b + 1) and (c * 2)) = d)"),
        ("a + b LIKE c || d", "((a + b) ~~ (c || d))"),
        ("a LIKE b ESCAPE c", "(a ~~ like_escape(b,c))"),
        ("NOT a LIKE b", "(not (a ~~ b))"),
        ("a NOT LIKE b", "(a !~~ b)"),
        ("NOT a IS NULL", "(not (a isnull false))"),
        ("a AT TIME ZONE 'x' + b", "(timezone('x',a) + b)"),
        ("a::date AT TIME ZONE 'UTC' AT TIME ZONE 'x'", "timezone('x',timezone('UTC',(a::date[])))"),
        ("a IS DISTINCT FROM b = c", "(a distinct (b = c))"),
        ("a IN (1, 2) = b", "((a in 1,2) = b)"),
        ("a != b", "(a <> b)"),
        ("EXTRACT(EPOCH FROM a)/3600*60", "((extract('epoch',a) / 3600) * 60)"),
        ("a = NOT b", "(a = (not b))"),
    ] {
        assert_eq!(expr(text), expected, "{text}");
    }
}

#[test]
fn sql_forms_become_calls() {
    for (text, expected) in [
        ("substring(a from 2 for 3)", "substring(a,2,3)"),
        ("substring(a for 3)", "substring(a,1,(3::int4[]))"),
        ("substring(a, 2)", "substring(a,2)"),
        ("trim(a)", "btrim(a)"),
        ("trim(leading 'x' from a)", "ltrim(a,'x')"),
        ("trim('x' from a)", "btrim(a,'x')"),
        ("trim(trailing from a)", "rtrim(a)"),
        ("position('a' in b)", "position(b,'a')"),
        ("date '2020-01-01'", "('2020-01-01'::date[])"),
        ("timestamp with time zone 'x'", "('x'::timestamptz[])"),
        ("timestamp(3) 'x'", "('x'::timestamp[3])"),
        ("interval '1 day' * 2", "(('1 day'::interval[]) * 2)"),
        ("cast(a as double precision)", "(a::float8[])"),
        ("cast(a as character varying(10))", "(a::varchar[10])"),
        ("a::char", "(a::bpchar[1])"),
        ("a::numeric(10,2)", "(a::numeric[10, 2])"),
        ("timestamp", "timestamp"),
        ("pg_catalog.lower(a)", "lower(a)"),
        ("extract('year' from a)", "extract('year',a)"),
    ] {
        assert_eq!(expr(text), expected, "{text}");
    }
}

#[test]
fn joins_associate_as_in_gram_y() {
    fn show_table(table: &TableRef) -> String {
        match table {
            TableRef::Table { name, .. } => name.join("."),
            TableRef::Subquery { alias, .. } => format!("[{}]", alias.name),
            TableRef::Join { left, right, kind, .. } => {
                format!("({} {kind:?} {})", show_table(left), show_table(right))
            }
        }
    }
    for (from, expected) in [
        ("a JOIN b ON x LEFT JOIN c USING (y)", "((a Inner b) Left c)"),
        ("a JOIN b JOIN c ON x ON y", "(a Inner (b Inner c))"),
        ("a CROSS JOIN b JOIN c ON x", "((a Cross b) Inner c)"),
        ("a JOIN (b CROSS JOIN c) ON x", "(a Inner (b Cross c))"),
        ("(SELECT 1) s JOIN public.t ON true", "([s] Inner public.t)"),
    ] {
        let query = parse(&format!("SELECT 1 FROM {from}")).unwrap_or_else(|reason| panic!("{from}: {reason}"));
        assert_eq!(show_table(&query.from[0]), expected);
    }
}

#[test]
fn whatever_is_not_known_is_refused() {
    for sql in [
        "SELECT",
        "SELECT FROM t",
        "SELECT 1 UNION SELECT 2",
        "SELECT 1 INTO t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t TABLESAMPLE system (1)",
        "SELECT * FROM ONLY t",
        "SELECT * FROM f(1)",
        "SELECT * FROM (SELECT 1)",
        "SELECT * FROM (VALUES (1)) v",
        "SELECT * FROM a NATURAL JOIN b",
        "SELECT * FROM a JOIN b",
        "SELECT DISTINCT ON (a) b FROM t",
        "SELECT a FROM t GROUP BY ROLLUP (a)",
        "SELECT a FROM t GROUP BY a, CUBE (b)",
        "SELECT a FROM t GROUP BY GROUPING SETS ((a))",
        "SELECT a FROM t LIMIT 1 LIMIT 2",
        "SELECT a FROM t LIMIT 1, 2",
        "SELECT a FROM t FETCH FIRST 3 ROWS WITH TIES",
        "SELECT a FROM t WINDOW w AS ()",
        "SELECT sum(a) OVER () FROM t",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t",
        "SELECT string_agg(a, ',' ORDER BY a) FROM t",
        "SELECT a < b < c FROM t",
        "SELECT (SELECT 1)",
        "SELECT a IN (SELECT 1) FROM t",
        "SELECT EXISTS (SELECT 1)",
        "SELECT ROW(1, 2)",
        "SELECT (1, 2)",
        "SELECT ARRAY[1]",
        "SELECT a[1] FROM t",
        "SELECT a = ANY ('{1}') FROM t",
        "SELECT user",
        "SELECT interval '1' day",
        "SELECT a BETWEEN SYMMETRIC 1 AND 2 FROM t",
        "SELECT U&'x'",
        "SELECT B'1'",
        "SELECT E'\\x41'",
        "SELECT s.f(1)",
        "SELECT f(VARIADIC a) FROM t",
        "SELECT f(a => 1)",
        "WITH RECURSIVE x AS (SELECT 1) SELECT * FROM x",
        "(SELECT 1) LIMIT 1",
        "SELECT a year FROM t",
        "SELECT select FROM t",
        "SELECT left FROM t",
        "SELECT 1;",
        "VALUES (1)",
        "TABLE t",
        "SELECT 'a' 'b'",
        "SELECT * FROM (a JOIN b ON true) AS j",
        "SELECT * FROM a.b.c",
    ] {
        assert!(parse(sql).is_err(), "{sql}");
    }
}

#[test]
fn deep_and_long_statements_end_in_a_refusal() {
    let nested = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(parse(&nested).is_err());
    let minus = format!("SELECT {} a", "- ".repeat(5_000));
    assert!(parse(&minus).is_err());
    let chain = format!("SELECT a{}", " || a".repeat(5_000));
    assert!(parse(&chain).is_err());
    let joins = format!("SELECT 1 FROM a{}", " CROSS JOIN a".repeat(5_000));
    assert!(parse(&joins).is_err());
    let either = format!("SELECT a = 1{}", " OR a = 1".repeat(5_000));
    assert!(parse(&either).is_ok());
    let list = format!("SELECT a IN (1{})", ", 1".repeat(5_000));
    assert!(parse(&list).is_ok());
}

#[test]
fn clauses_arrive_whole() {
    let query = parse(
        "WITH s(k) AS NOT MATERIALIZED (SELECT a FROM t) SELECT DISTINCT s.*, k \"K\", count(*) FILTER (WHERE k > 1) n \
         FROM s, public.t AS u (x, y) WHERE k = 1 GROUP BY 1, k HAVING count(*) > 1 \
         ORDER BY 1 DESC NULLS LAST, k OFFSET 2 ROWS FETCH NEXT 5 ROWS ONLY",
    )
    .expect("parses");
    assert_eq!(query.with[0].columns, ["k"]);
    assert_eq!(query.quantifier, Quantifier::Distinct);
    assert_eq!(query.targets[0], Target::Star(vec!["s".into()]));
    assert!(matches!(&query.targets[1], Target::Expr { label: Some(label), .. } if label == "K"));
    assert!(matches!(&query.targets[2], Target::Expr { expr: Expr::Call(call), .. } if call.filter.is_some()));
    assert_eq!(query.from.len(), 2);
    assert_eq!(query.group_by.len(), 2);
    assert!(query.having.is_some());
    assert_eq!((query.order_by[0].descending, query.order_by[0].nulls_first), (true, Some(false)));
    assert_eq!(query.limit, Some(Expr::Number("5".into())));
    assert_eq!(query.offset, Some(Expr::Number("2".into())));
}

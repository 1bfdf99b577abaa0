//! Tests of `parse`.

use super::*;
use crate::statement::ast::{Body, Expr, Quantifier, Select, SetOperation, TableRef, Target};
use crate::statement::lexer::tokens;

fn parse(sql: &str) -> Result<Query, UpstreamReason> {
    parse_query(&tokens(sql).expect("lexes"))
}

fn select(query: Query) -> Select {
    match query.body {
        Body::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

fn expr(text: &str) -> String {
    let query = parse(&format!("SELECT {text} AS x")).unwrap_or_else(|reason| panic!("{text}: {reason}"));
    match select(query).targets.into_iter().next() {
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
        Expr::Between { operand, low, high, is_symmetric, .. } => {
            let word = if *is_symmetric { "between symmetric" } else { "between" };
            format!("({} {word} {} and {})", show(operand), show(low), show(high))
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
        ("a BETWEEN SYMMETRIC b + 1 AND 2 AND c", "((a between symmetric (b + 1) and 2) and c)"),
        ("a BETWEEN ASYMMETRIC 1 AND 2", "(a between 1 and 2)"),
        ("a BETWEEN b + 1 AND c * 2 = d", "((a between (b + 1) and (c * 2)) = d)"),
        ("a + b LIKE c || d", "((a + b) ~~ (c || d))"),
        ("a LIKE b ESCAPE c", "(a ~~ like_escape(b,c))"),
        ("a SIMILAR TO b AND c", "((a ~ similar_to_escape(b)) and c)"),
        ("a NOT SIMILAR TO b ESCAPE c", "(a !~ similar_to_escape(b,c))"),
        ("NOT (a, b) OVERLAPS (c, d)", "(not overlaps(a,b,c,d))"),
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
        ("overlay(a placing b from 1 for 2)", "overlay(a,b,1,2)"),
        ("overlay(a placing b || 'c' from 1 + 1)", "overlay(a,(b || 'c'),(1 + 1))"),
        ("overlay(a, b, 1)", "overlay(a,b,1)"),
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
            TableRef::Function { call, .. } => format!("{}()", call.name),
            TableRef::Subquery { alias, .. } => format!("[{}]", alias.as_ref().map_or("", |alias| &alias.name)),
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
        ("((SELECT 1) s NATURAL LEFT JOIN t) FULL OUTER JOIN u USING (a)", "(([s] Left t) Full u)"),
        ("a RIGHT JOIN LATERAL (SELECT 1) s ON true", "(a Right [s])"),
        ("((SELECT 1) UNION (SELECT 2)) s CROSS JOIN generate_series(1, 2) g", "([s] Cross generate_series())"),
    ] {
        let query = parse(&format!("SELECT 1 FROM {from}")).unwrap_or_else(|reason| panic!("{from}: {reason}"));
        assert_eq!(show_table(&select(query).from[0]), expected);
    }
}

#[test]
fn ties_are_of_an_order() {
    for sql in [
        "SELECT a FROM t ORDER BY a FETCH FIRST (1 + $1) ROWS WITH TIES",
        "SELECT a FROM t ORDER BY a FETCH NEXT ROW WITH TIES OFFSET 2 ROWS",
        "(SELECT a FROM t ORDER BY a) FETCH FIRST 1 ROW WITH TIES",
        "((SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES)) OFFSET 1",
        "SELECT a FROM t ORDER BY a OFFSET ((1) + (1)) ROWS FETCH FIRST $1 ROW WITH TIES",
        "SELECT a FROM t ORDER BY a OFFSET +1 ROW FETCH FIRST ROW WITH TIES",
        "SELECT a FROM t ORDER BY a OFFSET 1 + 1 FETCH FIRST ROW WITH TIES",
        "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 FETCH FIRST +3 ROWS WITH TIES",
    ] {
        let query = parse(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
        assert!(query.with_ties && query.limit.is_some() && !query.order_by.is_empty(), "{sql}");
    }
    assert!(!parse("SELECT a FROM t ORDER BY a FETCH FIRST ROW ONLY").expect("a query").with_ties);
}

#[test]
fn whatever_is_not_known_is_refused() {
    for sql in [
        "SELECT",
        "SELECT FROM t",
        "SELECT 1 INTO t",
        "SELECT * FROM t FOR UPDATE",
        "SELECT * FROM t TABLESAMPLE system (1)",
        "SELECT * FROM ONLY (t)",
        "SELECT * FROM ONLY t *",
        "SELECT * FROM a JOIN b",
        "SELECT a FROM t LIMIT 1 LIMIT 2",
        "SELECT a FROM t LIMIT 1, 2",
        "SELECT a FROM t FETCH FIRST 3 ROWS WITH TIES",
        "(SELECT a FROM t FETCH FIRST 3 ROWS WITH TIES) ORDER BY a",
        "SELECT a FROM t ORDER BY a FETCH FIRST NULL ROWS WITH TIES",
        "SELECT a FROM t ORDER BY a FETCH FIRST (NULL) ROWS WITH TIES",
        "SELECT a FROM t ORDER BY a FETCH FIRST 1 + 1 ROWS WITH TIES",
        "SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW WITH TIES LIMIT 1",
        "SELECT a FROM t ORDER BY a FETCH FIRST -(1) ROWS ONLY",
        "SELECT a FROM t OFFSET 1 + 1 ROWS",
        "SELECT a FROM t OFFSET 1::bigint ROW",
        "SELECT a FROM t OFFSET - (1) ROWS",
        "SELECT a FROM t OFFSET (1) + (1) ROWS",
        "(SELECT a FROM t ORDER BY a LIMIT 1) FETCH FIRST ROW WITH TIES",
        "SELECT a FROM t ORDER BY a LIMIT 1 WITH TIES",
        "SELECT a FROM t ORDER BY a FETCH FIRST ROW WITH",
        "SELECT a FROM t ORDER BY a FETCH FIRST 1 ROW ONLY WITH TIES",
        "SELECT a < b < c FROM t",
        "SELECT ROW()",
        "SELECT a[1][1:2] FROM t",
        "SELECT a[1:2][1] FROM t",
        "SELECT ARRAY(1)",
        "SELECT '{}'::int[3]",
        "SELECT '{}'::int[][]",
        "SELECT user",
        "SELECT interval '1' day to second",
        "SELECT interval '1' second(3)",
        "SELECT interval '1.5' day",
        "SELECT interval '-1' day",
        "SELECT interval(589823) '1'",
        "SELECT U&'x'",
        "SELECT B'1'",
        "SELECT E'\\x41'",
        "SELECT d.s.f(1)",
        "SELECT f(VARIADIC a) FROM t",
        "SELECT a year FROM t",
        "SELECT select FROM t",
        "SELECT left FROM t",
        "SELECT 1;",
        "SELECT 'a' 'b'",
        "SELECT * FROM (a JOIN b ON true) AS j",
        "SELECT * FROM a.b.c.d",
        "SELECT 1 UNION",
        "SELECT 1 ORDER BY 1 UNION SELECT 2",
        "(SELECT 1 LIMIT 1) LIMIT 1",
        "SELECT 1 UNION SELECT 2 FOR UPDATE",
        "SELECT a && ALL (SELECT 1) FROM t",
        "SELECT * FROM f(1) WITH NUMBERS",
        "SELECT * FROM f(1) AS (a int)",
        "SELECT sum(a) OVER (PARTITION BY) FROM t",
        "SELECT 1 FROM a NATURAL CROSS JOIN b",
        "WITH x AS (DELETE FROM t RETURNING 1) SELECT * FROM x",
        "TABLE t x",
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
    let casts = format!("SELECT 1{}", "::int".repeat(5_000));
    assert!(parse(&casts).is_err());
}

/// SQLAlchemy's eager loading with psycopg2: a batch has 500 keys, and was refused from 200 on.
#[test]
fn casts_of_constants_are_no_chain() {
    let keys = format!("SELECT a IN ('0'::uuid::UUID{})", ", $1::uuid::UUID".repeat(5_000));
    assert!(parse(&keys).is_ok());
    let many = format!("SELECT a IN (1{})", ", 1::int::int::int::int".repeat(250));
    assert!(parse(&many).is_err());
    let of_column = format!("SELECT a IN (1{})", ", a::int::int".repeat(250));
    assert!(parse(&of_column).is_err());
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
    assert_eq!(query.with[0].is_materialized, Some(false));
    let body = select(query.clone());
    assert_eq!(body.quantifier, Quantifier::Distinct);
    assert_eq!(body.targets[0], Target::Star(vec!["s".into()]));
    assert!(matches!(&body.targets[1], Target::Expr { label: Some(label), .. } if label == "K"));
    assert!(matches!(&body.targets[2], Target::Expr { expr: Expr::Call(call), .. } if call.filter.is_some()));
    assert_eq!(body.from.len(), 2);
    assert_eq!(body.group_by.len(), 2);
    assert!(body.having.is_some());
    assert_eq!((query.order_by[0].descending, query.order_by[0].nulls_first), (true, Some(false)));
    assert_eq!(query.limit, Some(Expr::Number("5".into())));
    assert_eq!(query.offset, Some(Expr::Number("2".into())));
}

#[test]
fn set_operations_bind_as_in_gram_y() {
    fn show_query(query: &Query) -> String {
        match &query.body {
            Body::Select(select) => match &select.targets[0] {
                Target::Expr { expr, .. } => show(expr),
                Target::Star(_) => "*".into(),
            },
            Body::Values(rows) => format!("{} rows", rows.len()),
            Body::Set { operation, is_all, left, right } => {
                let sign = match operation {
                    SetOperation::Union => "+",
                    SetOperation::Intersect => "&",
                    SetOperation::Except => "-",
                };
                let all = if *is_all { sign } else { "" };
                format!("({} {sign}{all} {})", show_query(left), show_query(right))
            }
        }
    }
    for (sql, expected) in [
        ("SELECT 1 UNION SELECT 2 UNION ALL SELECT 3", "((1 + 2) ++ 3)"),
        ("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3", "(1 + (2 & 3))"),
        ("SELECT 1 INTERSECT SELECT 2 EXCEPT DISTINCT SELECT 3", "((1 & 2) - 3)"),
        ("(SELECT 1 UNION SELECT 2) INTERSECT ALL SELECT 3", "((1 + 2) && 3)"),
        ("SELECT 1 EXCEPT (SELECT 2 EXCEPT VALUES (3), (4))", "(1 - (2 - 2 rows))"),
        ("((SELECT 1)) UNION TABLE t", "(1 + *)"),
    ] {
        let query = parse(sql).unwrap_or_else(|reason| panic!("{sql}: {reason}"));
        assert_eq!(show_query(&query), expected, "{sql}");
    }
    let query = parse("(SELECT 1 AS a LIMIT 3) ORDER BY a OFFSET 2").expect("parses");
    assert_eq!((query.limit.is_some(), query.offset.is_some(), query.order_by.len()), (true, true, 1));
    let query = parse("SELECT 1 AS a UNION (SELECT 2 LIMIT 1) ORDER BY a LIMIT 5").expect("parses");
    let Body::Set { right, .. } = &query.body else { panic!("a set operation") };
    assert!(right.limit.is_some() && right.order_by.is_empty() && query.order_by.len() == 1);
}

#[test]
fn parentheses_hold_a_query_or_something_else() {
    for (text, expected) in [
        ("((SELECT 1) + 1)", "(Subquery"),
        ("((SELECT 1) UNION (SELECT 2))", "Subquery"),
        ("a IN ((SELECT 1), 2)", "(a in "),
        ("a IN ((SELECT 1))", "InSubquery"),
        ("EXISTS ((SELECT 1))", "Exists"),
        ("a = ANY (SELECT 1)", "InSubquery"),
        ("a >= ALL (SELECT 1)", "InSubquery"),
        ("(a, b) IN (SELECT 1, 2)", "InSubquery"),
        ("(1, 2)", "Row"),
    ] {
        let shown = expr(text);
        assert!(shown.starts_with(expected), "{text}: {shown}");
    }
    let deep = format!("SELECT {}SELECT 1{} + 1", "(".repeat(60), ")".repeat(60));
    let _ = parse(&deep);
}

//! A plan as indented text, for the operator (`freshet explain`). Not PostgreSQL's EXPLAIN, and not parsed by anyone.

use std::fmt::Write;

use crate::binder::{BoundExpr, SortKey};
use crate::catalog::{Catalog, TableSchema};
use crate::planner::Plan;
use crate::planner::node::{Equality, PlanNode, Scan};
use crate::types::Value;

/// One operator per line, inputs indented below it; columns of an operator's input are `#n`.
pub fn explain(plan: &Plan, catalog: &Catalog) -> String {
    let mut text = String::new();
    write_node(&plan.root, catalog, 0, &mut text);
    for (index, common) in plan.commons.iter().enumerate() {
        let _ = writeln!(text, "Common rows {index}:");
        write_node(common, catalog, 1, &mut text);
    }
    for (index, scalar) in plan.scalars.iter().enumerate() {
        let _ = writeln!(text, "${}, {:?}:", plan.parameters.len() + index + 1, scalar.kind);
        write_node(&scalar.node, catalog, 1, &mut text);
    }
    text
}

fn write_node(node: &PlanNode, catalog: &Catalog, depth: usize, text: &mut String) {
    text.extend(std::iter::repeat_n("  ", depth));
    match node {
        PlanNode::OneRow => text.push_str("One row"),
        PlanNode::Scan(scan) => write_scan(scan, catalog, text),
        PlanNode::Filter { predicates, .. } => {
            text.push_str("Filter ");
            write_list(predicates, " AND ", text);
        }
        PlanNode::Project { expressions, .. } => {
            text.push_str("Project ");
            write_list(expressions, ", ", text);
        }
        PlanNode::Join(join) => {
            text.push_str("Join");
            write_condition(&join.equalities, &join.filters, text);
        }
        PlanNode::SideJoin(join) => {
            let _ = write!(text, "{:?} join", join.kind);
            write_condition(&join.equalities, &join.filters, text);
            if let Some(test) = &join.test {
                text.push_str("; test ");
                write_expression(test, text);
            }
        }
        PlanNode::DistinctOn { keys, .. } => {
            text.push_str("First of each ");
            write_list(keys, ", ", text);
        }
        PlanNode::Append { .. } => text.push_str("Append"),
        PlanNode::SetOperation { operation, is_all, .. } => {
            let _ = write!(text, "{operation:?}{}", if *is_all { " all" } else { "" });
        }
        PlanNode::Values { rows, .. } => {
            let _ = write!(text, "Values, {} rows", rows.len());
        }
        PlanNode::Window { calls, .. } => {
            text.push_str("Window");
            for call in calls {
                let _ = write!(text, " {:?}", call.function);
            }
        }
        PlanNode::Common { index, .. } => {
            let _ = write!(text, "Common rows {index}");
        }
        PlanNode::Series { .. } => text.push_str("Series"),
        PlanNode::Expand(expand) => {
            text.push_str("Expand by");
            for call in &expand.functions {
                let _ = write!(text, " {}", call.function.name);
                write_nested(&call.arguments.iter().collect::<Vec<_>>(), ", ", text);
            }
        }
        PlanNode::Recursive(recursive) => {
            let _ = write!(text, "Recursion {}{}", recursive.number, if recursive.is_all { "" } else { ", new rows" });
        }
        PlanNode::Working { number, .. } => {
            let _ = write!(text, "Rows of the round before, of recursion {number}");
        }
        PlanNode::Aggregate(aggregate) => {
            text.push_str("Aggregate");
            if !aggregate.groups.is_empty() {
                text.push_str(" by ");
                write_list(&aggregate.groups, ", ", text);
            }
            for call in &aggregate.calls {
                let distinct = if call.is_distinct { "DISTINCT " } else { "" };
                let _ = write!(text, " {:?}({distinct}", call.function);
                if let Some(argument) = call.argument {
                    write_expression(&aggregate.arguments[argument], text);
                }
                text.push(')');
                if let Some(filter) = &call.filter {
                    text.push_str(" where ");
                    write_expression(filter, text);
                }
            }
        }
        PlanNode::Sort { keys, limit, offset, with_ties, .. } => {
            text.push_str("Sort by ");
            keys.iter().enumerate().for_each(|(at, key)| write_sort_key(at, key, text));
            write_limit(limit.as_ref(), offset.as_ref(), text);
            text.push_str(if *with_ties { " with ties" } else { "" });
        }
        PlanNode::Limit { limit, offset, .. } => {
            text.push_str("Limit");
            write_limit(limit.as_ref(), offset.as_ref(), text);
        }
    }
    text.push('\n');
    node.for_each_input(&mut |input| write_node(input, catalog, depth + 1, text));
}

fn write_scan(scan: &Scan, catalog: &Catalog, text: &mut String) {
    let schema: Option<&TableSchema> = catalog.tables.get(&scan.table).map(|schema| &**schema);
    match schema {
        Some(schema) => {
            let names: Vec<&str> =
                scan.columns[..scan.outputs].iter().map(|column| &*schema.columns[*column].name).collect();
            let _ = write!(text, "Scan {}.{} ({})", schema.schema, schema.name, names.join(", "));
        }
        None => {
            let _ = write!(text, "Scan table {} {:?}", scan.table.0, &scan.columns[..scan.outputs]);
        }
    }
    if !scan.filters.is_empty() {
        text.push_str(" where ");
        write_list(&scan.filters, " AND ", text);
    }
    if !scan.look_ups.is_empty() {
        let _ = write!(text, "; look-up possible by {} column(s)", scan.look_ups.len());
    }
}

fn write_condition(equalities: &[Equality], filters: &[BoundExpr], text: &mut String) {
    for (at, equality) in equalities.iter().enumerate() {
        text.push_str(if at == 0 { " on " } else { " AND " });
        write_expression(&equality.left, text);
        text.push_str(" = ");
        write_expression(&equality.right, text);
    }
    if !filters.is_empty() {
        text.push_str("; also ");
        write_list(filters, " AND ", text);
    }
    if equalities.is_empty() {
        text.push_str(" (every pair)");
    }
}

fn write_sort_key(at: usize, key: &SortKey, text: &mut String) {
    if at > 0 {
        text.push_str(", ");
    }
    write_expression(&key.expr, text);
    text.push_str(if key.descending { " DESC" } else { "" });
    text.push_str(if key.nulls_first { " NULLS FIRST" } else { "" });
}

fn write_limit(limit: Option<&BoundExpr>, offset: Option<&BoundExpr>, text: &mut String) {
    for (word, bound) in [(" limit ", limit), (" offset ", offset)] {
        if let Some(bound) = bound {
            text.push_str(word);
            write_expression(bound, text);
        }
    }
}

fn write_list(expressions: &[BoundExpr], separator: &str, text: &mut String) {
    for (at, expr) in expressions.iter().enumerate() {
        if at > 0 {
            text.push_str(separator);
        }
        write_expression(expr, text);
    }
}

fn write_expression(expr: &BoundExpr, text: &mut String) {
    match expr {
        BoundExpr::Column { index, .. } => {
            let _ = write!(text, "#{index}");
        }
        BoundExpr::Literal { value, .. } => write_value(value, text),
        BoundExpr::Parameter { index, .. } => {
            let _ = write!(text, "${}", index + 1);
        }
        BoundExpr::Call { function, arguments, .. } => {
            let is_symbol = !function.name.starts_with(|first: char| first.is_alphabetic() || first == '_');
            match &arguments[..] {
                [left, right] if is_symbol => write_nested(&[left, right], &format!(" {} ", function.name), text),
                _ => {
                    text.push_str(function.name);
                    write_nested(&arguments.iter().collect::<Vec<_>>(), ", ", text);
                }
            }
        }
        BoundExpr::And(operands) => write_nested(&operands.iter().collect::<Vec<_>>(), " AND ", text),
        BoundExpr::Or(operands) => write_nested(&operands.iter().collect::<Vec<_>>(), " OR ", text),
        BoundExpr::Not(operand) => {
            text.push_str("NOT ");
            write_expression(operand, text);
        }
        BoundExpr::IsNull { operand, negated } => {
            write_expression(operand, text);
            text.push_str(if *negated { " IS NOT NULL" } else { " IS NULL" });
        }
        BoundExpr::IsBool { operand, expected, negated } => {
            write_expression(operand, text);
            let expected = match expected {
                Some(true) => "TRUE",
                Some(false) => "FALSE",
                None => "UNKNOWN",
            };
            let _ = write!(text, " IS {}{expected}", if *negated { "NOT " } else { "" });
        }
        BoundExpr::IsDistinct { left, right, negated, .. } => {
            let word = if *negated { " IS NOT DISTINCT FROM " } else { " IS DISTINCT FROM " };
            write_nested(&[left, right], word, text);
        }
        BoundExpr::Case { branches, otherwise, .. } => {
            text.push_str("CASE");
            for (condition, result) in branches {
                text.push_str(" WHEN ");
                write_expression(condition, text);
                text.push_str(" THEN ");
                write_expression(result, text);
            }
            text.push_str(" ELSE ");
            write_expression(otherwise, text);
            text.push_str(" END");
        }
        BoundExpr::Coalesce { arguments, .. } => {
            text.push_str("COALESCE");
            write_nested(&arguments.iter().collect::<Vec<_>>(), ", ", text);
        }
        BoundExpr::Extreme { greatest, arguments, .. } => {
            text.push_str(if *greatest { "GREATEST" } else { "LEAST" });
            write_nested(&arguments.iter().collect::<Vec<_>>(), ", ", text);
        }
        BoundExpr::InList { operand, list, negated, .. } => {
            write_expression(operand, text);
            text.push_str(if *negated { " NOT IN " } else { " IN " });
            write_nested(&list.iter().collect::<Vec<_>>(), ", ", text);
        }
    }
}

fn write_nested(operands: &[&BoundExpr], separator: &str, text: &mut String) {
    text.push('(');
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 {
            text.push_str(separator);
        }
        write_expression(operand, text);
    }
    text.push(')');
}

fn write_value(value: &Value, text: &mut String) {
    let _ = match value {
        Value::Null => write!(text, "NULL"),
        Value::Bool(v) => write!(text, "{v}"),
        Value::Int2(v) => write!(text, "{v}"),
        Value::Int4(v) => write!(text, "{v}"),
        Value::Int8(v) => write!(text, "{v}"),
        Value::Float4(v) => write!(text, "{v}"),
        Value::Float8(v) => write!(text, "{v}"),
        Value::Text(v) => write!(text, "'{v}'"),
        other => write!(text, "{other:?}"),
    };
}

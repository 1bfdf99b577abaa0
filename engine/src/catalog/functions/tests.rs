//! Every entry against PostgreSQL's own results, in every form that operands come in.
//!
//! `cases.txt` has one case a line, tab-separated: name, argument types, the arguments, and what PostgreSQL 15 made of
//! it: `=text` by the output function, `\N` for NULL, `!SQLSTATE` for an error. A name `cast:type` is that cast,
//! `output` the type's output function. A larger file of the same form is named by FRESHET_FUNCTION_CASES.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringDictionaryBuilder};
use arrow::datatypes::{DataType, Int32Type};

use super::*;
use crate::types::FormatSettings;
use crate::types::access::{TextColumn, value_at};
use crate::types::build::ColumnBuilder;
use crate::types::text;

struct Case {
    arguments: Vec<Value>,
    expected: Expected,
    line: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Expected {
    Value(String),
    Null,
    Error,
}

fn known(name: &str) -> Option<PgType> {
    PgType::ALL.into_iter().find(|known| known.typname() == name)
}

fn function_of(name: &str, arguments: &[PgType]) -> Option<Kernel> {
    if let Some(to) = name.strip_prefix("cast:") {
        return match cast(arguments[0], known(to)?)?.method {
            CastMethod::Function(function) | CastMethod::ViaText(function) => Some(function.kernel),
            CastMethod::BinaryCompatible => None,
        };
    }
    if name == "output" {
        return output_function(arguments[0]).map(|function| function.kernel);
    }
    let is_same = |function: &&&Function| {
        if function.is_variadic {
            return arguments.starts_with(function.arguments);
        }
        function.arguments == arguments
    };
    operators(name).iter().chain(functions(name)).find(is_same).map(|function| function.kernel)
}

fn result_of(name: &str, arguments: &[PgType]) -> PgType {
    if let Some(to) = name.strip_prefix("cast:") {
        return known(to).unwrap();
    }
    let all = operators(name).iter().chain(functions(name));
    let mut same = all.filter(|function| function.is_variadic || function.arguments == arguments);
    same.next().map_or(PgType::Text, |function| function.result)
}

/// Groups of the cases by name and argument types, those that are implemented.
fn groups(text: &str) -> BTreeMap<(String, Vec<PgType>), Vec<Case>> {
    let settings = FormatSettings::default();
    let mut groups: BTreeMap<_, Vec<Case>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let name = fields.next().unwrap().to_owned();
        let types: Option<Vec<PgType>> = fields.next().unwrap().split(',').map(known).collect();
        let types = types.unwrap();
        if function_of(&name, &types).is_none() {
            continue;
        }
        let value = |(pg_type, field): (&PgType, &str)| match field {
            "\\N" => Some(Value::Null),
            // The input of jsonb is upstream's, but the test has it as PostgreSQL prints it.
            field if matches!(pg_type, PgType::Json | PgType::Jsonb) => Some(Value::Text(field.into())),
            field => text::parse(*pg_type, -1, field, &settings).ok(),
        };
        let arguments: Option<Vec<Value>> = types.iter().zip(fields.by_ref()).map(value).collect();
        let Some(arguments) = arguments else { continue };
        let result = fields.next().unwrap();
        assert_eq!(arguments.len(), types.len(), "{line}");
        let expected = match result.split_at(1) {
            ("=", text) => Expected::Value(text.to_owned()),
            ("!", _) => Expected::Error,
            _ => Expected::Null,
        };
        groups.entry((name, types)).or_default().push(Case { arguments, expected, line: line.to_owned() });
    }
    groups
}

fn printed(array: &ArrayRef, pg_type: PgType, row: usize) -> Expected {
    if array.is_null(row) {
        return Expected::Null;
    }
    let mut bytes = Vec::new();
    text::write(&value_at(array, pg_type, row), pg_type, &FormatSettings::default(), &mut bytes);
    Expected::Value(String::from_utf8(bytes).unwrap())
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Tight,
    PlainText,
    DictionaryText,
}

fn column(values: &[&Value], pg_type: PgType, form: Form) -> ArrayRef {
    let texts = values.iter().map(|value| match value {
        Value::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    match form {
        Form::PlainText if pg_type.is_text_like() => Arc::new(StringArray::from_iter(texts)),
        Form::DictionaryText if pg_type.is_text_like() => {
            let mut builder = StringDictionaryBuilder::<Int32Type>::new();
            // A value that no row has: an error in it is none.
            builder.append("9999999999x \u{e9}\\").unwrap();
            texts.for_each(|text| builder.append_option(text));
            Arc::new(builder.finish().slice(1, values.len()))
        }
        _ => {
            let mut builder = ColumnBuilder::new(pg_type, -1);
            values.iter().for_each(|value| builder.append_value(value));
            builder.finish()
        }
    }
}

struct Check<'a> {
    context: EvalContext<'a>,
    failures: Vec<String>,
    refused: BTreeMap<String, usize>,
    covered: Vec<String>,
}

impl Check<'_> {
    /// One case at a time, and NULL in the place of each argument; keeps the cases that have a result here.
    fn constants<'c>(&mut self, name: &str, types: &[PgType], cases: &'c [Case]) -> Vec<&'c Case> {
        let (kernel, result_type) = (function_of(name, types).unwrap(), result_of(name, types));
        let mut sound = Vec::new();
        for case in cases {
            let operands: Vec<Operand> = case.arguments.iter().cloned().map(Operand::Scalar).collect();
            match kernel(&operands, 2, &self.context) {
                Ok(array) => {
                    assert_eq!(array.len(), 2, "{}", case.line);
                    self.null_constants(name, types, &operands);
                    let found = printed(&array, result_type, 1);
                    if found == case.expected {
                        sound.push(case);
                    } else {
                        self.failures.push(format!("{} but {found:?}", case.line));
                    }
                }
                Err(EvalError::Raises(_)) if case.expected == Expected::Error => {}
                Err(EvalError::Raises(error)) => self.failures.push(format!("{} but raises {error}", case.line)),
                Err(EvalError::Beyond(_) | EvalError::OverBudget(_) | EvalError::Unordered(_)) => {
                    *self.refused.entry(format!("{name}{types:?}")).or_default() += 1;
                }
            }
        }
        sound
    }

    fn null_constants(&self, name: &str, types: &[PgType], operands: &[Operand]) {
        let kernel = function_of(name, types).unwrap();
        assert_eq!(kernel(operands, 0, &self.context).unwrap().len(), 0, "{name}{types:?}");
        for index in 0..operands.len() {
            let mut operands = operands.to_vec();
            operands[index] = Operand::Scalar(Value::Null);
            let array = kernel(&operands, 3, &self.context).unwrap();
            let nulls = if name.starts_with("concat") { array.null_count() } else { 3 };
            assert_eq!((array.len(), array.null_count()), (3, nulls), "{name}{types:?}");
        }
    }

    /// The cases as columns where `is_column` says so; the others must have one value in all of them.
    fn columns(&mut self, name: &str, types: &[PgType], cases: &[&Case], is_column: &[bool], form: Form) {
        let (kernel, result_type) = (function_of(name, types).unwrap(), result_of(name, types));
        let is_strict = !name.starts_with("concat");
        let rows = cases.len() * 2;
        let operands: Vec<Operand> = (0..types.len())
            .map(|index| {
                if !is_column[index] {
                    return Operand::Scalar(cases[0].arguments[index].clone());
                }
                // Every second row NULL in one of the columns.
                let first = is_column.iter().position(|is| *is) == Some(index);
                let values: Vec<&Value> = cases
                    .iter()
                    .flat_map(|case| {
                        [&case.arguments[index], if first { &Value::Null } else { &case.arguments[index] }]
                    })
                    .collect();
                Operand::Column(column(&values, types[index], form))
            })
            .collect();
        let array = match kernel(&operands, rows, &self.context) {
            Ok(array) => array,
            Err(error) => {
                self.failures.push(format!("{name}{types:?} {is_column:?} {form:?}: {error}"));
                return;
            }
        };
        assert_eq!(array.len(), rows, "{name}{types:?}");
        assert_distinct(&array);
        for (at, case) in cases.iter().enumerate() {
            let found = printed(&array, result_type, at * 2);
            if found != case.expected {
                self.failures.push(format!("{} but {found:?} with columns {is_column:?} {form:?}", case.line));
            }
            if is_strict && array.is_valid(at * 2 + 1) {
                self.failures.push(format!("{} not NULL for NULL {is_column:?} {form:?}", case.line));
            }
        }
    }
}

fn assert_distinct(array: &ArrayRef) {
    if let DataType::Dictionary(..) = array.data_type() {
        let values = array.as_dictionary::<Int32Type>().values().clone();
        let mut texts: Vec<&str> = (0..values.len()).map(|row| TextColumn::of(&values).get(row)).collect();
        let count = texts.len();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), count);
    }
}

fn check(text: &str) -> Check<'static> {
    let settings: &'static FormatSettings = Box::leak(Box::default());
    let context = EvalContext { settings, transaction_time: None, orders: None };
    let mut check = Check { context, failures: Vec::new(), refused: BTreeMap::new(), covered: Vec::new() };
    for ((name, types), cases) in groups(text) {
        let names: Vec<&str> = types.iter().map(|known| known.typname()).collect();
        check.covered.push(format!("{name}({})", names.join(",")));
        let sound = check.constants(&name, &types, &cases);
        if sound.is_empty() {
            continue;
        }
        for form in [Form::Tight, Form::PlainText, Form::DictionaryText] {
            check.columns(&name, &types, &sound, &vec![true; types.len()], form);
            for varying in 0..types.len() {
                let is_column: Vec<bool> = (0..types.len()).map(|index| index == varying).collect();
                let mut by_constants: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
                for case in &sound {
                    let mut others = case.arguments.clone();
                    others[varying] = Value::Null;
                    by_constants.entry(format!("{others:?}")).or_default().push(case);
                }
                for cases in by_constants.values() {
                    check.columns(&name, &types, cases, &is_column, form);
                }
            }
        }
    }
    check
}

#[test]
fn entries_give_postgresqls_results() {
    let check = check(include_str!("cases.txt"));
    assert!(check.failures.is_empty(), "{}:\n{}", check.failures.len(), check.failures.join("\n"));
}

#[test]
fn entries_give_postgresqls_results_on_more_cases() {
    let Ok(path) = std::env::var("FRESHET_FUNCTION_CASES") else { return };
    let check = check(&std::fs::read_to_string(path).unwrap());
    println!("refused: {:#?}", check.refused);
    println!("covered: {:?}", check.covered);
    println!("{}", check.failures.join("\n"));
    assert!(check.failures.is_empty(), "{} failures", check.failures.len());
}

#[test]
fn a_null_constant_makes_every_row_of_a_dictionary_null() {
    let settings = FormatSettings::default();
    let context = EvalContext { settings: &settings, transaction_time: None, orders: None };
    let values = ["a", "b", "a", ""].map(|text| Value::Text(text.into()));
    let names = column(&values.each_ref(), PgType::Text, Form::DictionaryText);
    let concatenate = function_of("||", &[PgType::Text, PgType::Text]).unwrap();
    for operands in [
        [Operand::Scalar(Value::Null), Operand::Column(Arc::clone(&names))],
        [Operand::Column(names), Operand::Scalar(Value::Null)],
    ] {
        let result = concatenate(&operands, 4, &context).unwrap();
        assert!((0..4).all(|row| value_at(&result, PgType::Text, row) == Value::Null), "{result:?}");
        assert_eq!(result.null_count(), 4);
    }
}

//! format() (varlena.c, text_format). `%I` is upstream's: it depends on a setting and on the keywords of its version.

use arrow::array::ArrayRef;

use super::rows::end_of;
use super::text::{RESULT_BYTES_MAX, from_nullable, variadic};
use super::{EvalContext, EvalError, Function, Operand};
use crate::types::PgType::Text;

fn raises<T>(message: &str) -> Result<T, EvalError> {
    Err(EvalError::Raises(message.to_owned()))
}

/// What stands between `%` and the conversion.
#[derive(Debug, Default, PartialEq, Eq)]
struct Spec {
    /// From 1; None: the next one.
    argument: Option<usize>,
    is_left: bool,
    width: Width,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Width {
    #[default]
    None,
    Of(i32),
    /// Of an argument, from 1; None: the next one.
    From(Option<usize>),
}

/// The rest of a format text; it must not end here.
struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    fn peek(&self) -> Result<char, EvalError> {
        self.rest.chars().next().map_or_else(|| raises("unterminated format() type specifier"), Ok)
    }

    fn advance(&mut self) -> Result<char, EvalError> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        Ok(next)
    }

    /// text_format_parse_digits. None: there is none.
    fn digits(&mut self) -> Result<Option<i32>, EvalError> {
        let mut value: Option<i32> = None;
        while let Some(digit) = self.peek()?.to_digit(10) {
            let grown = value.unwrap_or(0).checked_mul(10).and_then(|ten| ten.checked_add(digit.cast_signed()));
            value = Some(grown.map_or_else(|| raises("number is out of range"), Ok)?);
            self.advance()?;
        }
        Ok(value)
    }

    /// The number of an argument, behind which is `$`.
    fn argument(number: i32) -> Result<Option<usize>, EvalError> {
        match usize::try_from(number) {
            Ok(0) | Err(_) => raises("format specifies argument 0, but arguments are numbered from 1"),
            Ok(number) => Ok(Some(number)),
        }
    }

    /// text_format_parse_format.
    fn spec(&mut self) -> Result<Spec, EvalError> {
        let mut spec = Spec::default();
        if let Some(number) = self.digits()? {
            if self.peek()? != '$' {
                return Ok(Spec { width: Width::Of(number), ..spec });
            }
            spec.argument = Self::argument(number)?;
            self.advance()?;
        }
        while self.peek()? == '-' {
            spec.is_left = true;
            self.advance()?;
        }
        if self.peek()? == '*' {
            self.advance()?;
            spec.width = Width::From(match self.digits()? {
                None => None,
                Some(number) => {
                    if self.peek()? != '$' {
                        return raises("width argument position must be ended by \"$\"");
                    }
                    let argument = Self::argument(number)?;
                    self.advance()?;
                    argument
                }
            });
        } else if let Some(width) = self.digits()? {
            spec.width = Width::Of(width);
        }
        Ok(spec)
    }
}

/// The arguments of one row, by their numbers from 1, as their output functions print them.
struct Arguments<'a> {
    value: &'a dyn Fn(usize) -> Option<&'a str>,
    count: usize,
    last: usize,
}

impl<'a> Arguments<'a> {
    fn take(&mut self, number: Option<usize>) -> Result<Option<&'a str>, EvalError> {
        self.last = number.unwrap_or(self.last + 1);
        if self.last > self.count {
            return raises("too few arguments for format()");
        }
        Ok((self.value)(self.last))
    }

    fn width(&mut self, width: &Width) -> Result<i32, EvalError> {
        match width {
            Width::None => Ok(0),
            Width::Of(width) => Ok(*width),
            Width::From(number) => match self.take(*number)? {
                None => Ok(0),
                // Whatever its type, it is read as an integer.
                Some(text) => crate::types::text::parse_integer(text.as_bytes(), "integer")
                    .map_err(|_| EvalError::Raises("invalid input syntax for type integer".to_owned())),
            },
        }
    }
}

/// text_format_append_string: a negative width means the left side.
fn append(text: &str, is_left: bool, width: i32, out: &mut String) -> Result<(), EvalError> {
    let is_left = is_left || width < 0;
    let Some(width) = width.checked_abs().and_then(|width| usize::try_from(width).ok()) else {
        return raises("number is out of range");
    };
    let blanks = width.saturating_sub(text.chars().count());
    if blanks > RESULT_BYTES_MAX {
        return Err(EvalError::Beyond("a very wide format".to_owned()));
    }
    if is_left {
        out.push_str(text);
    }
    out.extend(std::iter::repeat_n(' ', blanks));
    if !is_left {
        out.push_str(text);
    }
    end_of(out.len()).map(drop)
}

/// quote_literal_cstr.
pub(super) fn quoted(text: &str) -> String {
    let doubled = text.replace('\'', "''").replace('\\', "\\\\");
    if text.contains('\\') { format!("E'{doubled}'") } else { format!("'{doubled}'") }
}

fn write(format: &str, mut arguments: Arguments<'_>, out: &mut String) -> Result<(), EvalError> {
    let mut cursor = Cursor { rest: format };
    while let Some((plain, rest)) = cursor.rest.split_once('%') {
        out.push_str(plain);
        cursor.rest = rest;
        if cursor.peek()? == '%' {
            cursor.advance()?;
            out.push('%');
            continue;
        }
        let spec = cursor.spec()?;
        let conversion = cursor.advance()?;
        if !matches!(conversion, 's' | 'L') {
            return match conversion {
                'I' => Err(EvalError::Beyond("format of an identifier".to_owned())),
                _ => raises("unrecognized format() type specifier"),
            };
        }
        let width = arguments.width(&spec.width)?;
        let value = arguments.take(spec.argument)?;
        match (conversion, value) {
            ('L', None) => append("NULL", spec.is_left, width, out)?,
            ('L', Some(text)) => append(&quoted(text), spec.is_left, width, out)?,
            (_, value) => append(value.unwrap_or_default(), spec.is_left, width, out)?,
        }
    }
    out.push_str(cursor.rest);
    Ok(())
}

/// NULL if the format is; the arguments may be.
fn format(operands: &[Operand], rows: usize, _: &EvalContext<'_>) -> Result<ArrayRef, EvalError> {
    from_nullable(operands, rows, |texts, out| {
        let Some((Some(format), values)) = texts.split_first() else { return Ok(false) };
        let value = |number: usize| values.get(number - 1).copied().flatten();
        write(format, Arguments { value: &value, count: values.len(), last: 0 }, out)?;
        Ok(true)
    })
}

pub(super) static ENTRIES: &[Function] = &[
    Function { is_variadic: false, ..variadic("format", &[Text], format, "varlena.c text_format_nv") },
    variadic("format", &[Text, Text], format, "varlena.c text_format"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: &str, arguments: &[Option<&str>]) -> Result<String, EvalError> {
        let value = |number: usize| arguments.get(number - 1).copied().flatten();
        let mut out = String::new();
        write(format, Arguments { value: &value, count: arguments.len(), last: 0 }, &mut out)?;
        Ok(out)
    }

    /// Expected values from PostgreSQL 15.
    #[test]
    fn formats_are_filled_in_as_postgresql_does() {
        let arguments = [Some("one"), None, Some("it's"), Some("a\\b"), Some("-7"), Some("größe")];
        for (format, expected) in [
            ("", ""),
            ("no %% at %s", "no % at one"),
            ("%s|%s|%s", "one||it's"),
            ("%3$L %2$L %4$L %1$s", "'it''s' NULL E'a\\\\b' one"),
            ("[%10s] [%-10s]", "[       one] [          ]"),
            ("[%6$10s] [%6$-10s]", "[     größe] [größe     ]"),
            ("[%1$*5$s]", "[one    ]"),
            ("%3$s %s", "it's a\\b"),
            ("%2$s %s %s", " it's a\\b"),
            ("[%1$2s]", "[one]"),
        ] {
            assert_eq!(written(format, &arguments).unwrap(), expected, "{format}");
        }
        for format in ["%", "%1", "%1$", "%7$s", "%0$s", "%d", "%*3s", "%99999999999s", "%1$*s"] {
            assert!(matches!(written(format, &arguments), Err(EvalError::Raises(_))), "{format}");
        }
        assert!(matches!(written("%I", &arguments), Err(EvalError::Beyond(_))));
    }
}

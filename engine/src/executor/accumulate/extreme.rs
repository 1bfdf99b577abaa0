//! min and max. Of values that compare equal PostgreSQL keeps the later one or, from an index, the first; where those
//! print differently the statement goes upstream.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryArray, PrimitiveArray, StringBuilder};
use arrow::datatypes::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
};

use super::{Accumulator, Groups, Running, Seen, for_each_valid, nulls_of};
use crate::catalog::functions::EvalError;
use crate::executor::order::{compare_floats, interval_span};
use crate::types::access::{TextColumn, interval_native, interval_of};
use crate::types::network::Network;
use crate::types::numeric::{NumericBuilder, NumericColumn};
use crate::types::{Interval, Numeric, PgType};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Min,
    Max,
}

impl Which {
    /// Whether `value` is to replace the state, given how it compares with it.
    #[inline]
    fn prefers(self, value_to_state: Ordering) -> bool {
        match self {
            Self::Min => value_to_state.is_lt(),
            Self::Max => value_to_state.is_gt(),
        }
    }
}

pub(super) fn extreme(which: Which, pg_type: PgType) -> Result<Box<dyn Accumulator>, EvalError> {
    Ok(match pg_type {
        PgType::Int2 => Box::new(Integers::<Int16Type>::new(which)),
        PgType::Int4 | PgType::Date => Box::new(Integers::<Int32Type>::new(which)),
        PgType::Int8 | PgType::Time | PgType::Timestamp | PgType::Timestamptz => {
            Box::new(Integers::<Int64Type>::new(which))
        }
        PgType::Float4 => Box::new(Others::new(which, Float4)),
        PgType::Float8 => Box::new(Others::new(which, Float8)),
        PgType::Numeric => Box::new(Others::new(which, Numerics)),
        PgType::Interval => Box::new(Others::new(which, Intervals)),
        PgType::Inet => Box::new(Others::new(which, Networks)),
        PgType::Text | PgType::Varchar | PgType::Name | PgType::Bpchar => Box::new(Texts::new(which, pg_type)),
        PgType::Bool
        | PgType::Uuid
        | PgType::Bytea
        // min and max are those of inet.
        | PgType::Cidr
        | PgType::Bit
        | PgType::Varbit
        | PgType::Json
        | PgType::Jsonb
        | PgType::Array(_)
        // As places in the order of the labels.
        | PgType::Enum(_)
        | PgType::Unknown => {
            return Err(EvalError::Beyond(format!("min or max of {}", pg_type.name())));
        }
    })
}

/// Types that are integers inside; equal ones are the same.
struct Integers<T: ArrowPrimitiveType> {
    which: Which,
    best: Vec<T::Native>,
    seen: Seen,
}

impl<T: ArrowPrimitiveType> Integers<T> {
    fn new(which: Which) -> Self {
        Self { which, best: Vec::new(), seen: Seen::default() }
    }
}

impl<T: ArrowPrimitiveType<Native: Ord>> Accumulator for Integers<T> {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        use arrow::datatypes::ArrowNativeTypeOp;
        let Some(values) = values else { return Ok(()) };
        let nulls = nulls_of(values);
        self.seen.mark(groups, nulls);
        let numbers = values.as_primitive::<T>().values();
        match self.which {
            Which::Min => {
                self.best.resize(groups.count, T::Native::MAX_TOTAL_ORDER);
                let best = &mut self.best;
                for_each_valid(groups, nulls, |group, row| best[group] = best[group].min(numbers[row]));
            }
            Which::Max => {
                self.best.resize(groups.count, T::Native::MIN_TOTAL_ORDER);
                let best = &mut self.best;
                for_each_valid(groups, nulls, |group, row| best[group] = best[group].max(numbers[row]));
            }
        }
        Ok(())
    }

    fn run(&mut self, running: &Running<'_>, values: Option<&ArrayRef>) -> Result<bool, EvalError> {
        use arrow::datatypes::ArrowNativeTypeOp;
        let Some(values) = values else { return Ok(false) };
        let nulls = nulls_of(values);
        self.seen.run(running, nulls);
        let numbers = values.as_primitive::<T>().values();
        match self.which {
            Which::Min => running.run(&mut self.best, &T::Native::MAX_TOTAL_ORDER, nulls, |best, row| {
                *best = (*best).min(numbers[row]);
            }),
            Which::Max => running.run(&mut self.best, &T::Native::MIN_TOTAL_ORDER, nulls, |best, row| {
                *best = (*best).max(numbers[row]);
            }),
        }
        Ok(true)
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.best.resize(groups, T::Native::default());
        Ok(Arc::new(PrimitiveArray::<T>::new(self.best.into(), self.seen.nulls(groups))))
    }

    fn bytes(&self) -> usize {
        self.best.len() * size_of::<T::Native>() + self.seen.bytes()
    }
}

/// How a type whose equal values may print differently is read, compared and built.
trait Family {
    type Item: Copy;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> Self::Item + 'a>;
    fn compare(a: Self::Item, b: Self::Item) -> Ordering;
    fn is_identical(a: Self::Item, b: Self::Item) -> bool;
    fn array(items: Vec<Option<Self::Item>>) -> ArrayRef;
}

struct Others<F: Family> {
    which: Which,
    family: F,
    best: Vec<Option<Best<F::Item>>>,
}

#[derive(Clone, Copy)]
struct Best<I> {
    item: I,
    /// Another value equals it and prints differently.
    is_ambiguous: bool,
}

impl<F: Family> Others<F> {
    fn new(which: Which, family: F) -> Self {
        Self { which, family, best: Vec::new() }
    }
}

impl<F: Family> Accumulator for Others<F> {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.best.resize(groups.count, None);
        let read = self.family.reader(values);
        let (best, which) = (&mut self.best, self.which);
        for_each_valid(groups, nulls_of(values), |group, row| {
            let item = read(row);
            match &mut best[group] {
                None => best[group] = Some(Best { item, is_ambiguous: false }),
                Some(known) => {
                    let order = F::compare(item, known.item);
                    if which.prefers(order) {
                        *known = Best { item, is_ambiguous: false };
                    } else if order.is_eq() {
                        known.is_ambiguous |= !F::is_identical(item, known.item);
                    }
                }
            }
        });
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.best.resize(groups, None);
        if self.best.iter().flatten().any(|best| best.is_ambiguous) {
            return Err(EvalError::Beyond("min or max among equal values that print differently".to_owned()));
        }
        Ok(F::array(self.best.into_iter().map(|best| best.map(|best| best.item)).collect()))
    }

    fn bytes(&self) -> usize {
        self.best.len() * size_of::<Option<Best<F::Item>>>()
    }
}

struct Float4;
impl Family for Float4 {
    type Item = f32;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> f32 + 'a> {
        let values = values.as_primitive::<Float32Type>().values();
        Box::new(|row| values[row])
    }
    fn compare(a: f32, b: f32) -> Ordering {
        compare_floats(f64::from(a), f64::from(b))
    }
    fn is_identical(a: f32, b: f32) -> bool {
        a.is_nan() || a.to_bits() == b.to_bits()
    }
    fn array(items: Vec<Option<f32>>) -> ArrayRef {
        Arc::new(PrimitiveArray::<Float32Type>::from(items))
    }
}

struct Float8;
impl Family for Float8 {
    type Item = f64;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> f64 + 'a> {
        let values = values.as_primitive::<Float64Type>().values();
        Box::new(|row| values[row])
    }
    fn compare(a: f64, b: f64) -> Ordering {
        compare_floats(a, b)
    }
    fn is_identical(a: f64, b: f64) -> bool {
        a.is_nan() || a.to_bits() == b.to_bits()
    }
    fn array(items: Vec<Option<f64>>) -> ArrayRef {
        Arc::new(PrimitiveArray::<Float64Type>::from(items))
    }
}

struct Numerics;
impl Family for Numerics {
    type Item = Numeric;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> Numeric + 'a> {
        let values = NumericColumn::of(values.as_ref());
        Box::new(move |row| values.get(row))
    }
    fn compare(a: Numeric, b: Numeric) -> Ordering {
        a.cmp(b)
    }
    fn is_identical(a: Numeric, b: Numeric) -> bool {
        a == b
    }
    fn array(items: Vec<Option<Numeric>>) -> ArrayRef {
        items.into_iter().collect::<NumericBuilder>().finish()
    }
}

struct Intervals;
impl Family for Intervals {
    type Item = Interval;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> Interval + 'a> {
        let values = values.as_primitive::<IntervalMonthDayNanoType>().values();
        Box::new(|row| interval_of(values[row]))
    }
    fn compare(a: Interval, b: Interval) -> Ordering {
        interval_span(a).cmp(&interval_span(b))
    }
    fn is_identical(a: Interval, b: Interval) -> bool {
        a == b
    }
    fn array(items: Vec<Option<Interval>>) -> ArrayRef {
        let native = items.into_iter().map(|item| item.map(interval_native));
        Arc::new(native.collect::<PrimitiveArray<IntervalMonthDayNanoType>>())
    }
}

struct Networks;
impl Family for Networks {
    type Item = Network;
    fn reader<'a>(&self, values: &'a ArrayRef) -> Box<dyn Fn(usize) -> Network + 'a> {
        let values = values.as_binary::<i32>();
        Box::new(|row| Network::of_held(values.value(row)))
    }
    fn compare(a: Network, b: Network) -> Ordering {
        a.cmp(&b)
    }
    fn is_identical(a: Network, b: Network) -> bool {
        a == b
    }
    fn array(items: Vec<Option<Network>>) -> ArrayRef {
        let held = items.into_iter().map(|item| item.map(Network::held));
        Arc::new(held.collect::<BinaryArray>())
    }
}

/// Text by bytes (the binder lets no other collation through); bpchar without its padding.
struct Texts {
    which: Which,
    pg_type: PgType,
    best: Vec<Option<Box<str>>>,
    bytes: usize,
}

impl Texts {
    fn new(which: Which, pg_type: PgType) -> Self {
        Self { which, pg_type, best: Vec::new(), bytes: 0 }
    }
}

impl Accumulator for Texts {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.best.resize(groups.count, None);
        let texts = TextColumn::of(values.as_ref());
        let is_padded = self.pg_type == PgType::Bpchar;
        let key = |text: &'_ str| if is_padded { text.trim_end_matches(' ').len() } else { text.len() };
        let (best, which, bytes) = (&mut self.best, self.which, &mut self.bytes);
        for_each_valid(groups, nulls_of(values), |group, row| {
            let text = texts.get(row);
            let replaces = match &best[group] {
                None => true,
                Some(known) => which.prefers(text.as_bytes()[..key(text)].cmp(&known.as_bytes()[..key(known)])),
            };
            if replaces {
                *bytes += text.len();
                best[group] = Some(text.into());
            }
        });
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.best.resize(groups, None);
        let mut results = StringBuilder::with_capacity(groups, self.bytes);
        self.best.iter().for_each(|best| results.append_option(best.as_deref()));
        Ok(Arc::new(results.finish()))
    }

    fn bytes(&self) -> usize {
        self.best.len() * 16 + self.bytes
    }
}

//! Aggregates that depend on the order of their rows, which arrive sorted by group: string_agg, percentiles, mode
//! (PostgreSQL: varlena.c string_agg_transfn, orderedsetaggs.c).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryBuilder, Float64Array, IntervalMonthDayNanoArray, StringBuilder, UInt32Array,
};
use arrow::compute::take;
use arrow::datatypes::{Float64Type, IntervalMonthDayNanoType};

use super::{Accumulator, Groups};
use crate::catalog::functions::{AggregateFunction, EvalError};
use crate::executor::arrays::{internal, null_bits};
use crate::executor::key_table::{KeyTable, Purpose};
use crate::types::access::{TextColumn, interval_native, interval_of};
use crate::types::array::{ArrayView, write_vector};
use crate::types::encode::{ColumnEncoder, Format};
use crate::types::{Element, FormatSettings, PgType, Value, binary, interval};

/// string_agg: values that are not NULL, with the delimiter of every one but the first before it.
#[derive(Debug, Default)]
pub(super) struct Joined {
    texts: Vec<Option<String>>,
    bytes: usize,
}

impl Accumulator for Joined {
    fn update(&mut self, _: &Groups<'_>, _: Option<&ArrayRef>) -> Result<(), EvalError> {
        Err(EvalError::Beyond("string_agg without delimiter".to_owned()))
    }

    fn update_all(&mut self, groups: &Groups<'_>, values: &[ArrayRef]) -> Result<(), EvalError> {
        let [values, delimiters] = values else { return self.update(groups, None) };
        self.texts.resize(groups.count, None);
        let (texts, between) = (TextColumn::of(values.as_ref()), TextColumn::of(delimiters.as_ref()));
        let (is_null, is_bare) = (null_bits(values), null_bits(delimiters));
        for row in 0..groups.rows {
            if is_null.value(row) {
                continue;
            }
            let group = groups.ids.map_or(0, |ids| ids[row] as usize);
            let value = texts.get(row);
            self.bytes += value.len();
            match &mut self.texts[group] {
                None => self.texts[group] = Some(value.to_owned()),
                Some(text) => {
                    if !is_bare.value(row) {
                        self.bytes += between.get(row).len();
                        text.push_str(between.get(row));
                    }
                    text.push_str(value);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.texts.resize(groups, None);
        if i32::try_from(self.bytes).is_err() {
            return Err(EvalError::OverBudget("memory"));
        }
        let mut results = StringBuilder::with_capacity(groups, self.bytes);
        self.texts.iter().for_each(|text| results.append_option(text.as_deref()));
        Ok(Arc::new(results.finish()))
    }

    fn bytes(&self) -> usize {
        self.texts.len() * 24 + self.bytes
    }
}

/// percentile_cont, percentile_disc, mode.
#[derive(Debug)]
pub(super) struct Chosen {
    function: AggregateFunction,
    pg_type: PgType,
    fractions: Fractions,
    values: Option<ArrayRef>,
    /// By group: places of the values that are not NULL, in order.
    places: Vec<Vec<u32>>,
}

/// None: NULL.
#[derive(Debug)]
enum Fractions {
    One(Option<f64>),
    /// The result is an array.
    Many(Option<Vec<Option<f64>>>),
}

fn checked(fraction: f64) -> Result<f64, EvalError> {
    match (0.0..=1.0).contains(&fraction) {
        true => Ok(fraction),
        false => Err(EvalError::Raises("percentile value is not between 0 and 1".to_owned())),
    }
}

impl Chosen {
    pub(super) fn new(
        function: AggregateFunction,
        pg_type: PgType,
        extra: &[Value],
        result: PgType,
    ) -> Result<Self, EvalError> {
        let fractions = match extra.first() {
            Some(Value::Float8(fraction)) => Fractions::One(Some(checked(*fraction)?)),
            Some(Value::Array(bytes)) => {
                let array = ArrayView::of(bytes);
                // The result has the array's shape (orderedsetaggs.c).
                if array.depth() > 1 || array.dimension(0).is_some_and(|only| only.lower != 1) {
                    return Err(EvalError::Beyond(
                        "percentiles in several dimensions, or from another than the first".into(),
                    ));
                }
                let fraction = |bytes: Option<&[u8]>| {
                    let Some(bytes) = bytes else { return Ok(None) };
                    match binary::decode(PgType::Float8, -1, bytes)? {
                        Value::Float8(fraction) => checked(fraction).map(Some),
                        _ => Ok(None),
                    }
                };
                Fractions::Many(Some(array.elements().map(fraction).collect::<Result<_, EvalError>>()?))
            }
            _ if matches!(result, PgType::Array(_)) => Fractions::Many(None),
            _ => Fractions::One(None),
        };
        Ok(Self { function, pg_type, fractions, values: None, places: Vec::new() })
    }

    fn place(places: &[u32], fraction: Option<f64>) -> Option<u32> {
        let rows = places.len();
        let number = (fraction? * rows as f64).ceil() as usize;
        places.get(number.max(1) - 1).copied()
    }

    /// The value between two neighbours.
    fn between<T: Copy>(
        places: &[u32],
        fraction: Option<f64>,
        value: &dyn Fn(usize) -> T,
        mix: &dyn Fn(T, T, f64) -> Result<T, EvalError>,
    ) -> Result<Option<T>, EvalError> {
        let Some(fraction) = fraction.filter(|_| !places.is_empty()) else { return Ok(None) };
        let wanted = fraction * (places.len() - 1) as f64;
        let (first, second) = (wanted.floor(), wanted.ceil());
        let low = value(places[first as usize] as usize);
        if first == second {
            return Ok(Some(low));
        }
        let high = value(places[second as usize] as usize);
        mix(low, high, wanted - first).map(Some)
    }

    /// The value that occurs most often, the first of several.
    fn most_frequent(&self, values: &ArrayRef) -> Result<Vec<Option<u32>>, EvalError> {
        let ids = KeyTable::new(&[self.pg_type], Purpose::Arguments, values.len())?
            .assign(std::slice::from_ref(values), values.len())?;
        let most = self.places.iter().map(|places| {
            let runs = places.chunk_by(|a, b| ids[*a as usize] == ids[*b as usize]);
            runs.reduce(|best, run| if run.len() > best.len() { run } else { best }).map(|run| run[0])
        });
        Ok(most.collect())
    }

    /// Which of equal values that print differently stands where is not decided here.
    fn check_equals(&self, values: &ArrayRef) -> Result<(), EvalError> {
        let prints_alike = !matches!(
            self.pg_type,
            PgType::Numeric | PgType::Interval | PgType::Float4 | PgType::Float8 | PgType::Bpchar
        );
        if !prints_alike {
            KeyTable::new(&[self.pg_type], Purpose::Arguments, values.len())?
                .assign(std::slice::from_ref(values), values.len())?;
        }
        Ok(())
    }
}

impl Chosen {
    /// One result per group.
    fn results(&self, values: &ArrayRef, fraction: Option<f64>) -> Result<ArrayRef, EvalError> {
        let places = match self.function {
            AggregateFunction::Mode => self.most_frequent(values)?,
            AggregateFunction::PercentileDisc => {
                self.places.iter().map(|places| Self::place(places, fraction)).collect()
            }
            _ if self.pg_type == PgType::Interval => {
                let spans = values.as_primitive::<IntervalMonthDayNanoType>().values();
                let value = |row: usize| interval_of(spans[row]);
                let mix = |low, high, share| {
                    let step = interval::multiply(&interval::subtract(&high, &low)?, share)?;
                    Ok(interval::add(&low, &step)?)
                };
                let result =
                    |places: &Vec<u32>| Ok(Self::between(places, fraction, &value, &mix)?.map(interval_native));
                let results = self.places.iter().map(result);
                return Ok(Arc::new(results.collect::<Result<IntervalMonthDayNanoArray, EvalError>>()?));
            }
            _ => {
                let numbers = values.as_primitive::<Float64Type>().values();
                let mix = |low: f64, high: f64, share: f64| Ok(low + share * (high - low));
                let result = |places: &Vec<u32>| Self::between(places, fraction, &|row| numbers[row], &mix);
                return Ok(Arc::new(self.places.iter().map(result).collect::<Result<Float64Array, EvalError>>()?));
            }
        };
        take(values, &UInt32Array::from(places), None).map_err(internal)
    }

    /// percentile_cont_multi_final_common: NULL for no rows, an element for each fraction otherwise.
    fn arrays(
        &self,
        values: &ArrayRef,
        fractions: Option<&[Option<f64>]>,
        groups: usize,
    ) -> Result<ArrayRef, EvalError> {
        let element = Element::of(self.pg_type).ok_or_else(|| EvalError::Beyond("array of percentiles".to_owned()))?;
        let mut arrays = BinaryBuilder::with_capacity(groups, groups * 64);
        let Some(fractions) = fractions else {
            (0..groups).for_each(|_| arrays.append_null());
            return Ok(Arc::new(arrays.finish()));
        };
        let results =
            fractions.iter().map(|fraction| self.results(values, *fraction)).collect::<Result<Vec<_>, _>>()?;
        // The binary format does not depend on settings.
        let settings = FormatSettings::default();
        let encoder = |results: &ArrayRef| ColumnEncoder::new(results, element.pg_type(), Format::Binary, &settings);
        let mut encoders: Vec<ColumnEncoder<'_>> = results.iter().map(encoder).collect();
        let (mut elements, mut whole) = (Vec::new(), Vec::new());
        for (group, places) in self.places.iter().enumerate() {
            if places.is_empty() {
                arrays.append_null();
                continue;
            }
            elements.clear();
            whole.clear();
            encoders.iter_mut().for_each(|encoder| encoder.write(group, &mut elements));
            write_vector(element, fractions.len(), fractions.contains(&None), &elements, &mut whole);
            arrays.append_value(&whole);
        }
        Ok(Arc::new(arrays.finish()))
    }
}

impl Accumulator for Chosen {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let (Some(values), None) = (values, &self.values) else {
            return Err(EvalError::Beyond("an ordered-set aggregate takes its rows in at once".to_owned()));
        };
        self.places.resize(groups.count, Vec::new());
        let is_null = null_bits(values);
        for row in (0..groups.rows).filter(|row| !is_null.value(*row)) {
            self.places[groups.ids.map_or(0, |ids| ids[row] as usize)].push(row as u32);
        }
        self.values = Some(values.clone());
        Ok(())
    }

    fn update_all(&mut self, groups: &Groups<'_>, values: &[ArrayRef]) -> Result<(), EvalError> {
        self.update(groups, values.first())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.places.resize(groups, Vec::new());
        let Some(values) = self.values.take() else {
            let result = match (&self.fractions, Element::of(self.pg_type)) {
                (Fractions::Many(_), Some(element)) => PgType::Array(element),
                _ => self.pg_type,
            };
            return Ok(crate::types::access::null_array(result, groups));
        };
        self.check_equals(&values)?;
        match &self.fractions {
            Fractions::One(fraction) => self.results(&values, *fraction),
            Fractions::Many(fractions) => self.arrays(&values, fractions.as_deref(), groups),
        }
    }

    fn bytes(&self) -> usize {
        self.places.iter().map(|places| places.len() * 4).sum()
    }
}

//! array_agg: every value of a group, NULLs included, as an array of one dimension (array_userfuncs.c array_agg_transfn).

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryBuilder};

use super::{Accumulator, Groups};
use crate::catalog::functions::EvalError;
use crate::types::array::write_vector;
use crate::types::encode::{ColumnEncoder, Format};
use crate::types::{Element, FormatSettings};

#[derive(Debug)]
pub(super) struct Arrays {
    element: Element,
    groups: Vec<Collected>,
    bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Collected {
    elements: Vec<u8>,
    count: usize,
    has_null: bool,
}

impl Arrays {
    pub(super) fn new(element: Element) -> Self {
        Self { element, groups: Vec::new(), bytes: 0 }
    }
}

impl Accumulator for Arrays {
    fn update(&mut self, groups: &Groups<'_>, values: Option<&ArrayRef>) -> Result<(), EvalError> {
        let Some(values) = values else { return Ok(()) };
        self.groups.resize(groups.count, Collected::default());
        // The binary format does not depend on settings.
        let settings = FormatSettings::default();
        let mut encoder = ColumnEncoder::new(values, self.element.pg_type(), Format::Binary, &settings);
        let nulls = values.logical_nulls();
        for row in 0..groups.rows {
            let group = &mut self.groups[groups.ids.map_or(0, |ids| ids[row] as usize)];
            let before = group.elements.len();
            encoder.write(row, &mut group.elements);
            group.count += 1;
            group.has_null |= nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            self.bytes += group.elements.len() - before;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, groups: usize) -> Result<ArrayRef, EvalError> {
        self.groups.resize(groups, Collected::default());
        let bytes = self.bytes + groups * 20;
        if i32::try_from(bytes).is_err() {
            return Err(EvalError::OverBudget("memory"));
        }
        let mut arrays = BinaryBuilder::with_capacity(groups, bytes);
        let mut whole = Vec::new();
        for group in &self.groups {
            if group.count == 0 {
                arrays.append_null();
                continue;
            }
            whole.clear();
            write_vector(self.element, group.count, group.has_null, &group.elements, &mut whole);
            arrays.append_value(&whole);
        }
        Ok(Arc::new(arrays.finish()))
    }

    fn bytes(&self) -> usize {
        self.bytes + self.groups.len() * size_of::<Collected>()
    }
}

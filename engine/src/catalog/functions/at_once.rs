//! How many bytes a statement may make in one step, before any operator has counted them: the texts of a batch, a column gathered.
//!
//! Per thread, since what makes them (a kernel, a gathering) knows nothing of the statement it is of.

use std::cell::Cell;

use super::EvalError;

thread_local! {
    static BYTES_MAX: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The bound of the statement that this thread runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct AtOnce {
    before: usize,
}

impl AtOnce {
    pub(crate) fn bounded(bytes_max: usize) -> Self {
        Self { before: BYTES_MAX.replace(bytes_max) }
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        BYTES_MAX.set(self.before);
    }
}

/// Whether so much may be made.
pub(crate) fn check(bytes: usize) -> Result<(), EvalError> {
    if bytes > BYTES_MAX.get() { Err(EvalError::OverBudget("memory")) } else { Ok(()) }
}

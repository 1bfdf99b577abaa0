//! How many bytes a statement may make in one step, before any operator has counted them: the texts of a batch, a column gathered; and
//! whether it has been cancelled, of which a long step cannot wait to hear until it is over.
//!
//! Per thread, since what makes them (a kernel, a gathering) knows nothing of the statement it is of.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::EvalError;

thread_local! {
    static BYTES_MAX: Cell<usize> = const { Cell::new(usize::MAX) };
    static CANCELLED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// The bound of the statement that this thread runs, and where it is told to stop, until this is dropped.
#[derive(Debug)]
pub(crate) struct AtOnce {
    before: (usize, Option<Arc<AtomicBool>>),
}

impl AtOnce {
    pub(crate) fn bounded(bytes_max: usize, cancelled: Arc<AtomicBool>) -> Self {
        Self { before: (BYTES_MAX.replace(bytes_max), CANCELLED.replace(Some(cancelled))) }
    }
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        BYTES_MAX.set(self.before.0);
        CANCELLED.set(self.before.1.take());
    }
}

/// Whether so much may be made.
pub(crate) fn check(bytes: usize) -> Result<(), EvalError> {
    if bytes > BYTES_MAX.get() { Err(EvalError::OverBudget("memory")) } else { Ok(()) }
}

/// An error once the statement has been cancelled.
pub(crate) fn go_on() -> Result<(), EvalError> {
    let is_cancelled =
        CANCELLED.with_borrow(|cancelled| cancelled.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)));
    if is_cancelled { Err(EvalError::OverBudget("cancelled")) } else { Ok(()) }
}

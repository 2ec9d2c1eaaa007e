//! The place where every step of the parser leaves the errors that it finds.

use std::cell::RefCell;

use crate::{Diagnostic, Diagnostics};

/// Collects errors. Shared by readers that are alive at the same time, hence the cell.
#[derive(Debug, Default)]
pub(crate) struct Sink(RefCell<Vec<Diagnostic>>);

impl Sink {
    /// Adds an error.
    pub(crate) fn report(&self, diagnostic: Diagnostic) {
        self.0.borrow_mut().push(diagnostic);
    }

    /// Returns the value, or adds the error.
    pub(crate) fn check<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|error| self.report(error)).ok()
    }

    /// Returns all errors, if there were any.
    pub(crate) fn into_diagnostics(self) -> Option<Diagnostics> {
        Diagnostics::new(self.0.into_inner())
    }
}

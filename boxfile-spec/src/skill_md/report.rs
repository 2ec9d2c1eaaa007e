//! Where every step leaves the errors and warnings that it finds.

use std::cell::RefCell;

use crate::Diagnostic;

/// How many of each are kept: more say no more, and a hostile file could have one for each line.
const MOST_KEPT: usize = 1000;

/// Collects errors and warnings. Shared by readers that are alive at the same time, hence the
/// cells.
#[derive(Debug, Default)]
pub(super) struct Report {
    errors: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Vec<Diagnostic>>,
}

impl Report {
    /// Adds an error.
    pub(super) fn error(&self, error: Diagnostic) {
        push(&self.errors, error);
    }

    /// Adds a warning.
    pub(super) fn warning(&self, warning: Diagnostic) {
        push(&self.warnings, warning);
    }

    /// Tells whether a further error would be kept.
    pub(super) fn keeps_errors(&self) -> bool {
        self.errors.borrow().len() < MOST_KEPT
    }

    /// Tells whether a further warning would be kept.
    pub(super) fn keeps_warnings(&self) -> bool {
        self.warnings.borrow().len() < MOST_KEPT
    }

    /// Returns the value, or adds the error.
    pub(super) fn check<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|error| self.error(error)).ok()
    }

    /// Returns the errors and the warnings, the warnings sorted by position.
    pub(super) fn into_parts(self) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(Diagnostic::span);
        (self.errors.into_inner(), warnings)
    }
}

fn push(to: &RefCell<Vec<Diagnostic>>, diagnostic: Diagnostic) {
    let mut all = to.borrow_mut();
    if all.len() < MOST_KEPT {
        all.push(diagnostic);
    }
}

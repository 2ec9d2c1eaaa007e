//! Collects the errors that the steps of a parser find.

use std::cell::{Ref, RefCell};

use crate::{Diagnostic, Severity};

/// The maximum number of errors that are kept per text. More do not help a user, and a hostile file could have one per
/// byte.
pub const MAX_KEPT: usize = 1000;

/// Collects errors and warnings. Several parsers share one sink at the same time, hence the cell.
#[derive(Debug, Default)]
pub struct Sink {
    found: RefCell<Vec<Diagnostic>>,
    lenient: bool,
}

impl Sink {
    /// Creates a sink. A lenient sink ignores errors about missing declarations: see [`Self::report_missing`].
    pub fn new(lenient: bool) -> Self {
        Self { lenient, ..Self::default() }
    }

    /// Adds an error or a warning.
    pub fn report(&self, diagnostic: Diagnostic) {
        let mut found = self.found.borrow_mut();
        // The last entry is reserved for an error: otherwise, warnings could fill the sink, and a text with an error
        // would seem valid.
        let most = MAX_KEPT - usize::from(diagnostic.severity() == Severity::Warning);
        if found.len() < most {
            found.push(diagnostic);
        }
    }

    /// Adds an error about a missing declaration. A lenient sink ignores it, because the declaration may be in a part
    /// that cannot be parsed.
    pub fn report_missing(&self, diagnostic: Diagnostic) {
        if !self.lenient {
            self.report(diagnostic);
        }
    }

    /// Returns whether the sink is full, so that further checks are useless.
    pub fn is_full(&self) -> bool {
        self.found().len() >= MAX_KEPT
    }

    /// Returns the value, or adds the error.
    pub fn check<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|error| self.report(error)).ok()
    }

    /// Like [`Self::check`], for an expensive check: it is skipped if the sink is full.
    pub fn attempt<T>(&self, check: impl FnOnce() -> Result<T, Diagnostic>) -> Option<T> {
        if self.is_full() { None } else { self.check(check()) }
    }

    /// Returns the diagnostics that were reported until now.
    pub fn found(&self) -> Ref<'_, Vec<Diagnostic>> {
        self.found.borrow()
    }

    /// Returns all diagnostics.
    pub fn into_found(self) -> Vec<Diagnostic> {
        self.found.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn warnings_leave_a_place_for_an_error() {
        let sink = Sink::default();
        for _ in 0..2 * MAX_KEPT {
            sink.report(Diagnostic::warning("odd", Span::default(), ""));
        }
        sink.report(Diagnostic::new("wrong", Span::default(), ""));
        assert_eq!(sink.found().last().map(Diagnostic::severity), Some(Severity::Error));
        assert!(sink.is_full());
    }
}

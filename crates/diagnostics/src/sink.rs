//! Collects the errors that the steps of the parser find.

use std::cell::{Ref, RefCell};

use crate::{Diagnostic, Severity};

/// How many errors of a text are kept at most: more say no more, and a hostile file could have one
/// for each byte.
pub const MAX_KEPT: usize = 1000;

/// Collects errors and warnings. Shared by readers that are alive at the same time, hence the
/// cells.
#[derive(Debug, Default)]
pub struct Sink {
    found: RefCell<Vec<Diagnostic>>,
    lenient: bool,
}

impl Sink {
    /// Makes a sink that, if it is lenient, does not take what is missing for an error: see
    /// [`Self::report_missing`].
    pub fn new(lenient: bool) -> Self {
        Self { lenient, ..Self::default() }
    }

    /// Adds an error or warning.
    pub fn report(&self, diagnostic: Diagnostic) {
        let mut found = self.found.borrow_mut();
        // The last place is for an error: warnings must not hide that there is one.
        let most = MAX_KEPT - usize::from(diagnostic.severity() == Severity::Warning);
        if found.len() < most {
            found.push(diagnostic);
        }
    }

    /// Adds the error that something is missing, unless it may be in what cannot be read.
    pub fn report_missing(&self, diagnostic: Diagnostic) {
        if !self.lenient {
            self.report(diagnostic);
        }
    }

    /// Returns whether nothing more is kept, so that nothing more need be looked for.
    pub fn is_full(&self) -> bool {
        self.found().len() >= MAX_KEPT
    }

    /// Returns the value, or adds the error.
    pub fn check<T>(&self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|error| self.report(error)).ok()
    }

    /// As [`Self::check`], for a check that takes time: once the sink is full, it is not made.
    pub fn attempt<T>(&self, check: impl FnOnce() -> Result<T, Diagnostic>) -> Option<T> {
        if self.is_full() { None } else { self.check(check()) }
    }

    /// Returns what was found so far.
    pub fn found(&self) -> Ref<'_, Vec<Diagnostic>> {
        self.found.borrow()
    }

    /// Returns all that was found.
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

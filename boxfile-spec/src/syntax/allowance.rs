//! Limits the number of declarations of a Boxfile, in all of its files together.
//!
//! A text of 1 MiB has room for half a million declarations, arguments and properties. In memory, each takes some
//! hundred bytes, and as many again for each profile. So they are counted while the text is read, and those beyond the
//! limit are not kept.

use diagnostics::{Diagnostic, Span};

/// The greatest number of declarations, arguments and properties of a Boxfile, with all its base files. In TOML, the
/// names of keys and headers and the items of lists are counted.
pub const MAX_DECLARED: usize = 50_000;

/// The number of declarations, arguments and properties that a Boxfile may still have.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: usize,
    /// The first span beyond the limit.
    exceeded: Option<Span>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: MAX_DECLARED, exceeded: None }
    }
}

impl Allowance {
    /// Counts the item at `place`. Returns whether it is within the limit.
    pub(crate) fn take(&mut self, place: Span) -> bool {
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or_default();
        if left.is_none() {
            self.exceeded.get_or_insert(place);
        }
        left.is_some()
    }

    /// Returns whether the limit is exceeded.
    pub(crate) const fn is_exceeded(&self) -> bool {
        self.exceeded.is_some()
    }

    /// Returns the error of the first item beyond the limit.
    pub(super) fn error(&self) -> Option<Diagnostic> {
        let message = format!(
            "a Boxfile has at most {MAX_DECLARED} declarations, arguments and properties, with all that \
             it extends"
        );
        let label = "one too many, and nothing after it is read";
        let help = "put data into files of the checkout, and name them with `file` or `env-file`";
        self.exceeded.map(|place| Diagnostic::new(message, place, label).with_help(help))
    }
}

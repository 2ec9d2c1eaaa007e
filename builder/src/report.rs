//! The diagnostics of a text of the checkout, with the text.

use boxfile_spec::{Diagnostic, Diagnostics, Sources};

/// The diagnostics of a text file of the checkout, with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The text.
    pub sources: Sources,
    /// The diagnostics; at least one.
    pub found: Vec<Diagnostic>,
}

impl Report {
    /// Returns a report, if something was found.
    pub fn new(sources: Sources, found: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        let found: Vec<Diagnostic> = found.into_iter().collect();
        (!found.is_empty()).then_some(Self { sources, found })
    }

    /// Shows all of it, as a person reads it.
    pub fn render(&self) -> String {
        Diagnostics::new(self.found.clone())
            .map(|diagnostics| diagnostics.render(&self.sources))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use boxfile_spec::{Source, Span};

    use super::*;

    #[test]
    fn a_report_has_something_to_say() {
        let sources = Sources::single(Source::new("a.env", "A\nB\n"));
        assert_eq!(Report::new(sources.clone(), []), None);
        let found = ["first", "second"].map(|it| Diagnostic::new(it, Span::default(), "here"));
        let text = Report::new(sources, found).unwrap().render();
        assert!(text.starts_with("error: first\n  --> a.env:1:1\n"), "{text}");
        assert!(text.contains("error: second\n"), "{text}");
    }
}

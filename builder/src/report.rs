//! The diagnostics of a file of the checkout, with its text.

use boxfile_spec::{Diagnostic, Sources};

/// The diagnostics of a text file of the checkout, with the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The text.
    pub sources: Sources,
    /// The diagnostics, sorted by position; at least one.
    pub found: Vec<Diagnostic>,
}

impl Report {
    /// Returns a report, if something was found.
    pub fn new(sources: Sources, found: impl IntoIterator<Item = Diagnostic>) -> Option<Self> {
        let mut found: Vec<Diagnostic> = found.into_iter().collect();
        found.sort_by_key(Diagnostic::span);
        (!found.is_empty()).then_some(Self { sources, found })
    }

    /// Shows warnings as a person reads them.
    pub fn render(&self) -> String {
        let shown = self.found.iter().map(|it| it.render(&self.sources));
        error_report::first(shown, "\n\n", "more warnings")
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
        let warning =
            |line: u8| Diagnostic::warning(format!("at {line}"), Span::at(line.into(), 0), "");
        let text = |lines: &[u8]| {
            Report::new(sources.clone(), lines.iter().copied().map(warning)).unwrap().render()
        };
        let two = text(&[2, 0]);
        assert!(two.starts_with("warning: at 0\n  --> a.env:1:1\n"), "{two}");
        assert!(two.contains("\n\nwarning: at 2\n  --> a.env:2:1\n"), "{two}");
        let many = text(&[0; 52]);
        assert!(many.ends_with("\n\nand 2 more warnings"), "{many}");
    }
}

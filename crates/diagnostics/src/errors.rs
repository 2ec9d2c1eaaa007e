//! Error messages in Markdown tables.

use crate::{Diagnostic, Span};

/// A table in Markdown. Each row has an error's name, message, label and help. In these texts, `{}` stands for the
/// subject of the error.
///
/// # Examples
/// ```
/// use diagnostics::{ErrorTable, Span};
///
/// const PAGE: &str = "| open | a quote is not closed | opened here | write `{}` after the value |";
/// const ERRORS: ErrorTable = ErrorTable::new(PAGE);
///
/// let error = ERRORS.about("open", "'", Span::at(4, 1));
/// assert_eq!(error.message(), "a quote is not closed");
/// assert_eq!(error.help(), Some("write `'` after the value"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ErrorTable(&'static str);

impl ErrorTable {
    /// Creates a table from the text of a page with one table.
    pub const fn new(page: &'static str) -> Self {
        Self(page)
    }

    /// Returns the text of the page.
    pub const fn page(&self) -> &'static str {
        self.0
    }

    /// Creates the error with this name.
    pub fn at(&self, name: &str, span: Span) -> Diagnostic {
        self.about(name, "", span)
    }

    /// Creates the error with this name and a subject.
    pub fn about(&self, name: &str, subject: &str, span: Span) -> Diagnostic {
        let row =
            |line: &'static str| line.strip_prefix("| ")?.strip_prefix(name)?.strip_prefix(" | ");
        let row = self.0.lines().find_map(row);
        debug_assert!(row.is_some(), "no error is named `{name}`");
        let cells = row.unwrap_or(name).trim_end_matches(" |").split(" | ");
        let mut cells = cells.map(|cell| cell.replace("{}", subject));
        let mut next = || cells.next().unwrap_or_default();
        Diagnostic::new(next(), span, next()).with_help(next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_words_of_its_row() {
        let table = ErrorTable(
            "| name | message | label | help |\n| ab | no {} | {} | b |\n| a | x | y | z |\n",
        );
        let error = table.about("ab", "{}", Span::at(1, 2));
        let expected = Diagnostic::new("no {}", Span::at(1, 2), "{}").with_help("b");
        assert_eq!(error, expected);
        assert_eq!(table.at("a", Span::default()).message(), "x");
    }
}

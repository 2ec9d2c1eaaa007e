//! The findings in the files of the checkout.

use box_contract::ErrorCode;
use cli_common::Problem;
use diagnostics::{Diagnostic, MAX_KEPT, Sources, Span};

/// The rendered findings in a text file of the checkout. The text is not kept, because hundreds of skills may have a
/// mebibyte each.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    file: String,
    problems: Vec<Problem>,
}

impl Report {
    /// Returns a report about a text. `None` without findings.
    pub fn new(sources: &Sources, found: &[Diagnostic]) -> Option<Self> {
        let file = sources.as_slice().first().map(|it| it.name.clone()).unwrap_or_default();
        let problems = Problem::of_diagnostics(ErrorCode::FileInvalid, found, sources);
        (!problems.is_empty()).then_some(Self { file, problems })
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the findings, sorted by position; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Renders warnings for a terminal.
    pub fn render(&self) -> String {
        cli_common::problem::first(self.problems.iter().map(Problem::text), "\n\n", "more warnings")
    }
}

/// The warnings about several files. The first [`MAX_KEPT`] are kept.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    list: Vec<Report>,
    count: usize,
}

impl Reports {
    /// Adds the warnings about a text.
    pub(crate) fn add(&mut self, sources: &Sources, mut found: Vec<Diagnostic>) {
        // The last slot is for the warning that there are more.
        let Some(left) = (MAX_KEPT - 1).checked_sub(self.count) else { return };
        found.sort_by_key(Diagnostic::span);
        if found.len() > left {
            found.truncate(left);
            let message =
                format!("only the first {} warnings about files are listed", MAX_KEPT - 1);
            found.push(Diagnostic::warning(message, Span::default(), "there are more"));
        }
        self.count += found.len();
        self.list.extend(Report::new(sources, &found));
    }

    /// Returns one report for each text with a warning.
    pub(crate) fn into_list(self) -> Vec<Report> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use diagnostics::Source;

    use super::*;

    fn warning(line: usize) -> Diagnostic {
        Diagnostic::warning(format!("at {line}"), Span::at(line, 0), "")
    }

    #[test]
    fn a_report_has_something_to_say() {
        let sources = Sources::single(Source::new("a.env", "A\nB\n"));
        assert_eq!(Report::new(&sources, &[]), None);
        let text = |lines: &[usize]| {
            let found: Vec<_> = lines.iter().copied().map(warning).collect();
            Report::new(&sources, &found).unwrap().render()
        };
        let two = text(&[2, 0]);
        assert!(two.starts_with("warning: at 0\n  --> a.env:1:1\n"), "{two}");
        assert!(two.contains("\n\nwarning: at 2\n  --> a.env:2:1\n"), "{two}");
        let many = text(&[0; 52]);
        assert!(many.ends_with("\n\nand 2 more warnings"), "{many}");
    }

    #[test]
    fn of_the_warnings_about_many_files_the_first_are_kept() {
        let sources = Sources::single(Source::new("a", "A\nB\n"));
        let counts = |added: usize| {
            let mut reports = Reports::default();
            (0..added).for_each(|_| reports.add(&sources, vec![warning(2), warning(0)]));
            let list = reports.into_list();
            (list.len(), list.iter().map(|it| it.problems.len()).sum::<usize>(), list)
        };
        assert_eq!((counts(499).0, counts(499).1), (499, 998));
        let (reports, warnings, list) = counts(MAX_KEPT);
        assert_eq!((reports, warnings), (500, MAX_KEPT));
        let last = list.last().unwrap().render();
        assert!(last.contains("only the first 999 warnings about files are listed"), "{last}");
        assert!(last.contains("at 0") && !last.contains("at 2"), "{last}");
    }
}

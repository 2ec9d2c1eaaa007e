//! Finds the frontmatter by its lines: `---` inside of a value is not its end.

use std::ops::Range;

use crate::{Diagnostic, Span};

/// The line that begins and ends the frontmatter.
const FENCE: &str = "---";
const FORM: &str = "begin the file with the lines `---`, `name: …`, `description: …` and `---`";

/// Where the parts of the file are, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frontmatter {
    /// The lines between the two fences.
    pub(super) yaml: Range<usize>,
    /// The start of the line behind the second fence.
    pub(super) body: usize,
}

/// Finds the frontmatter.
pub(super) fn find(text: &str) -> Result<Frontmatter, Diagnostic> {
    let mut lines = Lines { text, at: 0 };
    let first = lines.next().unwrap_or((0, ""));
    if first.1 != FENCE {
        return Err(no_start(first));
    }
    let start = lines.at;
    let mut near = None;
    while let Some((at, line)) = lines.next() {
        if line == FENCE {
            return Ok(Frontmatter { yaml: start..at, body: lines.at });
        }
        if line.trim() == FENCE {
            near.get_or_insert(Span::between(at, at + line.len()));
        }
    }
    Err(no_end(near))
}

/// Goes through the lines: where each starts, and its text without the line end.
struct Lines<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Iterator for Lines<'t> {
    type Item = (usize, &'t str);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let line = self.text[start..].split_inclusive('\n').next()?;
        self.at += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        Some((start, line.strip_suffix('\r').unwrap_or(line)))
    }
}

fn no_start((at, line): (usize, &str)) -> Diagnostic {
    let span = Span::between(at, at + line.len());
    let (label, help) = if line.starts_with('\u{feff}') {
        ("a byte order mark stands in front of it", "save the file as UTF-8 without one")
    } else if line.trim() == FENCE {
        ("with blanks", "write `---` and nothing else on the first line")
    } else {
        ("not `---`", FORM)
    };
    Diagnostic::new("the file does not begin with the line `---`", span, label).with_help(help)
}

fn no_end(near: Option<Span>) -> Diagnostic {
    let span = Span::between(0, FENCE.len());
    let error = Diagnostic::new("the frontmatter has no end", span, "begins here");
    match near {
        Some(near) => error
            .with_label(near, "this line has blanks")
            .with_help("write `---` and nothing else on the line that ends it"),
        None => error.with_help("write `---` on a line of its own behind the last key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_of_its_own_ends_the_frontmatter() {
        let text = "---\na: x --- y\nb: |\n  ---\n  z\n--- no\n---\n# Body\n---\n";
        let found = find(text).unwrap();
        assert_eq!(&text[found.yaml], "a: x --- y\nb: |\n  ---\n  z\n--- no\n");
        assert_eq!(&text[found.body..], "# Body\n---\n");
    }

    #[test]
    fn it_may_be_empty_and_the_body_missing() {
        assert_eq!(find("---\n---"), Ok(Frontmatter { yaml: 4..4, body: 7 }));
        assert_eq!(find("---\r\na: b\r\n---\r\n"), Ok(Frontmatter { yaml: 5..11, body: 16 }));
    }
}

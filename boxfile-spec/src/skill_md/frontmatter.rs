//! Finds the frontmatter by its lines: `---` inside of a value is not its end.

use crate::cursor::lines;
use crate::{Diagnostic, Span};

/// The line that begins and ends the frontmatter.
const FENCE: &str = "---";
const FORM: &str = "begin the file with the lines `---`, `name: …`, `description: …` and `---`";

/// Returns the start of the line that ends the frontmatter.
pub(super) fn end(text: &str) -> Result<usize, Diagnostic> {
    let mut lines = lines(text).map(|(start, line)| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        (start, line.strip_suffix('\r').unwrap_or(line))
    });
    let first = lines.next().map_or("", |(_, line)| line);
    if first != FENCE {
        return Err(no_start(first));
    }
    let mut near = None;
    for (start, line) in lines {
        if line == FENCE {
            return Ok(start);
        }
        if line.trim() == FENCE {
            near.get_or_insert(Span::at(start, line.len()));
        }
    }
    Err(no_end(near))
}

fn no_start(line: &str) -> Diagnostic {
    let (label, help) = if line.starts_with('\u{feff}') {
        ("a byte order mark precedes it", "save the file as UTF-8 without one")
    } else if line.trim() == FENCE {
        ("with blanks", "write `---` and nothing else on the first line")
    } else {
        ("not `---`", FORM)
    };
    let message = "the file does not begin with the line `---`";
    Diagnostic::new(message, Span::at(0, line.len()), label).with_help(help)
}

fn no_end(near: Option<Span>) -> Diagnostic {
    let span = Span::at(0, FENCE.len());
    let error = Diagnostic::new("the frontmatter has no end", span, "begins here");
    match near {
        Some(near) => error
            .with_label(near, "this line has blanks")
            .with_help("write `---` and nothing else on the line that ends it"),
        None => error.with_help("write `---` on a line of its own after the last key"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_of_its_own_ends_the_frontmatter() {
        let text = "---\na: x --- y\nb: |\n  ---\n  z\n--- no\n---\n# Body\n---\n";
        assert_eq!(&text[end(text).unwrap()..], "---\n# Body\n---\n");
    }

    #[test]
    fn it_may_be_empty_and_the_body_missing() {
        assert_eq!(end("---\n---"), Ok(4));
        assert_eq!(end("---\r\na: b\r\n---\r\n"), Ok(11));
    }
}

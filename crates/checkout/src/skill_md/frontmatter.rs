//! Finds the frontmatter by lines, because a `---` inside a value does not end it.

use crate::skill_md::ERRORS;
use diagnostics::cursor::{BYTE_ORDER_MARK, lines};
use diagnostics::{Diagnostic, Span};

/// The first and the last line of the frontmatter.
const FENCE: &str = "---";

/// Returns the start of the line that ends the frontmatter.
pub(super) fn end(text: &str) -> Result<usize, Diagnostic> {
    let mut lines = lines(text).map(|(start, line)| {
        let line = line.strip_suffix('\n').unwrap_or(line);
        (start, line.strip_suffix('\r').unwrap_or(line))
    });
    let first = lines.next().map_or("", |(_, line)| line);
    let start = start(text);
    if first.get(start.offset..) != Some(FENCE) {
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
    Err(no_end(start, near))
}

/// Returns the span of the line that begins the frontmatter. A byte order mark may precede it.
pub(super) fn start(text: &str) -> Span {
    let offset = if text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    Span::at(offset, FENCE.len())
}

fn no_start(line: &str) -> Diagnostic {
    let name = if line.trim() == FENCE { "start-blanks" } else { "start" };
    ERRORS.at(name, Span::at(0, line.len()))
}

fn no_end(span: Span, near: Option<Span>) -> Diagnostic {
    match near {
        Some(near) => ERRORS.at("end-blanks", span).with_label(near, "this line has whitespace"),
        None => ERRORS.at("end", span),
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

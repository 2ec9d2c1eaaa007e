//! Finds the frontmatter by its lines: `---` inside of a value is not its end.

use crate::cursor::lines;
use crate::errors::SKILL_MD;
use crate::{Diagnostic, Span};

/// The line that begins and ends the frontmatter.
const FENCE: &str = "---";

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
    let name = if line.starts_with('\u{feff}') {
        "mark"
    } else if line.trim() == FENCE {
        "start-blanks"
    } else {
        "start"
    };
    SKILL_MD.at(name, Span::at(0, line.len()))
}

fn no_end(near: Option<Span>) -> Diagnostic {
    let span = Span::at(0, FENCE.len());
    match near {
        Some(near) => SKILL_MD.at("end-blanks", span).with_label(near, "this line has blanks"),
        None => SKILL_MD.at("end", span),
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

//! Finds traces of merges, editors and web pages in edited text.
//!
//! A reviewer must see the same text in an editor as the parser. No character may be invisible, or make code look like
//! a comment or a comment look like code ([Trojan Source](https://trojansource.codes),
//! [CVE-2021-42574](https://nvd.nist.gov/vuln/detail/CVE-2021-42574)).

use safe_text::hidden;

use crate::cursor::lines;
use crate::diagnostic::named_invisible;
use crate::errors::ErrorTable;
use crate::sink::MAX_KEPT;
use crate::{Diagnostic, Span};

/// The errors that apply to any edited text.
const TEXT: ErrorTable = ErrorTable::new(include_str!("edited.md"));

/// The prefixes of conflict markers, as `git merge` and `jj` write them.
const CONFLICT_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// Returns whether a line begins with a conflict marker.
pub fn is_marker(line: &str) -> bool {
    CONFLICT_MARKERS.iter().any(|marker| line.starts_with(marker))
}

/// Returns the span of the first conflict marker in a text.
pub fn conflict(text: &str) -> Option<Span> {
    let (start, line) = lines(text).find(|(_, line)| is_marker(line))?;
    Some(Span::at(start, line.trim_end().len()))
}

/// Returns the error for unresolved merge conflicts in a text, if there are any.
pub fn unmerged(text: &str) -> Option<Diagnostic> {
    conflict(text).map(|line| TEXT.at("conflict", line))
}

/// Returns the faults of a settings file that are found before parsing: conflict markers and hidden characters.
pub fn text_faults(text: &str) -> Vec<Diagnostic> {
    unmerged(text).map_or_else(|| hidden_characters(text, None), |error| vec![error])
}

/// Returns an error for the first hidden character of each line, for at most [`MAX_KEPT`] lines. `escape` formats a
/// character's code as an escape in a quoted string. It is `None` if the syntax has no escapes.
pub fn hidden_characters(text: &str, escape: Option<fn(u32) -> String>) -> Vec<Diagnostic> {
    let mut end = 0;
    let first_of_line = hidden(text).filter(move |(at, _)| {
        let is_first = *at >= end;
        if is_first {
            end = text[*at..].find('\n').map_or(text.len(), |length| at + length);
        }
        is_first
    });
    let error = |(at, c): (usize, char)| hidden_character(Span::at(at, c.len_utf8()), c, escape);
    first_of_line.take(MAX_KEPT).map(error).collect()
}

/// Returns the error for a hidden character.
pub fn hidden_character(span: Span, c: char, escape: Option<fn(u32) -> String>) -> Diagnostic {
    if c == '\r' {
        return TEXT.at("return", span);
    }
    let message = format!("{} is not allowed", named_invisible(c));
    let escape = escape.map_or_else(String::new, |escape| {
        format!("; in a quoted string it is written `{}`", escape(u32::from(c)))
    });
    Diagnostic::new(message, span, "here").with_help(format!("remove it{escape}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_and_table_rows_match() {
        let code = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        assert_eq!(testkit::error_table::check(TEXT.page(), &code, "TEXT"), 2);
    }

    fn places(text: &str) -> Vec<usize> {
        hidden_characters(text, None).iter().map(|it| it.span().offset).collect()
    }

    #[test]
    fn each_line_with_something_hidden_is_named_once() {
        assert_eq!(places("a\n// \u{202e}b\u{2066}\nc\u{200b}\n"), [5, 14]);
        assert_eq!(places("a\rb\r\nc\td\u{7}"), [1, 8]);
    }

    #[test]
    fn a_mebibyte_of_hidden_characters_is_read_at_once() {
        assert_eq!(places(&"\u{7}".repeat(1 << 20)), [0]);
        assert_eq!(places(&"\u{7}\n".repeat(1 << 19)).len(), MAX_KEPT);
    }

    #[test]
    fn what_scripts_editors_and_emoji_need_stays() {
        for text in ["\u{feff}a\r\nb\tc\n", "می‌خواهم", "👩‍🔬 ❤️", "e\u{301}漢\u{a0}\u{3000}", ""]
        {
            assert_eq!(places(text), [0_usize; 0], "{text}");
        }
    }

    #[test]
    fn a_merge_leaves_lines_of_these() {
        let text = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n";
        assert_eq!(conflict(text), Some(Span::at(2, 12)));
        assert_eq!(conflict("a <<<<<<< b\n ======="), None);
    }
}

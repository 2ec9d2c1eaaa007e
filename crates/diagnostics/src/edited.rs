//! Traces of merges, editors and web pages in a text that people edit.
//!
//! A reviewer sees in an editor what is read: no character of the text is invisible, and none makes code pass for a
//! comment, or a comment for code ([Trojan Source](https://trojansource.codes), CVE-2021-42574).

use safe_text::hidden;

use crate::cursor::lines;
use crate::diagnostic::named_invisible;
use crate::errors::ErrorTable;
use crate::sink::MAX_KEPT;
use crate::{Diagnostic, Span};

/// The errors in any text that people edit.
const TEXT: ErrorTable = ErrorTable::new(include_str!("edited.md"));

/// How the lines begin that `git merge` and `jj` leave in a file with conflicts.
const CONFLICT_MARKERS: [&str; 4] = ["<<<<<<<", "|||||||", "=======", ">>>>>>>"];

/// Returns whether a line, or the name that it begins with, is one that a merge left.
pub fn is_marker(line: &str) -> bool {
    CONFLICT_MARKERS.iter().any(|marker| line.starts_with(marker))
}

/// Returns the first line that a merge with conflicts left in a text.
pub fn conflict(text: &str) -> Option<Span> {
    let (start, line) = lines(text).find(|(_, line)| is_marker(line))?;
    Some(Span::at(start, line.trim_end().len()))
}

/// Returns the error of a text that a merge left with conflicts, if it is one.
pub fn unmerged(text: &str) -> Option<Diagnostic> {
    conflict(text).map(|line| TEXT.at("conflict", line))
}

/// Returns the faults of a text of settings that are looked for before it is read: lines that a merge left, and
/// characters that hide something.
pub fn text_faults(text: &str) -> Vec<Diagnostic> {
    unmerged(text).map_or_else(|| hidden_characters(text, None), |error| vec![error])
}

/// Returns an error for the first character of each line that hides something, for at most [`MAX_KEPT`] lines. `escape`
/// writes the number of a character as an escape of a text in quotes; the syntax has no escapes if it is `None`.
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

/// Returns the error of a character that hides something.
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

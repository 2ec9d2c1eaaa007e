//! Says in the words of a Boxfile what the `kdl` crate found wrong on a line.

use std::ops::Range;

use kdl::{KdlEntry, KdlNode};

use super::lexeme::{self, is_blank};
use crate::cursor::Cursor;
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::{Diagnostic, Span};

/// The characters that a bare word cannot contain (KDL 2.0, section 3.9 "Identifier String").
const RESERVED: [char; 12] = ['\\', '/', '(', ')', '{', '}', '[', ']', ';', '"', '#', '='];

/// What there is to say about a word that cannot be read.
struct Story {
    message: String,
    label: &'static str,
    help: String,
}

/// What may be wrong with a word, in the order in which it is looked for.
const RULES: [fn(&str) -> Option<Story>; 9] = [
    invisible_character,
    missing_side,
    behind_text,
    malformed_text,
    bare_keyword,
    unknown_keyword,
    foreign_punctuation,
    not_a_number,
    needs_quotes,
];

/// Reports what is wrong in a header, which starts at `base` and which the `kdl` crate refuses.
///
/// Its diagnostics often point at the whole line, and at one error of several. So each word is
/// tried by itself.
pub(super) fn report(header: &str, base: usize, sink: &Sink) {
    let words = Words { header, cursor: Cursor::new(header) };
    let mut found = false;
    for range in words {
        let Some((range, story)) = explain(header, range) else { continue };
        let bracket = header[range.clone()].starts_with(['[', '(']);
        let span = Span::between(base + range.start, base + range.end);
        sink.report(Diagnostic::new(story.message, span, story.label).with_help(story.help));
        found = true;
        // What stands in brackets is wrong because of them.
        if bracket {
            break;
        }
    }
    if !found {
        let span = Span::at(base, header.len());
        sink.report(
            Diagnostic::new("this line cannot be read", span, "not a declaration").with_help(
                "a declaration is a name, values and properties: `health \"tcp\" port=80`",
            ),
        );
    }
}

/// Returns the part of a word that cannot be read, and what there is to say about it.
fn explain(header: &str, range: Range<usize>) -> Option<(Range<usize>, Story)> {
    let word = &header[range.clone()];
    if range.start == 0 {
        return KdlNode::parse(word).is_err().then(|| (range, nameless(word)));
    }
    if KdlEntry::parse(word).is_ok() {
        return None;
    }
    let range = match word.split_once('=') {
        Some((name, value)) if !value.trim().is_empty() && KdlEntry::parse(name).is_ok() => {
            range.end - value.trim_start().len()..range.end
        }
        _ => range,
    };
    let word = &header[range.clone()];
    let story = RULES.iter().find_map(|rule| rule(word)).unwrap_or_else(|| Story {
        message: format!("{} cannot be read", quote(word)),
        label: "here",
        help: format!("write a text in quotes: {}", in_quotes(word)),
    });
    Some((range, story))
}

/// The words of a header: its name, its arguments, and its properties with their values.
struct Words<'h> {
    header: &'h str,
    cursor: Cursor<'h>,
}

impl Iterator for Words<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let cursor = &mut self.cursor;
        while cursor.eat_class(is_blank) || cursor.eat("/-") {}
        let start = cursor.at();
        while let Some(c) = cursor.peek() {
            if !is_blank(c) {
                // What is not closed, the outline has reported: such a header does not get here.
                lexeme::step(cursor).ok();
                continue;
            }
            // Space around a `=` belongs to the property; in front of the first word it cannot.
            let joined = start > 0
                && (self.header[start..cursor.at()].ends_with('=')
                    || cursor.rest().trim_start_matches(is_blank).starts_with('='));
            if !joined {
                break;
            }
            while cursor.eat_class(is_blank) {}
        }
        (cursor.at() > start).then(|| start..cursor.at())
    }
}

fn nameless(word: &str) -> Story {
    invisible_character(word).unwrap_or_else(|| Story {
        message: format!("{} cannot be the name of a declaration", quote(word)),
        label: "not a name",
        help: "a declaration begins with its name, such as `agent` or `image`".to_owned(),
    })
}

fn invisible_character(word: &str) -> Option<Story> {
    // KDL 2.0, section 3.19 "Disallowed Literal Code Points".
    let disallowed = |c: &char| {
        matches!(c, '\u{0}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{feff}'
            | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let code = u32::from(word.chars().find(disallowed)?);
    Some(Story {
        message: format!("the invisible character U+{code:04X} is not allowed"),
        label: "in this text",
        help: format!("remove it; in a text in quotes it is written `\\u{{{code:x}}}`"),
    })
}

fn missing_side(word: &str) -> Option<Story> {
    (word.starts_with('=') || word.ends_with('=')).then(|| Story {
        message: "`=` must stand between a name and a value".to_owned(),
        label: "one of them is missing",
        help: "write `name=\"value\"`, or remove the `=`".to_owned(),
    })
}

fn behind_text(word: &str) -> Option<Story> {
    let mut cursor = Cursor::new(word);
    let text = lexeme::text(&mut cursor).unwrap_or(false);
    // Three quotes open a text over several lines, whatever follows them.
    let touches = text && !cursor.rest().is_empty() && !word.starts_with("\"\"\"");
    touches.then(|| Story {
        message: format!("{} touches the text in front of it", quote(cursor.rest())),
        label: "two things without a space",
        help: "put a space behind the closing quote; inside a text, a quote is written `\\\"`"
            .to_owned(),
    })
}

fn malformed_text(word: &str) -> Option<Story> {
    let raw = word.trim_start_matches('#');
    let help = if raw.starts_with("\"\"\"") {
        "a text over several lines begins behind `\"\"\"` and a line end, and no line of it is \
         indented less than the closing `\"\"\"`"
    } else if word.starts_with('"') {
        "a backslash begins an escape such as `\\n`; write `\\\\` for a backslash"
    } else if raw.starts_with('"') {
        "a raw text is written `#\"text\"#`, with as many `#` at its end as at its start"
    } else {
        return None;
    };
    let message = "this text cannot be read".to_owned();
    Some(Story { message, label: "malformed", help: help.to_owned() })
}

fn bare_keyword(word: &str) -> Option<Story> {
    let help = match word {
        "true" | "false" => format!("write `#{word}`, or `\"{word}\"` for the text"),
        "null" | "inf" | "-inf" | "nan" => format!("write `\"{word}\"` for the text"),
        _ => return None,
    };
    let message = format!("`{word}` is neither a text nor a truth value");
    Some(Story { message, label: "a bare keyword", help })
}

fn unknown_keyword(word: &str) -> Option<Story> {
    word.starts_with('#').then(|| Story {
        message: format!("{} is no keyword", quote(word)),
        label: "unknown",
        help: "write `#true` or `#false`, and anything else in quotes; a comment begins with `//`"
            .to_owned(),
    })
}

fn not_a_number(word: &str) -> Option<Story> {
    let digits = word.trim_start_matches(['+', '-', '.']);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() > 30 {
        let message = "this number is too large".to_owned();
        let help = "no number in a Boxfile is greater than 4194304".to_owned();
        return Some(Story { message, label: "too large", help });
    }
    Some(Story {
        message: format!("{} is not a number", quote(word)),
        label: "begins like a number",
        help: format!("write a text in quotes: {}", in_quotes(word)),
    })
}

fn foreign_punctuation(word: &str) -> Option<Story> {
    let at_start = word.chars().next().filter(|c| "[](),\\".contains(*c));
    let at_end = word.chars().next_back().filter(|c| "]),".contains(*c));
    let first = at_start.or(at_end)?;
    Some(Story {
        message: format!("`{first}` has no meaning here"),
        label: "unexpected",
        help: "values follow one another with spaces between them: `args \"a\" \"b\"`".to_owned(),
    })
}

fn needs_quotes(word: &str) -> Option<Story> {
    word.contains(RESERVED).then(|| Story {
        message: format!("{} must stand in quotes", quote(word)),
        label: "a bare word cannot contain this",
        help: format!("write {}", in_quotes(word)),
    })
}

/// Writes a word as a text in quotes, for the user to copy.
pub(super) fn in_quotes(word: &str) -> String {
    let word = word.trim_matches('"').replace('\\', "\\\\").replace('"', "\\\"");
    if word.chars().count() > 100 { "`\"…\"`".to_owned() } else { format!("`\"{word}\"`") }
}

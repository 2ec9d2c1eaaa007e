//! The errors of the YAML reader, in words for whoever wrote the file.

use serde_saphyr::{Error, Location};

use super::keys::NO_VALUE;
use crate::cursor::lines;
use crate::diagnostic::{quote, shown};
use crate::{Diagnostic, Span};

/// The words for an error of the reader.
struct Explanation {
    /// Parts of the reader's messages that mean this.
    reader: &'static [&'static str],
    message: &'static str,
    help: &'static str,
}

const EXPLANATIONS: [Explanation; 14] = [
    Explanation {
        reader: &["mapping values are not allowed"],
        message: "a `:` followed by a blank is not allowed here",
        help: "put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours",
    },
    Explanation {
        reader: &["while parsing a quoted scalar"],
        message: "a text in double quotes has an escape that YAML does not know",
        help: "write `\\\\` for a backslash, `\\u` and 4 digits for a character, or use single quotes, where nothing is special",
    },
    Explanation {
        reader: &[
            "unclosed quote",
            "quoted scalar, found unexpected",
            "multiline quoted scalar",
            "trailing content after",
        ],
        message: "a quote is not closed, or text follows the closing one",
        help: "put the whole value between quotes; a text that contains an apostrophe or a quote is written in quotes of the other kind",
    },
    Explanation {
        reader: &[
            "bracket",
            "expected ',' or",
            "illegal placement of ':'",
            "invalid indentation in flow",
        ],
        message: "a bracket is not closed here, or was not opened",
        help: "close a list with `]` and a mapping with `}`; put a text that contains brackets in quotes",
    },
    Explanation {
        reader: &["expected '-'", "expected key", "invalid indentation", "<document start>"],
        message: "this line does not continue the mapping or list above it",
        help: "begin the keys of one mapping, and the `-` of one list, in the same column, with spaces",
    },
    Explanation {
        reader: &["simple key expect"],
        message: "a key has no `:`",
        help: "write `key: value`; indent the further lines of a long text",
    },
    Explanation {
        reader: &["recursion limit", "Depth {"],
        message: "collections are nested more than 16 deep",
        help: "put data of this depth into a file of the skill",
    },
    Explanation {
        reader: &["Anchors {", "Aliases {", "unknown anchor", "merge key"],
        message: "anchors, aliases and merge keys are not supported",
        help: "write the value out; put a text that begins with `&` or `*` in quotes",
    },
    Explanation {
        reader: &["unsupported tag"],
        message: "tags other than YAML's own are not supported",
        help: "leave the tag out; put a text that begins with `!` in quotes",
    },
    Explanation {
        reader: &["multiple YAML documents"],
        message: "the frontmatter is more than one document",
        help: "write `---` and nothing else on the line that ends the frontmatter",
    },
    Explanation {
        reader: &["null into string", NO_VALUE],
        message: "a key has no value, or a list an empty item",
        help: "write a value, or leave the key out",
    },
    Explanation {
        reader: &["expected string scalar"],
        message: "a text is expected here, not a list or a mapping",
        help: "put a text that begins with a bracket or brace in quotes",
    },
    Explanation {
        reader: &["expected sequence start"],
        message: "a list is expected here",
        help: "write it as `[bash, read]`, or begin each item with `- ` on a line of its own",
    },
    Explanation {
        reader: &["expected mapping start"],
        message: "a mapping is expected here",
        help: "write `key: value` lines; a tool is `- name: hello` and below it `script: tools/hello.sh`",
    },
];

/// Explains why `text` cannot be read.
pub(super) fn error(error: &Error, text: &str) -> Diagnostic {
    let span = error.location().map_or_else(Span::default, |location| place(location, text));
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            twice(key.as_deref().unwrap_or_default(), span, text)
        }
        Error::QuotingRequired { value, .. } => {
            let message = format!("a text is expected here, not {}", quote(value));
            Diagnostic::new(message, span, "a number or a truth value").with_help(
                match value.len() {
                    ..40 => format!("put it in quotes: \"{value}\""),
                    _ => "put it in quotes".to_owned(),
                },
            )
        }
        Error::ExternalMessage { msg, .. } => look_up(msg, span),
        _ => look_up(&error.to_string(), span),
    }
}

fn look_up(reader: &str, span: Span) -> Diagnostic {
    let means = |row: &&Explanation| row.reader.iter().any(|part| reader.contains(part));
    match EXPLANATIONS.iter().find(means) {
        Some(row) => Diagnostic::new(row.message, span, "here").with_help(row.help),
        None => Diagnostic::new(
            format!("the frontmatter cannot be read: {}", shown(reader)),
            span,
            "here",
        )
        .with_help("put a text with special characters in quotes, begin a list on a line of its own, and indent \
             with spaces"),
    }
}

/// Explains a duplicate key, of which `second` is the place.
fn twice(key: &str, second: Span, text: &str) -> Diagnostic {
    let above = &text[..second.offset];
    let column = second.offset - above.rfind('\n').map_or(0, |end| end + 1);
    // In a block mapping, the first is in the same column of a line above.
    let same = |(_, line): &(usize, &str)| {
        line.get(column..).is_some_and(|rest| !key.is_empty() && rest.starts_with(key))
    };
    match lines(above).filter(same).last() {
        Some((start, _)) => Diagnostic::twice(key, Span::at(start + column, key.len()), second),
        None => Diagnostic::new(format!("{} is given twice", quote(key)), second, "given again")
            .with_help("remove one of them"),
    }
}

/// Returns the place of an error: of the value where the reader knows it, else a point.
fn place(location: Location, text: &str) -> Span {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let span = location.span();
    if let (Some(start), Some(length)) = (span.byte_offset(), span.byte_len()) {
        return Span::at(number(start), number(length));
    }
    let line = lines(text).nth(number(location.line()).saturating_sub(1));
    let (start, line) = line.unwrap_or((text.len(), ""));
    let column = number(location.column()).saturating_sub(1);
    let within = line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    Span::at(start + within, 0)
}

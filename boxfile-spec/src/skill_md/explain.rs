//! What is wrong with YAML, in words for whoever wrote it.

use saphyr_parser::ScanError;

use super::yaml::Places;
use crate::{Diagnostic, Span};

const INDENT: &str =
    "begin the keys of one mapping, and the `-` of one list, in the same column, with spaces";

/// A part of the scanner's message, and instead of it a message, a label and a help.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: [Row; 23] = [
    (
        "mapping values are not allowed",
        "a `:` followed by a blank cannot stand here",
        "this would begin a second value",
        "put a value that contains `: ` in quotes; if this line is a key, indent it as its neighbours",
    ),
    (
        "quoted scalar, found unknown escape",
        ESCAPE,
        "in this text",
        "write `\\\\` for a backslash, or put the text in single quotes, where none is special",
    ),
    ("expected hexadecimal", ESCAPE, "in this text", HEXADECIMAL),
    ("escape code", ESCAPE, "in this text", HEXADECIMAL),
    ("invalid indentation in quoted", "a quote is not closed", "opened here", CLOSE_QUOTE),
    ("quoted scalar", "a quote is not closed", "opened here", CLOSE_QUOTE),
    ("trailing content after", "text stands behind a closing quote", "from here on", TRAILING),
    ("found a tab", TAB, "a tab indents this or the line below", "indent with spaces"),
    ("tab cannot", TAB, "a tab indents this or the line below", "indent with spaces"),
    ("start with a tab", TAB, "a tab indents this or the line below", "indent with spaces"),
    ("tabs disallowed", TAB, "a tab indents this or the line below", "indent with spaces"),
    (
        "unexpected character",
        "a value cannot begin with this character",
        "reserved in YAML",
        "put the value in quotes",
    ),
    (
        "block sequence entries are not allowed",
        "a list cannot begin here",
        "the first item",
        "begin the list on a line of its own",
    ),
    ("flow sequence, expected", OPEN_BRACKET, "not closed until here", CLOSE_BRACKET),
    ("did not find expected ',' or", OPEN_BRACKET, "not closed until here", CLOSE_BRACKET),
    ("illegal placement of ':'", OPEN_BRACKET, "not closed until here", CLOSE_BRACKET),
    ("invalid indentation in flow", OPEN_BRACKET, "not closed until here", CLOSE_BRACKET),
    ("misplaced bracket", "a bracket is closed that was not opened", "closed here", MISPLACED),
    ("did not find expected '-'", MISFIT, "not a further item of the list above", INDENT),
    ("did not find expected key", MISFIT, "not a further key of the mapping above", INDENT),
    ("invalid indentation", MISFIT, "indented less than its neighbours", INDENT),
    ("unprintable character", "the frontmatter contains a NUL character", "here", "remove it"),
    (
        "<document start>",
        "the frontmatter is more than one mapping",
        "the first has ended above",
        "keep one mapping, without lines that begin with `...`, `---` or `%`, and indent its keys alike",
    ),
];

const ESCAPE: &str = "a text in double quotes has an escape that YAML does not know";
const HEXADECIMAL: &str =
    "behind `\\x` stand 2, behind `\\u` 4 and behind `\\U` 8 hexadecimal digits of a character";
const TAB: &str = "a tab cannot indent a line";
const OPEN_BRACKET: &str = "a bracket is not closed";
const CLOSE_BRACKET: &str = "close a list with `]` and a mapping with `}`";
const MISPLACED: &str = "remove it, or put a text that contains brackets in quotes";
const CLOSE_QUOTE: &str = "close it; a text that contains an apostrophe or a quote is written in quotes of the other kind";
const TRAILING: &str = "put the whole value between the quotes";
const MISFIT: &str = "this line does not continue what stands above it";

/// Explains why the scanner ended.
pub(super) fn scan_error(error: &ScanError, places: &Places<'_>) -> Diagnostic {
    let (span, info) = (places.point(error.marker().index()), error.info());
    if info.contains("unknown anchor") {
        return alias(span);
    }
    if info.contains("recursion limit") {
        return too_deep(span);
    }
    if info.contains("simple key expect") {
        return no_colon(places.line_above(error.marker().index()));
    }
    match ROWS.iter().find(|row| info.contains(row.0)) {
        Some((_, message, label, help)) => Diagnostic::new(*message, span, *label).with_help(*help),
        None => Diagnostic::new(format!("the frontmatter is not YAML: {info}"), span, "here")
            .with_help("put texts with special characters in quotes, and indent with spaces"),
    }
}

/// `*name`
pub(super) fn alias(span: Span) -> Diagnostic {
    Diagnostic::new("aliases are not supported", span, "`*` begins an alias")
        .with_help("write the value out; put a text that begins with `*` in quotes")
}

/// `&name value`
pub(super) fn anchor(span: Span) -> Diagnostic {
    Diagnostic::new("anchors are not supported", span, "has an anchor, which begins with `&`")
        .with_help("remove it; put a text that begins with `&` in quotes")
}

/// `!name value`
pub(super) fn tag(span: Span) -> Diagnostic {
    Diagnostic::new("tags are not supported", span, "has a tag, which begins with `!`")
        .with_help("remove it; put a text that begins with `!` in quotes")
}

/// `<<: …`
pub(super) fn merge_key(span: Span) -> Diagnostic {
    Diagnostic::new("merge keys are not supported", span, "merges another mapping")
        .with_help("write the keys out")
}

/// `key`
fn no_colon(span: Span) -> Diagnostic {
    Diagnostic::new("a key has no `:`", span, "expected `key: value`")
        .with_help("write a `:` behind the key; indent the further lines of a long text")
}

/// `: …`
pub(super) fn no_key(span: Span) -> Diagnostic {
    Diagnostic::new("a key is empty", span, "nothing in front of `:`")
        .with_help("write `key: value`")
}

/// `[a]: …`
pub(super) fn complex_key(span: Span) -> Diagnostic {
    Diagnostic::new("a key is a list or mapping", span, "where a key is expected")
        .with_help("a key is a text; put a text with brackets or braces in quotes")
}

/// A document behind the first.
pub(super) fn second_document(span: Span) -> Diagnostic {
    Diagnostic::new("the frontmatter is more than one document", span, "the second begins here")
        .with_help("write `---` and nothing else on the line that ends the frontmatter")
}

/// The 17th level.
pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::new("collections lie more than 16 deep in one another", span, "too deep")
        .with_help("put data of this depth into a file of the skill")
}

//! Translates the YAML parser's errors into the terms of a `SKILL.md`.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::granit_parser::ErrorKind;
use serde_saphyr::{Error, ExternalMessageSource, Location};

use crate::skill_md::ERRORS;
use diagnostics::cursor::lines;
use diagnostics::{Diagnostic, Span};
use safe_text::quote;

/// Explains why `text` cannot be parsed.
pub(super) fn error(error: &Error, text: &str) -> Diagnostic {
    let mut span = error.location().map_or_else(Span::default, |location| place(location, text));
    let name = match error {
        Error::DuplicateMappingKey { key, .. } => {
            return twice(key.as_deref().unwrap_or_default(), span, text);
        }
        Error::Budget { breach: BudgetBreach::Depth { .. }, .. } => Some("deep"),
        Error::Budget { .. } | Error::UnknownAnchor { .. } | Error::MergeKeyNotAllowed { .. } => {
            Some("anchor")
        }
        Error::MultipleDocuments { .. } => Some("document"),
        Error::UnsupportedTag { .. } => Some("tag"),
        Error::InvalidBinaryBase64 { .. } => Some("binary"),
        Error::ExternalMessage { source, .. } => match source.as_ref() {
            ExternalMessageSource::Parser(error) => malformed(error.kind()),
            _ => None,
        },
        _ => None,
    };
    if name == Some("quote") {
        span = opening_quote(span, text);
    }
    if let Some(name) = name {
        return ERRORS.at(name, span);
    }
    let reason = match error {
        Error::ExternalMessage { msg, .. } => msg.clone(),
        _ => error.render(),
    };
    Diagnostic::new(format!("the frontmatter cannot be read: {reason}"), span, "here")
        .with_help("put a string with special characters in quotes, and indent with spaces")
}

/// Returns the name of the error for malformed YAML.
const fn malformed(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => "colon",
        ErrorKind::UnknownQuotedScalarEscape
        | ErrorKind::InvalidQuotedScalarHexEscape
        | ErrorKind::InvalidLowSurrogateHexEscape
        | ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => "escape",
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::DocumentIndicatorInQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent => "quote",
        ErrorKind::InvalidTrailingSingleQuotedScalar
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => "trailing",
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart => "tab",
        ErrorKind::UnexpectedCharacter { character: '\0' } => "nul",
        ErrorKind::UnexpectedCharacter { .. } => "reserved",
        ErrorKind::BlockSequenceEntryNotAllowed => "list",
        ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::InvalidColonPlacement
        | ErrorKind::InvalidFlowScalarIndent
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => "bracket",
        ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::MismatchedFlowCollectionEnd { .. } => "opened",
        ErrorKind::MisplacedFlowCollectionEnd => "closed",
        ErrorKind::ExpectedBlockSequenceEntry
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedDocumentStart
        | ErrorKind::InvalidIndentation => "misfit",
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => "key",
        ErrorKind::UnknownAnchor => "anchor",
        ErrorKind::RecursionLimitExceeded => "deep",
        _ => return None,
    })
}

/// Returns the span of the quote that is still open at `at`: the last quote before it that can begin a value.
fn opening_quote(at: Span, text: &str) -> Span {
    let opens = |(index, _): &(usize, &str)| {
        text[..*index].ends_with(|c: char| c.is_whitespace() || "[{,".contains(c))
    };
    let until = (at.offset + 1).min(text.len());
    let mut quotes = text[..text.ceil_char_boundary(until)].rmatch_indices(['\'', '"']);
    quotes.find(opens).map_or(at, |(index, _)| Span::at(index, 1))
}

/// Explains a duplicate key. `second` is the span of its second occurrence.
fn twice(key: &str, second: Span, text: &str) -> Diagnostic {
    let above = &text[..second.offset];
    let column = second.offset - above.rfind('\n').map_or(0, |end| end + 1);
    // In a block mapping, the first key is in the same column of an earlier line.
    let same = |(_, line): &(usize, &str)| {
        line.get(column..).is_some_and(|rest| !key.is_empty() && rest.starts_with(key))
    };
    match lines(above).filter(same).last() {
        Some((start, _)) => Diagnostic::twice(key, Span::at(start + column, key.len()), second),
        None => ERRORS.about("twice", &quote(key), second),
    }
}

/// Returns the span of an error. The span is empty if the parser has no length for it.
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

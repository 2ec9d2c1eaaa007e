//! What is wrong in a header.

use std::ops::Range;

use super::word::in_quotes;
use crate::diagnostic::quote;
use crate::schema::{self, Count};
use crate::sink::Sink;
use crate::syntax::toml::lexeme::{Kind, Lexeme, Lexemes};
use crate::syntax::toml::statement::Path;
use crate::{Diagnostic, Span, Spanned, Syntax, form};

/// The error that a header is one of a list of tables.
pub(in crate::syntax::toml) fn list(path: &Path, range: &Range<usize>) -> Diagnostic {
    let names: Vec<&str> = path.iter().map(|name| name.value.as_str()).collect();
    let joined = names.join(".");
    let message = format!("{} is not a list of tables", quote(&joined));
    let span = Span::at(range.start, 2);
    let declaration = schema::find(schema::TOP, names[0]).filter(|it| it.count == Count::Keyed);
    Diagnostic::new(message, span, "two brackets").with_help(match declaration {
        Some(declaration) => {
            let usage = declaration.usage(Syntax::Toml);
            form::imperative("each one has its name in its header: write", &usage)
        }
        None => format!("write {}", quote(&format!("[{joined}]"))),
    })
}

/// Reports what is wrong in a header that the `toml` crate refuses. Returns its names where there
/// is no doubt about them.
pub(in crate::syntax::toml) fn report(
    text: &str,
    range: &Range<usize>,
    sink: &Sink,
) -> Option<Path> {
    let header = Header::new(text, range);
    let whole = Span::between(range.start, header.end);
    let path = header.path();
    let write = |otherwise: &str| match &path {
        Some(path) => format!("write `{}`", written(path)),
        None => otherwise.to_owned(),
    };
    let many = header.parts.iter().any(|part| part.len() > 1);
    sink.report(if let Some(odd) = header.parts.iter().flatten().find(|it| is_odd(it, text)) {
        odd_name(odd, text).with_help(write("close the quotes in front of the `]`"))
    } else if header.parts.iter().any(Vec::is_empty) {
        Diagnostic::new("a name is missing in this header", whole, "not a header")
            .with_help("names stand in the brackets, with a `.` between two: `[agent.limits]`")
    } else if many {
        Diagnostic::new("two names stand without a `.` between them", whole, "not a header")
            .with_help(write("put a `.` between them, or a name with spaces in quotes"))
    } else if !header.closed {
        Diagnostic::new("this header is never closed", whole, "no `]`").with_help(write("close it"))
    } else {
        let behind = text[header.end..range.end].trim();
        let start = range.end - text[header.end..range.end].trim_start().len();
        Diagnostic::new(
            "something stands behind a header",
            Span::at(start, behind.len()),
            "not part of it",
        )
        .with_help("begin a new line behind the `]`")
    });
    path.filter(|_| !many)
}

fn odd_name(odd: &Lexeme, text: &str) -> Diagnostic {
    match odd.kind {
        Kind::Text { closed: false, .. } => {
            Diagnostic::new("this text is never closed", span(odd), "no closing quote on this line")
        }
        Kind::Text { .. } => {
            Diagnostic::new("a name stands on one line", span(odd), "a text over several lines")
        }
        _ => Diagnostic::new(
            format!("{} must stand in quotes", quote(odd.of(text))),
            span(odd),
            "a bare name cannot contain this",
        ),
    }
}

/// Writes a header.
fn written(path: &Path) -> String {
    let names: Vec<String> = path.iter().map(|name| bare_or_quoted(&name.value)).collect();
    format!("[{}]", names.join("."))
}

/// A header, taken apart.
struct Header<'s> {
    text: &'s str,
    /// What stands between its dots.
    parts: Vec<Vec<Lexeme>>,
    /// Whether it has its `]`.
    closed: bool,
    /// Where it ends.
    end: usize,
}

impl<'s> Header<'s> {
    fn new(text: &'s str, range: &Range<usize>) -> Self {
        let mut header =
            Self { text, parts: vec![Vec::new()], closed: false, end: range.start + 1 };
        let inside = Lexemes::new(&text[..range.end], range.start + 1);
        for lexeme in inside.take_while(|lexeme| lexeme.kind != Kind::Comment) {
            match lexeme.kind {
                Kind::Blank => continue,
                Kind::Mark(b'.') => header.parts.push(Vec::new()),
                Kind::Mark(b']') => header.closed = true,
                _ => header.parts.last_mut().into_iter().for_each(|part| part.push(lexeme)),
            }
            header.end = lexeme.end;
            if header.closed {
                break;
            }
        }
        header
    }

    /// Returns its names, if there is at least one in each place.
    fn path(&self) -> Option<Path> {
        if self.parts.iter().any(Vec::is_empty) {
            return None;
        }
        let name = |lexeme: &Lexeme| {
            let written = lexeme.of(self.text);
            let value = match lexeme.kind {
                Kind::Word => written,
                Kind::Text { long: false, closed: true } if !written.contains('\\') => {
                    &written[1..written.len() - 1]
                }
                _ => return None,
            };
            Some(Spanned { value: value.to_owned(), span: span(lexeme) })
        };
        self.parts.iter().flatten().map(name).collect()
    }
}

const fn span(lexeme: &Lexeme) -> Span {
    Span::between(lexeme.start, lexeme.end)
}

fn is_odd(lexeme: &Lexeme, text: &str) -> bool {
    match lexeme.kind {
        Kind::Text { closed, long } => !closed || long,
        _ => !is_bare(lexeme.of(text)),
    }
}

/// Whether a name needs no quotes.
pub(super) fn is_bare(name: &str) -> bool {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !name.is_empty() && name.bytes().all(bare)
}

/// Writes a name as it stands in a header or in front of a `=`.
pub(super) fn bare_or_quoted(name: &str) -> String {
    if is_bare(name) { name.to_owned() } else { in_quotes(name) }
}

//! What is wrong in a key and its value.

use std::ops::Range;

use toml::de::DeTable;

use super::header::{bare_or_quoted, is_bare};
use super::word::in_quotes;
use super::{clash, value};
use crate::diagnostic::quote;
use crate::schema::{self, Count, Declaration};
use crate::sink::Sink;
use crate::syntax::toml::lexeme::{Kind, Lexeme, Lexemes};
use crate::syntax::toml::statement::{self, Path, equals};
use crate::syntax::toml::table::{Clash, ClashKind};
use crate::{Diagnostic, Span, Spanned, Syntax, form};

/// Returns the key of a pair that cannot be read, where there is no doubt about it.
pub(in crate::syntax::toml) fn key(text: &str, range: &Range<usize>) -> Option<Path> {
    let statement = &text[range.clone()];
    let whole = equals(statement).map(|equals| range.start..range.start + equals);
    whole.and_then(|range| statement::path(text, &range)).or_else(|| {
        let name = first_name(statement);
        let named = (!name.is_empty()).then(|| range.start..range.start + name.len());
        named.and_then(|range| statement::path(text, &range))
    })
}

/// Whether a pair has a `=` behind its key.
pub(in crate::syntax::toml) fn has_key(text: &str, range: &Range<usize>) -> bool {
    equals(&text[range.clone()]).is_some()
}

/// Returns what a statement begins with, up to a blank, a mark or a colon.
fn first_name(statement: &str) -> &str {
    let ends = |lexeme: &Lexeme| {
        lexeme.is_space() || matches!(lexeme.kind, Kind::Mark(mark) if mark != b'.')
    };
    let end = Lexemes::new(statement, 0).find(ends).map_or(statement.len(), |it| it.start);
    let name = &statement[..end];
    name.split_once(':').map_or(name, |(name, _)| name)
}

/// Reports what is wrong in a pair that the `toml` crate refuses; `table` is where it stands.
pub(in crate::syntax::toml) fn report(
    text: &str,
    range: &Range<usize>,
    table: &[Spanned<String>],
    sink: &Sink,
) {
    let pair = Pair { statement: &text[range.clone()], base: range.start, table };
    let Some(equals) = equals(pair.statement) else {
        return sink.report(pair.without_equals());
    };
    if statement::path(text, &(range.start..range.start + equals)).is_none() {
        return sink.report(pair.bad_key(equals));
    }
    let behind = range.start + equals + 1..range.end;
    if let Some(error) = pair.no_value(equals) {
        sink.report(error);
    } else if !value::report(text, &behind, sink) {
        sink.report(pair.refused());
    }
}

struct Pair<'s> {
    statement: &'s str,
    /// Where the statement is.
    base: usize,
    table: &'s [Spanned<String>],
}

impl Pair<'_> {
    fn span(&self, range: Range<usize>) -> Span {
        Span::between(self.base + range.start, self.base + range.end)
    }

    /// The error of a comment as other languages have it.
    fn comment(&self) -> Option<Diagnostic> {
        let is = |start: &&&str| self.statement.starts_with(**start);
        let start = ["//", "/*", "--", ";"].iter().find(is)?;
        let error =
            Diagnostic::new("this is not a comment", self.span(0..start.len()), "not in TOML");
        Some(error.with_help("begin each line of a comment with `#`"))
    }

    /// The error of a line that is no pair at all.
    fn without_equals(&self) -> Diagnostic {
        if let Some(error) = self.comment() {
            return error;
        }
        let mut lexemes = Lexemes::new(self.statement, 0).filter(|it| it.kind != Kind::Blank);
        let Some(first) = lexemes.next() else { return self.refused() };
        let written = first.of(self.statement);
        let span = self.span(first.start..first.end);
        match first.kind {
            Kind::Mark(b']' | b'}') => {
                return Diagnostic::new(
                    format!("this `{written}` closes nothing"),
                    span,
                    "not open",
                )
                .with_help("remove it");
            }
            Kind::Mark(_) => {
                return Diagnostic::new(
                    format!("`{written}` has no meaning here"),
                    span,
                    "unexpected",
                )
                .with_help("a line is a header, `[agent]`, or a name and a value, `port = 4088`");
            }
            _ => {}
        }
        let name = first_name(self.statement);
        let rest = &self.statement[name.len()..];
        let span = self.span(0..name.len().max(1));
        let next = Lexemes::new(rest, 0).find(|it| !it.is_space());
        match next.map(|it| (it.kind, it.of(rest))) {
            Some((Kind::Mark(b'{'), _)) => self.block(name, span),
            Some((_, next)) if next.starts_with(':') => self.colon(name, rest),
            None => self.valueless(name, span),
            Some(_) => self.missing_equals(name, rest, span),
        }
    }

    /// The error of `agent {`.
    fn block(&self, name: &str, span: Span) -> Diagnostic {
        let header = self.header(name);
        Diagnostic::new("a table does not begin like this in TOML", span, "a block as in KDL")
            .with_help(format!("write {} above its lines, and no `}}` below them", quote(&header)))
    }

    /// The error of `name: value`.
    fn colon(&self, name: &str, rest: &str) -> Diagnostic {
        let at = name.len() + rest.find(':').unwrap_or_default();
        let value = rest.trim_start().trim_start_matches(':');
        Diagnostic::new(
            "a value is given with `=`, not with `:`",
            self.span(at..at + 1),
            "not in TOML",
        )
        .with_help(match intended(value) {
            Some(value) => format!("write `{name} = {value}`"),
            None if value.trim().is_empty() => format!("write {}", quote(&self.header(name))),
            None => format!("write {}", quote(&format!("{name} = \"value\""))),
        })
    }

    /// The error of a name alone.
    fn valueless(&self, name: &str, span: Span) -> Diagnostic {
        let error = Diagnostic::new(format!("{} has no value", quote(name)), span, "a name alone");
        error.with_help(match self.declaration(name) {
            Some(declaration) => written(declaration),
            None => format!("write {}", quote(&format!("{name} = \"value\""))),
        })
    }

    /// The error of `name value`.
    fn missing_equals(&self, name: &str, rest: &str, span: Span) -> Diagnostic {
        let message = format!("the `=` behind {} is missing", quote(name));
        let error = Diagnostic::new(message, span, "a name without `=`");
        error.with_help(match (intended(rest), self.declaration(name)) {
            (Some(value), _) if is_bare(name) => format!("write `{name} = {value}`"),
            (_, Some(declaration)) => written(declaration),
            _ => "a line is a header, `[agent]`, or a name and a value, `port = 4088`".to_owned(),
        })
    }

    /// The error of what stands in front of `=` and is no name.
    fn bad_key(&self, equals: usize) -> Diagnostic {
        let key = self.statement[..equals].trim_end();
        if let Some(error) = self.comment() {
            return error;
        }
        if key.is_empty() {
            let span = self.span(equals..equals + 1);
            return Diagnostic::new(
                "a name is missing in front of this `=`",
                span,
                "nothing before it",
            )
            .with_help("write `name = \"value\"`, or remove the line");
        }
        let span = self.span(0..key.len());
        let name = first_name(key);
        if name.len() == key.len() || self.declaration(name).is_none() {
            let message = format!("{} is not a name", quote(key));
            let error = Diagnostic::new(message, span, "not a name");
            return error.with_help(format!(
                "a name has letters, digits, `-` and `_`; with anything else it stands in quotes: {}",
                in_quotes(key)
            ));
        }
        let message = format!("{} is not a name", quote(key));
        let error = Diagnostic::new(message, span, "a line as in KDL");
        self.declaration(name).into_iter().fold(error, |error, it| error.with_help(written(it)))
    }

    /// The error of a key with nothing behind its `=` but perhaps a KDL keyword.
    fn no_value(&self, equals: usize) -> Option<Diagnostic> {
        let rest = Lexemes::new(self.statement, equals + 1).find(|it| it.kind != Kind::Blank);
        let name = self.statement[..equals].trim_end();
        if rest.is_some_and(|rest| rest.kind != Kind::Comment) {
            return None;
        }
        if let Some(error) = rest.and_then(|rest| super::keyword(self.statement, &rest, self.base))
        {
            return Some(error);
        }
        let message = format!("{} has no value", quote(name));
        let span = self.span(equals..equals + 1);
        let error = Diagnostic::new(message, span, "nothing behind it");
        Some(error.with_help(match self.declaration(name) {
            Some(declaration) => written(declaration),
            None => "write a text in quotes, a number, `true` or `false`".to_owned(),
        }))
    }

    /// The error that the `toml` crate gives, where nothing better is known.
    fn refused(&self) -> Diagnostic {
        let (root, errors) = DeTable::parse_recoverable(self.statement);
        let Some(error) = errors.first() else {
            let span = self.span(0..self.statement.len());
            return Diagnostic::new("this line cannot be read", span, "not a name and a value");
        };
        let at = error.span().unwrap_or(0..self.statement.len());
        let span = self.span(at.clone());
        let twice = self.statement.get(at).filter(|_| error.message() == "duplicate key");
        match twice.and_then(|name| Some((name, self.first(root.get_ref(), name)?))) {
            Some((name, first)) if first != span => {
                let name = Spanned { value: name.to_owned(), span };
                let clash = Clash { name, first, kind: ClashKind::Twice };
                clash::of_pair(&Path::new(), &clash)
            }
            _ => Diagnostic::new(format!("this cannot be read: {}", error.message()), span, "here"),
        }
    }

    /// Returns where a name is given first in an inline table, which the crate reads in spite of
    /// errors.
    fn first(&self, table: &DeTable<'_>, name: &str) -> Option<Span> {
        let behind = equals(self.statement)?;
        let name = name.trim_matches(['"', '\'']);
        table.iter().find_map(|(key, value)| match value.get_ref().as_table() {
            _ if key.get_ref() == name && key.span().start > behind => Some(self.span(key.span())),
            Some(inner) => self.first(inner, name),
            None => None,
        })
    }

    /// Returns the declaration of a name in this table.
    fn declaration(&self, name: &str) -> Option<&'static Declaration> {
        let mut known = schema::TOP;
        let mut path = self.table.iter();
        while let Some(name) = path.next() {
            let declaration = schema::find(known, &name.value)?;
            if declaration.count == Count::Keyed {
                path.next();
            }
            known = declaration.children;
        }
        schema::find(known, name)
    }

    /// Writes the header of a table inside of this one.
    fn header(&self, name: &str) -> String {
        let path = self.table.iter().map(|name| bare_or_quoted(&name.value));
        let name = if is_bare(name) { name.to_owned() } else { in_quotes(name) };
        format!("[{}]", path.chain([name]).collect::<Vec<_>>().join("."))
    }
}

/// Says how a declaration is written.
fn written(declaration: &Declaration) -> String {
    form::imperative("write", &declaration.usage(Syntax::Toml))
}

/// Returns what was probably meant by a value: itself, or, of one bare word, the text in quotes.
fn intended(value: &str) -> Option<String> {
    let value = value.trim();
    let end = Lexemes::new(value, 0)
        .find(|it| it.kind == Kind::Newline)
        .map_or(value.len(), |it| it.start);
    let value = value[..end].trim_end();
    let short = !value.is_empty() && value.chars().count() <= 100;
    if !short {
        return None;
    }
    if toml::de::DeValue::parse(value).is_ok() {
        return Some(value.to_owned());
    }
    let word = !value.contains(|c: char| c.is_whitespace() || "\"'=[]{}#,".contains(c));
    word.then(|| in_quotes(value))
}

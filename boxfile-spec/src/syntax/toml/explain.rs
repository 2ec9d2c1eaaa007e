//! Explains errors in a TOML text, in terms of a Boxfile.

use toml_parser::{Expected, ParseError};

use super::statement::{Form, Statement, span};
use super::word::{colon, header, is_bare};
use crate::errors::SYNTAX_ERRORS;
use crate::form;
use crate::schema::{self, Count, Declaration};
use crate::syntax::tree::MAX_DEPTH;
use crate::syntax::word::as_text;
use diagnostics::{Diagnostic, Span, Spanned, Syntax};
use safe_text::quote;

/// A statement that cannot be read, and its context.
pub(super) struct Explainer<'s> {
    /// The statement, without the line end.
    pub(super) line: &'s str,
    /// The offset of the line in the source.
    pub(super) start: usize,
    /// The names of the table that contains the statement.
    pub(super) scope: &'s [Spanned<String>],
}

impl Explainer<'_> {
    /// Returns the errors of a statement: the errors of its malformed words, and the error of its
    /// structure.
    pub(super) fn faults(&self, statement: &Statement) -> Vec<Diagnostic> {
        let lost = statement.unclosed.is_some() || statement.deep.is_some();
        let pair = statement.form == Form::Pair;
        if statement.words.found().is_empty() || lost || (pair && statement.equals.is_none()) {
            return self.structure(statement).into_iter().collect();
        }
        // A malformed name in a header is the cause of all other errors in it.
        let structure = self.structure(statement).filter(|_| pair);
        statement.words.found().iter().cloned().chain(structure).collect()
    }

    fn structure(&self, statement: &Statement) -> Option<Diagnostic> {
        if let Some(span) = statement.deep {
            let message = format!("tables and lists are nested more than {MAX_DEPTH} deep");
            return Some(Diagnostic::new(message, span, "one too many"));
        }
        match statement.form {
            Form::Pair => self.pair(statement),
            Form::Header => self.header(statement),
            Form::ListHeader => Some(list_header(statement)),
        }
    }

    /// Converts offsets in the line to a span.
    const fn at(&self, from: usize, to: usize) -> Span {
        Span::between(self.start + from, self.start + to)
    }

    /// Returns the text of a span.
    fn of(&self, span: Span) -> &str {
        self.line.get(span.offset - self.start..span.end() - self.start).unwrap_or_default()
    }

    fn header(&self, statement: &Statement) -> Option<Diagnostic> {
        let whole = self.at(0, self.line.len());
        let names = statement.path.iter().map(|name| name.value.as_str());
        Some(match statement.extra {
            _ if statement.nameless.is_some() => SYNTAX_ERRORS.at("nameless-header", whole),
            Some(extra) if statement.closed => {
                SYNTAX_ERRORS.at("after-header", Span::between(extra.offset, whole.end()))
            }
            Some(extra) => {
                let more = Some(self.of(extra)).filter(|more| is_bare(more));
                SYNTAX_ERRORS.about("dot", &header(names.chain(more)), extra)
            }
            None => SYNTAX_ERRORS.about("open-header", &header(names), whole),
        })
    }

    fn pair(&self, statement: &Statement) -> Option<Diagnostic> {
        if let Some((close, open)) = statement.stray {
            return Some(self.stray(close, open));
        }
        if let Some(open) = statement.unclosed {
            return Some(self.unclosed(open));
        }
        let Some(equals) = statement.equals else { return Some(self.no_equals()) };
        if let Some(second) = statement.second {
            return Some(SYNTAX_ERRORS.at("comma", second));
        }
        if let Some(nameless) = statement.nameless {
            return Some(SYNTAX_ERRORS.at("no-name", nameless));
        }
        let refused = statement.refused.as_ref();
        let at = refused.and_then(ParseError::unexpected).map_or(usize::MAX, |at| at.start());
        if let Some((span, key)) = &statement.valueless
            && span.offset < at
        {
            return Some(self.no_value(*span, key.as_ref(), equals));
        }
        if let Some(extra) = statement.extra {
            return Some(self.second_value(extra));
        }
        // A malformed word is the cause of an error right after it.
        let before = |it: &Diagnostic| (it.span().offset..=it.span().end() + 1).contains(&at);
        let explained = statement.words.found().iter().any(before);
        refused.filter(|_| !explained).map(|error| self.refused(error))
    }

    /// Returns the error of a closing bracket without an opening one, or of the wrong kind.
    fn stray(&self, close: Span, open: Option<Span>) -> Diagnostic {
        let expected = if self.of(close) == "}" { "]" } else { "}" };
        match open {
            Some(open) => SYNTAX_ERRORS
                .about("other-bracket", expected, close)
                .with_label(open, "opened here"),
            None => SYNTAX_ERRORS.about("bracket", self.of(close), close),
        }
    }

    /// Returns the error of an unclosed list, table or text.
    fn unclosed(&self, open: Span) -> Diagnostic {
        match self.of(open) {
            "[" => SYNTAX_ERRORS.at("open-list", open),
            "{" => SYNTAX_ERRORS.at("open-table", open),
            quotes => SYNTAX_ERRORS.about("open-text", quotes, open),
        }
    }

    /// Returns the error of a key without a value.
    fn no_value(&self, at: Span, key: Option<&Spanned<String>>, equals: Span) -> Diagnostic {
        let Some(key) = key else { return SYNTAX_ERRORS.at("no-value", at) };
        let error = SYNTAX_ERRORS.about("name-alone", &quote(&key.value), key.span);
        let top = key.span.end() <= equals.offset;
        match declaration(self.scope, &key.value).filter(|_| top) {
            Some(declaration) => error.with_help(written(declaration)),
            None => error,
        }
    }

    /// Returns the error of a second value.
    fn second_value(&self, extra: Span) -> Diagnostic {
        if matches!(self.of(extra), "]" | "}") {
            return self.stray(extra, None);
        }
        if self.of(extra) == "," && self.line.trim_end().ends_with(',') {
            return SYNTAX_ERRORS.at("toml-comma", extra);
        }
        SYNTAX_ERRORS.about("second-value", &quote(self.of(extra)), extra)
    }

    /// Explains the error at which the parser stopped, by the tokens that the parser expected.
    fn refused(&self, error: &ParseError) -> Diagnostic {
        let at = error.unexpected().or(error.context()).map_or(self.at(0, 1), span);
        let (before, after) =
            self.line.split_at_checked(at.offset - self.start).unwrap_or((self.line, ""));
        let expected = error.expected().and_then(|expected| expected.first());
        let name = match expected {
            Some(Expected::Literal(",")) if before.ends_with(['"', '\'']) => "touching",
            Some(Expected::Literal(",")) => "comma",
            Some(Expected::Literal("=")) => "equals",
            Some(Expected::Description(_)) if after.starts_with(',') => "stray-comma",
            _ => "toml-other",
        };
        SYNTAX_ERRORS.at(name, at)
    }

    /// Returns the error of a line that is neither a header nor a name with a value.
    fn no_equals(&self) -> Diagnostic {
        let name_ends = |c: char| c.is_whitespace() || "={[,#\"'".contains(c);
        let name = &self.line[..self.line.find(name_ends).unwrap_or(self.line.len())];
        let rest = self.line[name.len()..].trim_start();
        let span = self.at(0, name.len().max(1));
        if let Some(comment) = ["//", "/*", "--", ";"].iter().find(|it| name.starts_with(**it)) {
            return SYNTAX_ERRORS.at("toml-comment", Span::at(self.start, comment.len()));
        }
        match (name.strip_suffix(':'), rest.chars().next()) {
            _ if matches!(self.of(span), "]" | "}") => self.stray(span, None),
            (Some(name), _) => colon(span).with_help(self.assignment(name, rest)),
            (None, _) if name.is_empty() => SYNTAX_ERRORS.at("toml-line", span),
            (None, None) => {
                let error = SYNTAX_ERRORS.about("name-alone", &quote(name), span);
                error.with_help(self.assignment(name, rest))
            }
            (None, Some('{')) if rest == "{" => {
                let names = self.scope.iter().map(|name| name.value.as_str()).chain([name]);
                SYNTAX_ERRORS.about("toml-block", &header(names), span)
            }
            (None, Some(_)) => {
                let error = SYNTAX_ERRORS.about("name-without-equals", &quote(name), span);
                error.with_help(self.assignment(name, rest))
            }
        }
    }

    /// Returns the help to assign `value` to a name. If `value` cannot be a value, the help has an
    /// example.
    fn assignment(&self, name: &str, value: &str) -> String {
        let value = value.trim();
        let short = !value.is_empty() && value.chars().count() <= 100;
        let word = !value.contains(|c: char| c.is_whitespace() || "\"'=[]{}#,".contains(c));
        if short && toml::de::DeValue::parse(value).is_ok() {
            return format!("write `{name} = {value}`");
        }
        if short && word {
            return format!("write `{name} = {}`", as_text(Syntax::Toml, value));
        }
        let any = || format!("write {}", quote(&format!("{name} = \"value\"")));
        declaration(self.scope, name).map_or_else(any, written)
    }
}

/// Returns the error of the header of a list of tables, `[[name]]`, which no Boxfile has.
fn list_header(statement: &Statement) -> Diagnostic {
    let names = || statement.path.iter().map(|name| name.value.as_str());
    let joined = names().collect::<Vec<_>>().join(".");
    let span = Span::at(statement.start.unwrap_or_default(), 2);
    let message = format!("{} is not a list of tables", quote(&joined));
    let first = names().next().unwrap_or_default();
    let keyed = schema::find(schema::TOP, first).filter(|it| it.count == Count::Keyed);
    let own = statement.path.split_last().and_then(|(name, scope)| declaration(scope, &name.value));
    let listed = own.filter(|it| it.is_listed());
    let example = |what: &str, of: &Declaration| form::imperative(what, &of.usage(Syntax::Toml));
    Diagnostic::new(message, span, "two brackets").with_help(match (listed, keyed) {
        (Some(listed), _) => example("all of them are the values of one key: write", listed),
        (None, Some(keyed)) => example("each one has its name in its header: write", keyed),
        (None, None) => format!("write {}", quote(&header(names()))),
    })
}

/// Returns the declaration `name` in the table with the names `scope`.
fn declaration(scope: &[Spanned<String>], name: &str) -> Option<&'static Declaration> {
    let mut known = schema::TOP;
    let mut path = scope.iter();
    while let Some(name) = path.next() {
        let declaration = schema::find(known, &name.value)?;
        if declaration.count == Count::Keyed {
            path.next();
        }
        known = declaration.children;
    }
    schema::find(known, name)
}

/// Returns the help with an example of a declaration.
pub(super) fn written(declaration: &Declaration) -> String {
    form::imperative("for example", &declaration.usage(Syntax::Toml))
}

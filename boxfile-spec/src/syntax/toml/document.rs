//! Builds one table from all statements of a text. `toml_parser` reads the text, and passes its tokens as events.

use std::cell::RefCell;

use toml_parser::decoder::Encoding;
use toml_parser::parser::{EventReceiver, parse_document};
use toml_parser::{ErrorSink, ParseError, Raw, Source, Span as Range};

use super::explain;
use super::statement::{Form, Statement, span};
use super::table::{Content, Item, Origin, Path, Table};
use super::word;
use crate::syntax::allowance::Allowance;
use diagnostics::{Sink, Span, Spanned};

/// The content of a text.
pub(super) struct Document {
    pub(super) root: Table,
    /// See [`crate::syntax::tree::Tree::complete`].
    pub(super) complete: bool,
}

/// Reads all statements of a text, as far as the allowance permits, and reports statements that cannot be read.
///
/// A name and its value are counted as one, and each item of a list as one.
pub(super) fn read(text: &str, allowance: &mut Allowance, sink: &Sink) -> Document {
    let source = Source::new(text);
    let refused = RefCell::new(None);
    let mut builder = Builder {
        text,
        allowance,
        sink,
        refused: &refused,
        root: Table::new(Origin::Header),
        scope: Some(Scope::default()),
        statement: Statement::default(),
        complete: true,
    };
    let mut keep_first = |error: ParseError| {
        refused.borrow_mut().get_or_insert(error);
    };
    parse_document(&source.lex().into_vec(), &mut builder, &mut keep_first);
    builder.end_statement(text.len());
    Document { root: builder.root, complete: builder.complete }
}

/// The table to which the following pairs, such as `a = 1`, belong.
#[derive(Debug, Clone, Default)]
struct Scope {
    path: Path,
    /// Whether the table's header repeats an earlier header, which is already reported.
    again: bool,
}

struct Builder<'s> {
    text: &'s str,
    allowance: &'s mut Allowance,
    sink: &'s Sink,
    /// The first error of the parser in the current statement.
    refused: &'s RefCell<Option<ParseError>>,
    root: Table,
    /// `None` after a header that cannot be read.
    scope: Option<Scope>,
    statement: Statement,
    complete: bool,
}

impl Builder<'_> {
    /// Records the start of the statement.
    fn begin(&mut self, at: Range) {
        if self.statement.start.is_none() {
            self.statement.start = Some(at.start());
            self.statement.base = self.scope.as_ref().map_or(0, |scope| scope.path.len());
        }
    }

    /// Counts a name or an item of a list; returns whether it may be read. After the first refusal, all are refused.
    fn takes(&mut self, at: Range) -> bool {
        let takes = self.allowance.take(span(at));
        self.complete &= takes;
        takes
    }

    /// As [`Self::takes`], for a value. Only an item of a list is counted, because the value of a name is counted with
    /// the name.
    fn takes_value(&mut self, at: Range) -> bool {
        if self.statement.is_in_list() { self.takes(at) } else { !self.allowance.is_exceeded() }
    }

    /// Opens a list or a table in braces; returns `false` if it may not be read.
    fn open(&mut self, at: Range, content: Content) -> bool {
        self.begin(at);
        self.takes_value(at) && self.statement.open(at, content)
    }

    fn begin_header(&mut self, at: Range, form: Form) {
        self.begin(at);
        self.statement.form = form;
        self.statement.base = 1;
    }

    fn end_statement(&mut self, end: usize) {
        let mut statement = std::mem::take(&mut self.statement);
        statement.refused = self.refused.take();
        let Some(start) = statement.start else { return };
        if self.allowance.is_exceeded() {
            return;
        }
        let line = self.text[start..end].trim_end_matches([' ', '\t', '\n', '\r']);
        if statement.form == Form::Pair {
            self.pair(statement, line);
        } else {
            self.header(statement, line);
        }
    }

    fn header(&mut self, statement: Statement, line: &str) {
        let scope = self.scope.take().unwrap_or_default();
        let faulty = self.explain(&statement, line, &scope.path);
        if statement.form == Form::Header && !statement.path_lost {
            self.enter(statement.path, faulty);
        } else {
            self.complete = false;
        }
    }

    /// Makes the table of a header the scope of the pairs that follow.
    fn enter(&mut self, path: Path, faulty: bool) {
        let again = self.sink.check(self.root.open(&path)).is_none();
        if let Some(table) = self.root.at(&path) {
            table.doubtful |= faulty;
            self.scope = Some(Scope { path, again });
        } else {
            self.complete = false;
        }
    }

    fn pair(&mut self, statement: Statement, line: &str) {
        let scope = self.scope.take();
        let names = scope.as_ref().map_or(&[][..], |scope| &scope.path);
        let faulty = self.explain(&statement, line, names);
        self.complete &= statement.unclosed.is_none() && !statement.path_lost;
        if let Some(scope) = &scope
            && !statement.path_lost
        {
            self.add(scope, statement, faulty);
        }
        self.scope = scope;
    }

    fn add(&mut self, scope: &Scope, statement: Statement, faulty: bool) {
        let span = Span::at(statement.start.unwrap_or_default(), 0);
        let broken = Item { content: Content::Broken, span };
        let item = statement.item.filter(|_| !faulty).unwrap_or(broken);
        if let Some(table) = self.root.at(&scope.path)
            && let Err(error) = table.add(statement.path, item)
            && !scope.again
        {
            self.sink.report(error);
        }
    }

    /// Reports the errors of a statement; returns `true` if it has any.
    fn explain(&mut self, statement: &Statement, line: &str, scope: &[Spanned<String>]) -> bool {
        let start = statement.start.unwrap_or_default();
        if !statement.is_faulty() {
            return false;
        }
        if !self.sink.is_full() {
            let faults = explain::Explainer { line, start, scope }.faults(statement);
            faults.into_iter().for_each(|fault| self.sink.report(fault));
        }
        true
    }

    /// Reports a control character in a comment or line end.
    fn check_characters(&mut self, at: Range) {
        if let Some(error) = word::control_character(of(self.text, at), at.start()) {
            self.sink.report(error);
        }
    }
}

impl EventReceiver for Builder<'_> {
    fn std_table_open(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.begin_header(at, Form::Header);
    }

    fn std_table_close(&mut self, _: Range, _: &mut dyn ErrorSink) {
        self.statement.closed = true;
    }

    fn array_table_open(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.begin_header(at, Form::ListHeader);
    }

    fn array_table_close(&mut self, _: Range, _: &mut dyn ErrorSink) {
        self.statement.closed = true;
    }

    fn inline_table_open(&mut self, at: Range, _: &mut dyn ErrorSink) -> bool {
        self.open(at, Content::Table(Table::new(Origin::Inline)))
    }

    fn inline_table_close(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.statement.close(at);
    }

    fn array_open(&mut self, at: Range, _: &mut dyn ErrorSink) -> bool {
        self.open(at, Content::List(Vec::new()))
    }

    fn array_close(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.statement.close(at);
    }

    fn simple_key(&mut self, at: Range, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        self.begin(at);
        // A name that is nested too deep is not kept, and so not counted.
        if self.statement.deep.is_some() || self.takes(at) {
            self.statement.name(Raw::new_unchecked(of(self.text, at), encoding, at), at);
        }
    }

    fn key_val_sep(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.statement.equals.get_or_insert(span(at));
    }

    fn scalar(&mut self, at: Range, encoding: Option<Encoding>, _: &mut dyn ErrorSink) {
        self.begin(at);
        if self.takes_value(at) {
            self.statement.scalar(Raw::new_unchecked(of(self.text, at), encoding, at), at);
        }
    }

    fn comment(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.check_characters(at);
    }

    fn newline(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.check_characters(at);
        if !self.statement.is_open() {
            self.end_statement(at.start());
        }
    }

    fn error(&mut self, at: Range, _: &mut dyn ErrorSink) {
        self.begin(at);
        if !self.statement.is_open() {
            self.statement.extra.get_or_insert(span(at));
            self.statement.path_lost |= self.statement.form != Form::Pair && !self.statement.closed;
        }
    }
}

fn of(text: &str, at: Range) -> &str {
    &text[at.start()..at.end()]
}

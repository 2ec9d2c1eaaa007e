//! Reads the structure of a file: the bytes of each statement, and the statements of its block.

use std::ops::Range;

use super::lexeme::{self, Unclosed, is_blank, is_newline, is_space};
use crate::errors::SYNTAX_ERRORS;
use crate::syntax::allowance::Allowance;
use crate::syntax::tree::MAX_DEPTH;
use diagnostics::cursor::{BYTE_ORDER_MARK, Cursor};
use diagnostics::{Diagnostic, Sink, Span};

/// A file cut into statements.
pub(super) struct Outline {
    /// The source, in which every comment, line continuation and `/-` block is replaced by as many spaces. So offsets
    /// stay the same, and the header of a statement is on one line.
    pub(super) text: String,
    pub(super) statements: Vec<Statement>,
    /// See [`Tree::intact`](crate::syntax::tree::Tree::intact).
    pub(super) intact: bool,
    /// See [`Tree::complete`](crate::syntax::tree::Tree::complete).
    pub(super) complete: bool,
}

/// A node before its header is read.
pub(super) struct Statement {
    /// Name, arguments and properties.
    pub(super) header: Range<usize>,
    /// Whether the header has an error that is already reported.
    pub(super) unreadable: bool,
    /// The opening brace, and the statements of the block.
    pub(super) block: Option<(Span, Vec<Self>)>,
}

/// Finds the statements of a source, as far as the allowance permits. Each word of a header is counted, even if `/-`
/// comments it out: the `kdl` crate reads these words, too, and takes several times as much memory as the result.
pub(super) fn scan(source: &str, allowance: &mut Allowance, sink: &Sink) -> Outline {
    let mut scanner = Scanner {
        cursor: Cursor::new(source),
        allowance,
        sink,
        blanks: Vec::new(),
        intact: true,
        complete: true,
        depth: 0,
        braces_lost: false,
    };
    scanner.cursor.eat(BYTE_ORDER_MARK);
    let mut statements = Vec::new();
    while scanner.statements(&mut statements) {
        scanner.stray_brace();
    }
    let Scanner { blanks, intact, complete, .. } = scanner;
    Outline { text: blank(source, &blanks), statements, intact, complete }
}

/// Replaces ranges, which are sorted and do not overlap, by spaces.
fn blank(source: &str, ranges: &[Range<usize>]) -> String {
    let mut text = String::with_capacity(source.len());
    for range in ranges {
        text.push_str(&source[text.len()..range.start]);
        text.extend(std::iter::repeat_n(' ', range.len()));
    }
    text.push_str(&source[text.len()..]);
    text
}

/// The next piece of the text.
enum Piece {
    /// White space, a comment or a line continuation.
    Space,
    /// The end of a statement.
    End,
    /// `{`, which is not stepped over yet.
    Open,
    /// `/-` and the space after it.
    Slashdash,
    /// Anything else: part of a header.
    Text,
    /// An unclosed text.
    Unreadable,
}

/// The current statement.
#[derive(Default)]
struct Draft {
    /// The span of a `/-` whose target is not read yet.
    dash: Option<Span>,
    /// Whether the statement itself is commented out.
    ignored: bool,
    header: Option<Range<usize>>,
    unreadable: bool,
    block: Option<(Span, Vec<Statement>)>,
    /// Whether an error about text after the block is reported.
    overrun: bool,
}

struct Scanner<'s> {
    cursor: Cursor<'s>,
    allowance: &'s mut Allowance,
    sink: &'s Sink,
    blanks: Vec<Range<usize>>,
    intact: bool,
    complete: bool,
    depth: usize,
    /// Whether braces may be missing in the outline, because of an unclosed text or comment, or because reading ended
    /// early.
    braces_lost: bool,
}

impl Scanner<'_> {
    /// Reads statements up to a closing brace or the end of the text. Does not step over the brace. Returns whether
    /// there is a brace.
    fn statements(&mut self, statements: &mut Vec<Statement>) -> bool {
        loop {
            match self.cursor.peek() {
                None => return false,
                Some('}') => return true,
                Some(_) => statements.extend(self.statement()),
            }
        }
    }

    /// Reads to the end of one statement; returns `None` if it is empty or commented out.
    fn statement(&mut self) -> Option<Statement> {
        let mut draft = Draft::default();
        loop {
            let start = self.cursor.at();
            let piece = self.piece();
            let span = Span::between(start, self.cursor.at());
            match piece {
                Piece::Space => {}
                Piece::End => return self.complete(draft),
                Piece::Open => self.block(&mut draft),
                Piece::Slashdash => self.dash(&mut draft, span),
                Piece::Text => self.header(&mut draft, span),
                Piece::Unreadable => {
                    self.header(&mut draft, span);
                    draft.unreadable = true;
                }
            }
        }
    }

    fn piece(&mut self) -> Piece {
        let cursor = &mut self.cursor;
        if cursor.eat_class(is_newline) || cursor.eat(";") || lexeme::line_comment(cursor) {
            return Piece::End;
        }
        if cursor.eat_class(is_space) {
            return Piece::Space;
        }
        match cursor.peek() {
            None | Some('}') => Piece::End,
            Some('{') => Piece::Open,
            Some('/') => self.slash(),
            Some('\\') => self.continuation(),
            Some(_) => self.text(),
        }
    }

    /// Steps over `/-` and the space after it, a block comment, or a single slash.
    fn slash(&mut self) -> Piece {
        let start = self.cursor.at();
        if self.cursor.eat("/-") {
            while self.cursor.eat_class(is_blank)
                || lexeme::line_comment(&mut self.cursor)
                || self.comment()
            {}
            return Piece::Slashdash;
        }
        if self.comment() {
            self.blanks.push(start..self.cursor.at());
            return Piece::Space;
        }
        self.cursor.bump();
        Piece::Text
    }

    fn comment(&mut self) -> bool {
        lexeme::block_comment(&mut self.cursor).unwrap_or_else(|unclosed| {
            self.unclosed(unclosed);
            true
        })
    }

    /// Steps over a `\` that continues the line, or a single backslash.
    fn continuation(&mut self) -> Piece {
        let start = self.cursor.at();
        self.cursor.bump();
        let after = self.cursor.clone();
        loop {
            match lexeme::block_comment(&mut self.cursor) {
                Ok(true) => {}
                Ok(false) if self.cursor.eat_class(is_space) => {}
                Ok(false) => break,
                // Reading continues after the backslash, and reports the unclosed comment there.
                Err(_) => {
                    self.cursor = after;
                    return Piece::Text;
                }
            }
        }
        lexeme::line_comment(&mut self.cursor);
        self.cursor.eat("\r");
        if self.cursor.eat_class(is_newline) || self.cursor.peek().is_none() {
            self.blanks.push(start..self.cursor.at());
            return Piece::Space;
        }
        self.cursor = after;
        Piece::Text
    }

    fn text(&mut self) -> Piece {
        match lexeme::step(&mut self.cursor) {
            Ok(()) => Piece::Text,
            Err(unclosed) => {
                self.unclosed(unclosed);
                Piece::Unreadable
            }
        }
    }

    fn unclosed(&mut self, unclosed: Unclosed) {
        match unclosed {
            Unclosed::Line { error, swallows_structure } => {
                self.sink.report(error);
                self.intact &= !swallows_structure;
                self.braces_lost |= swallows_structure;
            }
            Unclosed::File(error) => self.abandon(error),
        }
    }

    fn dash(&mut self, draft: &mut Draft, span: Span) {
        let dash = Span { len: 2, ..span };
        if draft.dash.is_none() {
            draft.dash = Some(dash);
            self.blanks.push(dash.end()..span.end());
            return;
        }
        self.sink.report(SYNTAX_ERRORS.at("second-dash", dash));
        self.blanks.push(span.offset..span.end());
    }

    fn header(&mut self, draft: &mut Draft, span: Span) {
        let dash = draft.dash.take();
        if draft.block.is_some() {
            // Only for the first error: this function is called for each character, and `word` searches for the end of
            // the character's word.
            if !draft.overrun {
                let word = self.word(span);
                self.overrun(draft, word);
            }
            return;
        }
        let begins_word = draft.header.as_ref().is_none_or(|header| header.end < span.offset);
        let fits = !begins_word || {
            let word = self.word(span);
            self.allowance.take(word)
        };
        if !fits {
            draft.unreadable = true;
            self.stop();
        } else if let Some(header) = &mut draft.header {
            header.end = span.end();
        } else {
            draft.ignored = dash.is_some();
            draft.header = Some(span.offset..span.end());
        }
    }

    /// Returns the span of a word whose first characters were just read: `part` is their span.
    fn word(&self, part: Span) -> Span {
        let ends = |c| is_blank(c) || "{};".contains(c);
        let rest = self.cursor.rest();
        let further = rest.find(ends).unwrap_or(rest.len());
        Span { len: part.len + further, ..part }
    }

    fn block(&mut self, draft: &mut Draft) {
        let open = Span::at(self.cursor.at(), 1);
        let dash = draft.dash.take();
        let statements = self.braces(open);
        if draft.header.is_none() {
            self.structure_error(SYNTAX_ERRORS.at("nameless-block", open));
        } else if let Some(dash) = dash {
            self.blank_from(dash.offset);
        } else if draft.block.is_some() {
            self.overrun(draft, open);
        } else {
            draft.block = Some((open, statements));
        }
    }

    /// Reads a block from its opening to its closing brace.
    fn braces(&mut self, open: Span) -> Vec<Statement> {
        let mut statements = Vec::new();
        if self.depth == MAX_DEPTH {
            let message = format!("blocks are nested more than {MAX_DEPTH} deep in one another");
            self.abandon(Diagnostic::new(message, open, "one too many"));
            return statements;
        }
        self.depth += 1;
        self.cursor.bump();
        if self.statements(&mut statements) {
            self.cursor.bump();
        } else if !self.braces_lost {
            self.structure_error(SYNTAX_ERRORS.at("open-block", open));
        }
        self.depth -= 1;
        statements
    }

    fn complete(&mut self, draft: Draft) -> Option<Statement> {
        if let Some(dash) = draft.dash {
            self.sink.report(SYNTAX_ERRORS.at("idle-dash", dash));
        }
        let header = draft.header.filter(|_| !draft.ignored)?;
        Some(Statement { header, unreadable: draft.unreadable, block: draft.block })
    }

    fn stray_brace(&mut self) {
        let brace = Span::at(self.cursor.at(), 1);
        self.cursor.bump();
        if !self.braces_lost {
            self.structure_error(SYNTAX_ERRORS.at("brace", brace));
        }
    }

    fn overrun(&mut self, draft: &mut Draft, span: Span) {
        if !std::mem::replace(&mut draft.overrun, true) {
            self.structure_error(SYNTAX_ERRORS.at("after-block", span));
        }
    }

    fn structure_error(&mut self, error: Diagnostic) {
        self.sink.report(error);
        self.intact = false;
    }

    /// Reports an error after which no further text can be read, and ends the reading.
    fn abandon(&mut self, error: Diagnostic) {
        self.structure_error(error);
        self.braces_lost = true;
        self.cursor.finish();
    }

    /// Ends the reading. Declarations that were not read are then not reported as missing.
    fn stop(&mut self) {
        self.complete = false;
        self.braces_lost = true;
        self.cursor.finish();
    }

    /// Replaces the text from `start` to the cursor by spaces.
    fn blank_from(&mut self, start: usize) {
        while self.blanks.last().is_some_and(|blank| blank.start >= start) {
            self.blanks.pop();
        }
        self.blanks.push(start..self.cursor.at());
    }
}

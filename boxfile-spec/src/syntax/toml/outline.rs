//! Cuts a text into statements: table headers, and keys with their values.

use std::ops::Range;

use super::lexeme::{Kind, Lexeme, Lexemes};
use crate::Span;
use crate::syntax::DEEPEST;

/// A header, or a key with its value: a line, or several where brackets or quotes hold them
/// together.
#[derive(Debug)]
pub(super) struct Statement {
    /// Where it is, with a comment at its end and without the line end.
    pub(super) range: Range<usize>,
    /// Whether it begins with `[`.
    pub(super) header: bool,
    /// What is wrong with its extent.
    pub(super) fault: Option<Fault>,
}

/// Why a statement cannot be read as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Tables and lists lie too deep in one another.
    Deep(Span),
    /// A text that may span lines is not closed: all to the end of the file is part of it.
    LongText(Span),
    /// A bracket is not closed; the statement is taken to end with its line.
    Bracket {
        /// The bracket.
        open: Span,
        /// Whether it is sure that it ends there.
        sure: bool,
    },
}

/// Iterates over the statements of a text, in linear time.
pub(super) struct Outline<'s> {
    text: &'s str,
    at: usize,
    /// How deep the table lies whose keys follow.
    header_depth: usize,
}

impl<'s> Outline<'s> {
    pub(super) const fn new(text: &'s str, at: usize) -> Self {
        Self { text, at, header_depth: 0 }
    }

    fn header(&mut self) -> Statement {
        let start = self.at;
        let mut nesting = Nesting::new(1);
        for lexeme in Lexemes::new(self.text, start) {
            if lexeme.kind == Kind::Newline {
                break;
            }
            if lexeme.kind == Kind::Mark(b'.') {
                nesting.mark(b'.', &lexeme);
            }
            self.at = lexeme.end;
        }
        // What follows a header that is too deep belongs nowhere.
        self.header_depth = if nesting.deep.is_none() { nesting.depth } else { 0 };
        Statement { range: start..self.at, header: true, fault: nesting.deep.map(Fault::Deep) }
    }

    fn pair(&mut self) -> Statement {
        let start = self.at;
        let mut nesting = Nesting::new(self.header_depth);
        let mut fault = None;
        let mut last = b'\n';
        for lexeme in Lexemes::new(self.text, start) {
            match lexeme.kind {
                Kind::Newline => match nesting.innermost() {
                    None => break,
                    Some((kind, open)) => fault = self.cut(lexeme.end, kind, open, last),
                },
                Kind::Text { long: true, closed: false } => {
                    fault = Some(Fault::LongText(Span::at(lexeme.start, 3)));
                }
                Kind::Mark(mark) => nesting.mark(mark, &lexeme),
                _ => {}
            }
            if lexeme.kind == Kind::Newline && fault.is_some() {
                break;
            }
            if !lexeme.is_space() {
                last = if let Kind::Mark(mark) = lexeme.kind { mark } else { b'x' };
            }
            self.at = lexeme.end;
        }
        let open = nesting.innermost().map(|(_, open)| Fault::Bracket { open, sure: true });
        let deep = nesting.deep.map(Fault::Deep);
        Statement { range: start..self.at, header: false, fault: deep.or(fault).or(open) }
    }

    /// Tells whether an open bracket was probably meant to be closed on the line that ends at
    /// `next`, by what the following line begins with.
    fn cut(&self, next: usize, kind: u8, open: Span, last: u8) -> Option<Fault> {
        let goes_on = matches!(last, b',' | b'{' | b'[');
        if begins_header(self.text, next) {
            return Some(Fault::Bracket { open, sure: true });
        }
        let ends = (kind == b'[' || !goes_on) && begins_pair(self.text, next);
        ends.then_some(Fault::Bracket { open, sure: kind == b'[' })
    }
}

impl Iterator for Outline<'_> {
    type Item = Statement;

    fn next(&mut self) -> Option<Statement> {
        let first = Lexemes::new(self.text, self.at).find(|lexeme| !lexeme.is_space());
        self.at = first.map_or(self.text.len(), |lexeme| lexeme.start);
        Some(if first?.kind == Kind::Mark(b'[') { self.header() } else { self.pair() })
    }
}

/// Counts how deep brackets and dotted names lie in one another.
struct Nesting {
    /// The open brackets, with the number of dots behind each.
    open: Vec<(u8, Span, usize)>,
    /// How many brackets are open beyond those that are allowed.
    beyond: usize,
    dots: usize,
    depth: usize,
    deep: Option<Span>,
}

impl Nesting {
    const fn new(depth: usize) -> Self {
        Self { open: Vec::new(), beyond: 0, dots: 0, depth, deep: None }
    }

    fn innermost(&self) -> Option<(u8, Span)> {
        self.open.last().map(|(kind, span, _)| (*kind, *span))
    }

    fn mark(&mut self, mark: u8, lexeme: &Lexeme) {
        match mark {
            b'[' | b'{' => self.enter(mark, Span::between(lexeme.start, lexeme.end)),
            b']' | b'}' if self.beyond > 0 => self.beyond -= 1,
            b']' | b'}' => {
                if let Some((_, _, dots)) = self.open.pop() {
                    self.depth -= 1 + dots;
                }
            }
            b'.' => {
                *self.open.last_mut().map_or(&mut self.dots, |(_, _, dots)| dots) += 1;
                self.depth += 1;
            }
            b',' => {
                if let Some((_, _, dots)) = self.open.last_mut() {
                    self.depth -= std::mem::take(dots);
                }
            }
            _ => {}
        }
        if self.depth > DEEPEST && self.deep.is_none() {
            self.deep = Some(Span::between(lexeme.start, lexeme.end));
        }
    }

    fn enter(&mut self, mark: u8, span: Span) {
        if self.depth >= DEEPEST {
            self.beyond += 1;
            self.deep.get_or_insert(span);
        } else {
            self.open.push((mark, span, 0));
            self.depth += 1;
        }
    }
}

/// Whether a line begins with a key and `=`.
fn begins_pair(text: &str, at: usize) -> bool {
    let mut key = false;
    for lexeme in Lexemes::new(text, at) {
        match lexeme.kind {
            Kind::Blank | Kind::Mark(b'.') => {}
            Kind::Word | Kind::Text { long: false, closed: true } => key = true,
            kind => return key && kind == Kind::Mark(b'='),
        }
    }
    false
}

/// Whether a line is a header, and not a list in a list: its first name is no value.
fn begins_header(text: &str, at: usize) -> bool {
    let mut lexemes = Lexemes::new(text, at).filter(|lexeme| lexeme.kind != Kind::Blank).peekable();
    if lexemes.next().is_none_or(|lexeme| lexeme.kind != Kind::Mark(b'[')) {
        return false;
    }
    lexemes.next_if(|lexeme| lexeme.kind == Kind::Mark(b'['));
    let name = lexemes.next().filter(|lexeme| lexeme.kind == Kind::Word);
    let name = name.map_or("", |lexeme| lexeme.of(text));
    if !name.starts_with(|c: char| c.is_ascii_alphabetic())
        || matches!(name, "true" | "false" | "inf" | "nan")
    {
        return false;
    }
    let close = lexemes.find(|lexeme| {
        !matches!(lexeme.kind, Kind::Word | Kind::Mark(b'.') | Kind::Text { closed: true, .. })
    });
    let closed = close.is_some_and(|lexeme| lexeme.kind == Kind::Mark(b']'));
    lexemes.next_if(|lexeme| lexeme.kind == Kind::Mark(b']'));
    closed && lexemes.next().is_none_or(|lexeme| lexeme.is_space())
}

//! What is wrong in the value of a key: in its words, and in how lists and tables are written.

use std::iter::Peekable;
use std::ops::Range;

use super::word;
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::syntax::toml::lexeme::{Kind, Lexeme, Lexemes};
use crate::{Diagnostic, Span};

/// Reports what is wrong in a value, which may be followed by a comment; tells whether anything is.
///
/// Each word is looked at by itself; the first error in the structure ends it.
pub(super) fn report(text: &str, range: &Range<usize>, sink: &Sink) -> bool {
    let pieces = pieces(text, range).into_iter().peekable();
    let mut walk = Walk { text, pieces, end: range.end, sink, found: false };
    let error = match walk.value() {
        Ok(()) => walk.pieces.next().map(|piece| walk.behind(&piece)),
        Err(error) => Some(error),
    };
    let found = walk.found || error.is_some();
    error.into_iter().for_each(|error| sink.report(error));
    found
}

/// A mark, or a word: all that stands together without a blank, a mark or a line end in it.
#[derive(Debug, Clone)]
struct Piece {
    mark: Option<u8>,
    range: Range<usize>,
}

impl Piece {
    fn span(&self) -> Span {
        Span::between(self.range.start, self.range.end)
    }
}

fn pieces(text: &str, range: &Range<usize>) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for lexeme in Lexemes::new(&text[..range.end], range.start).filter(|it| !it.is_space()) {
        let mark = match lexeme.kind {
            Kind::Mark(b'.') => None,
            Kind::Mark(mark) => Some(mark),
            _ => None,
        };
        let joins = |last: &&mut Piece| {
            let touches = last.range.end == lexeme.start || is_date_and_time(text, last, &lexeme);
            last.mark.is_none() && mark.is_none() && touches
        };
        match pieces.last_mut().filter(joins) {
            Some(last) => last.range.end = lexeme.end,
            None => pieces.push(Piece { mark, range: lexeme.start..lexeme.end }),
        }
    }
    pieces
}

/// Whether a date and a time of day follow one another, which are one value.
fn is_date_and_time(text: &str, date: &Piece, time: &Lexeme) -> bool {
    let digits = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    let written = &text.as_bytes()[date.range.clone()];
    date.range.end + 1 == time.start
        && written.len() == "2024-01-02".len()
        && written.iter().all(digits)
        && time.of(text).starts_with(|c: char| c.is_ascii_digit())
}

struct Walk<'s> {
    text: &'s str,
    pieces: Peekable<std::vec::IntoIter<Piece>>,
    end: usize,
    sink: &'s Sink,
    /// Whether a word is reported.
    found: bool,
}

impl Walk<'_> {
    /// Reads one value. The statement is known not to nest too deep.
    fn value(&mut self) -> Result<(), Diagnostic> {
        let Some(piece) = self.pieces.next() else {
            return Err(missing(Span::at(self.end, 0)));
        };
        match piece.mark {
            None => {
                self.word(&piece);
                Ok(())
            }
            Some(b'[') => self.list(&piece),
            Some(b'{') => self.table(&piece),
            Some(b'=') => Err(double_equals(&piece)),
            Some(_) => Err(missing(piece.span())),
        }
    }

    fn word(&mut self, piece: &Piece) {
        let word = &self.text[piece.range.clone()];
        if let Some(story) = word::explain(word) {
            let error = Diagnostic::new(story.message, piece.span(), story.label);
            self.sink.report(error.with_help(story.help));
            self.found = true;
        }
    }

    fn list(&mut self, open: &Piece) -> Result<(), Diagnostic> {
        loop {
            if self.closes(open, b']')? {
                return Ok(());
            }
            if let Some(comma) = self.pieces.next_if(|piece| piece.mark == Some(b',')) {
                return Err(stray_comma(&comma));
            }
            self.value()?;
            if let Some(equals) = self.pieces.next_if(|piece| piece.mark == Some(b'=')) {
                return Err(Diagnostic::new("a list has no names", equals.span(), "not in a list")
                    .with_label(open.span(), "a list")
                    .with_help("write the table in braces: `{ name = \"value\" }`"));
            }
            self.comma(b']')?;
        }
    }

    fn table(&mut self, open: &Piece) -> Result<(), Diagnostic> {
        loop {
            if self.closes(open, b'}')? {
                return Ok(());
            }
            let Some(name) = self.pieces.next() else { return Ok(()) };
            match name.mark {
                Some(b',') => return Err(stray_comma(&name)),
                Some(_) => return Err(nameless(&name)),
                None => {}
            }
            if self.pieces.next_if(|piece| piece.mark == Some(b'=')).is_none() {
                return Err(self.no_equals(&name));
            }
            self.value()?;
            self.comma(b'}')?;
        }
    }

    /// Steps over the bracket that closes another, if it is next; one of the other kind is an
    /// error.
    fn closes(&mut self, open: &Piece, close: u8) -> Result<bool, Diagnostic> {
        let Some(piece) = self.pieces.next_if(|it| matches!(it.mark, Some(b']' | b'}'))) else {
            return Ok(false);
        };
        if piece.mark == Some(close) {
            return Ok(true);
        }
        let close = char::from(close);
        Err(Diagnostic::new(format!("`{close}` must stand here"), piece.span(), "the other kind")
            .with_label(open.span(), "opened here")
            .with_help(format!("write `{close}`")))
    }

    /// Steps over the comma behind a value, which may be missing in front of the closing bracket.
    fn comma(&mut self, close: u8) -> Result<(), Diagnostic> {
        let comma = self.pieces.next_if(|piece| piece.mark == Some(b','));
        match self.pieces.peek() {
            Some(next) if comma.is_none() && !matches!(next.mark, Some(b']' | b'}')) => {
                let what = if close == b']' { "values of a list" } else { "entries of a table" };
                let message = format!("a `,` is missing between two {what}");
                Err(Diagnostic::new(message, next.span(), "no comma in front of this")
                    .with_help("put a `,` between them"))
            }
            _ => Ok(()),
        }
    }

    fn no_equals(&self, name: &Piece) -> Diagnostic {
        let word = &self.text[name.range.clone()];
        let (message, help) = match word.split_once(':') {
            Some((word, _)) if !word.is_empty() => (
                "a value is given with `=`, not with `:`".to_owned(),
                format!("write {}", quote(&format!("{word} = …"))),
            ),
            _ => (
                format!("{} has no value", quote(word)),
                "a table has names with values, `{ name = \"value\" }`; a list of values is \
                 written `[\"a\", \"b\"]`"
                    .to_owned(),
            ),
        };
        Diagnostic::new(message, name.span(), "no `=` behind it").with_help(help)
    }

    /// The error that something stands behind the value.
    fn behind(&self, piece: &Piece) -> Diagnostic {
        let span = piece.span();
        match piece.mark {
            Some(b']' | b'}') => {
                let bracket = &self.text[piece.range.clone()];
                Diagnostic::new(format!("this `{bracket}` closes nothing"), span, "no open bracket")
                    .with_help("remove it")
            }
            _ => Diagnostic::new("a name has one value", span, "a second one").with_help(
                "write several as a list, `[\"a\", \"b\"]`, and each name on a line of its own",
            ),
        }
    }
}

fn missing(span: Span) -> Diagnostic {
    Diagnostic::new("a value is missing", span, "in front of this")
        .with_help("write a text in quotes, a number, `true` or `false`")
}

fn double_equals(piece: &Piece) -> Diagnostic {
    Diagnostic::new("`=` is written twice", piece.span(), "the second").with_help("remove it")
}

fn stray_comma(comma: &Piece) -> Diagnostic {
    Diagnostic::new("a value is missing in front of this `,`", comma.span(), "nothing before it")
        .with_help("remove the `,`")
}

fn nameless(piece: &Piece) -> Diagnostic {
    Diagnostic::new("a value in a table needs a name", piece.span(), "without a name")
        .with_help("write `{ name = \"value\" }`; a list of values is written `[\"a\", \"b\"]`")
}

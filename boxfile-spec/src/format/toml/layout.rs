//! Arranges tokens in lines.

use super::token::{Token, TokenKind};
use crate::format::page::Page;

/// Arranges tokens in lines. The tokens' brackets must match. `broken` has an item for each token:
/// `true` for an opening bracket that is written over several lines. Returns `None` if TOML does
/// not allow a comma, line end or comment at its position.
pub(super) fn lay_out<'s>(tokens: &[Token<'s>], broken: &[bool]) -> Option<Page<'s>> {
    let mut layout = Layout::default();
    for (at, token) in tokens.iter().enumerate() {
        let next_closes = tokens.get(at + 1).is_some_and(Token::closes);
        layout.place(token, broken[at], next_closes)?;
    }
    Some(layout.page)
}

/// The position between two brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// At the start of an element: after the opening bracket.
    Opened,
    /// At the start of an element: after a comma.
    Separated,
    /// In or after an element.
    Element,
    /// After an element whose comma is already written. The source has this comma after a comment,
    /// or has none.
    Ahead,
}

/// An array or inline table, or the brackets around the name of a table.
#[derive(Debug)]
struct Frame {
    /// Whether each element is on a separate line.
    broken: bool,
    progress: Progress,
}

#[derive(Default)]
struct Layout<'s> {
    page: Page<'s>,
    frames: Vec<Frame>,
    previous: Option<TokenKind>,
    /// Whether the line is the header of a table.
    header: bool,
    /// Whether only a comment follows the last opening bracket on its line.
    opened: bool,
}

impl<'s> Layout<'s> {
    fn place(&mut self, token: &Token<'s>, broken: bool, next_closes: bool) -> Option<()> {
        match token.kind {
            TokenKind::Comment => self.comment(token),
            // As if it were not there: the token before it decides whether a space follows.
            TokenKind::Comma if next_closes && self.ends_on_its_line() => return Some(()),
            TokenKind::Comma => self.comma()?,
            _ if token.closes() => self.close(token)?,
            _ if token.opens() => self.open(token, broken)?,
            _ => self.element(token)?,
        }
        self.opened = token.opens() || (self.opened && token.kind == TokenKind::Comment);
        self.previous = Some(token.kind);
        Some(())
    }

    fn comment(&mut self, token: &Token<'s>) {
        let ahead = self.frames.last_mut().filter(|frame| frame.progress == Progress::Element);
        if let Some(frame) = ahead {
            // No comma can follow the comment on its line, so the comma is written first.
            frame.progress = Progress::Ahead;
            self.page.write(false, ",");
        }
        if token.newlines > 0 || self.page.has_comment() {
            self.begin_line(token);
        }
        self.page.comment(token.text.trim_end_matches([' ', '\t']));
    }

    /// Returns whether a bracket after the element that was just written is on the same line. No comma is needed there.
    fn ends_on_its_line(&self) -> bool {
        let frame = self.frames.last().filter(|_| !self.header);
        frame.is_some_and(|it| !it.broken && it.progress == Progress::Element)
    }

    fn comma(&mut self) -> Option<()> {
        let frame = self.frames.last_mut().filter(|_| !self.header)?;
        let progress = std::mem::replace(&mut frame.progress, Progress::Separated);
        match progress {
            Progress::Element => self.page.write(false, ","),
            Progress::Ahead => {}
            Progress::Opened | Progress::Separated => return None,
        }
        Some(())
    }

    fn close(&mut self, token: &Token<'s>) -> Option<()> {
        let frame = self.frames.pop()?;
        if frame.broken && self.previous.is_some_and(|previous| !opens(previous)) {
            if frame.progress == Progress::Element {
                self.page.write(false, ",");
            }
            self.begin_line(token);
        }
        self.write(token);
        Some(())
    }

    fn open(&mut self, token: &Token<'s>, broken: bool) -> Option<()> {
        self.element(token)?;
        self.frames.push(Frame { broken, progress: Progress::Opened });
        (!(self.header && broken)).then_some(())
    }

    /// Writes a token of an element, or outside of all brackets a token of a statement.
    fn element(&mut self, token: &Token<'s>) -> Option<()> {
        let Some(frame) = self.frames.last_mut() else {
            self.statement(token);
            return Some(());
        };
        let progress = std::mem::replace(&mut frame.progress, Progress::Element);
        match progress {
            Progress::Opened | Progress::Separated if frame.broken => self.begin_line(token),
            Progress::Opened | Progress::Separated => {}
            Progress::Element if token.newlines == 0 => {}
            Progress::Element | Progress::Ahead => return None,
        }
        self.write(token);
        Some(())
    }

    /// Writes a token that is outside of all brackets.
    fn statement(&mut self, token: &Token<'s>) {
        if token.newlines > 0 {
            self.begin_line(token);
        }
        if self.page.is_line_empty() && token.kind == TokenKind::LeftSquareBracket {
            self.page.set_apart();
            self.header = true;
        }
        self.write(token);
    }

    fn begin_line(&mut self, token: &Token<'s>) {
        let start = self.opened || std::mem::take(&mut self.header);
        let depth = self.frames.iter().filter(|frame| frame.broken).count();
        self.page.begin(depth, token.newlines > 1 && !token.closes() && !start);
        self.opened = false;
    }

    fn write(&mut self, token: &Token<'s>) {
        let space = self.previous.is_some_and(|previous| has_space(previous, token.kind));
        self.page.write(space, token.text);
    }
}

const fn opens(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket)
}

/// Returns whether there is a space between two tokens on one line.
const fn has_space(left: TokenKind, right: TokenKind) -> bool {
    match (left, right) {
        (TokenKind::LeftCurlyBracket, TokenKind::RightCurlyBracket)
        | (TokenKind::Dot | TokenKind::LeftSquareBracket, _)
        | (_, TokenKind::Dot | TokenKind::RightSquareBracket) => false,
        // A space also separates the parts of one value, such as a date and a time.
        _ => true,
    }
}

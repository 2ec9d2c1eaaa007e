//! Arranges tokens in lines.

use super::token::{Lexeme, Token};
use crate::format::page::Page;
use crate::syntax::tree::MAX_DEPTH;

/// Arranges tokens in lines. Returns `None` if braces do not match or are nested more than
/// [`MAX_DEPTH`] deep, or if a `/-` has no target.
pub(super) fn lay_out<'s>(tokens: &[Token<'s>]) -> Option<Page<'s>> {
    let mut layout = Layout::default();
    for token in tokens {
        layout.place(token)?;
    }
    (layout.depth == 0 && !layout.dashed).then_some(layout.page)
}

#[derive(Default)]
struct Layout<'s> {
    page: Page<'s>,
    depth: usize,
    previous: Option<Lexeme<'s>>,
    /// Whether the target of a `/-` is not written yet. Until then, line ends have no meaning.
    dashed: bool,
    /// Whether only comments follow the last `{` on its line.
    opened: bool,
}

impl<'s> Layout<'s> {
    fn place(&mut self, token: &Token<'s>) -> Option<()> {
        if self.dashed && (token.ended || matches!(token.kind, Lexeme::Close | Lexeme::Dash)) {
            return None;
        }
        if token.kind == Lexeme::Close {
            self.depth = self.depth.checked_sub(1)?;
        }
        if self.breaks_before(token) {
            self.begin_line(token);
        }
        let Some(kind) = self.resolve(token.kind) else { return Some(()) };
        self.write(kind);
        if kind == Lexeme::Open {
            self.depth += 1;
        }
        let comment = matches!(kind, Lexeme::BlockComment(_) | Lexeme::LineComment(_));
        self.dashed = kind == Lexeme::Dash || (self.dashed && comment);
        self.opened = kind == Lexeme::Open || (self.opened && comment);
        self.previous = Some(kind);
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn breaks_before(&self, token: &Token<'s>) -> bool {
        let Some(previous) = self.previous else { return false };
        match (previous, token.kind) {
            (Lexeme::LineComment(_) | Lexeme::Join(_), _) => true,
            (Lexeme::Open, Lexeme::Close) => false,
            (_, Lexeme::Close) => true,
            _ if self.dashed => false,
            (_, Lexeme::LineComment(_)) => token.newlines > 0,
            (Lexeme::Open, _) => true,
            _ => token.newlines > 0 || token.ended,
        }
    }

    fn begin_line(&mut self, token: &Token<'s>) {
        // Whether the statement continues.
        let inside = self.dashed || matches!(self.previous, Some(Lexeme::Join(_)));
        let blank = token.newlines > 1 && token.kind != Lexeme::Close && !self.opened && !inside;
        self.page.begin(self.depth + usize::from(inside), blank);
        self.opened = false;
    }

    /// Returns the lexeme to write for a token. At the start of a statement or line, a `\` joins
    /// nothing: only its comment is written, if it has one.
    fn resolve(&self, kind: Lexeme<'s>) -> Option<Lexeme<'s>> {
        let Lexeme::Join(comment) = kind else { return Some(kind) };
        let at_start = self.page.is_line_empty() || self.dashed;
        match (comment, self.previous) {
            ("", Some(Lexeme::Equals)) => None,
            ("", _) if at_start => None,
            (_, Some(Lexeme::Join(_))) => Some(kind),
            _ if at_start => Some(Lexeme::LineComment(comment)),
            _ => Some(kind),
        }
    }

    fn write(&mut self, kind: Lexeme<'s>) {
        let space = self.previous.is_some_and(|previous| has_space(previous, kind));
        match kind {
            Lexeme::Word(word) => self.page.write(space, word),
            Lexeme::Equals => self.page.write(space, "="),
            Lexeme::Dash => self.page.write(space, "/-"),
            Lexeme::Open => self.page.write(space, "{"),
            Lexeme::Close => self.page.write(space, "}"),
            Lexeme::BlockComment(comment) => {
                self.page.write(space, &without_trailing_space(comment));
            }
            Lexeme::LineComment(comment) => self.page.comment(comment),
            Lexeme::Join("") => self.page.write(space, "\\"),
            Lexeme::Join(comment) => {
                self.page.write(space, "\\");
                self.page.comment(comment);
            }
        }
    }
}

/// Returns whether there is a space between two tokens on one line.
const fn has_space(left: Lexeme<'_>, right: Lexeme<'_>) -> bool {
    match (left, right) {
        (Lexeme::Dash | Lexeme::Equals, Lexeme::BlockComment(_) | Lexeme::Join(_)) => true,
        (Lexeme::Dash | Lexeme::Equals, _)
        | (Lexeme::Word(_), Lexeme::Equals)
        | (Lexeme::Open, Lexeme::Close) => false,
        _ => true,
    }
}

/// Removes the white space at the end of each line of a comment.
fn without_trailing_space(comment: &str) -> String {
    comment.split('\n').map(str::trim_end).collect::<Vec<_>>().join("\n")
}

//! From tokens to lines.

use super::token::{Kind, Token};
use crate::format::page::Page;
use crate::syntax::tree::DEEPEST;

/// Lays tokens out; nothing if braces do not match or a `/-` has nothing behind it.
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
    previous: Option<Kind<'s>>,
    /// Whether a `/-` waits for what it comments out: line ends mean nothing until then.
    dashed: bool,
    /// Whether nothing but a comment stands behind the last `{`.
    opened: bool,
}

impl<'s> Layout<'s> {
    fn place(&mut self, token: &Token<'s>) -> Option<()> {
        if self.dashed && (token.ended || matches!(token.kind, Kind::Close | Kind::Dash)) {
            return None;
        }
        if token.kind == Kind::Close {
            self.depth = self.depth.checked_sub(1)?;
        }
        if self.breaks_before(token) {
            self.begin_line(token);
        }
        let Some(kind) = self.resolve(token.kind) else { return Some(()) };
        self.write(kind);
        if kind == Kind::Open {
            self.depth += 1;
        }
        let comment = matches!(kind, Kind::BlockComment(_) | Kind::LineComment(_));
        self.dashed = kind == Kind::Dash || (self.dashed && comment);
        self.opened = kind == Kind::Open || (self.opened && comment);
        self.previous = Some(kind);
        (self.depth <= DEEPEST).then_some(())
    }

    fn breaks_before(&self, token: &Token<'s>) -> bool {
        let Some(previous) = self.previous else { return false };
        match (previous, token.kind) {
            (Kind::LineComment(_) | Kind::Join(_), _) => true,
            (Kind::Open, Kind::Close) => false,
            (_, Kind::Close) => true,
            _ if self.dashed => false,
            (_, Kind::LineComment(_)) => token.newlines > 0,
            (Kind::Open, _) => true,
            _ => token.newlines > 0 || token.ended,
        }
    }

    fn begin_line(&mut self, token: &Token<'s>) {
        // Whether the statement goes on.
        let inside = self.dashed || matches!(self.previous, Some(Kind::Join(_)));
        let blank = token.newlines > 1 && token.kind != Kind::Close && !self.opened && !inside;
        self.page.begin(self.depth + usize::from(inside), blank);
        self.opened = false;
    }

    /// Returns what to write for a token. Where a statement or line begins, a `\` joins nothing:
    /// there it is its comment, or nothing at all.
    fn resolve(&self, kind: Kind<'s>) -> Option<Kind<'s>> {
        let Kind::Join(comment) = kind else { return Some(kind) };
        let at_start = self.page.is_line_empty() || self.dashed;
        match (comment, self.previous) {
            ("", Some(Kind::Equals)) => None,
            ("", _) if at_start => None,
            (_, Some(Kind::Join(_))) => Some(kind),
            _ if at_start => Some(Kind::LineComment(comment)),
            _ => Some(kind),
        }
    }

    fn write(&mut self, kind: Kind<'s>) {
        let space = self.previous.is_some_and(|previous| has_space(previous, kind));
        match kind {
            Kind::Word(word) => self.page.write(space, word),
            Kind::Equals => self.page.write(space, "="),
            Kind::Dash => self.page.write(space, "/-"),
            Kind::Open => self.page.write(space, "{"),
            Kind::Close => self.page.write(space, "}"),
            Kind::BlockComment(comment) => self.page.write(space, &without_trailing_space(comment)),
            Kind::LineComment(comment) => self.page.comment(comment),
            Kind::Join("") => self.page.write(space, "\\"),
            Kind::Join(comment) => {
                self.page.write(space, "\\");
                self.page.comment(comment);
            }
        }
    }
}

/// Tells whether a space stands between two tokens on one line.
const fn has_space(left: Kind<'_>, right: Kind<'_>) -> bool {
    match (left, right) {
        (Kind::Dash | Kind::Equals, Kind::BlockComment(_) | Kind::Join(_)) => true,
        (Kind::Dash | Kind::Equals, _)
        | (Kind::Word(_), Kind::Equals)
        | (Kind::Open, Kind::Close) => false,
        _ => true,
    }
}

/// Ends every line of a comment with its last mark and a line feed.
fn without_trailing_space(comment: &str) -> String {
    comment.split('\n').map(str::trim_end).collect::<Vec<_>>().join("\n")
}

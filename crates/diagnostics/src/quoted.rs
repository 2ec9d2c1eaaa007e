//! Texts in quotes, in each syntax.

use safe_text::visible;

use crate::Syntax;

/// Writes a text in quotes, as the syntax reads it back. What an editor or a review would not show, or
/// would show elsewhere, is escaped as well (KDL 2.0, "Quoted String"; TOML 1.0, "String").
pub fn in_quotes(syntax: Syntax, text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if visible(c) == c => c.to_string(),
        c if syntax == Syntax::Kdl => format!("\\u{{{:x}}}", u32::from(c)),
        c => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Returns what writes a character in a quoted string by its number.
pub fn escape(syntax: Syntax) -> fn(u32) -> String {
    match syntax {
        Syntax::Kdl => |code| format!("\\u{{{code:x}}}"),
        Syntax::Toml => |code| match code {
            ..0x1_0000 => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        },
    }
}

//! Quoted strings in each syntax.

use safe_text::visible;

use crate::Syntax;

/// Quotes a text so that the syntax reads it back ([KDL 2.0](https://kdl.dev/spec/), "Quoted String";
/// [TOML 1.0](https://toml.io/en/v1.0.0#string), "String"). Characters that an editor would hide or reorder are escaped, too.
///
/// # Examples
/// ```
/// use diagnostics::{Syntax, in_quotes};
///
/// assert_eq!(in_quotes(Syntax::Kdl, "say \"hi\"\u{200b}"), r#""say \"hi\"\u{200b}""#);
/// assert_eq!(in_quotes(Syntax::Toml, "\u{200b}"), r#""\U0000200B""#);
/// ```
pub fn in_quotes(syntax: Syntax, text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if visible(c) == c => c.to_string(),
        c if syntax == Syntax::Kdl => format!("\\u{{{:x}}}", u32::from(c)),
        c => format!("\\U{:08X}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// Returns a declaration whose arguments are texts.
///
/// # Examples
/// ```
/// use diagnostics::{Syntax, with_texts};
///
/// let texts = ["-p", "80"].map(str::to_owned);
/// assert_eq!(with_texts(Syntax::Kdl, "args", &texts), r#"args "-p" "80""#);
/// assert_eq!(with_texts(Syntax::Toml, "args", &texts), r#"args = ["-p", "80"]"#);
/// ```
pub fn with_texts(syntax: Syntax, name: &str, texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| in_quotes(syntax, text)).collect();
    match syntax {
        Syntax::Kdl => format!("{name} {}", quoted.join(" ")),
        Syntax::Toml => format!("{name} = [{}]", quoted.join(", ")),
    }
}

/// Returns a function that formats a character's code as an escape in a quoted string.
pub fn escape(syntax: Syntax) -> fn(u32) -> String {
    match syntax {
        Syntax::Kdl => |code| format!("\\u{{{code:x}}}"),
        Syntax::Toml => |code| match code {
            ..0x1_0000 => format!("\\u{code:04x}"),
            _ => format!("\\U{code:08x}"),
        },
    }
}

//! Leaves tests out.

use super::token::Token;

/// Items that end with a semicolon, even after braces.
const ENDED_BY_SEMICOLON: [&str; 5] = ["use", "const", "static", "type", "let"];
/// Items that end with a closing brace or, without a body, with a semicolon.
const ENDED_BY_BRACE: [&str; 11] = [
    "mod",
    "fn",
    "impl",
    "struct",
    "enum",
    "trait",
    "unsafe",
    "async",
    "extern",
    "union",
    "macro_rules",
];

/// How an item ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Semicolon,
    Brace,
    /// A field, a variant or a match arm.
    Comma,
}

/// Returns the tokens that are not part of an item for tests alone: one with `#[cfg(test)]`, or
/// `#[cfg(all(…))]` with `test` among the conditions.
pub(crate) fn production<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens;
    while let [first, ..] = rest {
        let Some((attribute, after)) = attribute(rest) else {
            kept.push(*first);
            rest = &rest[1..];
            continue;
        };
        if !is_for_tests(attribute) {
            kept.extend_from_slice(attribute);
            rest = after;
        } else if attribute[1].is("!") {
            return Vec::new();
        } else {
            rest = after_item(after);
        }
    }
    kept
}

/// Splits off an attribute, if `tokens` begins with one.
fn attribute<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(&'t [Token<'a>], &'t [Token<'a>])> {
    let bracket = match tokens {
        [hash, open, ..] if hash.is("#") && open.is("[") => 1,
        [hash, inner, open, ..] if hash.is("#") && inner.is("!") && open.is("[") => 2,
        _ => return None,
    };
    Some(tokens.split_at(bracket + group(&tokens[bracket..])))
}

/// Returns the number of tokens up to and with the end of the group that the first one opens.
pub(super) fn group(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        depth = nested(depth, token);
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

fn nested(depth: usize, token: &Token<'_>) -> usize {
    match token {
        _ if ["(", "[", "{"].iter().any(|open| token.is(open)) => depth + 1,
        _ if [")", "]", "}"].iter().any(|close| token.is(close)) => depth.saturating_sub(1),
        _ => depth,
    }
}

fn is_for_tests(attribute: &[Token<'_>]) -> bool {
    let words: Vec<_> = attribute.iter().map(|it| it.text).filter(|it| *it != "!").collect();
    match words.as_slice() {
        ["#", "[", "cfg", "(", "test", ")", "]"] => true,
        ["#", "[", "cfg", "(", "all", rest @ ..] => {
            rest.contains(&"test") && !rest.contains(&"not") && !rest.contains(&"any")
        }
        _ => false,
    }
}

/// Returns what follows the item that `tokens` begins with.
fn after_item<'t, 'a>(tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    if let Some((_, after)) = attribute(tokens) {
        return after_item(after);
    }
    let end = end_of(tokens);
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        if depth == 0 && token.is("}") {
            return &tokens[at..];
        }
        depth = nested(depth, token);
        let ended = match end {
            End::Semicolon => token.is(";"),
            End::Brace => token.is(";") || token.is("}"),
            End::Comma => token.is(","),
        };
        if depth == 0 && ended {
            return &tokens[at + 1..];
        }
    }
    &[]
}

/// Returns how the item ends that `tokens` begins with.
fn end_of(tokens: &[Token<'_>]) -> End {
    let start = match tokens {
        [public, open, ..] if public.is("pub") && open.is("(") => 1 + group(&tokens[1..]),
        [public, ..] if public.is("pub") => 1,
        _ => 0,
    };
    let is = |at: usize, list: &[&str]| {
        tokens.get(at).is_some_and(|token| list.iter().any(|word| token.is(word)))
    };
    if is(start, &["const"]) && is(start + 1, &["fn", "unsafe", "async", "extern"]) {
        return End::Brace;
    }
    if is(start, &ENDED_BY_SEMICOLON) {
        return End::Semicolon;
    }
    if is(start, &ENDED_BY_BRACE) { End::Brace } else { End::Comma }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tokens;

    fn kept(text: &str) -> String {
        let tokens = tokens(text);
        production(&tokens).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn items_for_tests_are_left_out_to_their_end() {
        assert_eq!(kept("a; #[cfg(test)] mod tests { fn f() { x[1]; } } b;"), "a ; b ;");
        assert_eq!(kept("#[cfg(test)] mod tests; b;"), "b ;");
        assert_eq!(kept("#[cfg(test)] pub(crate) use a::{b, c}; d"), "d");
        assert_eq!(kept("#[cfg(test)] #[allow(x)] const fn f<A, B>() {} d"), "d");
        assert_eq!(kept("#[cfg(test)] const A: [u8; 2] = [0; 2]; d"), "d");
        assert_eq!(kept("#[cfg(all(test, unix))] impl A<B, C> for D {} e"), "e");
    }

    #[test]
    fn fields_and_variants_for_tests_are_left_out() {
        assert_eq!(kept("enum A { B, #[cfg(test)] C(u8, u8), D }"), "enum A { B , D }");
        assert_eq!(kept("struct A { #[cfg(test)] b: u8 } c"), "struct A { } c");
    }

    #[test]
    fn other_conditions_are_kept() {
        for text in ["# [ cfg ( unix ) ] mod a ;", "# [ cfg ( not ( test ) ) ] mod a ;"] {
            assert_eq!(kept(text), text);
        }
        let either = "# [ cfg ( any ( test , fuzzing ) ) ] mod a ;";
        assert_eq!(kept(either), either);
    }

    #[test]
    fn a_whole_file_can_be_for_tests() {
        assert_eq!(kept("#![cfg(test)] mod a;"), "");
        assert_eq!(kept("#![forbid(unsafe_code)] a"), "# ! [ forbid ( unsafe_code ) ] a");
    }
}

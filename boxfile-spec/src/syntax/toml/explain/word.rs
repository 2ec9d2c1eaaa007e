//! What is wrong with a single value: a text, number or word.

use toml::de::{DeInteger, DeValue};

use crate::diagnostic::quote;

/// What there is to say about a word that cannot be read.
pub(super) struct Story {
    pub(super) message: String,
    pub(super) label: &'static str,
    pub(super) help: String,
}

/// What may be wrong with a word, in the order in which it is looked for.
const RULES: [fn(&str) -> Option<Story>; 7] =
    [unclosed, touching, malformed_text, typographic_quotes, keyword, missing_quote, not_a_number];

/// Tells what is wrong with a word; nothing if it is a value.
pub(super) fn explain(word: &str) -> Option<Story> {
    match DeValue::parse(word).map(toml::Spanned::into_inner) {
        Ok(DeValue::Integer(number)) => {
            return integer(&number).is_none().then(|| unusable(word));
        }
        Ok(_) => return None,
        Err(_) => {}
    }
    RULES.iter().find_map(|rule| rule(word)).or_else(|| {
        Some(Story {
            message: format!("{} must stand in quotes", quote(word)),
            label: "a bare word",
            help: format!("write `{}`", in_quotes(word)),
        })
    })
}

/// Writes a word as a text in quotes, for the user to copy.
pub(super) fn in_quotes(word: &str) -> String {
    let word = word.trim_matches(['"', '\'', '“', '”', '„', '‘', '’']);
    if word.chars().count() > 100 {
        return "\"…\"".to_owned();
    }
    if word.contains('\\') && !word.contains('\'') {
        return format!("'{word}'");
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the text in quotes that a word begins with, if it does and they are closed.
fn leading_text(word: &str) -> Option<&str> {
    use crate::syntax::toml::lexeme::{Kind, Lexemes};
    let first = Lexemes::new(word, 0).next()?;
    matches!(first.kind, Kind::Text { closed: true, .. }).then(|| first.of(word))
}

/// Returns a whole number, if it is one of a size that can be told.
pub(in crate::syntax::toml) fn integer(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

fn unusable(word: &str) -> Story {
    if word.len() < 30 {
        return Story {
            message: format!("{} is not a number", quote(word)),
            label: "without digits",
            help: "write its digits, or a text in quotes".to_owned(),
        };
    }
    Story {
        message: "this number is too large".to_owned(),
        label: "too large",
        help: "no number in a Boxfile is greater than 4194304; write a text in quotes".to_owned(),
    }
}

fn unclosed(word: &str) -> Option<Story> {
    let quote = word.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    leading_text(word).is_none().then(|| Story {
        message: "this text is never closed".to_owned(),
        label: "no closing quote on this line",
        help: format!("close it with `{quote}`"),
    })
}

fn touching(word: &str) -> Option<Story> {
    let rest = &word[leading_text(word)?.len()..];
    (!rest.is_empty()).then(|| Story {
        message: format!("{} touches the text in front of it", quote(rest)),
        label: "two things without a space",
        help: "remove what is behind the closing quote; inside of a text in `\"…\"`, a quote is \
               written `\\\"`"
            .to_owned(),
    })
}

fn malformed_text(word: &str) -> Option<Story> {
    leading_text(word)?;
    Some(Story {
        message: "this text cannot be read".to_owned(),
        label: "malformed",
        help: if word.starts_with('"') {
            "a backslash begins an escape such as `\\n`; write `\\\\` for a backslash, or the text \
             in `'…'`, where nothing is an escape"
                .to_owned()
        } else {
            "write it in `\"…\"`".to_owned()
        },
    })
}

fn typographic_quotes(word: &str) -> Option<Story> {
    word.contains(['“', '”', '„', '‘', '’']).then(|| Story {
        message: "typographic quotes are not quotes".to_owned(),
        label: "not a text in quotes",
        help: format!("write `{}`", in_quotes(word)),
    })
}

fn keyword(word: &str) -> Option<Story> {
    let meant = match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => "write `true`",
        "false" | "no" | "off" => "write `false`",
        "null" | "nil" | "none" => "leave it out where there is nothing to say",
        _ => return None,
    };
    Some(Story {
        message: format!("{} is neither a text nor a truth value", quote(word)),
        label: "a bare word",
        help: format!("{meant}, or `\"{word}\"` for the text"),
    })
}

fn missing_quote(word: &str) -> Option<Story> {
    word.ends_with(['"', '\'']).then(|| Story {
        message: "this text has no opening quote".to_owned(),
        label: "a closing quote alone",
        help: format!("write `{}`", in_quotes(word)),
    })
}

fn not_a_number(word: &str) -> Option<Story> {
    let digits = word.trim_start_matches(['+', '-', '.']);
    let number: String = word.chars().filter(|c| *c != '_').take(100).collect();
    let number = Some(number).filter(|number| DeValue::parse(number).is_ok());
    digits.starts_with(|c: char| c.is_ascii_digit()).then(|| Story {
        message: format!("{} is not a number", quote(word)),
        label: "begins like a number",
        help: match number {
            Some(number) => format!("write `{number}`"),
            None => format!("write a text in quotes: `{}`", in_quotes(word)),
        },
    })
}

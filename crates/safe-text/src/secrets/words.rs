//! Finds secrets in command lines, and in texts that contain command lines.

use std::ops::Range;

use super::{MASK, is_harmless, is_private_key, is_secret, is_token};
use crate::is_variable;

/// A secret in a command line or a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The option or variable of which the secret is the value, as it is written.
    pub option: Option<String>,
    /// The span of the secret in the argument, in bytes.
    pub place: Range<usize>,
}

impl Leak {
    /// Returns the name of a variable that could hold the secret.
    pub fn variable(&self) -> String {
        let name = self.option.as_deref().map(variable_of).filter(|name| is_variable(name));
        name.unwrap_or_else(|| "API_TOKEN".to_owned())
    }
}

/// Returns the variable that corresponds to an option: `--api-key` → `API_KEY`.
pub(super) fn variable_of(option: &str) -> String {
    option.trim_start_matches('-').replace(['-', '.'], "_").to_ascii_uppercase()
}

/// Finds the secrets in an argument of a command line, or in a text. `before` is the argument before it.
///
/// Secrets are well-known tokens, and values with the name of a secret: `--password=…`, `PASSWORD=…`, or
/// the argument after `--password`. The words of a text that begins with an option are read as arguments.
///
/// A value that begins with `$` is a shell variable and not a secret.
///
/// # Examples
///
/// ```
/// use safe_text::secrets::leaks;
///
/// let found = leaks(None, "--password=hunter2");
/// assert_eq!(found[0].place, 11..18);
/// assert!(leaks(None, "--password=$PASSWORD").is_empty());
/// ```
pub fn leaks(before: Option<&str>, argument: &str) -> Vec<Leak> {
    let option = before.filter(|it| is_option(it));
    let is_word = !argument.contains(char::is_whitespace);
    if is_private_key(argument) || (is_word && is_token(argument)) {
        return vec![Leak { option: None, place: 0..argument.len() }];
    }
    if let Some(option) = option.filter(|it| is_value_of(it, argument)) {
        return vec![Leak { option: Some(option.to_owned()), place: 0..argument.len() }];
    }
    if let Some(leak) = header(argument) {
        return vec![leak];
    }
    let (mut found, mut last) = (Vec::<Leak>::new(), "");
    let options = argument.starts_with('-');
    for place in words(argument) {
        // A quoted value may contain blanks.
        if found.last().is_some_and(|it| place.start < it.place.end) {
            continue;
        }
        let word = &argument[place.clone()];
        if options && is_option(last) && is_value_of(last, bare(word)) {
            found.push(Leak { option: Some(last.to_owned()), place: whole(argument, place) });
        } else {
            found.extend(secrets_of_word(argument, place));
        }
        last = word;
    }
    found
}

/// Finds the secret of an HTTP header, which has one word or two: `Authorization: Bearer …`. `Password: …` is no secret
/// here, because it may be a prompt.
fn header(argument: &str) -> Option<Leak> {
    let (name, value) = argument.split_once(": ")?;
    if !name.contains('-') && !["authorization", "cookie"].contains(&&*name.to_ascii_lowercase()) {
        return None;
    }
    let (variable, value) = (variable_of(name), value.trim());
    let words: Vec<&str> = value.split_whitespace().take(3).collect();
    let is_value = words.len() < 3 && words.last().is_some_and(|it| is_plain(it));
    (is_value && is_variable(&variable) && is_secret(&variable, value))
        .then(|| Leak { option: Some(name.to_owned()), place: place_of(argument, value) })
}

/// Finds the secrets in one word of a text. The word may be a URL with parameters.
fn secrets_of_word(text: &str, place: Range<usize>) -> Vec<Leak> {
    let word = &text[place.clone()];
    if let Some(leak) = assigned(text, place.clone()) {
        return vec![leak];
    }
    if is_token(bare(word)) {
        return vec![Leak { option: None, place }];
    }
    let parameters = word.split_once('?').into_iter().flat_map(|(_, query)| query.split('&'));
    parameters.filter_map(|it| assigned(text, place_of(text, it))).collect()
}

/// Finds the secret that a word assigns to a name.
fn assigned(text: &str, place: Range<usize>) -> Option<Leak> {
    let (option, value) = text[place.clone()].split_once('=')?;
    let (option, plain) = (bare(option), bare(value));
    let variable = variable_of(option);
    let is_secret = is_variable(&variable) && is_plain(plain) && is_secret(&variable, plain);
    is_secret.then(|| Leak {
        option: Some(option.to_owned()),
        place: whole(text, place.end - value.len()..place.end),
    })
}

/// Extends the span of a word that begins with a quote to the closing quote.
fn whole(text: &str, place: Range<usize>) -> Range<usize> {
    let Some(quote) = text[place.clone()].chars().next().filter(|it| "\"'".contains(*it)) else {
        return place;
    };
    let rest = &text[place.start + 1..];
    let end = rest.find(quote).map_or(text.len(), |it| place.start + it + 2);
    place.start..end.max(place.end)
}

fn is_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ' '])
}

/// Returns whether `word`, which follows `option`, is a secret: `hunter2` after `--password`.
fn is_value_of(option: &str, word: &str) -> bool {
    !word.starts_with('-') && is_plain(word) && is_secret(&variable_of(option), word)
}

fn is_plain(value: &str) -> bool {
    !value.starts_with('$') && !is_harmless(value)
}

/// Returns a word without the quotes and punctuation around it.
pub(super) fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| "\"'`,;()".contains(c))
}

/// Returns the spans of the words of a text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split_whitespace().map(move |word| place_of(text, word))
}

/// Returns the span of `part` in `text`, of which it is a slice.
fn place_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

/// Replaces the secrets in the words of a command line by [`MASK`]. Returns the indices of the changed
/// words.
pub fn mask_words(words: &mut [String]) -> Vec<usize> {
    let mut masked = Vec::new();
    for at in 0..words.len() {
        let before = at.checked_sub(1).map(|it| words[it].clone());
        let found = leaks(before.as_deref(), &words[at]);
        if !found.is_empty() {
            masked.push(at);
        }
        for leak in found.into_iter().rev() {
            words[at].replace_range(leak.place, MASK);
        }
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_command_lines() {
        for (before, argument, option) in [
            (None, "--password=hunter2", Some("--password")),
            (None, "--api-key=x", Some("--api-key")),
            (Some("--db.password"), "hunter2", Some("--db.password")),
            (None, "exec app --token='x y'", Some("--token")),
            (None, "TOKEN=x exec app", Some("TOKEN")),
            (None, "use ghp_0123456789abcdef for it", None),
            (Some("-v"), "AKIA0123456789ABCDEF", None),
            (None, "--header=AKIA0123456789ABCDEF", Some("--header")),
            (None, "--url=postgres://u:hunter2@db/x", None),
            (None, "--verbose --password hunter2", Some("--password")),
        ] {
            let found = leaks(before, argument);
            assert_eq!(found.len(), 1, "{argument}");
            assert_eq!(found[0].option.as_deref(), option, "{argument}");
        }
        for (before, argument) in [
            (None, "--password"),
            (Some("--password"), "--verbose"),
            (Some("--password"), "$PASSWORD"),
            (None, "exec app --password=$PASSWORD --token=\"${TOKEN}\""),
            (None, "--password-file=/run/secrets/password"),
            (None, "explain what --password does"),
            (Some("--password=$X"), "input"),
            (None, "--max-token=4096"),
            (None, "a=b"),
            (Some("--auth"), "basic"),
        ] {
            assert!(leaks(before, argument).is_empty(), "{argument}");
        }
        let variable = |option: Option<&str>| {
            Leak { option: option.map(str::to_owned), place: 0..0 }.variable()
        };
        assert_eq!(variable(Some("--api-key")), "API_KEY");
        assert_eq!([variable(None), variable(Some("-"))], ["API_TOKEN"; 2]);
    }

    #[test]
    fn every_secret_of_a_command_line_is_masked() {
        for (line, masked, at) in [
            (
                &["app", "--token=AAA", "--password", "BBB"][..],
                "app|--token=****|--password|****",
                &[1, 3][..],
            ),
            (
                &["sh", "-c", "A_TOKEN=x B_TOKEN='y z' exec app"],
                "sh|-c|A_TOKEN=**** B_TOKEN=**** exec app",
                &[2],
            ),
            (&["--token='a b", "c"], "--token=****|c", &[0]),
            (&["--url", "https://u:p@h/x", "-v"], "--url|****|-v", &[1]),
            (&["say ghp_0123456789abcdef, please"], "say **** please", &[0]),
            (&["é", "PASSWORD=é é"], "é|PASSWORD=**** é", &[1]),
            (&["app", "--port=80"], "app|--port=80", &[]),
        ] {
            let mut words: Vec<String> = line.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(mask_words(&mut words), at);
            assert_eq!(words.join("|"), masked);
        }
    }
}

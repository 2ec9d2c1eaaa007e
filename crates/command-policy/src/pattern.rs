//! Patterns of the Boxfile, and globs of shells.

use crate::shell::Word;

/// Returns whether a pattern of `allow` describes a program and its arguments. It is stricter than [`is_match`]: each word of the
/// pattern describes one word of the command, so that its `*` stands for no blank. A last word `*` stands for any further words, also
/// for none. Only these may be unknown.
pub(crate) fn is_allowed(pattern: &str, words: &[Word]) -> bool {
    let parts: Vec<&str> = pattern.split_whitespace().collect();
    let (parts, takes_more) = match parts.split_last() {
        Some((&"*", before)) => (before, true),
        _ => (parts.as_slice(), false),
    };
    let has_length = words.len() == parts.len() || (takes_more && words.len() > parts.len());
    has_length && !words.is_empty() && parts.iter().zip(words).all(|(it, word)| is_part(it, word))
}

fn is_part(part: &str, word: &Word) -> bool {
    let is_one = !word.is_unknown && !word.has_glob && !word.text.contains(char::is_whitespace);
    is_one && matches(part, &word.text, false)
}

/// Returns whether a text is one that a pattern of `forbid` or `ask` describes. `*` stands for any text. ` *` at the end stands for any arguments, also
/// for none.
pub(crate) fn is_match(pattern: &str, text: &str) -> bool {
    let without_arguments = pattern.strip_suffix(" *");
    without_arguments.is_some_and(|it| matches(it, text, false)) || matches(pattern, text, false)
}

/// Returns whether a shell's glob describes a name. `[…]` stands for any character.
pub(crate) fn is_glob_match(glob: &str, name: &str) -> bool {
    matches(&simple(glob), name, true)
}

/// Returns the glob with `?` in the place of each `[…]`.
fn simple(glob: &str) -> String {
    let mut result = String::new();
    let mut rest = glob;
    while let Some((before, after)) = rest.split_once('[') {
        result += before;
        // `]` is a character of the set if it is the first one.
        let skipped = after.chars().next().map_or(0, char::len_utf8);
        let Some(end) = after[skipped..].find(']') else {
            result += "[";
            rest = after;
            continue;
        };
        result += "?";
        rest = &after[skipped + end + 1..];
    }
    result + rest
}

/// Compares with `*` and, if `has_any`, `?`. The time is at most proportional to the product of both lengths.
fn matches(pattern: &str, text: &str, has_any: bool) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut in_pattern, mut in_text) = (0, 0);
    // The last star, and the text up to which it reaches.
    let mut star: Option<(usize, usize)> = None;
    while in_text < text.len() {
        let next = pattern.get(in_pattern).copied();
        if next == Some('*') {
            star = Some((in_pattern, in_text));
            in_pattern += 1;
        } else if next == Some(text[in_text]) || (has_any && next == Some('?')) {
            in_pattern += 1;
            in_text += 1;
        } else if let Some((at, reached)) = star {
            star = Some((at, reached + 1));
            in_pattern = at + 1;
            in_text = reached + 1;
        } else {
            return false;
        }
    }
    pattern[in_pattern..].iter().all(|it| *it == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text) in [
            ("cargo test *", "cargo test --all"),
            ("cargo test *", "cargo test"),
            ("git * push", "git -C x push"),
            ("*", ""),
            ("a*b*c", "a--b--b-c"),
        ] {
            assert!(is_match(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("cargo test *", "cargo testing"),
            ("cargo test", "cargo test --all"),
            ("a*b*c", "a--c--b"),
            ("a?c", "abc"),
            ("", "a"),
        ] {
            assert!(!is_match(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_allowed_has_the_words_of_the_pattern() {
        let words = |it: &[&str]| it.iter().map(|it| Word::literal(it)).collect::<Vec<_>>();
        let allowed: [(&str, &[&str]); 5] = [
            ("git push origin agent/*", &["git", "push", "origin", "agent/x"]),
            ("git push *", &["git", "push"]),
            ("git push *", &["git", "push", "--force", "a b"]),
            ("git * status", &["git", "-q", "status"]),
            ("*", &["ls", "-l"]),
        ];
        for (pattern, command) in allowed {
            assert!(is_allowed(pattern, &words(command)), "{pattern} {command:?}");
        }
        let others: [(&str, &[&str]); 6] = [
            ("git push origin agent/*", &["git", "push", "origin", "agent/x", "HEAD:main"]),
            ("git push origin agent/*", &["git", "push", "origin", "agent/x HEAD:main"]),
            ("git push origin agent/*", &["git", "push", "origin"]),
            ("git * status", &["git", "-C", "x", "status"]),
            ("git push *", &["git push"]),
            ("", &[]),
        ];
        for (pattern, command) in others {
            assert!(!is_allowed(pattern, &words(command)), "{pattern} {command:?}");
        }
        let unknown = Word { is_unknown: true, ..Word::literal("agent/$X") };
        assert!(!is_allowed("push agent/*", &[Word::literal("push"), unknown.clone()]));
        assert!(is_allowed("push *", &[Word::literal("push"), unknown]));
    }

    #[test]
    fn a_glob_has_sets() {
        assert!(is_glob_match("e[a-z]?", "etc") && is_glob_match("[]e]tc", "etc"));
        assert!(!is_glob_match("e[a-z]", "etc") && !is_glob_match("[", "etc"));
    }
}

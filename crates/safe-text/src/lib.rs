#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsStr;
use std::iter;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

mod foreign;
mod harmless;
mod markdown;
pub mod secrets;
mod variable;

pub use foreign::ForeignWriter;
pub use harmless::Harmless;
pub use markdown::markdown_code;
pub use variable::{VARIABLE_FORM, is_variable};

/// The binary units with their sizes in bytes, the largest first.
pub const BINARY: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// Returns `c`, or U+FFFD if `c` is a control character, is invisible, or changes the reading direction. The variation
/// selectors U+FE0E and U+FE0F, which choose between text and emoji, stay.
///
/// Invisible characters are Unicode's `Default_Ignorable_Code_Point`
/// (<https://www.unicode.org/reports/tr44/#Default_Ignorable_Code_Point>), and a few that fonts show as blank.
pub const fn visible(c: char) -> char {
    match c {
        '\0'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0d}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13430}'..='\u{13455}'
        | '\u{16fe4}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Finds the characters of a text that hide something in an editor, with their offsets in bytes. These are the characters
/// that [`visible`] replaces, with the exceptions that every text may have:
///
/// - line feeds, with or without a carriage return before them, and tabs
/// - a byte order mark at the start
/// - after a visible character, one variation selector (U+FE0E or U+FE0F), or one joiner (U+200C or U+200D), which scripts
///   and emoji need
pub fn hidden(text: &str) -> impl Iterator<Item = (usize, char)> {
    let is_joiner = |c: char| matches!(c, '\u{200c}' | '\u{200d}');
    let is_selector = |c: char| matches!(c, '\u{fe0e}' | '\u{fe0f}');
    let before = move |at: usize| text[..at].chars().next_back().filter(|c| !c.is_whitespace());
    let may_be = move |at: usize, c: char| match c {
        '\n' | '\t' => true,
        c if is_joiner(c) => before(at).is_some_and(|it| !is_joiner(it)),
        c if is_selector(c) => before(at).is_some_and(|it| !is_joiner(it) && !is_selector(it)),
        '\r' => text[at + 1..].starts_with('\n'),
        '\u{feff}' => at == 0,
        c => visible(c) == c,
    };
    text.char_indices().filter(move |(at, c)| !may_be(*at, *c))
}

/// Makes a text safe to print on one line. Line ends and tabs are replaced, too.
pub fn shown(text: &str) -> String {
    text.chars().map(visible).collect()
}

/// Formats a user's text for a message: in backticks, as [`shown`], and cut after 60 characters.
pub fn quote(text: &str) -> String {
    const MAX_LEN: usize = 60;
    let mut shown: String = text.chars().take(MAX_LEN).map(visible).collect();
    if text.chars().nth(MAX_LEN).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// Formats a name or path as one word of a command that a person pastes into a POSIX shell, in quotes if necessary.
/// Invisible characters become `$'\033'`, which bash, zsh and ksh understand (POSIX.1-2024, Shell Command Language,
/// 2.2.4).
///
/// # Examples
///
/// ```
/// assert_eq!(safe_text::shell_word("/a/b"), "/a/b");
/// assert_eq!(safe_text::shell_word("a b"), "'a b'");
/// ```
pub fn shell_word(word: impl AsRef<OsStr>) -> String {
    let bytes = word.as_ref().as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./:@%+=,-".contains(byte);
    let text = str::from_utf8(bytes).ok().filter(|text| text.chars().all(|c| visible(c) == c));
    match text {
        Some(text) if !text.is_empty() && bytes.iter().all(is_plain) => text.to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', "'\\''")),
        None => {
            let escaped = |byte: &u8| match byte {
                byte if is_plain(byte) || *byte == b' ' => char::from(*byte).to_string(),
                // Octal escapes end after three digits. Hexadecimal ones do not end.
                byte => format!("\\{byte:03o}"),
            };
            format!("$'{}'", bytes.iter().map(escaped).collect::<String>())
        }
    }
}

/// Formats a path like [`shell_word`], with `./` before a leading `-`, so that no command takes it for an option.
pub fn shell_path(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    let begins_like_option = path.as_os_str().as_bytes().starts_with(b"-");
    if begins_like_option { shell_word(Path::new(".").join(path)) } else { shell_word(path) }
}

/// The length limit of a message in characters. The longest path of Linux fits; an archive's file names can have
/// megabytes.
const MAX_MESSAGE: usize = 4096;

/// Cuts a message after 4096 characters, and appends how many bytes are missing.
pub fn clipped(text: String) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        None => text,
        Some((end, _)) => format!("{}… ({} more bytes)", &text[..end], text.len() - end),
    }
}

/// Joins the texts of an error and of its causes. A cause that only repeats the text before it is left out.
pub fn with_causes(error: &dyn Error) -> String {
    let mut texts = vec![error.to_string()];
    texts.extend(iter::successors(error.source(), |&it| it.source()).map(ToString::to_string));
    texts.dedup();
    texts.join(": ")
}

/// Makes a text of several lines safe to print. Line ends and tabs stay.
pub fn shown_lines(text: &str) -> String {
    let keep = |c: char| matches!(c, '\n' | '\t');
    text.chars().map(|c| if keep(c) { c } else { visible(c) }).collect()
}

/// Makes a JSON document safe to print. Each character that [`visible`] replaces becomes an escape, so that the values
/// stay the same.
pub fn shown_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || visible(c) == c {
            text.push(c);
            continue;
        }
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            text += &format!("\\u{unit:04x}");
        }
    }
    text
}

/// Splits a command line at blanks like a shell. Returns `None` for fewer than two words, for an unclosed quote, and
/// for syntax that only a shell can expand.
pub fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, '\\' | '$' | '`') => return None,
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    (quote.is_none() && words.len() > 1).then_some(words)
}

/// Formats a number of bytes with the largest fitting binary unit: `1536` → `1.5 KiB`.
pub fn readable(bytes: u64) -> String {
    match BINARY.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => self::bytes(bytes),
    }
}

/// Formats a number with the noun that it counts, in singular or plural.
pub fn counted(number: usize, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Formats an exact number of bytes.
pub fn bytes(count: u64) -> String {
    if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_as_a_shell_would() {
        let split = |line| words(line).map(|words| words.join("|"));
        assert_eq!(
            split(" sh  -c 'sleep 9' a\"b c\"d '' "),
            Some("sh|-c|sleep 9|ab cd|".to_owned())
        );
        for line in ["sh -c \"a\\\"b\"", "sh $HOME", "sh `a`", "sh 'a", "sh", ""] {
            assert_eq!(split(line), None, "{line}");
        }
    }

    #[test]
    fn a_message_of_megabytes_is_cut() {
        assert_eq!(clipped("é".repeat(4096)), "é".repeat(4096));
        assert_eq!(clipped("é".repeat(4098)), format!("{}… (4 more bytes)", "é".repeat(4096)));
    }

    const HOSTILE: [&str; 10] = [
        "\u{1b}[31m",
        "\n",
        "\r",
        "\t",
        "\u{9b}",
        "\u{7f}",
        "\u{202e}",
        "\u{2066}",
        "\u{61c}",
        "\u{e0041}",
    ];

    #[test]
    fn no_terminal_obeys_what_is_shown() {
        for hostile in HOSTILE {
            let text = shown(&format!("a{hostile}b"));
            assert!(text.starts_with("a\u{fffd}") && text.ends_with('b'), "{text:?}");
            assert_eq!(shown(&text), text);
        }
        for plain in ["", "a b", "é漢\u{1f600}", "e\u{301}", "\u{fffd}"] {
            assert_eq!(shown(plain), plain);
            assert_eq!(shown_lines(plain), plain);
        }
        for c in (0..=0x9f).filter_map(char::from_u32) {
            assert_eq!(visible(c) == c, !c.is_control(), "{c:?}");
        }
    }

    #[test]
    fn what_hides_in_a_text_is_what_is_not_shown() {
        for hostile in HOSTILE {
            let text = format!("a{hostile}b");
            let found = hidden(&text).next().is_some();
            assert_eq!(found, !matches!(hostile, "\n" | "\t"), "{hostile:?}");
        }
        let text = "\u{feff}a\r\nb\t👩\u{200d}🔬 می\u{200c}خواهم\u{a0} ❤\u{fe0f}\u{200d}🔥";
        assert_eq!(hidden(text).count(), 0);
        // Hidden messages: one encoded in bits, the other in bytes.
        for run in
            ["a\u{200d}\u{200c}", "a\u{200d}\u{fe0f}", "a\u{fe0f}\u{fe0e}", " \u{200c}", "\u{fe0f}"]
        {
            assert_eq!(hidden(run).count(), 1, "{run:?}");
        }
        for c in
            ["\u{34f}", "\u{fe00}", "\u{3164}", "\u{ffa0}", "\u{e0100}", "\u{e01ef}", "\u{e0fff}"]
        {
            assert_eq!(hidden(&format!("a{c}b")).count(), 1, "{c:?}");
        }
        assert_eq!(hidden("é\u{feff}\r").collect::<Vec<_>>(), [(2, '\u{feff}'), (5, '\r')]);
    }

    #[test]
    fn a_shell_reads_a_word_back() {
        for (word, written) in [
            (&b"/a/b-1.2:x@y"[..], "/a/b-1.2:x@y"),
            (b"", "''"),
            (b"/x;touch PWNED;", "'/x;touch PWNED;'"),
            (b"it's $HOME `a` ~", "'it'\\''s $HOME `a` ~'"),
            ("é".as_bytes(), "'é'"),
            (b"a\x1b[2J'\n1", "$'a\\033\\1332J\\047\\0121'"),
            (b"\xff", "$'\\377'"),
        ] {
            assert_eq!(shell_word(OsStr::from_bytes(word)), written);
            let mut echo = std::process::Command::new("bash");
            let echo = echo.args(["-c", &format!("printf %s {written}")]).output().unwrap();
            assert_eq!(echo.stdout, word);
        }
    }

    #[test]
    fn no_path_is_an_option_of_a_command() {
        for (path, written) in [("-x", "./-x"), ("--a b", "'./--a b'"), ("a-b", "a-b"), ("", "''")]
        {
            assert_eq!(shell_path(path), written);
        }
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(shown_lines("a\tb\n\u{1b}[2J\u{9b}x\r"), "a\tb\n\u{fffd}[2J\u{fffd}x\u{fffd}");
    }

    #[test]
    fn a_json_document_says_the_same() {
        let value = serde_json::json!({ HOSTILE.concat(): HOSTILE });
        let text = shown_json(&format!("{value:#}"));
        assert_eq!(shown_lines(&text), text);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn sizes_are_readable() {
        let sizes = [0, 1, 1023, 1024, 1_572_864, 1 << 33, u64::MAX].map(readable);
        let expected = [
            "0 bytes",
            "1 byte",
            "1023 bytes",
            "1.0 KiB",
            "1.5 MiB",
            "8.0 GiB",
            "17179869183.9 GiB",
        ];
        assert_eq!(sizes, expected);
    }
}

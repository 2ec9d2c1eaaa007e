//! Splits Rust text into tokens and leaves comments out.

/// A token of Rust, with the lines that it is on; the first line is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    pub(crate) line: usize,
    pub(crate) last_line: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or keyword.
    Word,
    /// A literal or a lifetime.
    Other,
    /// One character of punctuation.
    Sign,
}

impl Token<'_> {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Other && self.text == text
    }
}

/// Returns the tokens of a text. Comments, which documentation is too, and white space have none.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let (kind, length) = piece(rest, first);
        let (piece, after) = rest.split_at(length);
        let last_line = line + piece.matches('\n').count();
        if let Some(kind) = kind {
            found.push(Token { kind, text: piece, line, last_line });
        }
        (rest, line) = (after, last_line);
    }
    found
}

/// Returns what `rest` begins with, and its length in bytes.
fn piece(rest: &str, first: char) -> (Option<Kind>, usize) {
    if first.is_whitespace() {
        return (None, first.len_utf8());
    }
    if rest.starts_with("//") {
        return (None, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (None, block_comment(rest));
    }
    if let Some(length) = string(rest) {
        return (Some(Kind::Other), length);
    }
    if first == '\'' {
        return (Some(Kind::Other), quote(rest));
    }
    if first.is_ascii_digit() {
        return (Some(Kind::Other), number(rest));
    }
    if is_word(first) {
        return (Some(Kind::Word), word(rest));
    }
    (Some(Kind::Sign), first.len_utf8())
}

fn is_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric()
}

fn word(rest: &str) -> usize {
    let raw = if rest.starts_with("r#") { 2 } else { 0 };
    raw + rest[raw..].find(|it| !is_word(it)).unwrap_or(rest.len() - raw)
}

/// A point belongs to a number only if a digit follows: `0..9` and `1.max(2)` are several tokens.
fn number(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let is_part = |(at, byte): (usize, &u8)| {
        byte.is_ascii_alphanumeric()
            || *byte == b'_'
            || (*byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
    };
    bytes.iter().enumerate().take_while(|it| is_part(*it)).count()
}

fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        let step = match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Returns the length of a string literal with its prefix, if `rest` begins with one.
fn string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c", ""]
        .into_iter()
        .find(|it| rest.strip_prefix(it).is_some_and(|rest| rest.starts_with(['"', '#'])))?;
    let body = &rest[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = body.find(|it| it != '#')?;
        let end = format!("\"{}", &body[..hashes]);
        let text = body[hashes..].strip_prefix('"')?;
        let length = text.find(&end).map_or(text.len(), |at| at + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    let text = body.strip_prefix('"')?;
    Some(prefix.len() + 1 + until_quote(text, b'"'))
}

/// Returns the length up to and with the quote, across escaped characters.
fn until_quote(text: &str, quote: u8) -> usize {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            _ if byte == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of a character literal or lifetime.
fn quote(rest: &str) -> usize {
    let mut following = rest.chars().skip(1);
    let (first, second) = (following.next(), following.next());
    if first == Some('\\') || second == Some('\'') {
        return 1 + until_quote(&rest[1..], b'\'');
    }
    1 + rest[1..].find(|it| !is_word(it)).unwrap_or(rest.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_left_out_but_not_what_looks_like_one() {
        let text = "a /* b /* c */ d */ e // f\n/// g\n\"// h\" '\"' '\\'' 'i r#\"j\" // k\"# r#l";
        let expected = ["a", "e", "\"// h\"", "'\"'", "'\\''", "'i", "r#\"j\" // k\"#", "r#l"];
        assert_eq!(texts(text), expected);
    }

    #[test]
    fn strings_have_prefixes_and_escapes() {
        assert_eq!(
            texts(r#"b"a\"b" br"c\" c"d" bra"#),
            [r#"b"a\"b""#, r#"br"c\""#, r#"c"d""#, "bra"]
        );
        assert_eq!(texts("\"open"), ["\"open"]);
    }

    #[test]
    fn numbers_end_before_ranges_and_methods() {
        let expected = ["0", ".", ".", "9", "1.5e3", "2", ".", "max", "0x_ff"];
        assert_eq!(texts("0..9 1.5e3 2.max 0x_ff"), expected);
    }

    #[test]
    fn a_token_knows_its_lines() {
        let found = tokens("a\n\"b\nc\"\n\nd");
        let lines: Vec<_> = found.iter().map(|token| (token.line, token.last_line)).collect();
        assert_eq!(lines, [(1, 1), (2, 3), (5, 5)]);
    }
}

//! Finds secrets in the text of a configuration file, KDL or TOML, even if it is malformed. An error that shows a
//! line of the file must not show a secret on that line.

mod tokens;

use std::collections::HashSet;
use std::ops::Range;

use self::tokens::{Kind, Token, tokens};
use super::words::variable_of;
use super::{MASK, is_secret, leaks, names_secret};
use crate::is_variable;
use crate::shown;

/// The keyword that declares a secret by its name, without a value.
const DECLARATION: &str = "secret";
/// The length in bytes above which an unquoted value after a secret's name is always a secret. Testing a long value
/// again for each name inside it would take quadratic time.
const MAX_BARE: usize = 1 << 10;
/// The properties of [`DECLARATION`] whose values are no secrets.
const KNOWN: [&str; 2] = ["path", "component"];

/// Finds the spans of a configuration text that must not be shown: quoted and bare values after the name of a secret
/// (`API_TOKEN="…"`, `password = …`, `"--password" "…"`), everything that [`leaks`] finds, private keys, and values
/// in a `secret` declaration. The spans are sorted, do not overlap, and do not include quotes.
pub fn config_secrets(text: &str) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let mut found = private_keys(text);
    let (mut line, mut table, mut done) = (false, false, 0);
    // The number of open braces and brackets in the declaration.
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let begins = at == 0 || tokens[at - 1].is_sign(b"\n;{}");
        let after = Following { text, tokens: &tokens, at };
        if begins && depth == 0 {
            table = if token.is_sign(b"[") { after.declares_table() } else { table };
            line = !token.is_sign(b"\n") && is_declaration(token.of(text));
        }
        match token.kind {
            Kind::Sign(b'{' | b'[') if line => depth += 1,
            Kind::Sign(b'}' | b']') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if token.is_text() && token.place.start >= done {
            let start = token.place.start;
            let leaks = leaks(None, token.of(text)).into_iter().map(|it| it.place);
            found.extend(leaks.map(|it| start + it.start..start + it.end));
            let named = after.named();
            done = named.last().map_or(done, |it| it.end);
            found.extend(named);
            found.extend(after.declared().filter(|_| line || table));
        }
    }
    merged(found)
}

fn is_declaration(word: &str) -> bool {
    word.split('.').next() == Some(DECLARATION)
}

/// A token in its context.
struct Following<'t> {
    text: &'t str,
    tokens: &'t [Token],
    at: usize,
}

impl Following<'_> {
    fn sign(&self, at: usize, signs: &[u8]) -> bool {
        self.tokens.get(at).is_some_and(|it| it.is_sign(signs))
    }

    /// Returns whether a `[` begins the header of a table of secrets: `[secret.X]`.
    fn declares_table(&self) -> bool {
        let name = self.tokens[self.at..].iter().find(|it| !it.is_sign(b"["));
        name.is_some_and(|it| is_declaration(it.of(self.text)))
    }

    /// Finds the values that this token names, if it is the name of a secret: `"a"` for `API_TOKEN` in `API_TOKEN="a"`.
    fn named(&self) -> Vec<Range<usize>> {
        let name = self.tokens[self.at].of(self.text);
        let mut next = self.at + 1;
        let assigned = self.sign(next, b"=:");
        let is_option = name.starts_with('-');
        next += usize::from(is_option && self.sign(next, b","));
        next += self.tokens[next..].iter().take_while(|it| it.is_sign(b"=:")).count();
        if self.sign(next, b"(") {
            next += if self.sign(next + 2, b")") { 3 } else { 1 };
        }
        // Tests the name before the value, because finding the end of a value can be slow.
        let variable = variable_of(name);
        let names = is_variable(&variable) && names_secret(&variable, "");
        if !names || (name == DECLARATION && !assigned) {
            return Vec::new();
        }
        if assigned && self.sign(next, b"[{") {
            let items = self.items(next).map(|it| it.place.clone());
            return items.filter(|it| self.is_secret(name, it)).collect();
        }
        let Some(value) = self.tokens.get(next) else { return Vec::new() };
        let is_key = !assigned && self.sign(next + 1, b"=");
        let is_prose = name.bytes().any(|it| it.is_ascii_lowercase()) && !assigned && !is_option;
        let place = match value.kind {
            Kind::Quoted if !is_key => value.place.clone(),
            Kind::Word if assigned => self.bare(value.place.start),
            Kind::Word if !is_key && !is_prose => value.place.clone(),
            _ => return Vec::new(),
        };
        let is_long = value.kind == Kind::Word && place.len() > MAX_BARE;
        Some(place).filter(|it| is_long || self.is_secret(name, it)).into_iter().collect()
    }

    /// Returns the values in the brackets or braces at `open`. An unclosed bracket ends at the next assignment, an
    /// unclosed brace at the next brace.
    fn items(&self, open: usize) -> impl Iterator<Item = &Token> {
        let ends: &[u8] = if self.sign(open, b"[") { b"]=:" } else { b"{}" };
        let inside = self.tokens.iter().enumerate().skip(open + 1);
        let inside = inside.take_while(|(_, it)| !it.is_sign(ends));
        let values = inside.filter(|(at, it)| it.is_text() && !self.sign(at + 1, b"=:"));
        values.map(|(_, it)| it)
    }

    /// Returns whether the text at `place` is a secret if its name is `name`.
    fn is_secret(&self, name: &str, place: &Range<usize>) -> bool {
        let value = &self.text[place.clone()];
        let is_name = name == DECLARATION && is_variable(value);
        let is_option = name.starts_with('-') && value.starts_with('-');
        let is_plain = !is_name && !is_option && !value.starts_with('$');
        is_plain && is_secret(&variable_of(name), value)
    }

    /// Returns the span of an unquoted value, which ends at a blank or a closing bracket. A `,` or `;` ends it only
    /// before one of these, because a password can contain both.
    fn bare(&self, start: usize) -> Range<usize> {
        let rest = &self.text[start..];
        let is_last =
            |at| rest[at + 1..].starts_with(|c: char| c.is_whitespace() || "}])".contains(c));
        let ends = |(at, c): &(usize, char)| match c {
            ',' | ';' => at + 1 == rest.len() || is_last(*at),
            c => c.is_whitespace() || "}])".contains(*c),
        };
        let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        start..start + end
    }

    /// Finds a value in a declaration of a secret: `"a"` for the token `value` in `secret X value="a"`, and for the
    /// token `"a"` in `secret X "a"`.
    fn declared(&self) -> Option<Range<usize>> {
        let token = &self.tokens[self.at];
        if self.sign(self.at + 1, b"=") {
            let value = self.tokens.get(self.at + 2).filter(|it| it.is_text())?;
            let name = token.of(self.text);
            let is_known = KNOWN.contains(&name) || name == DECLARATION;
            return (!is_known).then(|| value.place.clone());
        }
        let follows = self.at >= 2 && self.tokens[self.at - 1].is_text();
        let is_second = follows && !self.tokens[self.at - 2].is_sign(b"\n;{}");
        (token.kind == Kind::Quoted && is_second).then(|| token.place.clone())
    }
}

/// Finds private keys in PEM. A key without an end marker extends as far as the text looks like a key
/// ([`unended_key`]), at most to the next begin marker.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const BEGIN: &str = "-----BEGIN ";
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = text[at..].find(BEGIN).map(|it| at + it) {
        at = start + BEGIN.len();
        let next = text[at..].find(BEGIN).map_or(text.len(), |it| at + it);
        let rest = &text[at..next];
        let label = rest.split("-----").next().unwrap_or_default();
        if label.contains("PRIVATE KEY") {
            let end = format!("-----END {label}-----");
            let len = rest.find(&end).map_or_else(|| unended_key(rest), |it| it + end.len());
            found.push(start..at + len);
        }
        at = next;
    }
    found
}

/// Returns the length of a private key that has no end marker: the rest of its first line, and the base64 lines
/// after it. A quote ends a line, too, because each line may be a separate string.
fn unended_key(text: &str) -> usize {
    const LONG: usize = 16;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    // The headers of an encrypted key: <https://www.rfc-editor.org/rfc/rfc1421>.
    let is_field = |line: &str| ["Proc-Type:", "DEK-Info:"].iter().any(|it| line.starts_with(it));
    let (mut len, mut at, mut follows) = (0, 0, false);
    for line in text.split_inclusive(|c| "\n\"'`".contains(c)) {
        let inner = line.trim_matches(|c| !is_inner(c));
        let start = at + line.find(is_inner).unwrap_or_default();
        let word = inner.split(|c| !is_inner(c)).next().unwrap_or_default();
        if at == 0 {
            len = line.trim_end_matches(|c| "\r\n\"'`".contains(c)).len();
        } else if word.len() >= LONG || (follows && word == inner && !word.is_empty()) {
            (len, follows) = (start + inner.len(), word.len() >= LONG);
        } else if !inner.is_empty() && !is_field(inner) {
            break;
        }
        at += line.len();
    }
    len
}

/// Sorts `places`, and merges overlapping spans.
fn merged(mut places: Vec<Range<usize>>) -> Vec<Range<usize>> {
    places.retain(|it| !it.is_empty());
    places.sort_by_key(|it| (it.start, it.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for place in places {
        match merged.last_mut().filter(|it| place.start < it.end) {
            Some(last) => last.end = last.end.max(place.end),
            None => merged.push(place),
        }
    }
    merged
}

/// The secrets of a text, which messages about the text must not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    whole: HashSet<String>,
    /// All secrets, each followed by a line end, so that one search finds a part of any of them.
    joined: String,
}

impl Secrets {
    /// Adds the text between two quotes: as it is written, with its escapes resolved, and both as [`shown`].
    pub fn add(&mut self, written: &str) {
        let plain = unescaped(written);
        for spelled in [shown(&plain), shown(written), plain, written.to_owned()] {
            if !self.whole.contains(&spelled) {
                self.joined += &spelled;
                self.joined.push('\n');
                self.whole.insert(spelled);
            }
        }
    }

    /// Returns whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.whole.is_empty()
    }

    /// Replaces the secrets in a message by [`MASK`]. Between quotes, a part of a secret is replaced, too. Outside of
    /// quotes, a word is replaced only if it is unlikely in an ordinary message. A word of `visible`, the text that is
    /// printed with the message, is kept.
    pub fn redact(&self, message: &str, visible: &str) -> String {
        let is_quote = |c: char| "`\"'".contains(c);
        let is_end = |c: char| c.is_whitespace() || c == '=';
        let mask = |piece: &str| {
            // A message that proposes a text to write has its quotes escaped.
            let part = piece.trim_end_matches(is_quote).trim_end_matches(['…', '\\']);
            if self.has(part, visible) {
                return format!("{MASK}{}", &piece[part.len()..]);
            }
            let word = |word: &str| {
                // The quote after the piece follows its last word, such as `value` in `write X value`.
                let inner =
                    word.trim_end_matches(|c| is_end(c) || is_quote(c) || "…\\".contains(c));
                let inner = inner.trim_matches(|c| ",.;:()[]/".contains(c));
                let hides = is_distinct(inner) && self.has(inner, visible);
                if hides { word.replace(inner, MASK) } else { word.to_owned() }
            };
            piece.split_inclusive(is_end).map(word).collect()
        };
        message.split_inclusive(is_quote).map(mask).collect()
    }

    /// Returns whether `part` is a secret, or a part of one that has at least four characters, and is not in
    /// `visible`. A message names the declaration `secret`, so that word is not taken for a part of one.
    fn has(&self, part: &str, visible: &str) -> bool {
        let is_shown = || visible.split(|c: char| !is_inner(c)).any(|word| word == part);
        let is_long = part.chars().nth(3).is_some();
        let is_part = self.whole.contains(part)
            || (is_long && part != DECLARATION && self.joined.contains(part));
        !part.is_empty() && is_part && !is_shown()
    }
}

/// Resolves the escapes of KDL and TOML. The character after the backslash of an unknown escape is kept.
fn unescaped(written: &str) -> String {
    let (mut plain, mut rest) = (String::new(), written);
    while let Some((before, after)) = rest.split_once('\\') {
        plain += before;
        let code = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
        let braces = after.strip_prefix("u{").and_then(in_braces);
        let fixed = |sign: char, len: usize| {
            Some((after.strip_prefix(sign)?.get(..len)?, after.get(1 + len..)?))
        };
        let digits = braces.or_else(|| fixed('u', 4)).or_else(|| fixed('U', 8));
        let coded = digits.and_then(|(digits, rest)| Some((code(digits)?, rest)));
        let mut chars = after.chars();
        let named = match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('s') => ' ',
            Some(c) => c,
            None => '\\',
        };
        let (c, after) = coded.unwrap_or((named, chars.as_str()));
        plain.push(c);
        rest = after;
    }
    plain + rest
}

/// Splits the text after `\u{` at the closing brace. Reads only the next seven bytes, because a text may begin many
/// escapes and end none.
fn in_braces(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().take(7).position(|byte| byte == b'}')?;
    Some((&text[..end], &text[end + 1..]))
}

/// Returns whether a name can contain `c`.
fn is_inner(c: char) -> bool {
    c.is_alphanumeric() || "_-.".contains(c)
}

/// Returns whether a text is unlikely to be a word of a message.
fn is_distinct(secret: &str) -> bool {
    let is_word = secret.bytes().all(|it| it.is_ascii_lowercase());
    secret.len() >= 4 && (!is_word || secret.len() >= 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &str) -> String {
        let mut text = text.to_owned();
        for place in config_secrets(&text).into_iter().rev() {
            text.replace_range(place, MASK);
        }
        text
    }

    #[test]
    fn values_after_the_names_of_secrets_are_found() {
        for (text, expected) in [
            (r#"env API_TOKEN="a" LOG="info""#, r#"env API_TOKEN="****" LOG="info""#),
            (r#"evn API_TOKEN = "a b""#, r#"evn API_TOKEN = "****""#),
            (r#"evn "API_TOKEN"=(t)"a""#, r#"evn "API_TOKEN"=(t)"****""#),
            (r#"env API_TOKEN="a\"b" c"#, r#"env API_TOKEN="****" c"#),
            (r##"env API_TOKEN=#"a"b"# c"##, r##"env API_TOKEN=#"****"# c"##),
            ("env API_TOKEN=\"a b\nport 1", "env API_TOKEN=\"****\nport 1"),
            ("env API_TOKEN=\"\"\"\na\nb\n\"\"\" c", "env API_TOKEN=\"\"\"****\"\"\" c"),
            ("env API_TOKEN=a$b; x", "env API_TOKEN=****; x"),
            ("env API_TOKEN={a b} c", "env API_TOKEN={**** ****} c"),
            ("env API_TOKEN==a b", "env API_TOKEN==**** b"),
            ("env API_TOKEN=(a b", "env API_TOKEN=(**** b"),
            ("env API_TOKEN=a,b;c; d", "env API_TOKEN=****; d"),
            ("x = { TOKEN = a, b = c }", "x = { TOKEN = ****, b = c }"),
            ("x = [{TOKEN=a}, {b=c}]", "x = [{TOKEN=****}, {b=c}]"),
            ("TOKEN = { file = \"a\" }\nb = \"c\"", "TOKEN = { file = \"****\" }\nb = \"c\""),
            (
                "secret = { X = { path = \"a\", value = \"b\" } }\nc = \"d\"",
                "secret = { X = { path = \"a\", value = \"****\" } }\nc = \"d\"",
            ),
            (
                "secret = [\n{ value = \"a\" },\n{ value = \"b\" }\n]\nc = \"d\"",
                "secret = [\n{ value = \"****\" },\n{ value = \"****\" }\n]\nc = \"d\"",
            ),
            (
                "secret X {\n value \"a\"\n key=\"b\"\n}\nport \"c\"",
                "secret X {\n value \"a\"\n key=\"****\"\n}\nport \"c\"",
            ),
            (
                r#"env /-API_TOKEN="a" /- B_TOKEN="b""#,
                r#"env /-API_TOKEN="****" /- B_TOKEN="****""#,
            ),
            (
                r#"args "-H" "Authorization: Bearer a" "x-api-key: b""#,
                r#"args "-H" "Authorization: ****" "x-api-key: ****""#,
            ),
            ("authorization = \"Basic YQ==\"", "authorization = \"****\""),
            (r#"path="/x?a=b&api_token=c&d""#, r#"path="/x?a=b&api_token=****&d""#),
            ("env API_TOKEN abc", "env API_TOKEN ****"),
            (
                r#"env = { API_TOKEN = "a", DB_PASSWORD = b }"#,
                r#"env = { API_TOKEN = "****", DB_PASSWORD = **** }"#,
            ),
            ("password = 'a'", "password = '****'"),
            ("password: a==b", "password: ****"),
            (r#"{ "password": "a" }"#, r#"{ "password": "****" }"#),
            (
                "tokens = 1\napi-token = [\"a\", \"b\"]",
                "tokens = 1\napi-token = [\"****\", \"****\"]",
            ),
            (r#"args "--token=A" "--password" "B""#, r#"args "--token=****" "--password" "****""#),
            (r#"args = ["--password", "B", "C"]"#, r#"args = ["--password", "****", "C"]"#),
            ("args --password B", "args --password ****"),
            ("x ghp_0123456789abcdef", "x ****"),
            ("x https://u:p@h/x y", "x **** y"),
            ("secret \"X\" value=\"a\"", "secret \"X\" value=\"****\""),
            ("secret \"API_TOKEN\" \"a\"", "secret \"API_TOKEN\" \"****\""),
            (
                "agent { x; }; secret X value=\"a\" path=\"/b\"",
                "agent { x; }; secret X value=\"****\" path=\"/b\"",
            ),
            (
                "[secret.X]\npath = \"/a\"\nvalue = \"b\"\n[vm]\nvalue = \"c\"",
                "[secret.X]\npath = \"/a\"\nvalue = \"****\"\n[vm]\nvalue = \"c\"",
            ),
            (
                "secret.X = \"a\"\n[secret.Y]\nvalue = \"b\"\n[vm]\nc = \"d\"",
                "secret.X = \"****\"\n[secret.Y]\nvalue = \"****\"\n[vm]\nc = \"d\"",
            ),
            ("k = \"-----BEGIN PRIVATE KEY-----\na\n-----END PRIVATE KEY-----\"", "k = \"****\""),
            ("# don't\nAPI_TOKEN = 'a'", "# don't\nAPI_TOKEN = '****'"),
            (
                "k \"-----BEGIN OPENSSH PRIVATE KEY-----\"\nport \"4088\"\n",
                "k \"****\"\nport \"4088\"\n",
            ),
            (
                "k \"-----BEGIN PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n  b3BlbnNzaC1rZXktdjEB\r\nQa==\n}\nport 1",
                "k \"****\n}\nport 1",
            ),
            (
                "k = [\"-----BEGIN PRIVATE KEY-----\", \"b3BlbnNzaC1rZXktdjEA\", 'Qa==']\nname = 1",
                "k = [\"****']\nname = 1",
            ),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nb3BlbnNzaC1rZXktdjEA\\n\\\nx y",
                "****\\\nx y",
            ),
            (
                "# -----BEGIN PRIVATE KEY-----\na b\n-----BEGIN PRIVATE KEY-----\nc\n-----END PRIVATE KEY-----\n",
                "# ****\na b\n****\n",
            ),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn hostile_texts_take_no_longer_than_others() {
        for part in
            ["token=", "token=[", "'", "#\"", "-----BEGIN PRIVATE KEY-----", "\"\"\"", "-p='"]
        {
            let text = part.repeat((1 << 20) / part.len());
            assert!(config_secrets(&text).len() < text.len());
        }
        // Each of these values extends to the end of the text.
        for part in [
            "--token=",
            "token=$",
            "token=/a/",
            "TOKEN1=$",
            "?token=$",
            "a: token: ",
            "token={a,",
            "token=,",
        ] {
            let text = part.repeat((1 << 18) / part.len());
            assert!(config_secrets(&text).len() < text.len());
        }
        let mut secrets = Secrets::default();
        secrets.add(&"\\u{".repeat(1 << 18));
        assert!(!secrets.is_empty());
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "secret \"API_TOKEN\" component=\"business\" path=\"/run/x\"",
            "secret API_TOKEN component=both // for the business",
            "secret \"api-key\"\nsecret",
            "secret = \"API_TOKEN\"",
            "[secret.API_TOKEN]\ncomponent = \"business\"",
            "// the token is read from here: a file",
            "env API_TOKEN=\"\" MAX_TOKEN=4096 TOKEN=\"$TOKEN\"",
            "args \"--password\" \"--verbose\"",
            "tools \"API_TOKEN\"\nport 80",
            "é \"é\" 'é",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn messages_do_not_spell_secrets() {
        let mut secrets = Secrets::default();
        ["b", "hunter2", r#"a\tb \u{e9}\u00e9 \"c"#].into_iter().for_each(|it| secrets.add(it));
        for (message, expected) in [
            ("`b` is a bad thing", "`****` is a bad thing"),
            ("unknown `hunter…`, `hun`", "unknown `****…`, `hun`"),
            ("write x=hunter2", "write x=****"),
            ("write `X hunter2`", "write `X ****`"),
            ("write `X [hunter2]`", "write `X [****]`"),
            ("write \"/hunter2\", `X hunter2…`", "write \"/****\", `X ****…`"),
            (r##"write `"r#\"hunter2\"#"`"##, r##"write `"r#\"****\"#"`"##),
            ("`a\u{fffd}b éé \"c`", "`****\"c`"),
            ("did you mean `env`?", "did you mean `env`?"),
        ] {
            assert_eq!(secrets.redact(message, "evn x"), expected);
        }
        assert_eq!(secrets.redact("`hunter2`", "env hunter2=\"*******\""), "`hunter2`");
    }
}

//! Makes the output of a program harmless to a terminal, as it arrives.

use std::mem;

use super::visible;

const ESCAPE: char = '\u{1b}';
/// The control sequence that ends all colours and styles (SGR 0, ECMA-48).
const RESET: &str = "\u{1b}[0m";
/// The longest control sequence that is recognized, in bytes without ESC.
const MAX_SEQUENCE: usize = 48;

/// A filter that makes the bytes of a program harmless to a terminal, whatever pieces they arrive in.
///
/// Text, tabs, line ends and colours pass. A carriage return ends the line unless the line is empty, so that no text
/// covers another: a progress bar becomes several lines. Colours end with their line. Every other character that
/// [`visible`] replaces becomes U+FFFD, and so do bytes that are not UTF-8.
///
/// Filtering the result again does not change it.
///
/// # Examples
///
/// ```
/// let mut filter = safe_text::Harmless::default();
/// assert_eq!(filter.push(b"10%\r20%\n"), "10%\n20%\n");
/// assert_eq!(filter.push(b"\x1b[2J"), "\u{fffd}[2J");
/// assert_eq!(filter.finish(), "");
/// ```
#[derive(Debug)]
pub struct Harmless {
    /// The first bytes of a character that is not complete yet.
    begun: Vec<u8>,
    /// The first bytes of a control sequence that is not complete yet, without ESC.
    sequence: Option<String>,
    /// The length of the current line in bytes, without colours.
    line: usize,
    /// The maximum length of a line in bytes.
    longest: usize,
    is_coloured: bool,
    /// Whether the last line ended with a carriage return, to which a line feed may still belong.
    is_returned: bool,
}

impl Default for Harmless {
    fn default() -> Self {
        Self::with_lines_of(usize::MAX)
    }
}

impl Harmless {
    /// Breaks lines that are longer than `longest` bytes. A character has up to four.
    pub const fn with_lines_of(longest: usize) -> Self {
        Self {
            begun: Vec::new(),
            sequence: None,
            line: 0,
            longest,
            is_coloured: false,
            is_returned: false,
        }
    }

    /// Adds the next bytes, and returns the text to write. An incomplete character or control sequence is kept until
    /// the rest arrives.
    pub fn push(&mut self, data: &[u8]) -> String {
        let mut bytes = mem::take(&mut self.begun);
        bytes.extend_from_slice(data);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|c| self.take(c, &mut text));
            let wrong = chunk.invalid();
            if chunks.peek().is_none() && is_begun(wrong) {
                self.begun = wrong.to_vec();
            } else if !wrong.is_empty() {
                self.take(char::REPLACEMENT_CHARACTER, &mut text);
            }
        }
        text
    }

    /// Returns the remaining text after the last bytes. It ends the colours, but not the line.
    pub fn finish(&mut self) -> String {
        let mut text = String::new();
        if !mem::take(&mut self.begun).is_empty() {
            self.take(char::REPLACEMENT_CHARACTER, &mut text);
        }
        if let Some(sequence) = self.sequence.take() {
            self.show_sequence(&sequence, &mut text);
        }
        text + self.end_colours()
    }

    /// Returns the sequence that ends the colours within the line, so that other text can follow.
    pub fn end_colours(&mut self) -> &'static str {
        if mem::take(&mut self.is_coloured) { RESET } else { "" }
    }

    fn take(&mut self, c: char, text: &mut String) {
        if let Some(mut sequence) = self.sequence.take() {
            match judge(&sequence, c) {
                Sequence::Begun => {
                    sequence.push(c);
                    self.sequence = Some(sequence);
                    return;
                }
                Sequence::Colours => {
                    let parameters = &sequence[1..];
                    self.is_coloured = !matches!(parameters, "" | "0");
                    text.extend([ESCAPE]);
                    *text += &sequence;
                    text.push(c);
                    return;
                }
                Sequence::Nothing => return,
                Sequence::Other => self.show_sequence(&sequence, text),
            }
        }
        match c {
            ESCAPE => self.sequence = Some(String::new()),
            '\r' if self.line > 0 => {
                self.end_line(text);
                self.is_returned = true;
            }
            '\r' => {}
            '\n' if mem::take(&mut self.is_returned) => {}
            '\n' => self.end_line(text),
            c => self.show(c, text),
        }
    }

    /// Writes a control sequence that the terminal must not interpret.
    fn show_sequence(&mut self, sequence: &str, text: &mut String) {
        self.show(ESCAPE, text);
        sequence.chars().for_each(|c| self.show(c, text));
    }

    fn show(&mut self, c: char, text: &mut String) {
        let c = if c == '\t' { c } else { visible(c) };
        self.is_returned = false;
        if self.line > 0 && self.line.saturating_add(c.len_utf8()) > self.longest {
            self.end_line(text);
        }
        self.line = self.line.saturating_add(c.len_utf8());
        text.push(c);
    }

    fn end_line(&mut self, text: &mut String) {
        *text += self.end_colours();
        text.push('\n');
        self.line = 0;
    }
}

/// Returns whether `bytes` are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// The kind of a control sequence.
enum Sequence {
    /// Not complete yet.
    Begun,
    Colours,
    /// A sequence without effect at the end of a text, for example `ESC [ K`, which erases to the right and which
    /// grep writes after each colour.
    Nothing,
    Other,
}

/// Returns the kind of `sequence` (without its ESC) after the character `next`.
fn judge(sequence: &str, next: char) -> Sequence {
    match (sequence.strip_prefix('['), next) {
        (None, '[') => Sequence::Begun,
        (Some(_), '0'..='9' | ';') if sequence.len() < MAX_SEQUENCE => Sequence::Begun,
        (Some(parameters), 'm') if are_colours(parameters) => Sequence::Colours,
        (Some("" | "0"), 'K') => Sequence::Nothing,
        _ => Sequence::Other,
    }
}

/// Returns whether the parameters of an SGR sequence (ECMA-48, 8.3.117) set only colours and styles that leave text
/// legible: neither blinking nor concealed.
fn are_colours(parameters: &str) -> bool {
    let mut numbers = parameters.split(';');
    while let Some(number) = numbers.next() {
        let is_known = match number {
            // A colour of the palette (5), or one of red, green and blue (2): ITU-T T.416, as xterm implements it.
            "38" | "48" | "58" => {
                let count = match numbers.next() {
                    Some("5") => 1,
                    Some("2") => 3,
                    _ => return false,
                };
                (0..count).all(|_| numbers.next().is_some_and(|it| it.parse::<u8>().is_ok()))
            }
            "" => true,
            number => number.parse().is_ok_and(is_style),
        };
        if !is_known {
            return false;
        }
    }
    true
}

const fn is_style(number: u8) -> bool {
    matches!(number, 0..=4 | 7 | 9 | 21..=24 | 27 | 29..=37 | 39..=47 | 49 | 53 | 55 | 59 | 90..=97 | 100..=107)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the filtered text of `bytes`, which arrive in pieces of `size` bytes.
    fn harmless(bytes: &[u8], size: usize, mut filter: Harmless) -> String {
        let text: String = bytes.chunks(size.max(1)).map(|it| filter.push(it)).collect();
        text + &filter.finish()
    }

    fn whole(bytes: impl AsRef<[u8]>) -> String {
        harmless(bytes.as_ref(), usize::MAX, Harmless::default())
    }

    #[test]
    fn text_colours_and_line_ends_pass() {
        for text in [
            "",
            "a\tb\n\nc",
            "é漢\u{1f600}\n",
            "\u{1b}[1;31mred\u{1b}[0m and \u{1b}[38;5;196;48;2;1;2;3mmore\u{1b}[m",
            "\u{1b}[97;100mbright\u{1b}[39;49m\u{1b}[0m\n",
        ] {
            assert_eq!(whole(text), text);
        }
        assert_eq!(
            whole("\u{1b}[32m\u{1b}[Kok\u{1b}[m\u{1b}[K"),
            "\u{1b}[32mok\u{1b}[m",
            "as grep"
        );
    }

    #[test]
    fn colours_end_with_their_line() {
        let (red, text) = ("\u{1b}[31m", "one\u{1b}[0m\ntwo");
        assert_eq!(whole(format!("{red}one\ntwo")), format!("{red}{text}"));
        assert_eq!(whole(format!("{red}one\rtwo")), format!("{red}{text}"));
        assert_eq!(whole(format!("{red}one")), format!("{red}one\u{1b}[0m"));
        assert_eq!(whole(red), format!("{red}\u{1b}[0m"));
    }

    #[test]
    fn a_carriage_return_ends_a_line_and_covers_nothing() {
        for (written, shown) in [
            ("a\r\nb\r\n", "a\nb\n"),
            ("10%\r20%\r\n", "10%\n20%\n"),
            ("\r10%\r20%", "10%\n20%"),
            ("a\r\r\nb", "a\nb"),
            ("a\r\n\r\nb", "a\n\nb"),
            ("a\n\r\nb", "a\n\nb"),
            ("a\r\n\nb", "a\n\nb"),
            ("a\rboxlaunch: verified\n", "a\nboxlaunch: verified\n"),
        ] {
            assert_eq!(whole(written), shown, "{written:?}");
        }
    }

    #[test]
    fn no_terminal_obeys_anything_else() {
        for (written, shown) in [
            (&b"\x1b]0;title\x07"[..], "\u{fffd}]0;title\u{fffd}"),
            (b"\x1b[2J\x1b[H", "\u{fffd}[2J\u{fffd}[H"),
            (b"\x1b]52;c;ZXZpbA==\x1b\\", "\u{fffd}]52;c;ZXZpbA==\u{fffd}\\"),
            (b"\x1b\x1b[2J", "\u{fffd}\u{fffd}[2J"),
            (b"\x1b[8mhidden\x1b[5m", "\u{fffd}[8mhidden\u{fffd}[5m"),
            (
                b"\x1b[38;8mx\x1b[38;5;8mx\x1b[38;2;8m",
                "\u{fffd}[38;8mx\u{1b}[38;5;8mx\u{fffd}[38;2;8m\u{1b}[0m",
            ),
            (b"\x1b[?25l\x1b[>4m\x1b[1 m", "\u{fffd}[?25l\u{fffd}[>4m\u{fffd}[1 m"),
            (b"\x1b[256m\x1b[999999999999m", "\u{fffd}[256m\u{fffd}[999999999999m"),
            (b"a\x08b\x00c\x7f\x0b\x0c", "a\u{fffd}b\u{fffd}c\u{fffd}\u{fffd}\u{fffd}"),
            (b"\x9b31m\xc2\x9b31m", "\u{fffd}31m\u{fffd}31m"),
            (b"\xff\xe2\x82\xf0\x9f\x98", "\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{202e}\u{2066}\u{200b}".as_bytes(), "\u{fffd}\u{fffd}\u{fffd}"),
            (b"\x1b[31", "\u{fffd}[31"),
            (b"\x1b", "\u{fffd}"),
        ] {
            assert_eq!(whole(written), shown, "{written:?}");
        }
        let long = format!("\u{1b}[{}m", "1;".repeat(100));
        assert_eq!(whole(&long), long.replace('\u{1b}', "\u{fffd}"));
    }

    #[test]
    fn lines_are_broken_where_that_is_asked_for() {
        let broken = |text: &str| harmless(text.as_bytes(), 1, Harmless::with_lines_of(4));
        assert_eq!(broken("abcdefghi\nx"), "abcd\nefgh\ni\nx");
        assert_eq!(broken("\u{1b}[31mabéé"), "\u{1b}[31mabé\u{1b}[0m\né");
    }

    /// Bytes that are often parts of control sequences, line ends and characters.
    fn written() -> impl Strategy<Value = Vec<u8>> {
        let pieces = [
            &b"\x1b"[..],
            b"[",
            b"31",
            b";",
            b"m",
            b"0",
            b"38;5;1",
            b"K",
            b"\r",
            b"\n",
            b"\r\n",
            b"\t",
            b"a",
            b"\x9b",
            b"\xc2",
            b"\x9b",
            b"\xe2",
            b"\x80",
            b"\xae",
            b"\xf0\x9f\x98\x80",
            b"\x00",
            b"\x07",
            b"]0;",
            b"\xff",
            b"\x1b[1;4m",
            b"\x1b[m",
        ];
        let piece = proptest::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec);
        let any = proptest::collection::vec(any::<u8>(), 0..4);
        let piece = prop_oneof![9 => piece, 1 => any];
        proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    /// Removes the colours from a text. Panics at a control sequence that is not a colour.
    fn without_colours(text: &str) -> String {
        let mut parts = text.split(ESCAPE);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |plain, part| {
            let (parameters, rest) = part.strip_prefix('[').unwrap().split_once('m').unwrap();
            assert!(are_colours(parameters), "{parameters:?}");
            plain + rest
        })
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(bytes in written(), size in 1usize..9, longest in 1usize..40) {
            for longest in [longest, usize::MAX] {
                let filter = || Harmless::with_lines_of(longest);
                let expected = harmless(&bytes, usize::MAX, filter());
                prop_assert_eq!(&harmless(&bytes, size, filter()), &expected);
                prop_assert_eq!(&harmless(expected.as_bytes(), size, filter()), &expected, "twice");
            }
        }

        #[test]
        fn nothing_but_text_and_colours_is_left(bytes in written()) {
            let text = whole(&bytes);
            let plain = without_colours(&text);
            prop_assert!(plain.chars().all(|c| matches!(c, '\n' | '\t') || visible(c) == c), "{plain:?}");
            // Neither a line nor the text ends with a colour.
            for line in text.split('\n') {
                let last = line.rsplit(ESCAPE).next().filter(|_| line.contains(ESCAPE));
                let is_reset = last.is_none_or(|it| it.starts_with("[0m") || it.starts_with("[m"));
                prop_assert!(is_reset, "{text:?}");
            }
        }

        #[test]
        fn text_stays_as_it_is(text in "[ -~\t\né漢]{0,200}") {
            prop_assert_eq!(whole(&text), text);
        }
    }
}

//! The destinations of the output of programs in the box.

use std::fmt;
use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::wire::Stream;
use safe_text::Harmless;
use serde::{Serialize, Serializer};

mod kept;
mod outlet;

use kept::Kept;
pub use outlet::Outlet;

/// How much of a stream is kept by default if output is captured, in bytes.
pub const MAX_CAPTURE: usize = 1 << 20;
/// The length at which a line is split, in bytes.
const MAX_LINE: usize = 4096;

/// A writer of a program's output.
pub trait Sink: Write + fmt::Debug {}

impl<T: Write + fmt::Debug> Sink for T {}

/// The destination of one program's output.
#[derive(Debug)]
pub enum Route {
    /// Writes each stream unchanged to its writer.
    Pass {
        /// The writer for standard output.
        stdout: Box<dyn Sink>,
        /// The writer for standard error.
        stderr: Box<dyn Sink>,
    },
    /// Writes both streams to one writer, line by line, with a prefix. By default, removes control characters that
    /// could harm a terminal.
    Prefix(Prefixed),
    /// Keeps the start and the end of both streams in memory.
    Capture(Captured),
    /// Discards the output.
    Nowhere,
}

impl Route {
    /// Returns a route that keeps [`MAX_CAPTURE`] bytes of each stream in memory.
    pub fn capture() -> Self {
        Self::Capture(Captured::default())
    }

    /// Returns a route that keeps `limit` bytes of each stream in memory: a half of its start, and a half of its end.
    pub fn capture_within(limit: usize) -> Self {
        Self::Capture(Captured { limit, ..Captured::default() })
    }

    /// Writes a program's output.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        match (self, stream) {
            (Self::Pass { stdout, .. }, Stream::Stdout) => write_through(stdout, data),
            (Self::Pass { stderr, .. }, Stream::Stderr) => write_through(stderr, data),
            (Self::Prefix(lines), _) => lines.write(stream, data),
            (Self::Capture(captured), _) => {
                captured.write(stream, data);
                Ok(())
            }
            (Self::Nowhere, _) => Ok(()),
        }
    }

    /// Writes the incomplete lines that are still held.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Prefix(lines) => lines.finish(),
            Self::Pass { .. } | Self::Capture(_) | Self::Nowhere => Ok(()),
        }
    }

    /// Returns the captured output; it is empty if this route does not capture.
    pub fn captured(&self) -> Captured {
        match self {
            Self::Capture(captured) => captured.clone(),
            Self::Pass { .. } | Self::Prefix(_) | Self::Nowhere => Captured::default(),
        }
    }
}

/// Writes and flushes, because a program may have asked a question with an incomplete line.
fn write_through(writer: &mut dyn Write, data: &[u8]) -> io::Result<()> {
    writer.write_all(data)?;
    writer.flush()
}

/// The captured output of a program.
#[derive(Debug, Clone)]
pub struct Captured {
    stdout: Kept,
    stderr: Kept,
    /// How much of each stream is kept, in bytes.
    limit: usize,
}

/// The captured output in a report. A stream that is not UTF-8 is also there with all its bytes.
#[derive(Serialize)]
struct Reported {
    stdout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_base64: Option<String>,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_base64: Option<String>,
    truncated: bool,
}

impl Serialize for Captured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reported = Reported {
            stdout: self.stdout(),
            stdout_base64: lossless(&self.stdout.bytes()),
            stderr: self.stderr(),
            stderr_base64: lossless(&self.stderr.bytes()),
            truncated: self.stdout.is_truncated() || self.stderr.is_truncated(),
        };
        reported.serialize(serializer)
    }
}

impl Default for Captured {
    fn default() -> Self {
        Self { stdout: Kept::default(), stderr: Kept::default(), limit: MAX_CAPTURE }
    }
}

/// Returns all bytes in base64 if they are not UTF-8.
fn lossless(bytes: &[u8]) -> Option<String> {
    str::from_utf8(bytes).is_err().then(|| BASE64_STANDARD.encode(bytes))
}

impl Captured {
    /// Returns the start and the end of standard output as text, with a line between them that counts what was left out.
    pub fn stdout(&self) -> String {
        text(&self.stdout)
    }

    /// Returns the start and the end of standard error as text, with a line between them that counts what was left out.
    pub fn stderr(&self) -> String {
        text(&self.stderr)
    }

    fn write(&mut self, stream: Stream, data: &[u8]) {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        kept.push(data, self.limit);
    }
}

fn text(kept: &Kept) -> String {
    String::from_utf8_lossy(&kept.bytes()).into_owned()
}

/// Splits a stream into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    /// Adds bytes of the stream, and returns the lines that they complete. Splits a line of more than [`MAX_LINE`]
    /// bytes.
    pub(crate) fn push(&mut self, data: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            self.0.extend_from_slice(piece);
            if self.0.ends_with(b"\n") || self.0.len() >= MAX_LINE {
                lines.extend(self.finish());
            }
        }
        lines
    }

    /// Returns the last line, if it is incomplete.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.0)).filter(|line| !line.is_empty())
    }
}

/// Writes the lines of two streams with a prefix. The content of a line cannot overwrite the prefix (see [`Harmless`]),
/// unless the lines are raw.
#[derive(Debug)]
pub struct Prefixed {
    prefix: &'static str,
    writer: Box<dyn Sink>,
    stdout: Shown,
    stderr: Shown,
}

/// One of the two streams of [`Prefixed`].
#[derive(Debug)]
struct Shown {
    lines: Lines,
    /// `None` if the bytes are shown unchanged.
    filter: Option<Harmless>,
}

impl Shown {
    fn new(is_raw: bool) -> Self {
        let filter = (!is_raw).then(|| Harmless::with_lines_of(MAX_LINE));
        Self { lines: Lines::default(), filter }
    }

    fn push(&mut self, data: &[u8]) -> Vec<Vec<u8>> {
        match &mut self.filter {
            None => self.lines.push(data),
            Some(filter) => self.lines.push(filter.push(data).as_bytes()),
        }
    }

    fn finish(&mut self) -> Vec<Vec<u8>> {
        let rest = self.filter.as_mut().map(Harmless::finish).unwrap_or_default();
        let mut lines = self.lines.push(rest.as_bytes());
        lines.extend(self.lines.finish());
        lines
    }
}

impl Prefixed {
    /// Puts `prefix` before each line. With `is_raw`, the rest of the line is unchanged.
    pub fn new(prefix: &'static str, writer: Box<dyn Sink>, is_raw: bool) -> Self {
        let [stdout, stderr] = [Shown::new(is_raw), Shown::new(is_raw)];
        Self { prefix, writer, stdout, stderr }
    }

    fn write(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        let stream = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let lines = stream.push(data);
        self.write_lines(&lines)
    }

    fn finish(&mut self) -> io::Result<()> {
        let lines = [&mut self.stdout, &mut self.stderr].map(Shown::finish);
        self.write_lines(lines.iter().flatten())
    }

    fn write_lines<'l>(&mut self, lines: impl IntoIterator<Item = &'l Vec<u8>>) -> io::Result<()> {
        lines.into_iter().try_for_each(|line| {
            let end: &[u8] = if line.ends_with(b"\n") { b"" } else { b"\n" };
            write_through(&mut self.writer, &[self.prefix.as_bytes(), line, end].concat())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Debug, Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Shared {
        fn text(&self) -> String {
            String::from_utf8(self.0.borrow().clone()).unwrap()
        }
    }

    #[test]
    fn lines_of_two_streams_do_not_mix() {
        let out = Shared::default();
        let mut route = Route::Prefix(Prefixed::new("agent | ", Box::new(out.clone()), false));
        route.write(Stream::Stdout, b"one\ntw").unwrap();
        route.write(Stream::Stderr, b"bad\n").unwrap();
        route.write(Stream::Stdout, b"o\nend").unwrap();
        assert_eq!(out.text(), "agent | one\nagent | bad\nagent | two\n");
        route.finish().unwrap();
        assert_eq!(out.text(), "agent | one\nagent | bad\nagent | two\nagent | end\n");
    }

    #[test]
    fn a_line_without_end_is_broken() {
        let out = Shared::default();
        let mut route = Route::Prefix(Prefixed::new("> ", Box::new(out.clone()), true));
        for _ in 0..3 {
            route.write(Stream::Stdout, &[b'x'; MAX_LINE - 1]).unwrap();
        }
        assert_eq!(out.text().lines().count(), 1);
        let mut lines = Lines::default();
        assert_eq!(lines.push(&[b'z'; 3 * MAX_LINE]).len(), 1);
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn no_line_covers_its_prefix_or_colours_the_next_one() {
        let written = b"\x1b]0;t\x07\x1b[2J\rboxlaunch: verified\n\x1b[31mred\nnext\n\xe2\x82";
        let shown = |is_raw| {
            let out = Shared::default();
            let mut route = Route::Prefix(Prefixed::new("agent | ", Box::new(out.clone()), is_raw));
            for byte in written {
                route.write(Stream::Stdout, &[*byte]).unwrap();
            }
            route.write(Stream::Stderr, b"\x1b[32mgreen").unwrap();
            route.finish().unwrap();
            let bytes = out.0.borrow().clone();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let expected = "agent | \u{fffd}]0;t\u{fffd}\u{fffd}[2J\nagent | boxlaunch: verified\n\
                        agent | \u{1b}[31mred\u{1b}[0m\nagent | next\nagent | \u{fffd}\n\
                        agent | \u{1b}[32mgreen\u{1b}[0m\n";
        assert_eq!(shown(false), expected);
        let raw = "agent | \u{1b}]0;t\u{7}\u{1b}[2J\rboxlaunch: verified\n";
        assert!(shown(true).starts_with(raw), "{:?}", shown(true));
    }

    #[test]
    fn a_long_line_is_broken_between_characters() {
        let out = Shared::default();
        let mut route = Route::Prefix(Prefixed::new("> ", Box::new(out.clone()), false));
        route.write(Stream::Stdout, "漢".repeat(MAX_LINE).as_bytes()).unwrap();
        route.finish().unwrap();
        let text = out.text();
        assert!(text.lines().all(|line| line.starts_with("> 漢") && line.len() < MAX_LINE + 9));
        assert_eq!(text.lines().count(), 4, "each has 1365 of them");
    }

    #[test]
    fn streams_pass_as_they_are() {
        let (out, err) = (Shared::default(), Shared::default());
        let mut route =
            Route::Pass { stdout: Box::new(out.clone()), stderr: Box::new(err.clone()) };
        route.write(Stream::Stdout, &[0, 255]).unwrap();
        route.write(Stream::Stderr, b"e").unwrap();
        assert_eq!((&*out.0.borrow(), &*err.0.borrow()), (&vec![0, 255], &vec![b'e']));
    }

    #[test]
    fn captured_output_is_bounded() {
        let mut route = Route::Capture(Captured::default());
        route.write(Stream::Stdout, &vec![b'a'; MAX_CAPTURE]).unwrap();
        route.write(Stream::Stderr, b"\xffok").unwrap();
        let report = serde_json::to_value(route.captured()).unwrap();
        assert_eq!(report["stderr"], "\u{fffd}ok");
        assert_eq!(report["stderr_base64"], "/29r");
        assert!(report.get("stdout_base64").is_none(), "it is text");
        assert_eq!(report["truncated"], false);
        route.write(Stream::Stdout, b"b").unwrap();
        let captured = route.captured();
        assert_eq!(serde_json::to_value(&captured).unwrap()["truncated"], true);
        assert!(captured.stdout().len() < MAX_CAPTURE + 99);
        assert!(captured.stdout().ends_with("ab"), "the end is there");
        let mut route = Route::capture_within(2);
        route.write(Stream::Stdout, b"ab").unwrap();
        route.write(Stream::Stderr, b"abc").unwrap();
        let captured = route.captured();
        assert_eq!(
            (captured.stdout().as_str(), captured.stderr().as_str()),
            ("ab", "a\n[… 1 byte left out …]\nc")
        );
    }
}

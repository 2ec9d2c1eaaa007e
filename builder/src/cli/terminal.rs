//! The one place that prints: results go to standard output, everything else to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::io::{self, BufWriter, ErrorKind, IsTerminal, StderrLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use box_image::text::shown_json;
use boxfile_spec::shown;
use serde::Serialize;
use serde_json::Value;

/// Whether a result was lost.
static LOST: AtomicBool = AtomicBool::new(false);
/// Whether a text of [`status`] stands; changed only by who holds standard error.
static STANDS: AtomicBool = AtomicBool::new(false);
/// Begins the line again.
const CLEAR: &str = "\r\x1b[K";

/// Prints a result. A reader that has gone away is no error; see [`lost`] for others.
pub(crate) fn result(text: &str) {
    pieces([text, "\n"]);
}

/// Prints a result that is JSON. A name from outside can be in it, so that what would move a terminal's
/// cursor is written as an escape.
pub(crate) fn json(document: &str) {
    result(&shown_json(document));
}

/// Prints a JSON object with one more field, a list that may be too long for the memory, like
/// [`json`].
pub(crate) fn json_list(head: &Value, field: &str, items: impl Iterator<Item = impl Serialize>) {
    let head = head.to_string();
    let head = format!("{},\"{field}\":[", head.strip_suffix('}').unwrap_or(&head));
    let items = items.enumerate().map(|(at, item)| {
        // Maps with other keys than texts are all that cannot be written.
        let item = serde_json::to_string(&item).unwrap_or_default();
        if at == 0 { item } else { format!(",{item}") }
    });
    let all = [head].into_iter().chain(items).chain(["]}\n".to_owned()]);
    pieces(all.map(|it| shown_json(&it)));
}

/// Prints a long result piece by piece, until the reader has gone away.
pub(crate) fn pieces(pieces: impl IntoIterator<Item = impl AsRef<str>>) {
    // Standard output is often the same terminal.
    drop(cleared());
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let written = pieces.into_iter().try_for_each(|it| out.write_all(it.as_ref().as_bytes()));
    check(written.and_then(|()| out.flush()));
    // What is left in the buffer could not be written either.
    drop(out.into_parts());
}

/// Reports that a result could not be written. A reader that has gone away is no error.
pub(crate) fn check(written: io::Result<()>) {
    if let Some(error) = written.err().filter(|it| it.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
        note(&format!("error: cannot write to standard output: {error}"));
    }
}

/// Returns where a result goes that is data and not text. Who writes to it tells of errors.
pub(crate) fn data() -> io::StdoutLock<'static> {
    io::stdout().lock()
}

/// Returns whether a result could not be written.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Returns whether a person watches.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Returns whether results go to a terminal.
pub(crate) fn is_result_watched() -> bool {
    io::stdout().is_terminal()
}

/// Shows how far something is, on a line that the next such text, or any other, replaces.
pub(crate) fn status(text: &str) {
    let mut out = io::stderr().lock();
    STANDS.store(!text.is_empty(), Ordering::Relaxed);
    drop(write!(out, "{CLEAR}{}", shown(text)).and_then(|()| out.flush()));
}

/// Prints something for the person who watches, line by line; nothing in it can move the cursor.
pub(crate) fn note(text: &str) {
    let lines: Vec<String> = text.split('\n').map(shown).collect();
    drop(writeln!(cleared(), "{}", lines.join("\n")));
}

/// Returns standard error, without the text of [`status`] where one stands.
fn cleared() -> StderrLock<'static> {
    let mut out = io::stderr().lock();
    if STANDS.swap(false, Ordering::Relaxed) {
        drop(out.write_all(CLEAR.as_bytes()));
    }
    out
}

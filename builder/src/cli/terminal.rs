//! The only module that prints: results on standard output, everything else on standard error, with the colours and the
//! level of detail that the command line asks for. In a workflow of GitHub Actions, also annotations.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::env;
use std::fmt::Display;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, StderrLock, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cli_common::Problem;
use cli_common::color::{CLEAR_LINE, is_dumb};
use cli_common::pages::located;
use cli_common::paint::paint;
use cli_common::problem::annotation_of;
use diagnostics::annotation::without_commands;
use host_fs::own::documents_place;
use safe_text::shown;
use safe_text::{ForeignWriter, shown_json};
use serde::Serialize;
use serde_json::Value;

/// Whether a result could not be written.
static LOST: AtomicBool = AtomicBool::new(false);
/// Whether the terminal shows a text of [`status`]. Changed only while standard error is locked.
static STATUS_IS_SHOWN: AtomicBool = AtomicBool::new(false);
/// The time of the last call of [`status`].
static SHOWN: Mutex<Option<Instant>> = Mutex::new(None);
/// The settings of this process.
static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Set if GitHub Actions reads the output: the repository's root, if annotations are printed.
static WORKFLOW: OnceLock<Option<PathBuf>> = OnceLock::new();
/// The size of one write of a long result, in bytes.
const BUFFER: usize = 64 << 10;
/// Truncates lines at the edge of the terminal (DECAWM off, <https://vt100.net/docs/vt510-rm/DECAWM.html>).
const CUT: &str = "\x1b[?7l";
/// Wraps long lines again (DECAWM on).
const WRAP: &str = "\x1b[?7h";

/// How much is printed on standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loudness {
    /// Only errors.
    Quiet,
    /// Also notes and warnings.
    #[default]
    Normal,
    /// Also details.
    Verbose,
}

#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    loudness: Loudness,
    colour: bool,
}

/// Sets how much is printed on standard error, and whether in colour. Call it once, before the first output.
pub(crate) fn configure(loudness: Loudness, colour: bool) {
    // A second call has no effect.
    let _ = SETTINGS.set(Settings { loudness, colour });
}

/// Sets that GitHub Actions reads the output. With the repository's root, or an empty path if it is unknown, errors and warnings
/// are also printed as annotations. Call it at most once, before the first output.
pub(crate) fn configure_workflow(root: Option<PathBuf>) {
    // A second call has no effect.
    drop(WORKFLOW.set(root));
}

fn settings() -> Settings {
    SETTINGS.get().copied().unwrap_or_default()
}

/// Prints a result. A reader that has closed the pipe is no error. For other errors, see [`lost`].
pub(crate) fn result(text: &str) {
    pieces([text, "\n"]);
}

/// Prints a JSON result. Control characters in foreign names are escaped.
pub(crate) fn json(document: &str) {
    result(&shown_json(document));
}

/// Prints the JSON that `write` writes, like [`json`], but in pieces, because the document may be too long for the
/// memory.
pub(crate) fn json_of(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    drop(cleared());
    let mut out = ShownJson(BufWriter::with_capacity(BUFFER, io::stdout().lock()));
    let written = write(&mut out).and_then(|()| out.0.write_all(b"\n"));
    check(written.and_then(|()| out.0.flush()));
    // After an error, the bytes in the buffer are dropped, because `BufWriter` would try to write them again.
    drop(out.0.into_parts());
}

/// Writes JSON in pieces through [`shown_json`]. Each piece has to end at a character boundary.
struct ShownJson<W>(W);

impl<W: Write> Write for ShownJson<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.iter().all(|byte| *byte == b' ' || byte.is_ascii_graphic()) {
            self.0.write_all(piece)?;
        } else {
            let text = str::from_utf8(piece).map_err(io::Error::other)?;
            self.0.write_all(shown_json(text).as_bytes())?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Prints a JSON object like [`json`], with the list `items` as an additional field. The list may be too long for the
/// memory.
pub(crate) fn json_list(head: &Value, field: &str, items: impl Iterator<Item = impl Serialize>) {
    let head = head.to_string();
    let head = format!("{},\"{field}\":[", head.strip_suffix('}').unwrap_or(&head));
    let items = items.enumerate().map(|(at, item)| {
        // Serialization would fail only for a map whose keys are not strings.
        let item = serde_json::to_string(&item).unwrap_or_default();
        if at == 0 { item } else { format!(",{item}") }
    });
    let all = [head].into_iter().chain(items).chain(["]}\n".to_owned()]);
    pieces(all.map(|it| shown_json(&it)));
}

/// Prints a long result in pieces, until the reader closes the pipe.
pub(crate) fn pieces(pieces: impl IntoIterator<Item = impl AsRef<str>>) {
    // The status line is cleared first, because standard output is often the same terminal.
    drop(cleared());
    let mut out = BufWriter::with_capacity(BUFFER, io::stdout().lock());
    let written = pieces.into_iter().try_for_each(|it| out.write_all(it.as_ref().as_bytes()));
    check(written.and_then(|()| out.flush()));
    // After an error, the bytes in the buffer are dropped, because `BufWriter` would try to write them again.
    drop(out.into_parts());
}

/// Reports a failed write of a result. A reader that has closed the pipe is no error.
pub(crate) fn check(written: io::Result<()>) {
    if let Some(error) = written.err().filter(|it| it.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
        self::error(&format!("error: cannot write to standard output: {error}"));
    }
}

/// Returns the writer for foreign data: filtered for a terminal unless `is_raw`. The caller reports write errors.
pub(crate) fn data(is_raw: bool) -> ForeignWriter<io::StdoutLock<'static>> {
    ForeignWriter::new(io::stdout().lock(), is_result_watched() && !is_raw)
}

/// Returns whether a result could not be written.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Returns whether standard error is a terminal.
pub(crate) fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Returns whether standard output is a terminal.
pub(crate) fn is_result_watched() -> bool {
    io::stdout().is_terminal()
}

/// Returns whether [`status`] may be used: on a terminal that can clear lines, unless `--quiet`.
pub(crate) fn shows_status() -> bool {
    is_watched() && !is_dumb(env::var_os("TERM")) && settings().loudness > Loudness::Quiet
}

/// Shows progress on a line that the next output replaces. The line is truncated at the edge of the terminal.
pub(crate) fn status(text: &str) {
    let mut out = io::stderr().lock();
    STATUS_IS_SHOWN.store(!text.is_empty(), Ordering::Relaxed);
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    let line = format!("{CLEAR_LINE}{CUT}{}{WRAP}", shown(text));
    drop(out.write_all(line.as_bytes()).and_then(|()| out.flush()));
}

/// Returns whether [`status`] was not called for `time`.
pub(crate) fn status_is_older_than(time: Duration) -> bool {
    let shown = *SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    shown.is_none_or(|shown| shown.elapsed() >= time)
}

/// Prints a note or warning on standard error, unless `--quiet`.
pub(crate) fn note(text: &str) {
    if settings().loudness > Loudness::Quiet {
        print(text);
    }
}

/// Prints a note for a command without `--json`.
pub(crate) fn unless_json(as_json: bool, text: &str) {
    if !as_json {
        note(text);
    }
}

/// Returns whether only results and errors are printed.
pub(crate) fn is_quiet() -> bool {
    settings().loudness <= Loudness::Quiet
}

/// Prints a detail with `--verbose`, for example the path of a file.
pub(crate) fn detail(title: &str, text: impl Display) {
    if settings().loudness == Loudness::Verbose {
        print(&format!("{title}: {text}"));
    }
}

/// Prints an error.
pub(crate) fn error(text: &str) {
    print(text);
}

/// Prints errors as annotations, if the command line asks for it.
pub(crate) fn annotate(problems: &[Problem]) {
    problems.iter().for_each(|it| annotation(|path| it.annotation(path)));
}

/// Prints a warning in its JSON form as an annotation, if the command line asks for it, unless `--quiet`.
pub(crate) fn annotate_warning(warning: &Value) {
    if settings().loudness > Loudness::Quiet {
        annotation(|path| annotation_of(warning, path));
    }
}

fn annotation(format: impl Fn(&dyn Fn(&str) -> String) -> String) {
    let Some(Some(root)) = WORKFLOW.get() else { return };
    let line = format(&|file| from_root(root, file));
    drop(writeln!(cleared(), "{}", shown(&line)));
}

/// Returns the path of a file, which messages name from the working directory, from the repository's root. If the file is not below
/// it, the path stays as it is.
fn from_root(root: &Path, file: &str) -> String {
    let below = || {
        let (file, root) = (fs::canonicalize(file).ok()?, fs::canonicalize(root).ok()?);
        Some(file.strip_prefix(root).ok()?.to_string_lossy().into_owned())
    };
    below().unwrap_or_else(|| file.to_owned())
}

/// Prints a text on standard error, line by line, without control characters and, in a workflow, without commands. Help names the
/// pages that are installed with this program.
fn print(text: &str) {
    let documents = documents_place(&env::current_exe().unwrap_or_default());
    let text = located(text, &documents);
    let is_workflow = WORKFLOW.get().is_some();
    let safe = |line: &str| {
        let line = shown(line);
        if is_workflow { without_commands(&line) } else { line }
    };
    let lines: Vec<String> = text.split('\n').map(safe).collect();
    let text = lines.join("\n");
    let text = if settings().colour { paint(&text) } else { text };
    drop(writeln!(cleared(), "{text}"));
}

/// Clears the text of [`status`], if there is one, and returns standard error.
fn cleared() -> StderrLock<'static> {
    let mut out = io::stderr().lock();
    if STATUS_IS_SHOWN.swap(false, Ordering::Relaxed) {
        drop(out.write_all(CLEAR_LINE.as_bytes()));
    }
    out
}

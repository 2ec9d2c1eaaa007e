//! The output of this process: results to standard output, and everything else to standard error. The global options determine
//! whether it has colours, and how much is printed. While a box runs, [`super::screen`] writes instead.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd as _;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use box_contract::ErrorCode;
use boxlaunch::streams::StreamError;
use cli_common::color::ColorOption;
use cli_common::pages::located;
use cli_common::paint::paint;
use host_fs::own::documents_place;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use safe_text::{ForeignWriter, shown_json};
use serde::Serialize;

use super::error::Failure;

/// The settings of this process.
static SETTINGS: OnceLock<Settings> = OnceLock::new();

#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    quiet: bool,
    colour: bool,
}

/// The options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Print only results and errors.
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(flatten)]
    color: ColorOption,
}

impl GlobalOptions {
    /// Applies the options to this process. Called once, before any output.
    pub(crate) fn apply(&self) {
        let to_terminal = io::stderr().is_terminal();
        let colour = self.color.has_colour(to_terminal, |name| env::var_os(name));
        // A second call changes nothing.
        let _ = SETTINGS.set(Settings { quiet: self.quiet, colour });
    }
}

fn settings() -> Settings {
    SETTINGS.get().copied().unwrap_or_default()
}

/// Returns whether only errors and results are printed.
pub(crate) fn is_quiet() -> bool {
    settings().quiet
}

/// Adds colours to the text of errors, if they are enabled, and the paths of the pages that are installed with this program to
/// their help.
pub(crate) fn painted(text: &str) -> Cow<'_, str> {
    let documents = documents_place(&env::current_exe().unwrap_or_default());
    let text = located(text, &documents);
    if settings().colour { paint(&text).into() } else { text }
}

/// Prints a result to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    printed(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Converts the result of a write to standard output. A closed pipe is no error, because the reader does not want the rest.
pub(crate) fn printed(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {error}");
            Err(Failure::new(ErrorCode::Io, message))
        }
        _ => Ok(()),
    }
}

/// Returns a writer for the output of programs in a box. On a terminal it filters control sequences, unless `is_raw` is set.
pub(crate) fn foreign<W: Write + IsTerminal>(to: W, is_raw: bool) -> ForeignWriter<W> {
    let is_shown = to.is_terminal() && !is_raw;
    ForeignWriter::new(to, is_shown)
}

/// Writes a piece of a long output, such as a followed log. A closed pipe is an error, so that the command ends.
pub(crate) fn pass_on(to: &mut impl Write, data: &[u8]) -> Result<(), Failure> {
    match to.write_all(data).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(StreamError::Output(error).into())
        }
        result => printed(result),
    }
}

/// Waits for `duration`.
///
/// # Errors
/// The reader of standard output has closed the pipe, for example `head`, so waiting is pointless.
pub(crate) fn pause(duration: Duration) -> Result<(), Failure> {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let timeout = PollTimeout::try_from(duration.as_millis()).unwrap_or(PollTimeout::MAX);
    let is_gone = matches!(poll(&mut fds, timeout), Ok(1..));
    if is_gone && fds[0].revents().is_some_and(|it| it.contains(PollFlags::POLLERR)) {
        return Err(StreamError::Output(io::ErrorKind::BrokenPipe.into()).into());
    }
    // For other events, such as a closed terminal, `poll` returns at once. So this waits without `poll`.
    if is_gone {
        sleep(duration);
    }
    Ok(())
}

/// Returns a result as one JSON object, on one line.
pub(crate) fn json_line(value: &impl Serialize) -> Result<String, Failure> {
    let json =
        serde_json::to_string(value).map_err(|error| Failure::new(ErrorCode::Internal, error))?;
    Ok(shown_json(&json) + "\n")
}

/// The maximum width of a column of a table, in characters. A wider cell shifts only the following cells of its row. So a long
/// cell does not add blanks to every other row.
const MAX_WIDTH: usize = 100;
/// The blanks between two columns.
const GAP: usize = 3;

/// Returns a table with aligned columns.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |cell: &String| cell.chars().count();
    let widest = |column: usize| {
        let widths = rows.iter().map(|row| width(&row[column]));
        widths.filter(|it| *it <= MAX_WIDTH).max().unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(widest);
    let mut table = String::new();
    for row in rows {
        let mut blanks = 0;
        for (cell, column) in row.iter().zip(widths) {
            if !cell.is_empty() {
                table.extend(std::iter::repeat_n(' ', blanks));
                table += cell;
                blanks = 0;
            }
            blanks += column.saturating_sub(width(cell)) + GAP;
        }
        table.push('\n');
    }
    table
}

/// Prints a notice to standard error. An error is ignored, because it cannot be reported.
pub(crate) fn notice(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_reader_that_goes_away_may_miss_the_result() {
        assert!(printed(Err(io::ErrorKind::BrokenPipe.into())).is_ok());
        assert_eq!(printed(Err(io::ErrorKind::StorageFull.into())).unwrap_err().exit, 1);
    }
}

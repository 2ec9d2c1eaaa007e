//! A program's standard input: bytes that the host has sent and the program has not read yet.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};

use crate::wait::is_temporary;

/// The character that ends the input of a terminal ([termios(3)](https://man7.org/linux/man-pages/man3/termios.3.html),
/// `VEOF`).
const END_OF_INPUT: u8 = 4;

/// The non-blocking end of a pipe or of a terminal, and the bytes that are still to be written to it.
#[derive(Debug)]
pub(crate) struct Input {
    state: State,
    waiting: Vec<u8>,
    /// Whether the last byte from the host was not a newline.
    is_within_line: bool,
    /// Whether the input ends after the waiting bytes.
    ends: bool,
}

#[derive(Debug)]
enum State {
    /// The terminal has not been connected yet.
    Awaited,
    Pipe(File),
    Terminal(File),
    /// The program has closed its input. Further bytes are dropped.
    Closed,
}

impl Input {
    /// Wraps the end of a pipe. `None` is a terminal that is connected later.
    pub(crate) fn new(pipe: Option<File>) -> Self {
        let state = pipe.map_or(State::Awaited, State::Pipe);
        Self { state, waiting: Vec::new(), is_within_line: false, ends: false }
    }

    /// Connects the terminal.
    pub(crate) fn connect(&mut self, terminal: File) {
        self.state = State::Terminal(terminal);
    }

    /// Adds bytes from the host.
    pub(crate) fn push(&mut self, data: &[u8]) {
        if let (Some(last), false) = (data.last(), self.ends) {
            self.waiting.extend_from_slice(data);
            self.is_within_line = *last != b'\n';
        }
    }

    /// Marks the end of the input.
    pub(crate) fn end(&mut self) {
        if matches!(self.state, State::Awaited | State::Terminal(_)) && !self.ends {
            // Within a line, the first `VEOF` only submits the line so far.
            let count = if self.is_within_line { 2 } else { 1 };
            self.waiting.extend(std::iter::repeat_n(END_OF_INPUT, count));
        }
        self.ends = true;
    }

    /// Returns the file if bytes are to be written to it, or if it is to be closed.
    pub(crate) fn pending(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Pipe(file) | State::Terminal(file) if self.has_work() => Some(file.as_fd()),
            _ => None,
        }
    }

    const fn has_work(&self) -> bool {
        !self.waiting.is_empty() || self.ends
    }

    /// Writes to the file without blocking. Returns how many bytes were written or dropped. The host may send as many
    /// more.
    pub(crate) fn write(&mut self) -> u32 {
        let accepted = match &mut self.state {
            State::Awaited => 0,
            State::Closed => self.waiting.len(),
            State::Pipe(file) | State::Terminal(file) => match file.write(&self.waiting) {
                Ok(length) => length,
                Err(error) if is_temporary(&error) => 0,
                Err(_) => {
                    self.state = State::Closed;
                    self.waiting.len()
                }
            },
        };
        self.waiting.drain(..accepted);
        if self.ends && self.waiting.is_empty() && !matches!(self.state, State::Awaited) {
            self.state = State::Closed;
        }
        u32::try_from(accepted).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::fd::OwnedFd;

    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    use super::*;

    /// Returns an input and the end that a program reads.
    fn input() -> (Input, File) {
        let (theirs, ours) = std::io::pipe().unwrap();
        fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
        (Input::new(Some(OwnedFd::from(ours).into())), OwnedFd::from(theirs).into())
    }

    #[test]
    fn what_a_program_does_not_read_waits_and_the_end_comes_after_it() {
        let (mut input, mut program) = input();
        assert!(input.pending().is_none());
        let sent = vec![7; 100_000];
        input.push(&sent);
        input.end();
        let first = input.write();
        assert!((1..100_000).contains(&first), "a pipe holds 64 KiB: {first}");
        assert_eq!(input.write(), 0);
        let mut got = vec![0; first as usize];
        program.read_exact(&mut got).unwrap();
        assert_eq!(first + input.write(), 100_000);
        assert!(input.pending().is_none(), "it is closed");
        program.read_to_end(&mut got).unwrap();
        assert_eq!(got, sent);
    }

    #[test]
    fn what_nobody_reads_is_dropped() {
        let (mut input, program) = input();
        drop(program);
        input.push(b"first");
        assert_eq!(input.write(), 5);
        input.push(b"second");
        assert_eq!(input.write(), 6);
        assert!(input.pending().is_none());
    }

    #[test]
    fn a_terminal_that_is_still_to_come_gets_all_and_the_end_as_a_character() {
        let mut input = Input::new(None);
        input.push(b"typed early");
        assert_eq!(input.write(), 0);
        let (mut program, ours) = std::io::pipe().unwrap();
        input.connect(OwnedFd::from(ours).into());
        input.end();
        assert_eq!(input.write(), 13);
        let mut got = Vec::new();
        program.read_to_end(&mut got).unwrap();
        assert_eq!(got, b"typed early\x04\x04");
    }
}

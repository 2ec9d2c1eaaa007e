//! A running program from init's side: its standard streams and its output window.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use box_contract::ComponentName;
use box_contract::wire::{
    FRAME_COST, Fenced, MAX_OUTPUT, Stream, TerminalSize, WINDOW, output_cost,
};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Pid, pipe2};

use super::input::Input;
use crate::component::spawn::Streams;
use crate::{sys, wait};

/// The greatest number of bytes that are read from a pipe of an ended program. No pipe holds more
/// (`/proc/sys/fs/pipe-max-size`).
const MAX_DRAIN: usize = 1024 * 1024;

/// A program that runs, or that has ended and has output in transit.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) component: ComponentName,
    /// Its standard input, if the caller sends one.
    pub(crate) input: Option<Input>,
    stdout: Option<File>,
    stderr: Option<File>,
    /// Whether its streams are a terminal, connected or not.
    has_terminal: bool,
    /// The size that its terminal gets when the terminal is connected.
    size: Option<TerminalSize>,
    /// The rest of its output window ([`WINDOW`]), in bytes.
    credit: u32,
    /// When init kills the program.
    pub(crate) deadline: Option<Instant>,
    /// Whether it was killed at its deadline.
    pub(crate) timed_out: bool,
    /// How the policy confines it.
    pub(crate) fenced: Option<Fenced>,
    /// Its exit status, once it has ended.
    pub(crate) status: Option<u8>,
    /// How many bytes of standard output and of standard error were read since the program ended.
    drained: [usize; 2],
}

impl Program {
    fn new(component: ComponentName) -> Self {
        Self {
            component,
            input: None,
            stdout: None,
            stderr: None,
            has_terminal: false,
            size: None,
            credit: WINDOW,
            deadline: None,
            timed_out: false,
            fenced: None,
            status: None,
            drained: [0; 2],
        }
    }

    /// Makes a program with pipes. Returns it with the program's ends of the pipes.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn with_pipes(
        component: ComponentName,
        has_input: bool,
    ) -> nix::Result<(Self, Streams)> {
        let mut program = Self::new(component);
        let (ours, stdout) = pipe2(OFlag::O_CLOEXEC)?;
        program.stdout = Some(unblocked(ours)?);
        let (ours, stderr) = pipe2(OFlag::O_CLOEXEC)?;
        program.stderr = Some(unblocked(ours)?);
        let mut streams = Streams { stdin: None, stdout, stderr };
        if has_input {
            let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
            program.input = Some(Input::new(Some(unblocked(ours)?)));
            streams.stdin = Some(theirs);
        }
        Ok((program, streams))
    }

    /// Returns the program with `credit` as the rest of its output window.
    pub(crate) fn with_credit(self, credit: u32) -> Self {
        Self { credit, ..self }
    }

    /// Returns the rest of the output window.
    pub(crate) const fn credit(&self) -> u32 {
        self.credit
    }

    /// Returns a program whose terminal is connected later.
    pub(crate) fn with_terminal(component: ComponentName) -> Self {
        Self { input: Some(Input::new(None)), has_terminal: true, ..Self::new(component) }
    }

    /// Connects the terminal, which must be non-blocking.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn connect(&mut self, terminal: OwnedFd) -> io::Result<()> {
        let terminal = File::from(terminal);
        self.input.get_or_insert_with(|| Input::new(None)).connect(terminal.try_clone()?);
        self.stdout = Some(terminal);
        self.size.take().into_iter().for_each(|size| self.resize(size));
        Ok(())
    }

    /// Sets the size of the terminal, or stores the size until the terminal is connected. A pipe has no size, and stays
    /// as it is.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        match &self.stdout {
            Some(terminal) => drop(sys::terminal::set_size(terminal.as_fd(), size)),
            None => self.size = Some(size),
        }
    }

    /// Returns whether the program has a terminal.
    pub(crate) const fn has_terminal(&self) -> bool {
        self.has_terminal
    }

    /// Returns the foreground process group of the program's terminal. `None` if it has no terminal, or none yet.
    pub(crate) fn foreground(&self) -> Option<Pid> {
        let terminal = self.stdout.as_ref().filter(|_| self.has_terminal)?;
        sys::terminal::foreground(terminal.as_fd()).ok()
    }

    /// Returns the pipes or the terminal from which output may be sent now.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let pipes = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        let pipes = pipes.into_iter().filter(|_| self.room() > 0);
        pipes.filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?.as_fd())))
    }

    /// Adds `bytes` to the output window.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(WINDOW);
    }

    /// Returns the greatest length of the next frame's data.
    fn room(&self) -> usize {
        (self.credit.saturating_sub(FRAME_COST) as usize).min(MAX_OUTPUT)
    }

    /// Reads output without blocking, up to the size of a frame and the rest of the window. Closes the pipe at its end.
    pub(crate) fn read(&mut self, stream: Stream) -> Option<Vec<u8>> {
        let room = self.room();
        let slot = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let pipe = slot.as_mut().filter(|_| room > 0)?;
        let mut data = vec![0; room];
        match pipe.read(&mut data) {
            Ok(length @ 1..) => {
                data.truncate(length);
                self.credit = self.credit.saturating_sub(output_cost(length));
                Some(data)
            }
            Err(error) if wait::is_temporary(&error) => None,
            // Treat an error as the end: a terminal without programs returns an error instead of an end.
            _ => {
                *slot = None;
                None
            }
        }
    }

    /// Reads up to one frame of an ended program's remaining output. Returns `None` if there is none, or if no more may
    /// be sent now ([`Self::is_held_back`]).
    ///
    /// Does not wait for the end of a pipe, because a process that the program has started can hold it open. Stops
    /// after `MAX_DRAIN` bytes, because such a process can write without pause.
    pub(crate) fn drain(&mut self) -> Option<(Stream, Vec<u8>)> {
        for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            if self.drained[index] < MAX_DRAIN
                && let Some(data) = self.read(stream)
            {
                self.drained[index] += data.len();
                return Some((stream, data));
            }
        }
        None
    }

    /// Returns whether there may be output that must not be sent yet, because the window is full.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.credit <= FRAME_COST && (self.stdout.is_some() || self.stderr.is_some())
    }
}

/// Returns the end of a pipe as a non-blocking file.
fn unblocked(end: OwnedFd) -> nix::Result<File> {
    fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok(File::from(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn program() -> (Program, Streams) {
        Program::with_pipes(ComponentName::Agent, false).unwrap()
    }

    #[test]
    fn what_was_written_is_read_and_the_end_closes() {
        let (mut program, streams) = program();
        assert_eq!(program.read(Stream::Stdout), None, "nothing yet, and no waiting");
        assert_eq!(program.outputs().count(), 2);
        let mut stdout = File::from(streams.stdout);
        stdout.write_all(b"hello").unwrap();
        assert_eq!(program.read(Stream::Stdout).as_deref(), Some(&b"hello"[..]));
        drop(stdout);
        // The end comes when the last copy of the pipe is closed. A test that runs in parallel and starts a program has
        // copies until that program is executed.
        for _ in 0..10_000 {
            assert_eq!(program.read(Stream::Stdout), None);
            if program.outputs().count() == 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(
            program.outputs().map(|(stream, _)| stream).collect::<Vec<_>>(),
            [Stream::Stderr]
        );
    }

    #[test]
    fn draining_does_not_wait_for_who_holds_the_pipe() {
        let (mut program, streams) = program();
        let mut stdout = File::from(streams.stdout);
        stdout.write_all(&vec![1; MAX_OUTPUT + 1]).unwrap();
        File::from(streams.stderr).write_all(b"err").unwrap();
        let mut left = std::iter::from_fn(|| program.drain());
        let lengths: Vec<_> = left.by_ref().map(|(_, data)| data.len()).collect();
        assert_eq!(lengths, [MAX_OUTPUT, 1, 3]);
        assert!(!program.is_held_back(), "it is over, whoever holds the pipe");
        drop(stdout);
    }

    #[test]
    fn without_credit_nothing_is_read_and_the_end_waits() {
        let (mut program, streams) = program();
        let mut stdout = File::from(streams.stdout);
        while program.room() > 0 {
            stdout.write_all(&[7; MAX_OUTPUT]).unwrap();
            program.read(Stream::Stdout).unwrap();
        }
        assert_eq!((program.read(Stream::Stdout), program.outputs().count()), (None, 0));
        assert_eq!(program.drain(), None);
        assert!(program.is_held_back());
        program.grant(FRAME_COST + 3 - program.credit);
        assert_eq!(program.drain().unwrap().1, [7; 3]);
        program.grant(u32::MAX);
        assert!(program.drain().is_some());
        assert_eq!((program.drain(), program.is_held_back()), (None, false));
    }
}

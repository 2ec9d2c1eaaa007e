//! A running program as init sees it: its standard streams, and what it may still send.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use box_contract::ComponentName;
use box_contract::wire::{FRAME_COST, MAX_OUTPUT, Stream, TerminalSize, WINDOW, output_cost};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::pipe2;

use super::input::Input;
use crate::component::spawn::Streams;
use crate::{sys, wait};

/// The most bytes that are read of a pipe of an ended program: none holds more (`/proc/sys/fs/pipe-max-size`).
const MAX_DRAIN: usize = 1024 * 1024;

/// A program that runs, or that has ended and whose last output is on its way.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) component: ComponentName,
    /// Its standard input, where the host sends it.
    pub(crate) input: Option<Input>,
    stdout: Option<File>,
    stderr: Option<File>,
    /// The size of its terminal, if that is still to come.
    size: Option<TerminalSize>,
    /// The part of the window that is left.
    credit: u32,
    /// When it is to be killed.
    pub(crate) deadline: Option<Instant>,
    /// Whether it was, for that reason.
    pub(crate) timed_out: bool,
    /// Its status, once it has ended.
    pub(crate) status: Option<u8>,
    /// The bytes that were read of each stream since then.
    drained: [usize; 2],
}

impl Program {
    fn new(component: ComponentName) -> Self {
        Self {
            component,
            input: None,
            stdout: None,
            stderr: None,
            size: None,
            credit: WINDOW,
            deadline: None,
            timed_out: false,
            status: None,
            drained: [0; 2],
        }
    }

    /// Makes the pipes of a program, and their other ends for it.
    ///
    /// # Errors
    /// The kernel's.
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

    /// Returns the program with another part of the window.
    pub(crate) fn with_credit(self, credit: u32) -> Self {
        Self { credit, ..self }
    }

    /// Returns the part of the window that is left.
    pub(crate) const fn credit(&self) -> u32 {
        self.credit
    }

    /// Returns a program whose terminal is still to come.
    pub(crate) fn with_terminal(component: ComponentName) -> Self {
        Self { input: Some(Input::new(None)), ..Self::new(component) }
    }

    /// Takes the terminal, of which nothing blocks.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn connect(&mut self, terminal: OwnedFd) -> io::Result<()> {
        let terminal = File::from(terminal);
        self.input.get_or_insert_with(|| Input::new(None)).connect(terminal.try_clone()?);
        self.stdout = Some(terminal);
        self.size.take().into_iter().for_each(|size| self.resize(size));
        Ok(())
    }

    /// Sets the size of its terminal, as soon as it has it. A pipe has none.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        match &self.stdout {
            Some(terminal) => drop(sys::terminal::set_size(terminal.as_fd(), size)),
            None => self.size = Some(size),
        }
    }

    /// Returns the pipes from which something may be sent.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let pipes = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        let pipes = pipes.into_iter().filter(|_| self.room() > 0);
        pipes.filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?.as_fd())))
    }

    /// Lets it send more.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes).min(WINDOW);
    }

    /// Returns how many bytes the next frame may have.
    fn room(&self) -> usize {
        (self.credit.saturating_sub(FRAME_COST) as usize).min(MAX_OUTPUT)
    }

    /// Reads what is there, up to one frame and the credit; closes the pipe at its end.
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
            // A terminal whose programs are gone has an error instead of an end.
            _ => {
                *slot = None;
                None
            }
        }
    }

    /// Reads a piece of what an ended program has left in its pipes; `None` where nothing is left, or no
    /// more may be sent now ([`Self::is_held_back`]).
    ///
    /// Does not wait for their ends, as a process that it started may hold them open, and stops
    /// where that one writes without pause.
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

    /// Returns whether there may be output that must not be sent yet.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.credit <= FRAME_COST && (self.stdout.is_some() || self.stderr.is_some())
    }
}

/// Returns the end of a pipe as a file that does not block.
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
        // The end comes when the last copy of the pipe is closed. A test beside this one that
        // starts a program holds copies until that program is executed.
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

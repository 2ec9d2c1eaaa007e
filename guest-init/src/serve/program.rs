//! A running program as init sees it: its standard streams, and what it may still send.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use box_image::wire::{MAX_OUTPUT, Output, Stream, TerminalSize, WINDOW};
use box_image::{ComponentName, User};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use super::input::Input;
use crate::component::spawn::Streams;
use crate::sys;

/// The most bytes that are read of an ended program's two pipes: none holds more than half of it
/// (`/proc/sys/fs/pipe-max-size`).
const DRAIN_MAX: usize = 2 * 1024 * 1024;

/// A program that runs, or that has ended and whose last output is on its way.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) component: ComponentName,
    /// Its standard input, where the host sends it.
    pub(crate) input: Option<Input>,
    stdout: Option<File>,
    stderr: Option<File>,
    /// The bytes that may still be sent.
    credit: usize,
    /// When it is to be killed.
    pub(crate) deadline: Option<Instant>,
    /// Whether it was, for that reason.
    pub(crate) timed_out: bool,
    /// Its status, once it has ended.
    pub(crate) status: Option<u8>,
    /// The bytes that were read since then.
    drained: usize,
}

impl Program {
    fn new(component: ComponentName) -> Self {
        Self {
            component,
            input: None,
            stdout: None,
            stderr: None,
            credit: WINDOW as usize,
            deadline: None,
            timed_out: false,
            status: None,
            drained: 0,
        }
    }

    /// Makes the pipes of a program that is to run as `user`, and their other ends for it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn with_pipes(
        component: ComponentName,
        user: &User,
        has_input: bool,
    ) -> nix::Result<(Self, Streams)> {
        let mut program = Self::new(component);
        let (ours, stdout) = pipe(user)?;
        program.stdout = Some(ours);
        let (ours, stderr) = pipe(user)?;
        program.stderr = Some(ours);
        let stdin = if has_input {
            let (stdin, ours) = input_pipe()?;
            program.input = Some(Input::new(Some(ours)));
            Some(stdin)
        } else {
            None
        };
        Ok((program, Streams { stdin, stdout, stderr }))
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
        Ok(())
    }

    /// Sets the size of its terminal, if it has one.
    pub(crate) fn resize(&self, size: TerminalSize) {
        if let (Some(terminal), None) = (&self.stdout, &self.stderr) {
            // A pipe is none.
            let _ = sys::terminal::set_size(terminal.as_fd(), size);
        }
    }

    /// Returns the pipes from which something may be sent.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let pipes = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        let pipes = pipes.into_iter().filter(|_| self.credit > 0);
        pipes.filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?.as_fd())))
    }

    /// Lets it send more.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes as usize).min(WINDOW as usize);
    }

    /// Reads what is there, up to one frame and the credit; closes the pipe at its end.
    pub(crate) fn read(&mut self, id: u8, stream: Stream) -> Option<Output> {
        let slot = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = self.credit.min(MAX_OUTPUT);
        let pipe = slot.as_mut().filter(|_| room > 0)?;
        let mut data = vec![0; room];
        match pipe.read(&mut data) {
            Ok(length @ 1..) => {
                data.truncate(length);
                self.credit -= length;
                Some(Output { id, stream, data })
            }
            Err(error) if is_temporary(&error) => None,
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
    pub(crate) fn drain(&mut self, id: u8) -> Option<Output> {
        for stream in [Stream::Stdout, Stream::Stderr] {
            if self.drained < DRAIN_MAX
                && let Some(output) = self.read(id, stream)
            {
                self.drained += output.data.len();
                return Some(output);
            }
        }
        None
    }

    /// Returns whether there may be output that must not be sent yet.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.credit == 0 && (self.stdout.is_some() || self.stderr.is_some())
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Makes a pipe that belongs to `user`, so that a program may reopen its own `/dev/stdout`.
/// Only our end does not block.
fn pipe(user: &User) -> nix::Result<(File, OwnedFd)> {
    let (ours, theirs) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    fchown(&theirs, Some(Uid::from_raw(user.uid)), Some(Gid::from_raw(user.gid)))?;
    Ok((File::from(ours), theirs))
}

/// Makes a pipe for a program's input, of which only our end does not block.
fn input_pipe() -> nix::Result<(OwnedFd, File)> {
    let (theirs, ours) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((theirs, File::from(ours)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn program() -> (Program, Streams) {
        let user = User {
            uid: nix::unistd::getuid().as_raw(),
            gid: nix::unistd::getgid().as_raw(),
            groups: Vec::new(),
        };
        Program::with_pipes(ComponentName::Agent, &user, false).unwrap()
    }

    #[test]
    fn what_was_written_is_read_and_the_end_closes() {
        let (mut program, streams) = program();
        assert_eq!(program.read(3, Stream::Stdout), None, "nothing yet, and no waiting");
        assert_eq!(program.outputs().count(), 2);
        let mut stdout = File::from(streams.stdout);
        stdout.write_all(b"hello").unwrap();
        let expected = Output { id: 3, stream: Stream::Stdout, data: b"hello".to_vec() };
        assert_eq!(program.read(3, Stream::Stdout), Some(expected));
        drop(stdout);
        // The end comes when the last copy of the pipe is closed. A test beside this one that
        // starts a program holds copies until that program is executed.
        for _ in 0..10_000 {
            assert_eq!(program.read(3, Stream::Stdout), None);
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
        let mut left = std::iter::from_fn(|| program.drain(1));
        let lengths: Vec<_> = left.by_ref().map(|output| output.data.len()).collect();
        assert_eq!(lengths, [MAX_OUTPUT, 1, 3]);
        assert!(!program.is_held_back(), "it is over, whoever holds the pipe");
        drop(stdout);
    }

    #[test]
    fn without_credit_nothing_is_read_and_the_end_waits() {
        let (mut program, streams) = program();
        let mut stdout = File::from(streams.stdout);
        let mut sent = 0;
        while sent < WINDOW as usize {
            stdout.write_all(&[7; MAX_OUTPUT]).unwrap();
            sent += program.read(1, Stream::Stdout).unwrap().data.len();
        }
        stdout.write_all(b"more").unwrap();
        assert_eq!((program.read(1, Stream::Stdout), program.outputs().count()), (None, 0));
        assert_eq!(program.drain(1), None);
        assert!(program.is_held_back());
        program.grant(3);
        assert_eq!(program.drain(1).unwrap().data, b"mor");
        program.grant(u32::MAX);
        assert_eq!(program.drain(1).unwrap().data, b"e");
        assert_eq!((program.drain(1), program.is_held_back()), (None, false));
    }
}

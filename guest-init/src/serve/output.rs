//! The pipes through which programs write.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use box_image::wire::{MAX_OUTPUT, Output, Stream};
use box_image::{ComponentName, User};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{Gid, Uid, fchown, pipe2};

use crate::component::spawn::Streams;

/// The most bytes that are read of an ended program's pipe: no pipe holds more
/// (`/proc/sys/fs/pipe-max-size`).
const DRAIN_MAX: usize = 1024 * 1024;

/// A program that runs, as init sees it.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) component: ComponentName,
    stdout: Option<File>,
    stderr: Option<File>,
}

impl Program {
    /// Makes the pipes of a program that is to run as `user`, and their other ends for it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(component: ComponentName, user: &User) -> nix::Result<(Self, Streams)> {
        let (stdout, their_stdout) = pipe(user)?;
        let (stderr, their_stderr) = pipe(user)?;
        let streams = Streams { stdout: their_stdout, stderr: their_stderr };
        Ok((Self { component, stdout: Some(stdout), stderr: Some(stderr) }, streams))
    }

    /// Returns the pipes that are open.
    pub(crate) fn pipes(&self) -> impl Iterator<Item = (Stream, BorrowedFd<'_>)> {
        let pipes = [(Stream::Stdout, &self.stdout), (Stream::Stderr, &self.stderr)];
        pipes.into_iter().filter_map(|(stream, pipe)| Some((stream, pipe.as_ref()?.as_fd())))
    }

    /// Reads what is there, up to one frame; closes the pipe at its end.
    pub(crate) fn read(&mut self, id: u8, stream: Stream) -> Option<Output> {
        let slot = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let mut data = vec![0; MAX_OUTPUT];
        match slot.as_mut()?.read(&mut data) {
            Ok(length) if length > 0 => {
                data.truncate(length);
                Some(Output { id, stream, data })
            }
            Err(error) if is_temporary(&error) => None,
            _ => {
                *slot = None;
                None
            }
        }
    }

    /// Reads what an ended program has left in its pipes.
    ///
    /// Does not wait for their ends, as a process that it started may hold them open, and stops
    /// where that one writes without pause.
    pub(crate) fn drain(&mut self, id: u8) -> Vec<Output> {
        let mut outputs = Vec::new();
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut drained = 0;
            while let Some(output) = self.read(id, stream).filter(|_| drained < DRAIN_MAX) {
                drained += output.data.len();
                outputs.push(output);
            }
        }
        outputs
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
        Program::new(ComponentName::Agent, &user).unwrap()
    }

    #[test]
    fn what_was_written_is_read_and_the_end_closes() {
        let (mut program, streams) = program();
        assert_eq!(program.read(3, Stream::Stdout), None, "nothing yet, and no waiting");
        assert_eq!(program.pipes().count(), 2);
        let mut stdout = File::from(streams.stdout);
        stdout.write_all(b"hello").unwrap();
        let expected = Output { id: 3, stream: Stream::Stdout, data: b"hello".to_vec() };
        assert_eq!(program.read(3, Stream::Stdout), Some(expected));
        drop(stdout);
        // The end comes when the last copy of the pipe is closed. A test beside this one that
        // starts a program holds copies until that program is executed.
        for _ in 0..10_000 {
            assert_eq!(program.read(3, Stream::Stdout), None);
            if program.pipes().count() == 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(program.pipes().map(|(stream, _)| stream).collect::<Vec<_>>(), [Stream::Stderr]);
    }

    #[test]
    fn draining_does_not_wait_for_who_holds_the_pipe() {
        let (mut program, streams) = program();
        let mut stdout = File::from(streams.stdout);
        stdout.write_all(&vec![1; MAX_OUTPUT + 1]).unwrap();
        File::from(streams.stderr).write_all(b"err").unwrap();
        let lengths: Vec<_> = program.drain(1).iter().map(|output| output.data.len()).collect();
        assert_eq!(lengths, [MAX_OUTPUT, 1, 3]);
        drop(stdout);
    }
}

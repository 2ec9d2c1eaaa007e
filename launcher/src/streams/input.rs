//! The standard input of this program, for a command in the box.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use box_contract::wire::{INPUT_WINDOW, MAX_OUTPUT};

/// A file whose bytes are sent to a command as fast as the command reads them.
#[derive(Debug)]
pub struct Input {
    file: File,
    /// How many more bytes init accepts.
    credit: usize,
    ended: bool,
}

impl Input {
    /// Wraps a file, such as a copy of standard input. The file may be a blocking one, because it is read only after
    /// [poll(2)](https://man7.org/linux/man-pages/man2/poll.2.html) has reported that it is readable.
    pub fn new(file: impl Into<OwnedFd>) -> Self {
        Self { file: File::from(file.into()), credit: INPUT_WINDOW as usize, ended: false }
    }

    /// Returns the file if it has not ended and init accepts more bytes.
    pub(crate) fn wanted(&self) -> Option<BorrowedFd<'_>> {
        (self.credit > 0 && !self.ended).then(|| self.file.as_fd())
    }

    /// Records that init accepts `bytes` more.
    pub(crate) fn grant(&mut self, bytes: u32) {
        self.credit = self.credit.saturating_add(bytes as usize).min(INPUT_WINDOW as usize);
    }

    /// Reads the available bytes. Returns an empty vector at the end of the file, and `None` if no bytes were
    /// available.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut data = vec![0; self.credit.min(MAX_OUTPUT)];
        match self.file.read(&mut data) {
            Ok(length) => {
                self.ended = length == 0;
                self.credit -= length;
                data.truncate(length);
                Ok(Some(data))
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn no_more_is_read_than_init_takes_and_the_end_comes_once() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut input = Input::new(reader);
        let mut sent = 0;
        while input.wanted().is_some() {
            writer.write_all(&[7; MAX_OUTPUT]).unwrap();
            sent += input.read().unwrap().unwrap().len();
        }
        assert_eq!(sent, INPUT_WINDOW as usize);
        input.grant(5);
        writer.write_all(b"1234567").unwrap();
        assert_eq!(input.read().unwrap().unwrap(), b"12345");
        assert!(input.wanted().is_none());
        input.grant(u32::MAX);
        drop(writer);
        assert_eq!(input.read().unwrap().unwrap(), b"67");
        assert_eq!(input.read().unwrap().unwrap(), b"");
        assert!(input.wanted().is_none(), "it has ended");
    }
}

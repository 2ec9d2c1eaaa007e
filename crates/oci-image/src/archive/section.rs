//! A part of a file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Reads a part of a file. Several may read the same file at once.
#[derive(Debug)]
pub(super) struct Section {
    file: Arc<File>,
    offset: u64,
    rest: u64,
}

impl Section {
    /// Starts at an offset, and ends behind this many bytes, or where the file ends.
    pub(super) fn new(file: &Arc<File>, offset: u64, size: u64) -> Self {
        Self { file: Arc::clone(file), offset, rest: size }
    }
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = usize::try_from(self.rest).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read_at(&mut buffer[..length], self.offset)?;
        self.offset += read as u64;
        self.rest -= read as u64;
        Ok(read)
    }
}

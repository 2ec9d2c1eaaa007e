//! Files without a name. They vanish when this process ends, even if it is killed.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use crate::{HostError, Result};

/// An unnamed file for QEMU, in the directory for temporary files.
#[derive(Debug)]
pub(crate) struct Scratch(File);

impl Scratch {
    /// Makes an empty file.
    pub(crate) fn new() -> Result<Self> {
        let directory = std::env::temp_dir();
        let file = tempfile::tempfile_in(&directory);
        file.map(Self).map_err(HostError::file("make a file in", &directory))
    }

    /// Returns the file, open for reading and writing.
    pub(crate) const fn file(&self) -> &File {
        &self.0
    }

    /// Returns a path by which other processes of this user can open the file while this process lives.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::process::Command;

    use super::*;

    #[test]
    fn another_process_reads_what_was_written() {
        let scratch = Scratch::new().unwrap();
        scratch.file().write_all(b"content").unwrap();
        let read = Command::new("cat").arg(scratch.path()).output().unwrap();
        assert_eq!(read.stdout, b"content");
        let name = fs::read_link(scratch.path()).unwrap();
        assert!(!name.exists(), "{}", name.display());
    }
}

//! The log of a box's agent, and of its business application's own program: what they wrote, when and where, in two files of bounded size.
//!
//! Each entry is the time in milliseconds since 1970 as eight bytes, little-endian, and then the frame in which init sent
//! the output. When a file is full, it takes the place of the older one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use box_image::ComponentName;
use box_image::wire::{BUSINESS_ID, Frames, GuestMessage, Output, Stream};

use super::{inode, since_epoch};
use crate::LaunchError;
use crate::control::CHUNK;

const CURRENT: &str = "agent.log";
const OLDER: &str = "agent.log.1";
/// The size of a file from which on the next entry goes to another, in bytes.
pub(super) const MAX_FILE: u64 = 4 << 20;

/// Keeps what the components' own programs write.
#[derive(Debug)]
pub struct AgentLog {
    directory: PathBuf,
    file: Option<File>,
    size: u64,
    failed: Option<String>,
}

impl AgentLog {
    /// Makes the log in a directory.
    pub(super) fn create(directory: &Path) -> Result<Self, LaunchError> {
        let path = directory.join(CURRENT);
        let file = new_file(&path).map_err(LaunchError::file("make", &path))?;
        Ok(Self { directory: directory.to_owned(), file: Some(file), size: 0, failed: None })
    }

    /// Returns a log that keeps nothing.
    #[cfg(test)]
    pub(crate) fn nowhere() -> Self {
        Self { directory: PathBuf::new(), file: None, size: 0, failed: None }
    }

    /// Keeps an output. A disk that is full ends the log, but not the agent.
    pub(crate) fn write(&mut self, output: &Output) {
        if self.file.is_some()
            && let Err(error) = self.append(output)
        {
            (self.file, self.failed) = (None, Some(error.to_string()));
        }
    }

    /// Returns why the log lacks the last outputs.
    pub(crate) fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    fn append(&mut self, output: &Output) -> io::Result<()> {
        if self.size >= MAX_FILE {
            let current = self.directory.join(CURRENT);
            fs::rename(&current, self.directory.join(OLDER))?;
            (self.file, self.size) = (Some(new_file(&current)?), 0);
        }
        let mut entry = since_epoch().to_le_bytes().to_vec();
        GuestMessage::Output(output.clone()).write(&mut entry)?;
        self.size += entry.len() as u64;
        self.file.as_mut().map_or(Ok(()), |file| file.write_all(&entry))
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Something that a component's own program wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Whose program it was.
    pub component: ComponentName,
    /// Where.
    pub stream: Stream,
    /// What.
    pub data: Vec<u8>,
}

/// Reads a log from its beginning, also while it is written.
#[derive(Debug)]
pub struct LogReader {
    directory: PathBuf,
    file: Option<File>,
    frames: Frames,
}

impl LogReader {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), file: None, frames: Frames::default() }
    }

    /// Returns the next entry; `None` at the end, after which there may be more later.
    ///
    /// # Errors
    /// When the files cannot be read, or hold something else.
    pub fn next_entry(&mut self) -> io::Result<Option<Logged>> {
        loop {
            if let Some(entry) = self.frames.next(entry)? {
                return Ok(Some(entry));
            }
            if !self.read()? && !self.advance()? {
                return Ok(None);
            }
        }
    }

    /// Reads more of the file; returns whether there was more.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let mut chunk = [0; CHUNK];
        let length = file.read(&mut chunk)?;
        self.frames.push(&chunk[..length]);
        Ok(length > 0)
    }

    /// Opens the file after this one; returns whether there is one.
    fn advance(&mut self) -> io::Result<bool> {
        let next = match &self.file {
            None => open(&self.directory.join(OLDER))?.or(open(&self.directory.join(CURRENT))?),
            Some(file) => {
                let current = open(&self.directory.join(CURRENT))?;
                let is_other = |it: &File| Ok::<_, io::Error>(inode(it)? != inode(file)?);
                match current {
                    Some(current) if is_other(&current)? => Some(current),
                    _ => None,
                }
            }
        };
        let found = next.is_some();
        // What was written before the file was replaced may have come after it was last read.
        if found && self.read()? {
            return Ok(true);
        }
        self.file = next.or(self.file.take());
        Ok(found)
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Reads an entry.
fn entry(rest: &mut &[u8]) -> io::Result<Option<Logged>> {
    let mut time = [0; 8];
    rest.read_exact(&mut time)?;
    match GuestMessage::read(rest)? {
        Some(GuestMessage::Output(Output { id, stream, data })) => {
            let is_business = u32::from(id) == BUSINESS_ID;
            let component =
                if is_business { ComponentName::Business } else { ComponentName::Agent };
            Ok(Some(Logged { time_ms: u64::from_le_bytes(time), component, stream, data }))
        }
        Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "the log holds something else")),
        None => Err(ErrorKind::UnexpectedEof.into()),
    }
}

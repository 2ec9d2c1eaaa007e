//! Reads and writes single files of a box, and lists its directories, for callers that have no paths on this host.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::rc::Rc;

use box_contract::wire::{Builtin, Exec, Listing};
use box_copy::{Archive, FirstEntry, first_entry};
use host_fs::OsError;

use super::builtin::{self, BoundedOutput};
use super::copy::{Inside, archive_from_box, archive_to_box};
use super::{Client, ClientError};
use crate::streams::StreamError;

/// The greatest length of a listing, in bytes.
const MAX_ANSWER: usize = 32 << 20;
/// How many bytes of an archive can precede the content of its first file: its header, and before it those of a long name.
const MAX_HEAD: usize = 16 << 10;

/// Lists a directory of a box.
///
/// # Errors
/// The error of the box, or if its answer is malformed.
pub fn list_directory(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
) -> Result<Listing, ClientError> {
    let exec = Exec::new(inside.component, [OsStr::new("ls"), inside.path]);
    let exec = Exec { builtin: Some(Builtin::List), user: inside.user.clone(), ..exec };
    let answer = BoundedOutput::new(MAX_ANSWER);
    let done = builtin::run(client, exec, None, Box::new(answer.clone()))?;
    done.map_err(ClientError::List)?;
    let malformed = |error: serde_json::Error| StreamError::Protocol(error.to_string());
    Ok(serde_json::from_str(&answer.text()).map_err(malformed)?)
}

/// Reads the entry at a path of a box, of a file at most the first `limit` bytes. Must be the last request of this client: the rest of
/// a large file is not received.
///
/// # Errors
/// The error of the box, or if its answer is malformed.
pub fn read_file(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
    limit: usize,
) -> Result<FirstEntry, ClientError> {
    let archive = Beginning::new(MAX_HEAD + limit);
    match archive_from_box(client, inside, Box::new(archive.clone())) {
        Err(ClientError::Stream(StreamError::Output(_))) if archive.is_full() => {}
        read => drop(read?),
    }
    let mut entry = first_entry(&archive.bytes.borrow());
    if let Ok(FirstEntry::File { content, .. }) = &mut entry {
        content.truncate(limit);
    }
    entry.map_err(|error| ClientError::Copy(error.to_string()))
}

/// Writes a file of a box, and replaces an existing one.
///
/// # Errors
/// The error of the box.
pub fn write_file(
    client: &mut Client<'_>,
    inside: &Inside<'_>,
    mode: u32,
    content: &[u8],
) -> Result<(), ClientError> {
    let mut bytes = Vec::new();
    let mut archive = Archive::new(&mut bytes);
    // Unpacking replaces this name by that of the path.
    archive.file(b"file", mode, content).map_err(OsError::system("pack the file"))?;
    archive.finish().map_err(OsError::system("pack the file"))?;
    let input = builtin::input_of(&bytes).map_err(OsError::system("write an archive"))?;
    archive_to_box(client, input, inside).map(drop)
}

/// Keeps the first bytes that are written to it, and then refuses more.
#[derive(Debug, Clone)]
struct Beginning {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: usize,
}

impl Beginning {
    fn new(limit: usize) -> Self {
        Self { bytes: Rc::default(), limit }
    }

    fn is_full(&self) -> bool {
        self.bytes.borrow().len() == self.limit
    }
}

impl Write for Beginning {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.borrow_mut();
        let room = (self.limit - bytes.len()).min(data.len());
        bytes.extend_from_slice(&data[..room]);
        if room == 0 && !data.is_empty() {
            return Err(io::Error::other("enough has been read"));
        }
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_beginning_is_kept() {
        let mut beginning = Beginning::new(3);
        beginning.write_all(b"ab").unwrap();
        assert!(!beginning.is_full());
        beginning.write_all(b"cd").unwrap_err();
        assert_eq!((beginning.is_full(), &beginning.bytes.borrow()[..]), (true, &b"abc"[..]));
        beginning.write_all(b"").unwrap();
    }
}

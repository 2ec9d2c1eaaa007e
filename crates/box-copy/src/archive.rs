//! Writes an archive: a header and the content of each entry, and then two blocks of zeros.

use std::io::{self, Read, Write};

use tar::{EntryType, Header};

use crate::{BLOCK, SHORT, padding};

/// The size in bytes of the buffer for copying a file's content.
const PIECE: usize = 128 << 10;

/// Writes an archive entry by entry, without times and owners. All paths should begin with the same name, because
/// [`unpack`](crate::unpack()) requires this of an archive from a box.
#[derive(Debug)]
pub struct Archive<W: Write>(W);

impl<W: Write> Archive<W> {
    /// Begins an archive that is written to `to`.
    pub const fn new(to: W) -> Self {
        Self(to)
    }

    /// Adds a directory with the mode 0755.
    ///
    /// # Errors
    /// The writer's error.
    pub fn directory(&mut self, path: &[u8]) -> io::Result<()> {
        let head = Head { kind: EntryType::Directory, mode: 0o755, size: 0, mtime: 0 };
        put_header(&mut self.0, head, &[path, b"/"].concat(), b"")
    }

    /// Adds a file with the permissions `mode`.
    ///
    /// # Errors
    /// The writer's error.
    pub fn file(&mut self, path: &[u8], mode: u32, content: &[u8]) -> io::Result<()> {
        let size = content.len() as u64;
        let head = Head { kind: EntryType::Regular, mode, size, mtime: 0 };
        put_header(&mut self.0, head, path, b"")?;
        self.0.write_all(content)?;
        pad(&mut self.0, size)
    }

    /// Adds a file whose content is the next `size` bytes of `from`.
    ///
    /// # Errors
    /// The error of the writer or of `from`, or [`io::ErrorKind::UnexpectedEof`] if `from` ends before `size` bytes.
    pub fn copy(
        &mut self,
        path: &[u8],
        mode: u32,
        size: u64,
        from: &mut dyn Read,
    ) -> io::Result<()> {
        let head = Head { kind: EntryType::Regular, mode, size, mtime: 0 };
        put_header(&mut self.0, head, path, b"")?;
        let mut buffer = vec![0; PIECE];
        let mut rest = size;
        while rest > 0 {
            let most = usize::try_from(rest).unwrap_or(PIECE).min(PIECE);
            match from.read(&mut buffer[..most]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    self.0.write_all(&buffer[..length])?;
                    rest -= length as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        pad(&mut self.0, size)
    }

    /// Adds a symbolic link at `path` that points to `target`.
    ///
    /// # Errors
    /// The writer's error.
    pub fn link(&mut self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let head = Head { kind: EntryType::Symlink, mode: 0o777, size: 0, mtime: 0 };
        put_header(&mut self.0, head, path, target)
    }

    /// Writes the end of the archive, and flushes the writer.
    ///
    /// # Errors
    /// The writer's error.
    pub fn finish(mut self) -> io::Result<()> {
        end(&mut self.0)
    }
}

/// The fields of a header, without the entry's name and target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) kind: EntryType,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// In seconds since 1970.
    pub(crate) mtime: u64,
}

/// Writes a header. A `name` or `target` of more than [`SHORT`] bytes is written in an extra entry before the header.
pub(crate) fn put_header(
    archive: &mut dyn Write,
    head: Head,
    name: &[u8],
    target: &[u8],
) -> io::Result<()> {
    for (kind, text) in [(EntryType::GNULongName, name), (EntryType::GNULongLink, target)] {
        if text.len() > SHORT {
            let length = text.len() as u64 + 1;
            let head = Head { kind, mode: 0o644, size: length, mtime: 0 };
            put_header(archive, head, b"././@LongLink", b"")?;
            archive.write_all(text)?;
            archive.write_all(&[0])?;
            pad(archive, length)?;
        }
    }
    let mut header = Header::new_gnu();
    let fields = header.as_old_mut();
    for (field, text) in [(&mut fields.name, name), (&mut fields.linkname, target)] {
        let length = text.len().min(SHORT);
        field[..length].copy_from_slice(&text[..length]);
    }
    header.set_entry_type(head.kind);
    header.set_mode(head.mode & 0o7777);
    header.set_size(head.size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(head.mtime);
    header.set_cksum();
    archive.write_all(header.as_bytes())
}

/// Writes zeros after a content of `size` bytes until its last block is full.
pub(crate) fn pad(archive: &mut dyn Write, size: u64) -> io::Result<()> {
    archive.write_all(&[0; BLOCK][..padding(size)])
}

/// Writes the end of an archive: two blocks of zeros.
pub(crate) fn end(archive: &mut dyn Write) -> io::Result<()> {
    archive.write_all(&[0; 2 * BLOCK])?;
    archive.flush()
}

//! The contents of files: hashed, and verified while they are copied.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

use box_digest::{Blake3Digest, Hasher};

/// The size of a read, in bytes.
const CHUNK: usize = 256 << 10;

/// The content of a regular file: the BLAKE3 hash of its bytes, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Content {
    /// BLAKE3 of the bytes.
    pub hash: Blake3Digest,
    /// The number of bytes.
    pub size: u64,
}

/// The reason why a content was not copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The file has other bytes at the offset, or ends too early.
    #[error("the data is damaged")]
    Damaged,
    /// The file cannot be read.
    #[error("the data cannot be read")]
    Read(#[source] io::Error),
    /// The copy cannot be written.
    #[error("the copy cannot be written")]
    Write(#[source] io::Error),
}

impl Content {
    /// Returns the content of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: Blake3Digest::of(bytes), size: bytes.len() as u64 }
    }

    /// Hashes a stream to its end.
    ///
    /// # Errors
    /// The error of the stream.
    pub fn of_reader(reader: impl Read) -> io::Result<Self> {
        let (hash, size) = Blake3Digest::of_reader(reader)?;
        Ok(Self { hash, size })
    }

    /// Copies the content from an offset of a file to `out`, and verifies it.
    ///
    /// # Errors
    /// [`CopyError`]. The bytes that `out` then has must not be used.
    pub fn copy(self, file: &File, offset: u64, out: &mut dyn Write) -> Result<(), CopyError> {
        self.copy_head(self.size, file, offset, out)
    }

    /// Copies and reads at most the first `limit` bytes of the content. Verifies the content only if
    /// it is not longer than `limit`.
    ///
    /// # Errors
    /// As [`Self::copy`].
    pub fn copy_head(
        self,
        limit: u64,
        file: &File,
        mut offset: u64,
        out: &mut dyn Write,
    ) -> Result<(), CopyError> {
        let mut hasher = Hasher::default();
        let mut left = self.size.min(limit);
        let mut buffer = vec![0; CHUNK.min(usize::try_from(left).unwrap_or(CHUNK))];
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let chunk = &mut buffer[..chunk];
            file.read_exact_at(chunk, offset).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => CopyError::Damaged,
                _ => CopyError::Read(error),
            })?;
            hasher.update(chunk);
            out.write_all(chunk).map_err(CopyError::Write)?;
            offset += chunk.len() as u64;
            left -= chunk.len() as u64;
        }
        let is_whole = limit >= self.size;
        if is_whole && hasher.digest() != self.hash { Err(CopyError::Damaged) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_alone_and_a_whole_content_is_verified() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before, the content").unwrap();
        let content = Content::of(b"the content, which the file has not whole");
        let head = |content: Content, limit| {
            let mut head = Vec::new();
            content.copy_head(limit, &file, 8, &mut head).map(|()| head)
        };
        assert_eq!(head(content, 11).unwrap(), b"the content");
        assert!(matches!(head(content, 12), Err(CopyError::Damaged)));
        for limit in [11, u64::MAX] {
            assert_eq!(head(Content::of(b"the content"), limit).unwrap(), b"the content");
            assert!(matches!(head(Content::of(b"other bytes"), limit), Err(CopyError::Damaged)));
        }
        assert_eq!(head(Content::of(b"other bytes"), 10).unwrap(), b"the conten");
    }
}

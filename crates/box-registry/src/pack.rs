//! Compresses blobs to the same bytes on every host.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use box_digest::{Digest, Hasher, Sha256};
use download::http::Content;
use host_fs::read::Section;
use zstd::stream::write::Encoder;

use crate::form::{Coding, Sent};

/// The compression level. The compressed bytes depend on this level, on [`WINDOW_LOG`], on the version of the library, and on
/// compressing each frame with a single thread.
pub(crate) const LEVEL: i32 = 4;
/// The window of the long-distance matcher, as a power of two of bytes: 16 MiB. The matcher takes hardly any time, and makes
/// file systems of Debian 5 % smaller. A pull needs this much memory for each parallel download.
pub(crate) const WINDOW_LOG: u32 = 24;

/// A blob that is ready for the upload.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) sent: Sent,
    pub(crate) content: FileContent,
}

/// A file to upload.
#[derive(Debug, Clone)]
pub(crate) struct FileContent {
    file: Arc<File>,
    size: u64,
}

impl FileContent {
    /// Makes the content of a file of `size` bytes.
    pub(crate) fn new(file: File, size: u64) -> Self {
        Self { file: Arc::new(file), size }
    }
}

impl Content for FileContent {
    fn size(&self) -> u64 {
        self.size
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>> {
        // Other readers of the file share its position, so this one reads at explicit offsets.
        Ok(Box::new(Section::new(Arc::clone(&self.file), 0, self.size)))
    }
}

/// Compresses a file of `size` bytes to an unnamed temporary file in `scratch`, and returns the digest of the plain bytes. If
/// zstd does not make the file smaller, it is sent uncompressed.
pub(crate) fn pack(file: File, size: u64, scratch: &Path) -> io::Result<(Digest, Packed)> {
    let packed = BufWriter::new(tempfile::tempfile_in(scratch)?);
    let mut plain = Hashing::new(Section::new(&file, 0, size));
    let mut encoder = Encoder::new(Hashing::new(packed), LEVEL)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(WINDOW_LOG)?;
    encoder.set_pledged_src_size(Some(size))?;
    io::copy(&mut plain, &mut encoder)?;
    let packed = encoder.finish()?;
    let (digest, plain) = (packed.hasher.digest(), plain.hasher.digest());
    let packed = packed.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
    let length = packed.metadata()?.len();
    let (file, sent) = match length < size {
        true => (packed, Sent { digest, size: length, coding: Coding::Zstd }),
        false => (file, Sent::plain(plain, size)),
    };
    let content = FileContent::new(file, sent.size);
    Ok((plain, Packed { sent, content }))
}

/// Hashes the bytes that are read or written.
struct Hashing<I> {
    inner: I,
    hasher: Hasher<Sha256>,
}

impl<I> Hashing<I> {
    fn new(inner: I) -> Self {
        Self { inner, hasher: Hasher::default() }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..length]);
        Ok(length)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

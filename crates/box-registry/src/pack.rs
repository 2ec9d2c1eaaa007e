//! Compresses blobs, to the same bytes on each machine.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use box_digest::{Digest, Hasher, Sha256};
use download::http::Content;
use host_fs::read::Section;
use zstd::stream::write::Encoder;

use crate::form::Sent;

/// The level of compression. It, [`WINDOW_LOG`], the version of the library, and one thread for a frame decide the bytes.
pub(crate) const LEVEL: i32 = 4;
/// How far back a match is looked for, as a power of two of bytes: 16 MiB, and by the long-distance matcher, which takes hardly any
/// time. File systems of Debian are 5 % smaller for it. Whoever pulls has so much in memory for each blob that is fetched at a time.
pub(crate) const WINDOW_LOG: u32 = 24;

/// A blob that is ready to be sent.
#[derive(Debug)]
pub(crate) struct Packed {
    pub(crate) sent: Sent,
    pub(crate) content: FileContent,
}

/// A file that is sent.
#[derive(Debug, Clone)]
pub(crate) struct FileContent {
    file: Arc<File>,
    size: u64,
}

impl Content for FileContent {
    fn size(&self) -> u64 {
        self.size
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>> {
        // Other readers of the file share its position.
        Ok(Box::new(Section::new(Arc::clone(&self.file), 0, self.size)))
    }
}

/// Compresses a file of so many bytes to a temporary file without a name in a directory, and returns the digest of what it read.
/// Where zstd does not make it smaller, it stays as it is.
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
        true => (packed, Sent { digest, size: length, is_zstd: true }),
        false => (file, Sent { digest: plain, size, is_zstd: false }),
    };
    let content = FileContent { file: Arc::new(file), size: sent.size };
    Ok((plain, Packed { sent, content }))
}

/// Hashes what is read or written.
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

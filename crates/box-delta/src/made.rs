//! A delta in a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use box_digest::{Digest, Hasher, Sha256};

use crate::make::{Plan, Source, make};

/// A delta, and the blob that it makes.
#[derive(Debug)]
pub struct Made {
    /// The digest and the size in bytes of the blob that the delta makes.
    pub target: (Digest, u64),
    /// The blobs of which it makes it.
    pub sources: Vec<Digest>,
    /// The digest of the delta.
    pub digest: Digest,
    /// The size of the delta in bytes.
    pub size: u64,
    /// The file with the delta, from its beginning.
    pub file: File,
}

impl Made {
    /// Writes the delta that makes the blob `new` with the digest and size `target` to the empty file `to`. Returns `None` if the
    /// delta would have more than `limit` bytes, or too many sources: it is then given up, and the content of `to` is worth nothing.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn new(
        (plan, sources): (&Plan, &[Source<'_>]),
        (target, new): ((Digest, u64), &File),
        to: File,
        limit: u64,
    ) -> io::Result<Option<Self>> {
        let out = BufWriter::new(to);
        let mut limited = Limited { out, hasher: Hasher::default(), limit };
        match make(plan, sources, new, &mut limited) {
            Ok(sources) => {
                let (digest, size) = (limited.hasher.digest(), limited.hasher.count());
                let file = limited.out.into_inner().map_err(io::IntoInnerError::into_error)?;
                Ok(Some(Self { target, sources, digest, size, file }))
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Hashes what is written, up to a limit.
struct Limited {
    out: BufWriter<File>,
    hasher: Hasher<Sha256>,
    limit: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.out.write(bytes)?;
        self.hasher.update(&bytes[..length]);
        if self.hasher.count() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;
    use crate::Piece;

    #[test]
    fn a_delta_that_becomes_too_large_is_given_up() {
        let mut new = tempfile::tempfile().unwrap();
        let noise: Vec<u8> = (0..5000_u32)
            .flat_map(|it| Digest::of(&it.to_le_bytes()).as_bytes().to_vec())
            .collect();
        new.write_all(&noise).unwrap();
        let plan = Plan { pieces: vec![Piece { length: noise.len() as u64, like: None }] };
        let target = (Digest::of(&noise), noise.len() as u64);
        let made =
            |limit| Made::new((&plan, &[]), (target, &new), tempfile::tempfile().unwrap(), limit);
        assert!(made(target.1 / 2).unwrap().is_none());
        let whole = made(target.1 * 2).unwrap().unwrap();
        let mut bytes = vec![0; usize::try_from(whole.size).unwrap()];
        whole.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(Digest::of(&bytes), whole.digest);
        assert_eq!((whole.target, whole.sources.len()), (target, 0));
    }
}

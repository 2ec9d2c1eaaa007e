//! The root file system of an open box: one EROFS file system in one or several files.

use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

use box_contract::manifest::SEGMENT_UNIT;

use crate::{Blob, OpenError};

/// The offset of the number of blocks in an EROFS superblock (`erofs_fs.h`: `EROFS_SUPER_OFFSET`, and `blocks` in `struct
/// erofs_super_block`).
const BLOCKS_OFFSET: u64 = 1024 + 36;

/// The root file system of a box: the concatenation of its parts, which is one EROFS file system.
#[derive(Debug)]
pub struct Rootfs {
    /// Never empty.
    parts: Vec<Blob>,
}

impl Rootfs {
    /// Makes a rootfs of parts, of which the first is the metadata. Returns `None` if `parts` is empty.
    pub fn new(parts: Vec<Blob>) -> Option<Self> {
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Returns the parts in the order of the concatenation. There is at least one, and the first is the metadata.
    pub fn parts(&self) -> &[Blob] {
        &self.parts
    }

    /// Returns the first part: the metadata. In a box of format epoch 3, this is the whole rootfs.
    pub fn metadata(&self) -> &Blob {
        &self.parts[0]
    }

    /// Returns the sum of the sizes that the manifest has for the parts, in bytes.
    pub fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.descriptor.size).sum()
    }

    /// Converts an offset in the concatenation to a part and an offset in that part. Returns `None` past the end.
    pub fn locate(&self, offset: u64) -> Option<(&Blob, u64)> {
        let sizes = self.parts.iter().map(|part| part.descriptor.size);
        let (at, inside) = locate(sizes, offset)?;
        Some((&self.parts[at], inside))
    }

    /// Fills `buffer` with the bytes at an offset in the concatenation. They may be in several parts. Nothing is verified.
    ///
    /// # Errors
    /// The operating system's errors, and [`ErrorKind::UnexpectedEof`] past the end of a part's file or of the concatenation.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let (part, inside) = self.locate(offset).ok_or(ErrorKind::UnexpectedEof)?;
            let left = part.descriptor.size - inside;
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let (now, later) = buffer.split_at_mut(length);
            part.file.read_exact_at(now, inside)?;
            (buffer, offset) = (later, offset + length as u64);
        }
        Ok(())
    }

    /// Compares each part with its size and its digest in the manifest.
    ///
    /// # Errors
    /// The error of [`Blob::verify`] for the first part that does not match.
    pub fn verify(&self) -> Result<(), OpenError> {
        self.parts.iter().try_for_each(Blob::verify)
    }

    /// Compares the length of each part's file with its size in the manifest.
    ///
    /// # Errors
    /// The error of [`Blob::check_size`] for the first part that does not match.
    pub fn check_size(&self) -> Result<(), OpenError> {
        self.parts.iter().try_for_each(Blob::check_size)
    }

    /// Checks that the size in the superblock equals the size of all parts together. Four bytes are read, and nothing is hashed.
    ///
    /// # Errors
    /// [`OpenError::Superblock`]; [`OpenError::File`] if it cannot be read; the error of [`Blob::check_size`] for the metadata.
    pub fn check_superblock(&self) -> Result<(), OpenError> {
        // A file that is too short is reported with its sizes.
        self.metadata().check_size()?;
        let path = || self.metadata().path.clone();
        let mut blocks = [0; 4];
        self.read_exact_at(&mut blocks, BLOCKS_OFFSET).map_err(|error| OpenError::File {
            action: "read",
            path: path(),
            error,
        })?;
        let (found, expected) = (u32::from_le_bytes(blocks).into(), self.size() / SEGMENT_UNIT);
        if found == expected {
            return Ok(());
        }
        Err(OpenError::Superblock { path: path(), found, expected })
    }
}

/// Converts an offset in the concatenation of parts with these sizes to the number of a part, from 0, and an offset in that part.
/// Returns `None` past the end.
pub fn locate(sizes: impl IntoIterator<Item = u64>, offset: u64) -> Option<(usize, u64)> {
    let mut left = offset;
    for (at, size) in sizes.into_iter().enumerate() {
        match left.checked_sub(size) {
            None => return Some((at, left)),
            Some(further) => left = further,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::PathBuf;

    use box_contract::Descriptor;
    use box_digest::Digest;
    use proptest::prelude::*;

    use super::*;

    /// Returns a rootfs of one part for each element of `parts`, with these bytes. An element may be empty.
    fn of(parts: &[Vec<u8>]) -> Rootfs {
        let part = |(at, bytes): (usize, &Vec<u8>)| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let path = PathBuf::from(at.to_string());
            Blob {
                path,
                descriptor: Descriptor::new("", Digest::of(bytes), bytes.len() as u64),
                file,
                is_stored: false,
            }
        };
        Rootfs::new(parts.iter().enumerate().map(part).collect()).unwrap()
    }

    proptest! {
        /// `locate` finds each byte of the concatenation in the right part, and no byte past the end.
        #[test]
        fn a_byte_is_located_where_the_concatenation_has_it(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 1..7),
            start in 0..60_usize,
            length in 0..60_usize,
        ) {
            let (rootfs, whole) = (of(&parts), parts.concat());
            prop_assert_eq!(rootfs.size(), whole.len() as u64);
            let places = parts.iter().enumerate().flat_map(|(part, bytes)| (0..bytes.len()).map(move |at| (part, at)));
            for (offset, (part, at)) in places.enumerate() {
                let (found, inside) = rootfs.locate(offset as u64).unwrap();
                prop_assert_eq!((found.path.clone(), inside), (PathBuf::from(part.to_string()), at as u64));
            }
            for beyond in [whole.len() as u64, whole.len() as u64 + 1, u64::MAX] {
                prop_assert!(rootfs.locate(beyond).is_none());
            }
            let mut read = vec![0; length];
            let result = rootfs.read_exact_at(&mut read, start as u64);
            match whole.get(start..start + length) {
                Some(expected) => prop_assert_eq!(&read[..], expected),
                None => prop_assert!(length == 0 || result.is_err()),
            }
        }
    }

    #[test]
    fn a_part_that_is_shorter_than_its_box_says_has_an_end() {
        let mut rootfs = of(&[vec![1; 8], vec![2; 8]]);
        rootfs.parts[0].descriptor.size = 12;
        rootfs.read_exact_at(&mut [0; 8], 12).unwrap();
        let error = rootfs.read_exact_at(&mut [0; 8], 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(rootfs.check_size().is_err() && rootfs.check_superblock().is_err());
    }
}

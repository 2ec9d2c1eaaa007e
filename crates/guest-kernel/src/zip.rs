//! Reads one file of a zip archive, the format of wheels.
//!
//! Only the features that wheels use are supported: one disk, no zip64, and entries that are stored or deflated. The
//! central directory at the end takes precedence: of an entry's local header, only the length is used. Checksums are not
//! verified, because the caller compares the sha256. Source:
//! [APPNOTE.TXT](https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT) of PKWARE, 6.3.10.

use std::io::Read;

use flate2::read::DeflateDecoder;

use crate::{MAX_FILE, PackageError};

/// The first bytes of a local file header (4.3.7), and so of an archive.
pub(crate) const LOCAL_HEADER: &[u8] = b"PK\x03\x04";
/// The first bytes of an entry in the central directory (4.3.12).
const CENTRAL_HEADER: &[u8] = b"PK\x01\x02";
/// The first bytes of the record that ends an archive (4.3.16).
const END: &[u8] = b"PK\x05\x06";
/// The lengths of the three headers above in bytes, without their names, extra fields and comments.
const LOCAL_LENGTH: usize = 30;
const CENTRAL_LENGTH: usize = 46;
const END_LENGTH: usize = 22;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// An entry of the central directory.
struct Entry<'a> {
    name: &'a [u8],
    method: u16,
    packed: usize,
    size: u64,
    /// The offset of its local header.
    start: usize,
}

/// Returns the bytes of the file at `path`.
pub(crate) fn read(archive: &[u8], path: &str) -> Result<Vec<u8>, PackageError> {
    let mut entries = entries(archive).ok_or(PackageError::NotAWheel)?.into_iter();
    let entry = entries.find(|it| it.name == path.as_bytes());
    let entry = entry.ok_or_else(|| PackageError::NoMember { path: path.to_owned() })?;
    entry.unpack(archive).ok_or(PackageError::NotAWheel)
}

/// Reads the central directory.
fn entries(archive: &[u8]) -> Option<Vec<Entry<'_>>> {
    let end = archive.windows(END.len()).rposition(|it| it == END)?;
    let end = archive.get(end..end + END_LENGTH)?;
    let mut rest = archive.get(length(end, 16)?..)?;
    let mut entries = Vec::new();
    for _ in 0..short(end, 10)? {
        let header = rest.get(..CENTRAL_LENGTH).filter(|it| it.starts_with(CENTRAL_HEADER))?;
        let [name, extra, comment] = [28, 30, 32].map(|at| short(header, at).map(usize::from));
        let name_end = CENTRAL_LENGTH + name?;
        entries.push(Entry {
            name: rest.get(CENTRAL_LENGTH..name_end)?,
            method: short(header, 10)?,
            packed: length(header, 20)?,
            size: u64::try_from(length(header, 24)?).ok()?,
            start: length(header, 42)?,
        });
        rest = rest.get(name_end + extra? + comment?..)?;
    }
    Some(entries)
}

impl Entry<'_> {
    /// Returns the bytes of the file, or `None` if they are damaged.
    fn unpack(&self, archive: &[u8]) -> Option<Vec<u8>> {
        let own = archive.get(self.start..)?;
        let header = own.get(..LOCAL_LENGTH).filter(|it| it.starts_with(LOCAL_HEADER))?;
        let before =
            LOCAL_LENGTH + usize::from(short(header, 26)?) + usize::from(short(header, 28)?);
        let packed = own.get(before..)?.get(..self.packed)?;
        let mut file = Vec::new();
        match self.method {
            STORED => file.extend_from_slice(packed),
            // Reads one byte more than declared, to detect a file that is longer than declared.
            DEFLATED => {
                let most = self.size.min(MAX_FILE) + 1;
                DeflateDecoder::new(packed).take(most).read_to_end(&mut file).ok()?;
            }
            _ => return None,
        }
        (file.len() as u64 == self.size).then_some(file)
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    let number = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?);
    usize::try_from(number).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use proptest::prelude::*;

    use super::*;

    /// Returns an archive of files: their names, their content, and whether they are deflated.
    pub(crate) fn archive(files: &[(&str, &[u8], bool)]) -> Vec<u8> {
        let (mut archive, mut directory) = (Vec::new(), Vec::new());
        for (name, bytes, deflated) in files {
            let (method, packed) =
                if *deflated { (DEFLATED, deflate(bytes)) } else { (STORED, bytes.to_vec()) };
            let start = number(archive.len());
            let sizes = [[0; 4], number(packed.len()), number(bytes.len())].concat();
            let method = method.to_le_bytes();
            // The fields that both headers have: version, flags, method, time, date, checksum, sizes.
            let common = [&[20, 0, 0, 0], &method[..], &[0; 4], &sizes[..]].concat();
            let name_length = &number(name.len())[..2];
            archive.extend([LOCAL_HEADER, &common, name_length, &[3, 0], name.as_bytes()].concat());
            archive.extend([b"ext".as_slice(), &packed].concat());
            let lengths = [name_length, &[0; 4], &[0; 8], &start].concat();
            directory
                .extend([CENTRAL_HEADER, &[20, 0], &common, &lengths, name.as_bytes()].concat());
        }
        let count = &number(files.len())[..2];
        let (size, start) = (number(directory.len()), number(archive.len()));
        let end = [END, &[0; 4], count, count, &size, &start, &[0, 0]].concat();
        [archive, directory, end].concat()
    }

    fn number(number: usize) -> [u8; 4] {
        u32::try_from(number).unwrap().to_le_bytes()
    }

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn files_are_found_by_their_path() {
        let long = vec![7; 100_000];
        let archive = archive(&[("a/stored", b"one", false), ("deflated", &long, true)]);
        assert_eq!(read(&archive, "a/stored").unwrap(), b"one");
        assert_eq!(read(&archive, "deflated").unwrap(), long);
        let error = read(&archive, "stored").unwrap_err();
        assert_eq!(error.to_string(), "the wheel has no stored");
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        let whole = archive(&[("file", &[7; 1000], true)]);
        for cut in 0..whole.len() {
            assert!(matches!(read(&whole[..cut], "file"), Err(PackageError::NotAWheel)), "{cut}");
        }
    }

    #[test]
    fn a_file_of_another_size_than_promised_is_refused() {
        for deflated in [true, false] {
            let good = archive(&[("file", &[7; 1000], deflated)]);
            let directory = good.windows(4).position(|it| it == CENTRAL_HEADER).unwrap();
            for size in [999usize, 1001, 0xffff_ffff] {
                let mut bad = good.clone();
                bad[directory + 24..directory + 28].copy_from_slice(&number(size));
                assert!(matches!(read(&bad, "file"), Err(PackageError::NotAWheel)), "{size}");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(
            patches in proptest::collection::vec((0..300usize, any::<u8>()), 1..6),
            deflated: bool,
        ) {
            let mut archive = archive(&[("first", b"bytes", deflated), ("file", &[7; 90], deflated)]);
            for (at, byte) in patches {
                if let Some(place) = archive.get_mut(at) {
                    *place = byte;
                }
            }
            read(&archive, "file").ok();
        }
    }
}

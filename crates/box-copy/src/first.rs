//! Reads the first entry of an archive of which only the beginning is there.

use std::io;

use tar::EntryType;

use crate::unpack::{long, next_header};

/// The first entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FirstEntry {
    /// A file.
    File {
        /// The size in bytes.
        size: u64,
        /// The content, as far as the archive has it.
        content: Vec<u8>,
    },
    /// A symbolic link with this target.
    Link(Vec<u8>),
    /// A directory, or something that is no file.
    Other,
}

/// Reads the first entry of an archive. `archive` may end in the middle of a file's content.
///
/// # Errors
/// The archive is malformed, or ends before the content.
pub fn first_entry(mut archive: &[u8]) -> io::Result<FirstEntry> {
    let mut target = None;
    loop {
        let header = next_header(&mut archive)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = header.entry_size()?;
        match header.entry_type() {
            EntryType::GNULongName => drop(long(&mut archive, size)?),
            EntryType::GNULongLink => target = Some(long(&mut archive, size)?),
            EntryType::Regular => {
                let length = usize::try_from(size).unwrap_or(usize::MAX).min(archive.len());
                return Ok(FirstEntry::File { size, content: archive[..length].to_vec() });
            }
            EntryType::Symlink => {
                let short = || header.link_name_bytes().map(|it| it.into_owned());
                return Ok(FirstEntry::Link(target.or_else(short).unwrap_or_default()));
            }
            _ => return Ok(FirstEntry::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Archive;

    fn archive(fill: impl FnOnce(&mut Archive<&mut Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = Archive::new(&mut bytes);
        fill(&mut archive).unwrap();
        archive.finish().unwrap();
        bytes
    }

    #[test]
    fn the_first_entry_is_read_with_what_is_there_of_its_content() {
        let name = "n".repeat(200);
        let file = archive(|it| it.file(name.as_bytes(), 0o644, b"hello"));
        let read = |bytes: &[u8]| first_entry(bytes).unwrap();
        assert_eq!(read(&file), FirstEntry::File { size: 5, content: b"hello".to_vec() });
        // The header of the name, the name, the header of the file, and two bytes.
        let cut = read(&file[..3 * 512 + 2]);
        assert_eq!(cut, FirstEntry::File { size: 5, content: b"he".to_vec() });
        let target = "t".repeat(200);
        let link = archive(|it| it.link(b"l", target.as_bytes()));
        assert_eq!(read(&link), FirstEntry::Link(target.into_bytes()));
        assert_eq!(read(&archive(|it| it.link(b"l", b"x"))), FirstEntry::Link(b"x".to_vec()));
        assert_eq!(read(&archive(|it| it.directory(b"d"))), FirstEntry::Other);
        first_entry(b"").unwrap_err();
        first_entry(&[0; 1024]).unwrap_err();
    }
}

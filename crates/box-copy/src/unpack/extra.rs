//! Entries of an archive that describe the next entry: GNU's long names, and PAX headers
//! ([pax](https://pubs.opengroup.org/onlinepubs/9799919799/utilities/pax.html)).

use std::io::{self, Read};

use box_contract::rules::PATH_MAX;
use tar::{EntryType, Header, PaxExtensions};

use super::{Author, UNKNOWN, copy, long, odd};

/// The maximum size of a PAX header, in bytes.
const MAX_PAX: u64 = 1 << 20;

/// What is known of the next entry before its header.
#[derive(Debug, Default)]
pub(super) struct Extra {
    pub(super) path: Option<Vec<u8>>,
    pub(super) target: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    /// In seconds since 1970.
    pub(super) mtime: Option<u64>,
}

impl Extra {
    /// Reads an entry that describes the next one. Returns `false` if `header` is of another kind. PAX headers are read only if the
    /// user has made the archive: Python's `tarfile` and docker's client write them, and boxes do not.
    ///
    /// # Errors
    /// The errors of the archive.
    pub(super) fn take(
        &mut self,
        header: &Header,
        archive: &mut dyn Read,
        author: Author<'_>,
    ) -> io::Result<bool> {
        let size = header.entry_size()?;
        match header.entry_type() {
            EntryType::GNULongName => self.path = Some(long(archive, size)?),
            EntryType::GNULongLink => self.target = Some(long(archive, size)?),
            EntryType::XHeader if matches!(author, Author::User) => self.take_pax(archive, size)?,
            // The values for all entries, in practice the name of a commit.
            EntryType::XGlobalHeader if matches!(author, Author::User) => {
                Self::default().take_pax(archive, size)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_pax(&mut self, archive: &mut dyn Read, size: u64) -> io::Result<()> {
        if size > MAX_PAX {
            return Err(odd("it has a PAX header that is too long"));
        }
        let mut content = Vec::new();
        copy(archive, size, &mut content)?;
        for record in PaxExtensions::new(&content) {
            let record = record.map_err(|_| odd("it has a damaged PAX header"))?;
            let value = record.value_bytes();
            match record.key_bytes() {
                b"path" | b"linkpath" if value.len() > PATH_MAX => {
                    return Err(odd("it has a path that is too long"));
                }
                b"path" => self.path = Some(value.to_vec()),
                b"linkpath" => self.target = Some(value.to_vec()),
                b"size" => self.size = Some(whole_number(value)?),
                b"mtime" => self.mtime = Some(whole_number(value)?),
                // The content of such a file is not its bytes.
                key if key.starts_with(b"GNU.sparse.") => return Err(odd(UNKNOWN)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Reads a decimal number without its fraction. A time before 1970 is 0.
fn whole_number(text: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let whole = text.split('.').next().unwrap_or_default();
    match whole.strip_prefix('-') {
        Some(_) => Ok(0),
        None => whole.parse().map_err(|_| odd("it has a damaged PAX header")),
    }
}

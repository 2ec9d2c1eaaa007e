//! A path becomes an archive.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{DirEntry, File, read_dir, read_link, symlink_metadata};
use std::io::{self, BufWriter, Error, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tar::{EntryType, Header};

use crate::{BLOCK, SHORT, padding};

/// How much is written at a time, in bytes: a pipe holds as much.
const BUFFER: usize = 64 << 10;

/// How many entries were left out: devices, pipes and sockets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut(pub usize);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "devices, pipes and sockets that were left out: {}", self.0)
    }
}

/// Writes an archive of a path, with all that is below it. Symbolic links are not followed.
///
/// # Errors
/// Those of the files, which are named, and the writer's.
pub fn pack(path: &Path, archive: impl Write) -> io::Result<LeftOut> {
    let mut archive = BufWriter::with_capacity(BUFFER, archive);
    let mut left_out = LeftOut::default();
    put(&mut archive, path, Path::new(name_of(path)), &mut left_out)?;
    archive.write_all(&[0; 2 * BLOCK])?;
    archive.flush()?;
    Ok(left_out)
}

/// Returns the last name of a path, or `.` where what is in it is meant.
fn name_of(path: &Path) -> &OsStr {
    let is_content = path.as_os_str().as_bytes().ends_with(b"/.");
    path.file_name().filter(|_| !is_content).unwrap_or(OsStr::new("."))
}

fn put(
    archive: &mut dyn Write,
    path: &Path,
    name: &Path,
    left_out: &mut LeftOut,
) -> io::Result<()> {
    let metadata = symlink_metadata(path).map_err(at(path))?;
    let (kind, mode) = (metadata.file_type(), metadata.mode());
    let name_bytes = name.as_os_str().as_bytes();
    if kind.is_dir() {
        let name_bytes = [name_bytes, b"/"].concat();
        put_header(archive, (EntryType::Directory, mode, 0), &name_bytes, b"")?;
        for entry in names(path).map_err(at(path))? {
            put(archive, &path.join(&entry), &name.join(&entry), left_out)?;
        }
    } else if kind.is_file() {
        let mut file = File::open(path).map_err(at(path))?;
        let size = file.metadata().map_err(at(path))?.len();
        put_header(archive, (EntryType::Regular, mode, size), name_bytes, b"")?;
        put_content(archive, &mut file, size, path)?;
    } else if kind.is_symlink() {
        let target = read_link(path).map_err(at(path))?;
        let target = target.as_os_str().as_bytes();
        put_header(archive, (EntryType::Symlink, mode, 0), name_bytes, target)?;
    } else {
        left_out.0 += 1;
    }
    Ok(())
}

/// Writes a header, after those of a name and a target that do not fit it.
fn put_header(
    archive: &mut dyn Write,
    (kind, mode, size): (EntryType, u32, u64),
    name: &[u8],
    target: &[u8],
) -> io::Result<()> {
    for (kind, text) in [(EntryType::GNULongName, name), (EntryType::GNULongLink, target)] {
        if text.len() > SHORT {
            let length = text.len() as u64 + 1;
            put_header(archive, (kind, 0o644, length), b"././@LongLink", b"")?;
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
    header.set_entry_type(kind);
    header.set_mode(mode & 0o7777);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    archive.write_all(header.as_bytes())
}

/// Writes as much of a file as its header says, also where the file is shorter by now.
fn put_content(archive: &mut dyn Write, file: &mut File, size: u64, path: &Path) -> io::Result<()> {
    let mut chunk = vec![0; BUFFER];
    let mut left = size;
    while left > 0 {
        let most = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let length = match file.read(&mut chunk[..most]).map_err(at(path))? {
            0 => {
                return Err(at(path)(Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it was shortened meanwhile",
                )));
            }
            length => length,
        };
        archive.write_all(&chunk[..length])?;
        left -= length as u64;
    }
    pad(archive, size)
}

/// Fills the last block of a content.
fn pad(archive: &mut dyn Write, size: u64) -> io::Result<()> {
    archive.write_all(&[0; BLOCK][..padding(size)])
}

/// Returns the names in a directory in their order.
fn names(directory: &Path) -> io::Result<Vec<OsString>> {
    let name = |entry: io::Result<DirEntry>| Ok(entry?.file_name());
    let mut names = read_dir(directory)?.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Says at which path something failed.
fn at(path: &Path) -> impl FnOnce(Error) -> Error {
    move |error| Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_of_a_directory_has_no_name() {
        for (path, name) in
            [("a/b", "b"), ("a/b/", "b"), ("a/b/.", "."), ("/", "."), (".", "."), ("..", ".")]
        {
            assert_eq!(name_of(Path::new(path)), name, "{path}");
        }
    }
}

//! Packs the file, directory or symbolic link at a path into an archive.
//!
//! Another program may change the files during the copy. In a box, such a program may try to get a copy of a file that it cannot
//! read. So each name is opened relative to its open directory and without following a link, and the type of an open file is
//! checked again. Only directories and files are opened.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Error, ErrorKind, Read as _, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use host_fs::publish::open_directory;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use tar::EntryType;

use crate::MAX_DEPTH;
use crate::archive::{self, Head, pad, put_header};
use crate::place::CopyEnd;

/// The size of a write, in bytes. It is the capacity of a pipe ([pipe(7)](https://man7.org/linux/man-pages/man7/pipe.7.html)).
const BUFFER: usize = 64 << 10;

/// The maximum size, in bytes, of a file that the kernel generates and reports as empty, such as `/proc/self/status`.
const MAX_GENERATED: u64 = 16 << 20;

/// The number of entries that a copy left out, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Devices, pipes and sockets.
    pub special: usize,
    /// Symbolic links whose targets are outside the copied directory.
    pub links: usize,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { special, links } = self;
        let special = (*special > 0).then(|| format!("devices, pipes and sockets: {special}"));
        let links =
            (*links > 0).then(|| format!("symbolic links that lead out of the copy: {links}"));
        let all: Vec<String> = special.into_iter().chain(links).collect();
        write!(f, "left out: {}", all.join(", "))
    }
}

/// Writes an archive of the entry at `from` and, if it is a directory, of all entries below it. Symbolic links are packed and not
/// followed.
///
/// # Errors
/// The errors of the files, with their paths, and of the writer.
pub fn pack(from: &CopyEnd, archive: impl Write) -> io::Result<LeftOut> {
    let mut packing = Packing {
        archive: BufWriter::with_capacity(BUFFER, archive),
        base: from.path.clone(),
        left_out: LeftOut::default(),
        // The name `.` is not counted when the archive is unpacked.
        max_depth: MAX_DEPTH + usize::from(from.name.is_none()),
    };
    let name = from.name.as_deref().unwrap_or(OsStr::new("."));
    packing.put(&from.directory, name, Path::new(name), 1)?;
    archive::end(&mut packing.archive)?;
    Ok(packing.left_out)
}

struct Packing<W: Write> {
    archive: BufWriter<W>,
    /// The path of the directory to which the names are relative, for messages.
    base: PathBuf,
    left_out: LeftOut,
    /// The maximum depth of an entry. The entry at the top has depth 1.
    max_depth: usize,
}

impl<W: Write> Packing<W> {
    /// Adds `path`, which is relative to the base, to an error.
    fn at(&self, path: &Path) -> impl Fn(Error) -> Error + use<W> {
        // Removes a slash or `/.` at the end.
        let shown: PathBuf = self.base.join(path).components().collect();
        move |error| Error::new(error.kind(), format!("{}: {error}", shown.display()))
    }

    /// Writes the entry `name` of the directory `parent`. `path` is the entry's path in the archive.
    fn put(&mut self, parent: &OwnedFd, name: &OsStr, path: &Path, depth: usize) -> io::Result<()> {
        let failed = self.at(path);
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = stat.map_err(|errno| failed(errno.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory | FileType::RegularFile | FileType::Symlink
                if depth > self.max_depth =>
            {
                Err(failed(Error::new(ErrorKind::InvalidInput, "it is nested too deeply")))
            }
            FileType::Directory => {
                let directory = open_directory(parent, name).map_err(|it| failed(it.into()))?;
                self.put_directory(&directory, &stat, path, depth)
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let file = openat(parent, name, flags, Mode::empty());
                self.put_file(&mut file.map_err(|it| failed(it.into()))?.into(), path)
            }
            FileType::Symlink => {
                let target =
                    readlinkat(parent, name, Vec::new()).map_err(|it| failed(it.into()))?;
                let head = head_of(EntryType::Symlink, &stat, 0);
                put_header(&mut self.archive, head, path.as_os_str().as_bytes(), target.as_bytes())
            }
            _ if depth == 1 => {
                let what = "it is neither a file nor a directory nor a link";
                Err(failed(Error::new(ErrorKind::InvalidInput, what)))
            }
            _ => {
                self.left_out.special += 1;
                Ok(())
            }
        }
    }

    fn put_directory(
        &mut self,
        directory: &OwnedFd,
        stat: &Stat,
        path: &Path,
        depth: usize,
    ) -> io::Result<()> {
        let name = [path.as_os_str().as_bytes(), b"/"].concat();
        put_header(&mut self.archive, head_of(EntryType::Directory, stat, 0), &name, b"")?;
        for name in names(directory).map_err(self.at(path))? {
            let name = OsStr::from_bytes(name.as_bytes());
            self.put(directory, name, &path.join(name), depth + 1)?;
        }
        Ok(())
    }

    /// Writes a file. If the file grows during the copy, the bytes beyond the size in its header are left out.
    fn put_file(&mut self, file: &mut File, path: &Path) -> io::Result<()> {
        let stat = fstat(&*file).map_err(|errno| self.at(path)(errno.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            self.left_out.special += 1;
            return Ok(());
        }
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size == 0 {
            return self.put_generated(file, &stat, path);
        }
        let head = head_of(EntryType::Regular, &stat, size);
        put_header(&mut self.archive, head, path.as_os_str().as_bytes(), b"")?;
        let mut content = file.take(size);
        let mut chunk = vec![0; BUFFER];
        let mut copied = 0;
        loop {
            let length = content.read(&mut chunk).map_err(self.at(path))?;
            if length == 0 {
                break;
            }
            self.archive.write_all(&chunk[..length])?;
            copied += length as u64;
        }
        if copied != size {
            return Err(self.at(path)(Error::new(
                ErrorKind::UnexpectedEof,
                "it was shortened meanwhile",
            )));
        }
        pad(&mut self.archive, size)
    }

    /// Writes a file that is reported as empty. It may have content that the kernel generates, such as a file in `/proc`.
    fn put_generated(&mut self, file: &mut File, stat: &Stat, path: &Path) -> io::Result<()> {
        let mut content = Vec::new();
        file.take(MAX_GENERATED + 1).read_to_end(&mut content).map_err(self.at(path))?;
        let size = content.len() as u64;
        if size > MAX_GENERATED {
            let what = "its size is not known before it is read";
            return Err(self.at(path)(Error::new(ErrorKind::InvalidInput, what)));
        }
        let head = head_of(EntryType::Regular, stat, size);
        put_header(&mut self.archive, head, path.as_os_str().as_bytes(), b"")?;
        self.archive.write_all(&content)?;
        pad(&mut self.archive, size)
    }
}

/// Returns the names in a directory, sorted by their bytes.
fn names(directory: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn head_of(kind: EntryType, stat: &Stat, size: u64) -> Head {
    let mtime = u64::try_from(stat.st_mtime).unwrap_or(0);
    Head { kind, mode: stat.st_mode, size, mtime }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::{Author, by_path, unpack};

    fn packed(path: &Path) -> String {
        let mut archive = Vec::new();
        pack(&CopyEnd::source(path, by_path).unwrap(), &mut archive).unwrap();
        String::from_utf8(archive).unwrap()
    }

    #[test]
    fn what_is_packed_is_no_deeper_than_what_is_unpacked() {
        // The path of the deepest entry has `MAX_DEPTH` names in the archive: `a/` is counted, and `.` is not.
        for (source, below) in [("a", MAX_DEPTH - 2), ("a/.", MAX_DEPTH - 1)] {
            let dir = tempfile::tempdir().unwrap();
            let source = dir.path().join(source);
            let deepest = dir.path().join("a").join("a/".repeat(below));
            fs::create_dir_all(&deepest).unwrap();
            fs::write(deepest.join("file"), "").unwrap();
            let to = CopyEnd::destination(&dir.path().join("copy"), by_path).unwrap();
            unpack(packed(&source).as_bytes(), to, Author::User).unwrap();
            fs::create_dir(deepest.join("a")).unwrap();
            // The kernel takes no such long path for a socket.
            let _socket = UnixListener::bind(dir.path().join("s")).unwrap();
            fs::rename(dir.path().join("s"), deepest.join("a/s")).unwrap();
            packed(&source);
            fs::write(deepest.join("a/file"), "").unwrap();
            let open = CopyEnd::source(&source, by_path).unwrap();
            let error = pack(&open, &mut Vec::new()).unwrap_err().to_string();
            assert!(error.ends_with("a/file: it is nested too deeply"), "{error}");
        }
    }

    #[test]
    fn a_link_is_packed_and_not_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in ["project", "keys"] {
            fs::create_dir(at(path)).unwrap();
        }
        fs::write(at("keys/key"), "canary").unwrap();
        symlink("../keys", at("project/directory")).unwrap();
        symlink("../keys/key", at("project/file")).unwrap();
        for path in
            ["project", "project/.", "project/directory", "project/directory/", "project/file"]
        {
            let archive = packed(&at(path));
            assert!(archive.contains("../keys") && !archive.contains("canary"), "{path}");
        }
        let mut open = CopyEnd::source(&at("project/file"), by_path).unwrap();
        open.name = Some("none".into());
        let error = pack(&open, &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{}: No such file or directory (os error 2)", at("project/none").display())
        );
    }
}

//! Files of the host of which components get a copy.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use box_contract::Scope;
use box_contract::wire::{FilePart, HostFile, MAX_FILES_BYTES, MAX_OUTPUT};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::shares::{ShareError, ShareRecord};

/// The content of a file of the host at the start of a box.
#[derive(Debug, Clone)]
pub struct FileCopy {
    host: PathBuf,
    guest: String,
    scope: Scope,
    mode: u32,
    content: Vec<u8>,
}

impl FileCopy {
    /// Reads a file of the host, of which components see a copy at `guest`.
    ///
    /// # Errors
    /// If there is no such file, or if it is too large.
    pub fn read(path: &Path, guest: &str, scope: Scope) -> Result<Self, ShareError> {
        let read = || -> io::Result<(PathBuf, u32, Vec<u8>)> {
            let host = fs::canonicalize(path)?;
            // A box may replace a directory on the way with a link meanwhile.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            let file = openat2(CWD, &host, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
            let found = fstat(&file)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let mut content = Vec::new();
            File::from(file).take(MAX_FILES_BYTES + 1).read_to_end(&mut content)?;
            if content.len() as u64 > MAX_FILES_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok((host, found.st_mode, content))
        };
        let read = read().map_err(|source| ShareError { path: path.to_owned(), source });
        let (host, mode, content) = read?;
        Ok(Self { host, guest: guest.to_owned(), scope, mode: mode & 0o777, content })
    }

    /// Returns the path of the file on the host, without symbolic links.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// Returns whether the file is in a directory or its subdirectories.
    pub fn is_inside(&self, directory: &Path) -> bool {
        directory.canonicalize().is_ok_and(|directory| self.host.starts_with(directory))
    }

    /// Returns the length of the copy, in bytes.
    pub const fn length(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns the copy for the box's record.
    pub fn record(&self) -> ShareRecord {
        let (host, guest) = (self.host.clone(), self.guest.clone());
        ShareRecord { host, guest, writable: false }
    }

    /// Returns the description of the file for init.
    pub(crate) fn described(&self) -> HostFile {
        let Self { guest, scope, mode, .. } = self;
        // The length is at most `MAX_FILES_BYTES`.
        let size = u32::try_from(self.content.len()).unwrap_or(u32::MAX);
        HostFile { guest: guest.clone(), scope: *scope, mode: *mode, size }
    }

    /// Returns the content in parts for init.
    pub(crate) fn parts(&self) -> impl Iterator<Item = FilePart> {
        self.content.chunks(MAX_OUTPUT).map(|data| FilePart { data: data.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_copy_has_the_content_and_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        fs::write(at("file"), vec![7; MAX_OUTPUT + 1]).unwrap();
        fs::set_permissions(at("file"), fs::Permissions::from_mode(0o4640)).unwrap();
        symlink("file", at("link")).unwrap();
        let copy = FileCopy::read(&at("link"), "/root/x", Scope::Both).unwrap();
        assert!(copy.is_inside(dir.path()) && !copy.is_inside(Path::new("/proc")));
        assert_eq!(copy.host(), at("file").canonicalize().unwrap());
        let HostFile { size, mode, .. } = copy.described();
        assert_eq!((size as usize, mode), (MAX_OUTPUT + 1, 0o640));
        let parts: Vec<_> = copy.parts().map(|it| it.data.len()).collect();
        assert_eq!(parts, [MAX_OUTPUT, 1]);
    }

    #[test]
    fn what_is_no_file_of_some_size_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let error =
            |path: &str| FileCopy::read(&at(path), "/x", Scope::Both).unwrap_err().source.kind();
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(error("pipe"), io::ErrorKind::NotADirectory);
        assert_eq!(error("none"), io::ErrorKind::NotFound);
        File::create(at("large")).unwrap().set_len(MAX_FILES_BYTES + 1).unwrap();
        assert_eq!(error("large"), io::ErrorKind::FileTooLarge);
    }
}

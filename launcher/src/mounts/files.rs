//! Files of the host of which components get a copy.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use box_contract::Scope;
use box_contract::wire::{FilePart, HostFile, MAX_FILES_BYTES, MAX_OUTPUT};
use host_fs::kernel;
use host_fs::known::Identity;
use rustix::fs::{FileType, fstat};

use super::is_file_in;
use super::shares::{ShareError, ShareRecord};

/// The content of a file of the host at the start of a box.
#[derive(Debug, Clone)]
pub struct FileCopy {
    host: PathBuf,
    /// `None` if the text is from no file.
    identity: Option<Identity>,
    guest: String,
    scope: Scope,
    mode: u32,
    content: Vec<u8>,
}

impl FileCopy {
    /// Reads an open file of the host, of which components see a copy at `guest`. `host` is the file's path without symbolic
    /// links, at the time of opening: the caller decides which links it follows.
    ///
    /// # Errors
    /// If it is not a regular file, if it is one of the kernel, or if it is too large.
    pub fn read(file: File, host: PathBuf, guest: &str, scope: Scope) -> Result<Self, ShareError> {
        let read = || -> io::Result<(Identity, u32, Vec<u8>)> {
            let found = fstat(&file)?;
            if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            if let Some(place) = kernel::around(&host)? {
                return Err(kernel::no_files(&place));
            }
            let (identity, mut content) = (Identity::of_open(&file)?, Vec::new());
            file.take(MAX_FILES_BYTES + 1).read_to_end(&mut content)?;
            if content.len() as u64 > MAX_FILES_BYTES {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok((identity, found.st_mode & 0o777, content))
        };
        match read() {
            Ok((identity, mode, content)) => {
                let (guest, identity) = (guest.to_owned(), Some(identity));
                Ok(Self { host, identity, guest, scope, mode, content })
            }
            Err(source) => Err(ShareError { path: host, source }),
        }
    }

    /// Makes a file for components from text. `host` is where the text is from.
    pub fn of_text(text: String, host: PathBuf, guest: &str) -> Self {
        let (guest, content) = (guest.to_owned(), text.into_bytes());
        Self { host, identity: None, guest, scope: Scope::Both, mode: 0o644, content }
    }

    /// Returns the path of the file on the host, without symbolic links.
    pub fn host(&self) -> &Path {
        &self.host
    }

    /// Returns whether the file is in a directory or its subdirectories, also through bind mounts.
    ///
    /// # Errors
    /// If a directory above the file cannot be opened.
    pub fn is_inside(&self, directory: &Path) -> io::Result<bool> {
        is_file_in(&self.host, directory)
    }

    /// Returns whether `path` leads to the file that was copied.
    pub fn is_at(&self, path: &Path) -> bool {
        Identity::of(path).is_ok_and(|it| self.identity == Some(it))
    }

    /// Returns the length of the copy, in bytes.
    pub const fn length(&self) -> u64 {
        self.content.len() as u64
    }

    /// Returns the copy for the box's record.
    pub fn record(&self) -> ShareRecord {
        let (host, guest) = (self.host.clone(), self.guest.clone());
        ShareRecord { host, guest, writable: false, socket: false }
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn read(path: &Path) -> Result<FileCopy, ShareError> {
        FileCopy::read(File::open(path).unwrap(), path.to_owned(), "/root/x", Scope::Both)
    }

    #[test]
    fn a_copy_has_the_content_and_the_mode() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().canonicalize().unwrap().join("file");
        fs::write(&file, vec![7; MAX_OUTPUT + 1]).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o4640)).unwrap();
        let copy = read(&file).unwrap();
        assert!(
            copy.is_inside(dir.path()).unwrap() && !copy.is_inside(Path::new("/proc")).unwrap()
        );
        fs::hard_link(&file, dir.path().join("other name")).unwrap();
        assert!(copy.is_at(&dir.path().join("other name")) && !copy.is_at(dir.path()));
        assert_eq!(copy.host(), file);
        let HostFile { size, mode, .. } = copy.described();
        assert_eq!((size as usize, mode), (MAX_OUTPUT + 1, 0o640));
        let parts: Vec<_> = copy.parts().map(|it| it.data.len()).collect();
        assert_eq!(parts, [MAX_OUTPUT, 1]);
    }

    #[test]
    fn what_is_no_file_of_some_size_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = |path: &Path| read(path).unwrap_err().source;
        assert_eq!(error(dir.path()).kind(), io::ErrorKind::NotADirectory);
        let large = dir.path().join("large");
        File::create(&large).unwrap().set_len(MAX_FILES_BYTES + 1).unwrap();
        assert_eq!(error(&large).kind(), io::ErrorKind::FileTooLarge);
        let of_kernel = error(Path::new("/proc/version")).to_string();
        assert!(of_kernel.contains("/proc is a file system of the kernel"), "{of_kernel}");
    }
}

//! Files and directories in a directory that is being filled.
//!
//! Another program may write to that directory meanwhile, for example a running box with a share of its parent. So each
//! file is made relative to the open directory, and its name must be new: no link is followed, and no existing file is
//! opened.

use std::fs::File;
use std::io;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, mkdirat, openat};

use super::open_directory;

/// Makes a file in an open directory and opens it for reading and writing, with the permissions `mode`, masked by the umask.
///
/// # Errors
/// The operating system's error: [`io::ErrorKind::AlreadyExists`] if the name exists, even as a dangling link.
pub fn new_file(directory: impl AsFd, name: &str, mode: u32) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::from_raw_mode(mode))?.into())
}

/// Makes nested directories in an open directory, such as `blobs/sha256`, and opens the last one.
///
/// # Errors
/// The operating system's error, also if one of the names exists.
pub fn new_directories(directory: impl AsFd, names: &str) -> io::Result<OwnedFd> {
    let mut last = directory.as_fd().try_clone_to_owned()?;
    for name in names.split('/') {
        mkdirat(&last, name, Mode::from_raw_mode(0o777))?;
        last = open_directory(&last, name)?;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn what_is_made_is_new_and_leads_nowhere_else() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("draft")).unwrap();
        fs::create_dir_all(at("keys")).unwrap();
        fs::write(at("keys/key"), "key").unwrap();
        symlink("../keys/key", at("draft/file")).unwrap();
        symlink("../keys/new", at("draft/none")).unwrap();
        symlink("../keys", at("draft/link")).unwrap();
        let draft = File::open(at("draft")).unwrap();
        for name in ["file", "none", "link"] {
            let error = new_file(&draft, name, 0o666).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        for names in ["link", "link/new", "new/../../keys/new"] {
            new_directories(&draft, names).unwrap_err();
        }
        let names: Vec<_> = fs::read_dir(at("keys")).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(names.len(), 1);
        assert_eq!(fs::read_to_string(at("keys/key")).unwrap(), "key");
        let inner = new_directories(&draft, "blobs/sha256").unwrap();
        // Moving the directory does not change where the file is made.
        fs::rename(at("draft"), at("moved")).unwrap();
        symlink("keys", at("draft")).unwrap();
        new_file(&inner, "file", 0o600).unwrap().write_all(b"content").unwrap();
        let path = at("moved/blobs/sha256/file");
        assert_eq!(fs::read_to_string(&path).unwrap(), "content");
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

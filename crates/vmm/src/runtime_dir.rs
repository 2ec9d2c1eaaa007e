//! The private directory of one run, which holds its sockets.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt as _, PermissionsExt as _, lchown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use host_fs::OsError;
use host_fs::trust::open_private;
use rustix::fs::CWD;

use crate::VmmError;
use crate::jail::control_group;

/// The longest path of a Unix socket: `sun_path` of [unix(7)](https://man7.org/linux/man-pages/man7/unix.7.html)
/// without its final zero byte.
pub const MAX_SOCKET_PATH: usize = 107;

/// The prefix of the directory's name.
const PREFIX: &str = "boxlaunch-";
/// The subdirectory that the VMM process may write to. libkrun's sockets are there.
pub const VMM: &str = "vmm";

/// A directory of mode 0700 with a random name. Dropping it removes the directory.
#[derive(Debug)]
pub struct RuntimeDir {
    path: PathBuf,
}

impl RuntimeDir {
    /// Makes a directory in `base`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(base: &Path) -> Result<Self, OsError> {
        let random = getrandom::u64().map_err(OsError::system("get random bytes"))?;
        let path = base.join(format!("{PREFIX}{random:016x}"));
        let make = |path: &Path| {
            DirBuilder::new().mode(0o700).create(path).map_err(OsError::file("make", path))
        };
        make(&path)?;
        let made = Self { path };
        make(&made.path.join(VMM))?;
        Ok(made)
    }

    /// Returns the directory's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a socket in the directory.
    ///
    /// # Errors
    /// If the path is too long for a socket's address, or is not UTF-8.
    pub fn socket(&self, name: &str) -> Result<PathBuf, VmmError> {
        checked_socket_path(self.path.join(name))
    }

    /// Changes the owner of the VMM's subdirectory, and of the sockets in it, to the user of the VMM process.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn give_away(&self, (uid, gid): (u32, u32)) -> Result<(), OsError> {
        let directory = self.path.join(VMM);
        let sockets = fs::read_dir(&directory).map_err(OsError::file("read", &directory))?;
        let sockets = sockets.map(|it| it.map(|it| it.path())).collect::<io::Result<Vec<_>>>();
        let sockets = sockets.map_err(OsError::file("read", &directory))?;
        for path in sockets.into_iter().chain([directory.clone()]) {
            lchown(&path, Some(uid), Some(gid))
                .map_err(OsError::file("change the owner of", &path))?;
        }
        Ok(())
    }

    /// Returns the path of a socket in the VMM's subdirectory.
    ///
    /// # Errors
    /// If the path is too long for a socket's address, or is not UTF-8.
    pub fn vmm_socket(&self, name: &str) -> Result<PathBuf, VmmError> {
        checked_socket_path(self.path.join(VMM).join(name))
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        // An error is ignored: the directory contains no data.
        drop(remove(&self.path));
    }
}

/// Removes a runtime directory recursively. First restores the mode of the VMM's subdirectory, which the VMM process
/// may have changed.
fn remove(path: &Path) -> io::Result<()> {
    let own = path.join(VMM);
    // Does not follow a symbolic link, which could refer to another directory.
    if fs::symlink_metadata(&own).is_ok_and(|it| it.is_dir()) {
        drop(fs::set_permissions(own, Permissions::from_mode(0o700)));
    }
    fs::remove_dir_all(path)
}

/// Removes the runtime directory of a killed process. It is a no-op if the name is not a runtime directory's, or if
/// another user could change the directory.
pub fn remove_left(path: &Path) {
    if is_name_of_one(path) && is_ours(path) {
        control_group::remove_left(path);
        drop(remove(path));
    }
}

/// Returns whether a path ends with the name of a runtime directory.
///
/// # Examples
/// ```
/// use vmm::runtime_dir::is_name_of_one;
///
/// assert!(is_name_of_one("/run/boxlaunch-0123456789abcdef".as_ref()));
/// assert!(!is_name_of_one("/run/boxlaunch-1".as_ref()));
/// ```
pub fn is_name_of_one(path: &Path) -> bool {
    let name = path.file_name().and_then(|it| it.to_str()).and_then(|it| it.strip_prefix(PREFIX));
    name.is_some_and(|it| it.len() == 16 && u64::from_str_radix(it, 16).is_ok())
}

/// Returns whether the path is a directory that only this user and root can change.
pub fn is_ours(path: &Path) -> bool {
    open_private(CWD, path).is_ok()
}

/// Removes the socket of a killed process, unless another process listens on it.
pub fn remove_socket(path: &Path) {
    let is_socket = |it: fs::Metadata| it.file_type().is_socket();
    if fs::symlink_metadata(path).is_ok_and(is_socket) && UnixStream::connect(path).is_err() {
        drop(fs::remove_file(path));
    }
}

/// Checks that a socket can have this path.
///
/// # Errors
/// If the path does not fit a socket's address, or is not UTF-8, which libkrun requires.
pub fn checked_socket_path(path: PathBuf) -> Result<PathBuf, VmmError> {
    if path.to_str().is_none() {
        let reason = io::Error::new(io::ErrorKind::InvalidInput, "its path is not valid UTF-8");
        return Err(OsError::file("make the socket", &path)(reason).into());
    }
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(VmmError::SocketPath { path, limit: MAX_SOCKET_PATH });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn it_is_private_unique_and_goes_with_its_content() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) =
            (RuntimeDir::create(base.path()).unwrap(), RuntimeDir::create(base.path()).unwrap());
        assert_ne!(one.path, two.path);
        assert_eq!(fs::metadata(&one.path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(one.socket("x").unwrap(), b"").unwrap();
        drop(one);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_refused() {
        assert!(checked_socket_path("a".repeat(MAX_SOCKET_PATH).into()).is_ok());
        assert!(checked_socket_path("a".repeat(MAX_SOCKET_PATH + 1).into()).is_err());
        let error = checked_socket_path(OsStr::from_bytes(b"a\xff").into()).unwrap_err();
        let expected = "cannot make the socket a\u{fffd}: its path is not valid UTF-8";
        assert_eq!(error.to_string(), expected);
    }
}

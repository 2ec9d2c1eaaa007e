//! Replacing a text file.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use host_fs::publish::FileDraft;

/// Replaces a file by a text, as a whole or not at all, or makes it. What is there keeps its
/// permissions, and a symbolic link to it stays one.
///
/// # Errors
/// The operating system's.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = target(path)?;
    // What is checked in is for everybody.
    let permissions = fs::metadata(&target)
        .map_or_else(|_| Permissions::from_mode(0o644), |metadata| metadata.permissions());
    let draft = FileDraft::beside(&target, 0o600)?;
    draft.file().write_all(text.as_bytes())?;
    draft.file().set_permissions(permissions)?;
    draft.finish_over(&target)
}

/// Checks that [`replace`] could make its file.
pub(super) fn check(path: &Path) -> io::Result<()> {
    FileDraft::beside(&target(path)?, 0o600).map(drop)
}

/// Returns the file that a path stands for, which need not be there.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        target => target,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_there_keeps_its_permissions_and_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        replace(&at("new"), "one").unwrap();
        assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o644);
        fs::set_permissions(at("new"), Permissions::from_mode(0o600)).unwrap();
        symlink("new", at("link")).unwrap();
        replace(&at("link"), "two").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "two");
        assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_error_names_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        let error = replace(&directory.path().join("none/file"), "text").unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        let error = replace(directory.path(), "text").unwrap_err();
        assert!(!error.to_string().contains(".boxbuild-"), "{error}");
    }
}

//! Writes a new file or directory atomically, and never overwrites one.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use host_fs::FileError;
use host_fs::publish::{DirectoryDraft, FileDraft, PublishError};

use crate::error::ExportError;

/// Writes a new file, with the permissions `0666`, masked by the umask.
///
/// # Errors
/// [`PublishError::Exists`], errors of the operating system and of `fill`; [`io::ErrorKind::IsADirectory`] for a path that ends in a
/// slash. No file is left behind.
pub fn file<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    check_absent(path)?;
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let error = io::Error::from(io::ErrorKind::IsADirectory);
        return Err(FileError::of("write", path)(error).into());
    }
    let draft = FileDraft::beside(path, 0o666).map_err(FileError::of("write", path))?;
    let mut out = BufWriter::with_capacity(1 << 20, draft.file());
    let filled = fill(&mut out).map_err(|error| error.writing(FileError::of("write", path)))?;
    out.flush().map_err(FileError::of("write", path))?;
    drop(out);
    match draft.finish_new(path) {
        Ok(()) => Ok(filled),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(error) => Err(FileError::of("write", path)(error).into()),
    }
}

/// Starts a new directory at `to`, with the permissions `mode`, masked by the umask.
///
/// # Errors
/// [`PublishError::Exists`] and errors of the operating system.
pub(super) fn directory(to: &Path, mode: u32) -> Result<DirectoryDraft, ExportError> {
    // Removes a slash at the end, because it would follow a symbolic link.
    check_absent(&to.components().collect::<std::path::PathBuf>())?;
    Ok(DirectoryDraft::beside(to, mode)?)
}

fn check_absent(path: &Path) -> Result<(), ExportError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

fn exists(path: &Path) -> ExportError {
    PublishError::Exists { path: path.to_owned(), what: None }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_over_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let write = |out: &mut dyn Write| out.write_all(b"new").map_err(ExportError::Write);
        file(&at("file"), write).unwrap();
        let error = file(&at("file"), write).unwrap_err();
        assert!(matches!(error, ExportError::Publish(PublishError::Exists { .. })), "{error}");
        let failed = |_: &mut dyn Write| Err::<(), _>(ExportError::WhichComponent);
        assert!(file(&at("other"), failed).is_err());
        drop(super::directory(&at("directory"), 0o700).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_came_meanwhile_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let meanwhile =
            |_: &mut dyn Write| fs::write(at("file"), "theirs").map_err(ExportError::Write);
        assert!(file(&at("file"), meanwhile).is_err());
        assert_eq!(fs::read(at("file")).unwrap(), b"theirs");
        let draft = super::directory(&at("directory"), 0o700).unwrap();
        fs::create_dir(at("directory")).unwrap();
        let error = ExportError::from(draft.finish_new().unwrap_err());
        assert!(matches!(error, ExportError::Publish(PublishError::Exists { .. })), "{error}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn an_error_names_no_temporary_file() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        for (parent, text) in [
            ("none", "No such file or directory (os error 2)"),
            ("file", "Not a directory (os error 20)"),
        ] {
            let to = directory.path().join(parent).join("there");
            for error in
                [file(&to, |_| Ok(())).unwrap_err(), super::directory(&to, 0o700).unwrap_err()]
            {
                assert_eq!(error.to_string(), format!("cannot write {}", to.display()));
                assert_eq!(std::error::Error::source(&error).unwrap().to_string(), text);
            }
        }
    }
}

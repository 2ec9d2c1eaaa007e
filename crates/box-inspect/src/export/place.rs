//! Putting something new where it was asked for: whole or not at all, and over nothing.

use std::fs::{self, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::ExportError;
use super::error::io_at;

/// What unfinished files and directories start with.
const PREFIX: &str = ".boxbuild-";

/// Writes a new file; who may read it is as the umask says.
///
/// # Errors
/// [`ExportError::Exists`], the operating system's and those of `fill`; there is no file then.
pub fn file<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    check_absent(path)?;
    let draft = tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(path))
        .map_err(|error| io_at("write", path)(without_path(error)))?;
    let mut out = BufWriter::with_capacity(1 << 20, draft.as_file());
    let filled = fill(&mut out).map_err(|error| error.writing(path))?;
    out.flush().map_err(io_at("write", path))?;
    drop(out);
    draft.as_file().sync_all().map_err(io_at("flush", path))?;
    match draft.persist_noclobber(path) {
        Ok(_) => Ok(filled),
        Err(error) => Err(io_at("write", path)(error.error)),
    }
}

/// A directory that is being filled beside the place where it is to be. It is removed unless it is
/// finished.
#[derive(Debug)]
pub(super) struct Draft {
    directory: TempDir,
    to: PathBuf,
}

impl Draft {
    /// Makes an empty directory with these permissions.
    pub(super) fn new(to: &Path, mode: u32) -> Result<Self, ExportError> {
        // Without a slash at the end, which would follow a symbolic link.
        let to: PathBuf = to.components().collect();
        check_absent(&to)?;
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(mode))
            .tempdir_in(directory_of(&to))
            .map_err(|error| io_at("write", &to)(without_path(error)))?;
        Ok(Self { directory, to })
    }

    /// Returns where it is now.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives it its name. The parent stays the same, so that this needs no permission to write to
    /// the directory itself.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        check_absent(&self.to)?;
        fs::rename(self.directory.path(), &self.to).map_err(io_at("write", &self.to))?;
        drop(self.directory.keep());
        Ok(())
    }
}

fn check_absent(path: &Path) -> Result<(), ExportError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(ExportError::Exists { path: path.to_owned() }),
        Err(_) => Ok(()),
    }
}

/// Returns the directory in which something is to be.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Removes the path that errors of the crate `tempfile` end with.
fn without_path(error: std::io::Error) -> std::io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => std::io::Error::new(error.kind(), reason),
        None => error,
    }
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
        assert!(matches!(error, ExportError::Exists { .. }), "{error}");
        let failed = |_: &mut dyn Write| Err::<(), _>(ExportError::DamagedRootfs);
        assert!(file(&at("other"), failed).is_err());
        drop(Draft::new(&at("directory"), 0o700).unwrap());
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
        let draft = Draft::new(&at("directory"), 0o700).unwrap();
        fs::create_dir(at("directory")).unwrap();
        assert!(matches!(draft.finish(), Err(ExportError::Exists { .. })));
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
            for error in [file(&to, |_| Ok(())).unwrap_err(), Draft::new(&to, 0o700).unwrap_err()] {
                assert_eq!(error.to_string(), format!("cannot write {}", to.display()));
                assert_eq!(std::error::Error::source(&error).unwrap().to_string(), text);
            }
        }
    }
}

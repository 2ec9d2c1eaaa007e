//! What lies in the checkout, and what only seems to.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Checks that a path lies in the checkout, also when symbolic links are followed.
///
/// # Errors
/// The operating system's, or one that says that the path leads out of the checkout.
pub(crate) fn inside(checkout: &Path, path: &Path) -> io::Result<()> {
    if real(path)?.starts_with(real(checkout)?) {
        return Ok(());
    }
    let message = "it leads out of the checkout, through a symbolic link";
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns the path of a directory within the checkout.
///
/// # Errors
/// The operating system's.
pub(crate) fn relative(checkout: &Path, directory: &Path) -> io::Result<PathBuf> {
    let (checkout, directory) = (real(checkout)?, real(directory)?);
    Ok(directory.strip_prefix(&checkout).map(Path::to_owned).unwrap_or_default())
}

/// Returns a path without symbolic links; the empty path is the current directory.
pub(crate) fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(if path == Path::new("") { Path::new(".") } else { path })
}

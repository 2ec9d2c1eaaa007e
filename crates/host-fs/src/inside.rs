//! Paths that are inside of a directory, such as a checkout, and those that only seem to be.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Returns a path without symbolic links, or `None` if it leads out of the checkout.
///
/// # Errors
/// The operating system's.
pub fn resolve(checkout: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let path = real(path)?;
    Ok(path.starts_with(real(checkout)?).then_some(path))
}

/// Checks that a path is in the checkout.
///
/// # Errors
/// The operating system's, or one that says that the path leads out of the checkout.
pub fn check(checkout: &Path, path: &Path) -> io::Result<()> {
    let message = "it leads out of the checkout, through a symbolic link";
    let outside = || io::Error::new(io::ErrorKind::InvalidInput, message);
    resolve(checkout, path)?.map(drop).ok_or_else(outside)
}

/// Returns the path of a directory within the checkout.
///
/// # Errors
/// The operating system's.
pub fn relative(checkout: &Path, directory: &Path) -> io::Result<PathBuf> {
    let (checkout, directory) = (real(checkout)?, real(directory)?);
    Ok(directory.strip_prefix(&checkout).map(Path::to_owned).unwrap_or_default())
}

/// Returns a path without symbolic links; the empty path is the current directory.
fn real(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(if path == Path::new("") { Path::new(".") } else { path })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_may_not_lead_out() {
        let outer = tempfile::tempdir().unwrap();
        let checkout = outer.path().join("checkout");
        fs::create_dir_all(checkout.join("inner")).unwrap();
        fs::write(outer.path().join("secret"), "").unwrap();
        fs::write(checkout.join("file"), "").unwrap();
        symlink("../secret", checkout.join("out")).unwrap();
        symlink("../file", checkout.join("inner/in")).unwrap();
        // A name that begins like the checkout's is not in it.
        fs::create_dir(outer.path().join("checkout-2")).unwrap();
        for good in ["file", "inner/in", "inner/..", ""] {
            check(&checkout, &checkout.join(good)).unwrap();
        }
        for bad in ["out", "..", "../checkout-2", "missing"] {
            check(&checkout, &checkout.join(bad)).unwrap_err();
        }
    }

    #[test]
    fn a_directory_of_the_checkout_has_a_path_in_it() {
        let checkout = tempfile::tempdir().unwrap();
        let inner = checkout.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(relative(checkout.path(), &inner).unwrap(), Path::new("a/b"));
        assert_eq!(relative(&inner.join("../.."), &inner).unwrap(), Path::new("a/b"));
        assert_eq!(relative(checkout.path(), checkout.path()).unwrap(), Path::new(""));
        assert_eq!(real(Path::new("")).unwrap(), std::env::current_dir().unwrap());
    }
}

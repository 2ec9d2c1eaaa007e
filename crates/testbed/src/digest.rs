//! Digests of files.

use std::fs::File;
use std::path::Path;

use box_digest::Digest;

use crate::{KitError, Result};

/// Returns the sha256 of a file, without reading it into memory as a whole.
///
/// # Errors
/// The file cannot be read.
pub fn of_file(path: &Path) -> Result<Digest> {
    let file = File::open(path).map_err(KitError::file("open", path))?;
    let (digest, _) = Digest::of_reader(file).map_err(KitError::file("read", path))?;
    Ok(digest)
}

/// Checks a file's sha256. `expected` is 64 hexadecimal digits.
///
/// # Errors
/// The file cannot be read or has another digest.
pub fn check(path: &Path, expected: &str) -> Result<()> {
    let found = of_file(path)?.hex();
    if found == expected {
        return Ok(());
    }
    Err(KitError::Digest { path: path.to_owned(), expected: expected.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_file_with_other_content_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("download");
        std::fs::write(&path, "abc").unwrap();
        check(&path, OF_ABC).unwrap();
        std::fs::write(&path, "abd").unwrap();
        let message = check(&path, OF_ABC).unwrap_err().to_string();
        assert!(message.contains("download") && message.contains(OF_ABC), "{message}");
        assert!(check(&directory.path().join("absent"), OF_ABC).is_err());
    }
}

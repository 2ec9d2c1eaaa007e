//! Packs an OCI image layout directory into one file.

use std::fs;
use std::path::{Path, PathBuf};

use super::layer::{Layer, LayerTar};
use crate::{FileError, Result};

/// Packs the files of a directory, sorted by name, in the form of an OCI archive.
///
/// # Errors
/// A file cannot be read.
pub fn pack(dir: &Path) -> Result<LayerTar> {
    let mut layer = Layer::new();
    for path in files(dir)? {
        let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy();
        let content = fs::read(&path).map_err(FileError::about("read", &path))?;
        layer = layer.file(&name, 0o644, content);
    }
    Ok(layer.to_tar())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut pending) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).map_err(FileError::about("list", &dir))? {
            let path = entry.map_err(FileError::about("list", &dir))?.path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

//! An OCI image layout directory that is written blob by blob.

use std::fs;
use std::path::{Path, PathBuf};

use box_contract::{Descriptor, OciLayout};
use box_digest::Digest;
use serde_json::{Value, json};

use crate::{FileError, Result};

/// A layout directory for documents that [`Image`] does not write, such as nested indexes, or invalid ones.
///
/// [`Image`]: super::Image
#[derive(Debug)]
pub struct LayoutDir(PathBuf);

impl LayoutDir {
    /// Makes the directory if it does not exist.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn make(dir: &Path) -> Result<Self> {
        let blobs = dir.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(FileError::about("make", &blobs))?;
        Ok(Self(dir.to_owned()))
    }

    /// Writes a blob and returns its descriptor.
    ///
    /// # Errors
    /// The blob cannot be written.
    pub fn put(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor> {
        let digest = Digest::of(bytes);
        write(&self.0.join("blobs/sha256").join(digest.hex()), bytes)?;
        Ok(Descriptor::new(media_type, digest, bytes.len() as u64))
    }

    /// Writes a document as a blob and returns its descriptor.
    ///
    /// # Errors
    /// The blob cannot be written.
    pub fn put_json(&self, media_type: &str, document: &Value) -> Result<Descriptor> {
        self.put(media_type, document.to_string().as_bytes())
    }

    /// Writes `index` unchanged as `index.json`, and the file `oci-layout`.
    ///
    /// # Errors
    /// One of the files cannot be written.
    pub fn finish(&self, index: &Value) -> Result<()> {
        write(&self.0.join("index.json"), index.to_string().as_bytes())?;
        write(&self.0.join("oci-layout"), json!(OciLayout::default()).to_string().as_bytes())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(FileError::about("write", path))
}

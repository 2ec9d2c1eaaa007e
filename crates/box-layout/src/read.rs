//! Reads the documents of a box, bounded and compared with their digests.

use std::path::{Path, PathBuf};

use box_digest::Digest;
use box_image::Descriptor;
use box_image::text::shown;
use host_fs::read::{Links, read_file};
use serde::de::DeserializeOwned;

use crate::OpenError;
use crate::paths::blob_path;

/// The greatest length of layout, index and manifest, in bytes.
pub(crate) const DOCUMENT_LIMIT: u64 = 1 << 20;
/// The greatest length of the config, in bytes.
pub(crate) const CONFIG_LIMIT: u64 = 4 << 20;

/// A document's bytes, and the file that they are from.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
}

impl Document {
    /// Reads a file of the box that no digest names.
    pub(crate) fn unnamed(directory: &Path, name: &str) -> Result<Self, OpenError> {
        let path = directory.join(name);
        match read_file(&path, Links::Refuse, DOCUMENT_LIMIT) {
            Ok(bytes) => Ok(Self { path, bytes }),
            Err(error) => Err(OpenError::at("read", &path, error)),
        }
    }

    /// Reads the blob that a descriptor names.
    pub(crate) fn named(
        directory: &Path,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Self, OpenError> {
        let path = blob_path(directory, &descriptor.digest);
        let bytes = read_file(&path, Links::Refuse, limit)
            .map_err(|error| OpenError::at("read", &path, error))?;
        let (expected, found) = (descriptor.size, bytes.len() as u64);
        if found != expected {
            return Err(OpenError::size(path, expected, found));
        }
        let found = Digest::of(&bytes);
        if found != descriptor.digest {
            return Err(OpenError::digest(path, descriptor.digest, found));
        }
        Ok(Self { path, bytes })
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, OpenError> {
        serde_json::from_slice(&self.bytes).map_err(|error| self.malformed(error.to_string()))
    }

    pub(crate) fn malformed(&self, reason: String) -> OpenError {
        OpenError::malformed(&self.path, &reason)
    }

    /// Checks a field that has one value in every box.
    pub(crate) fn expect(
        &self,
        field: &'static str,
        found: &str,
        expected: &'static str,
    ) -> Result<(), OpenError> {
        if found == expected {
            return Ok(());
        }
        let found = shown(found);
        Err(self.malformed(format!("its {field} is {found:?}, and a box has {expected:?}")))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

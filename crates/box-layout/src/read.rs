//! Reads the documents of a box within bounds, and compares them with their digests.

use std::path::{Path, PathBuf};

use box_contract::Descriptor;
use box_digest::Digest;
use host_fs::read::{Links, open_regular, read_open};
use host_fs::trust::is_private;
use safe_text::shown;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Blob, OpenError, Places};

/// The maximum size of `oci-layout`, `index.json` and a manifest, in bytes.
pub const MAX_DOCUMENT: u64 = 1 << 20;

/// The bytes of a document, and the path of its file.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    bytes: Vec<u8>,
    /// Whether only root and this user can change the file.
    pub(crate) is_private: bool,
}

impl Document {
    /// Reads a file of the box that is not a blob: `oci-layout` or `index.json`.
    pub(crate) fn unnamed(directory: &Path, name: &str) -> Result<Self, OpenError> {
        let path = directory.join(name);
        let file = open_regular(&path, Links::Refuse);
        match file.and_then(|file| Ok((read_open(&file, MAX_DOCUMENT)?, is_private(&file)?))) {
            Ok((bytes, is_private)) => Ok(Self { path, bytes, is_private }),
            Err(error) => Err(OpenError::at("read", &path, error)),
        }
    }

    /// Wraps the bytes of a file that the caller has read. `path` is for messages.
    pub(crate) fn of(path: &Path, bytes: Vec<u8>) -> Self {
        Self { path: path.to_owned(), bytes, is_private: true }
    }

    /// Reads the blob of a descriptor, and compares it with the descriptor's size and digest.
    pub(crate) fn named(
        places: &Places,
        descriptor: &Descriptor,
        limit: u64,
    ) -> Result<Self, OpenError> {
        let Blob { path, file, .. } = places.open(descriptor, "read")?;
        let bytes = read_open(&file, limit).map_err(|error| OpenError::at("read", &path, error))?;
        let (expected, found) = (descriptor.size, bytes.len() as u64);
        if found != expected {
            return Err(OpenError::size(path, expected, found));
        }
        let found = Digest::of(&bytes);
        if found != descriptor.digest {
            return Err(OpenError::digest(path, descriptor.digest, found));
        }
        // The document is verified against its digest, so it does not matter who can change the
        // file.
        Ok(Self { path, bytes, is_private: true })
    }

    /// Parses the document. A struct must be a JSON object: serde alone would also accept an array of its fields' values.
    pub(crate) fn parse<T: DeserializeOwned + Serialize>(&self) -> Result<T, OpenError> {
        let parsed: T = self.read()?;
        // The builder writes these bytes. Comparing them takes a fifth of the time of the check below.
        if serde_json::to_vec(&parsed).is_ok_and(|written| written == self.bytes) {
            return Ok(parsed);
        }
        match serde_json::to_value(&parsed) {
            Ok(written) if has_the_objects_of(&self.value()?, &written) => Ok(parsed),
            _ => Err(self.malformed("it has a list in the place of an object".to_owned())),
        }
    }

    /// Parses the document as untyped JSON.
    pub(crate) fn value(&self) -> Result<Value, OpenError> {
        self.read()
    }

    fn read<T: DeserializeOwned>(&self) -> Result<T, OpenError> {
        serde_json::from_slice(&self.bytes).map_err(|error| self.malformed(error.to_string()))
    }

    pub(crate) fn malformed(&self, reason: String) -> OpenError {
        OpenError::malformed(&self.path, &reason)
    }

    /// Checks a field that has the same value in every box.
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

/// Returns `false` if `given` has another value, such as an array, at the position of an object in `written`.
fn has_the_objects_of(given: &Value, written: &Value) -> bool {
    match (given, written) {
        (Value::Object(given), Value::Object(written)) => written.iter().all(|(key, written)| {
            given.get(key).is_none_or(|given| has_the_objects_of(given, written))
        }),
        (Value::Array(given), Value::Array(written)) => {
            given.iter().zip(written).all(|(given, written)| has_the_objects_of(given, written))
        }
        (_, written) => !written.is_object(),
    }
}

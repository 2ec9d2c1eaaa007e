//! The box that a push sends.

use box_contract::{Descriptor, Manifest};
use box_digest::Digest;
use box_layout::{Blob, OpenBox, OpenError, Places};

use crate::error::BoxRegistryError;
use crate::form::Sent;
use crate::remote::Remote;

/// The box that a push sends: its manifest, and the directories with its blobs.
#[derive(Debug)]
pub struct Parcel<'a> {
    places: Places,
    /// The box digest.
    pub(crate) digest: Digest,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_bytes: Vec<u8>,
    /// Another box of the registry, whose blobs this host need not have.
    elsewhere: Option<&'a Remote>,
}

impl<'a> Parcel<'a> {
    /// Returns the parcel of a box of which this host has all blobs.
    ///
    /// # Errors
    /// [`BoxRegistryError::Open`], if the manifest cannot be read again.
    pub fn of(opened: &OpenBox) -> Result<Self, BoxRegistryError> {
        let (places, digest) = (opened.places.clone(), opened.digest);
        let manifest_bytes = places.read_manifest(digest)?;
        let manifest = opened.manifest.clone();
        Ok(Self { places, digest, manifest, manifest_bytes, elsewhere: None })
    }

    /// Returns the parcel of the box with the digest `digest`, of which this host has the manifest. It lacks only blobs that
    /// the box `elsewhere` has. `elsewhere` must be in the registry of the destination.
    ///
    /// # Errors
    /// [`BoxRegistryError::Open`] and [`BoxRegistryError::Malformed`], if the manifest cannot be read.
    pub fn partial(
        places: Places,
        digest: Digest,
        elsewhere: &'a Remote,
    ) -> Result<Self, BoxRegistryError> {
        let manifest_bytes = places.read_manifest(digest)?;
        let manifest = serde_json::from_slice(&manifest_bytes).map_err(|error| {
            let what = format!("the manifest {digest} of the box");
            BoxRegistryError::Malformed { what, reason: error.to_string() }
        })?;
        Ok(Self { places, digest, manifest, manifest_bytes, elsewhere: Some(elsewhere) })
    }

    /// Returns the parcel of a box of which this host has no blob: the copy of `elsewhere` under another name.
    pub fn copy_of(places: Places, elsewhere: &'a Remote) -> Self {
        let Remote { digest, manifest, manifest_bytes, .. } = elsewhere.clone();
        Self { places, digest, manifest, manifest_bytes, elsewhere: Some(elsewhere) }
    }

    /// Opens the file of a blob that the manifest names.
    pub(crate) fn open_blob(&self, plain: &Descriptor) -> Result<Blob, OpenError> {
        self.places.open_blob(plain)
    }

    /// Returns the stored form of a blob that another box of the registry has.
    pub(crate) fn elsewhere(&self, plain: &Descriptor) -> Option<Sent> {
        let mut blobs = self.elsewhere?.blobs.iter();
        let found = blobs.find(|it| it.plain.digest == plain.digest)?;
        (found.plain.size == plain.size).then_some(found.sent)
    }
}

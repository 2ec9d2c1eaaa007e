//! Finds the box in the index of an image layout.
//!
//! The manifest, not the index, determines whether an entry of the index is a box. skopeo, oras and crane rewrite the index: they
//! omit the media type and the artifact type, which the OCI image-spec leaves optional, and add tags and other annotations
//! (<https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md>).

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use box_contract::Descriptor;
use box_contract::manifest::{
    ARTIFACT_TYPE, DOCKER_INDEX_TYPE, DOCKER_MANIFEST_TYPE, INDEX_FILE, OCI_INDEX_TYPE,
    OCI_MANIFEST_TYPE,
};
use box_digest::Digest;
use serde::{Deserialize, Serialize};

use crate::Places;
use crate::error::OpenError;
use crate::read::{Document, MAX_DOCUMENT};

/// The maximum number of manifests in an index: boxes, and their attachments.
pub const MAX_MANIFESTS: usize = 256;
/// The annotation with the tag of a manifest (OCI image-spec, annotations.md).
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Media types that mean an OCI image and not a box: Docker's manifests, and indexes of other manifests.
const OF_IMAGES: [&str; 3] = [OCI_INDEX_TYPE, DOCKER_MANIFEST_TYPE, DOCKER_INDEX_TYPE];

/// The index as any tool writes it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyIndex {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    manifests: Vec<Named>,
}

/// An entry of the index: the descriptor of a manifest.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    digest: Digest,
    size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
}

impl Named {
    fn descriptor(&self) -> Descriptor {
        let media_type = self.media_type.as_deref().unwrap_or(OCI_MANIFEST_TYPE);
        Descriptor::new(media_type, self.digest, self.size)
    }

    /// Returns whether the descriptor has the artifact type of a box.
    fn claims(&self) -> bool {
        self.artifact_type.as_deref() == Some(ARTIFACT_TYPE)
    }

    /// Returns whether the manifest has the artifact type of a box. If the manifest cannot be read, uses [`Self::claims`].
    fn is_box(&self, places: &Places) -> bool {
        if self.media_type.as_deref().is_some_and(|it| it != OCI_MANIFEST_TYPE) {
            return false;
        }
        let document = Document::named(places, &self.descriptor(), MAX_DOCUMENT);
        match document.and_then(|it| it.value()) {
            Ok(manifest) => manifest["artifactType"] == ARTIFACT_TYPE,
            Err(_) => self.claims(),
        }
    }

    /// Returns the manifest's tag, if it has one, and its digest.
    fn name(&self) -> String {
        let tag = self.annotations.as_ref().and_then(|it| it.get(REF_NAME));
        tag.map_or_else(|| self.digest.to_string(), |tag| format!("{tag} ({})", self.digest))
    }
}

/// Finds the descriptor of the box's manifest. Also returns whether only root and this user can change the index.
pub(crate) fn find(places: &Places) -> Result<(Descriptor, bool), OpenError> {
    let directory = &*places.directory;
    let (document, mut manifests) = read(directory)?;
    let count = manifests.len();
    if count == 0 || count > MAX_MANIFESTS {
        return Err(OpenError::Manifests { path: document.path, count });
    }
    if manifests.len() > 1 {
        manifests.retain(|it| it.is_box(places));
    }
    let [named] = manifests.as_slice() else {
        return Err(match manifests.as_slice() {
            [] => OpenError::OtherArtifact { path: directory.to_owned(), found: None },
            boxes => {
                let names = boxes.iter().map(Named::name).collect();
                OpenError::Boxes { path: directory.to_owned(), names }
            }
        });
    };
    match named.media_type.as_deref() {
        Some(found) if OF_IMAGES.contains(&found) => {
            Err(OpenError::OtherArtifact { path: directory.to_owned(), found: None })
        }
        Some(found) => {
            document.expect("mediaType of the manifest", found, OCI_MANIFEST_TYPE)?;
            Ok((named.descriptor(), document.is_private))
        }
        None => Ok((named.descriptor(), document.is_private)),
    }
}

/// Returns `true` if the index of an image layout has exactly one manifest, and the manifest or its descriptor in the index has
/// the artifact type of a box.
pub fn names_one_box(directory: &Path) -> bool {
    read(directory).is_ok_and(|(_, manifests)| match manifests.as_slice() {
        [named] => named.is_box(&directory.into()) || named.claims(),
        _ => false,
    })
}

/// Reads the index, and lists each manifest once: the index has an entry for each tag of a manifest.
fn read(directory: &Path) -> Result<(Document, Vec<Named>), OpenError> {
    let document = Document::unnamed(directory, INDEX_FILE)?;
    let mut manifests = manifests_of(&document)?;
    let mut seen = HashSet::new();
    manifests.retain(|it| seen.insert(it.digest));
    Ok((document, manifests))
}

fn manifests_of(document: &Document) -> Result<Vec<Named>, OpenError> {
    let index: AnyIndex = document.parse()?;
    document.expect("schemaVersion", &index.schema_version.to_string(), "2")?;
    if let Some(media_type) = &index.media_type {
        document.expect("mediaType", media_type, OCI_INDEX_TYPE)?;
    }
    Ok(index.manifests)
}

/// A manifest in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The media type, if the index has one.
    pub media_type: Option<String>,
    /// The sha256 of the manifest.
    pub digest: Digest,
    /// The size of the manifest, in bytes.
    pub size: u64,
    /// The tags of the manifest, in the order of the index.
    pub names: Vec<String>,
}

/// Lists each manifest of an index once, in the order of the index. Stops after one more than [`MAX_MANIFESTS`], so that the
/// caller can detect a longer index. `path` is for messages.
///
/// # Errors
/// [`OpenError::Malformed`].
pub fn listed(path: &Path, bytes: Vec<u8>) -> Result<Vec<Listed>, OpenError> {
    let document = Document::of(path, bytes);
    let mut all: Vec<Listed> = Vec::new();
    for Named { media_type, digest, size, annotations, .. } in manifests_of(&document)? {
        let name = annotations.and_then(|mut it| it.remove(REF_NAME));
        match all.iter_mut().find(|it| it.digest == digest) {
            Some(listed) if listed.size == size => listed.names.extend(name),
            Some(_) => return Err(document.malformed(format!("{digest} has two sizes in it"))),
            None => {
                let names = name.into_iter().collect();
                all.push(Listed { media_type, digest, size, names });
            }
        }
        if all.len() > MAX_MANIFESTS {
            break;
        }
    }
    Ok(all)
}

//! Archives of `docker save`, whose `manifest.json` names configs and layers by file names instead of digests.
//!
//! Two forms are read. The older one has `HEX.json` for each config, and `ID/layer.tar` for each layer, which is a file or a link
//! to another layer's file. The newer one is also an OCI image layout. Neither has a manifest whose digest could be an image's
//! identity. So the identity is the digest of the image's config, which `docker images` shows as the image's ID.

mod entry;
mod layers;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use box_contract::Platform;
use box_contract::manifest::LAYOUT_FILE;
use box_contract::{DEFAULT_TAG, DockerName};
use box_digest::Digest;
use oci_spec::image::{ImageManifestBuilder, MediaType, SCHEMA_VERSION};

use super::archive::Archive;
use super::documents::Blob;
use super::error::SourceError;
use super::files::Files;
use super::find::Wanted;
use super::form::{Form, Found};
use super::image::Image;
use super::source::{BlobSource, Opened};
use entry::{Config, Entry, entries};

/// The file that identifies an archive of `docker save`.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// The blobs of one image of an archive. `names` has the file of each blob.
#[derive(Debug)]
struct Members {
    archive: Archive,
    names: BTreeMap<Digest, String>,
}

impl BlobSource for Members {
    fn title(&self) -> String {
        self.archive.title()
    }

    fn at(&self, digest: &Digest) -> String {
        match self.names.get(digest) {
            Some(name) => self.archive.at(name),
            None => self.archive.at(&digest.to_string()),
        }
    }

    fn open(&self, blob: Blob) -> Result<Option<Opened>, SourceError> {
        self.names.get(&blob.digest).map_or(Ok(None), |name| self.archive.open(name))
    }
}

/// Opens an image of an archive: the image with the wanted config digest, or with the wanted name or tag, or the only image.
pub(super) fn find(path: &Path, wanted: Wanted<'_>) -> Result<Image<'static>, SourceError> {
    let archive = Archive::open(path, Form::DockerArchive)?;
    if !archive.has(MANIFEST_FILE) {
        return Err(no_image(path, &archive));
    }
    let all = entries(&archive)?;
    let (entry, config) = match wanted.digest {
        Some(digest) => by_digest(&archive, all, digest)?,
        None => {
            let entry = by_name(&archive, all, wanted.tag)?;
            let config = Config::read(&archive, &entry)?;
            (entry, config)
        }
    };
    image(archive, &entry, config, wanted.platform)
}

fn image(
    archive: Archive,
    entry: &Entry,
    config: Config,
    platform: Platform,
) -> Result<Image<'static>, SourceError> {
    let (layers, mut names) = layers::layers(&archive, entry, &config.content)?;
    names.insert(config.blob.digest, entry.config.clone());
    let identity = Blob { digest: config.blob.digest, size: 0 };
    let manifest = ImageManifestBuilder::default()
        .schema_version(SCHEMA_VERSION)
        .config(config.blob.named(MediaType::ImageConfig))
        .layers(layers)
        .build()
        .expect("these are the fields that a manifest must have");
    let blobs = Arc::new(Members { archive, names });
    Image::assemble(blobs, identity, &manifest, platform)
}

fn by_digest(
    archive: &Archive,
    entries: Vec<Entry>,
    digest: Digest,
) -> Result<(Entry, Config), SourceError> {
    for entry in entries {
        let config = Config::read(archive, &entry)?;
        if config.blob.digest == digest {
            return Ok((entry, config));
        }
    }
    Err(SourceError::Gone { place: archive.title(), digest })
}

/// Returns the image with the full name `wanted`, or else the image with the tag `wanted`. For `None`, returns the only image.
fn by_name(
    archive: &Archive,
    entries: Vec<Entry>,
    wanted: Option<&str>,
) -> Result<Entry, SourceError> {
    let names: Vec<String> = entries.iter().flat_map(|it| it.names.clone()).collect();
    let count = entries.len();
    let choice = |found, is_missing| SourceError::Choice {
        place: archive.title(),
        found,
        is_missing,
        count,
        names: names.clone(),
        form: Form::DockerArchive,
    };
    let mut found = match wanted {
        None => entries,
        Some(wanted) => matching(entries, wanted),
    };
    match (found.len(), wanted) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(wanted)) => Err(choice(format!("no image {wanted:?}"), true)),
        (0, None) => Err(choice("no image".to_owned(), true)),
        (_, Some(wanted)) => Err(choice(format!("several images {wanted:?}"), false)),
        (_, None) => Err(choice(format!("{count} images"), false)),
    }
}

fn matching(entries: Vec<Entry>, wanted: &str) -> Vec<Entry> {
    let full = full_name(wanted);
    let named = |entry: &Entry, test: &dyn Fn(&DockerName<'_>) -> bool| {
        entry.names.iter().filter_map(|name| full_name(name)).any(|name| test(&name))
    };
    let (exact, others): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| named(entry, &|name| Some(name) == full.as_ref()));
    if !exact.is_empty() {
        return exact;
    }
    others.into_iter().filter(|entry| named(entry, &|name| name.tag == Some(wanted))).collect()
}

/// Parses a name and adds the default tag if it has none, so that `app` and `app:latest` are equal.
fn full_name(text: &str) -> Option<DockerName<'_>> {
    let name = DockerName::parse(text)?;
    Some(DockerName { tag: name.tag.or(Some(DEFAULT_TAG)), ..name })
}

/// Returns the error of an archive without a `manifest.json`.
fn no_image(path: &Path, archive: &Archive) -> SourceError {
    let found = if archive.has(LAYOUT_FILE) {
        Found::OciArchive
    } else if archive.has("repositories") {
        Found::OldDockerArchive
    } else {
        Found::Lacks(MANIFEST_FILE)
    };
    SourceError::NotAnImage { path: path.to_owned(), expected: Form::DockerArchive, found }
}

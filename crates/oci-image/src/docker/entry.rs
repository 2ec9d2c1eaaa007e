//! The entries of `manifest.json`, and their configs.

use box_digest::Digest;
use oci_spec::image::ImageConfiguration;
use serde::Deserialize;

use super::super::archive::Archive;
use super::super::documents::Blob;
use super::super::error::SourceError;
use super::super::files::Files;
use super::super::keys::{Document, Shape, optional, required};
use super::super::source::{Bound, CONFIG, INDEX, Opened, parse, read_bounded, wrong_digest};
use super::MANIFEST_FILE;

/// The maximum number of images in an archive. A search by digest reads the config of each image.
const IMAGES: Bound = Bound { unit: "images", limit: 256, ..LIST };
const LIST: Bound = Bound { what: "a list of images", ..INDEX };

/// An image of an archive. The fields `Parent` and `LayerSources` are not read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Entry {
    pub(super) config: String,
    #[serde(default, rename = "RepoTags")]
    pub(super) names: Vec<String>,
    /// The files of the layers, the lowest first.
    #[serde(default)]
    pub(super) layers: Vec<String>,
}

impl Document for Vec<Entry> {
    const SHAPE: Shape = Shape::List(&Shape::Object(&[
        required("Config", Shape::Text),
        optional("RepoTags", Shape::List(&Shape::Text)),
        optional("Layers", Shape::List(&Shape::Text)),
    ]));
}

/// The config of an image.
pub(super) struct Config {
    pub(super) blob: Blob,
    pub(super) content: ImageConfiguration,
}

pub(super) fn entries(archive: &Archive) -> Result<Vec<Entry>, SourceError> {
    let at = archive.at(MANIFEST_FILE);
    let opened = file(archive, MANIFEST_FILE, LIST.what)?;
    let list: Vec<Entry> = parse(&read_bounded(opened, &at, LIST)?, &at, LIST)?;
    IMAGES.check(list.len() as u64, || at)?;
    Ok(list)
}

impl Config {
    /// Reads the config of an image. If the file's name has a digest, as usual, the content must match it.
    pub(super) fn read(archive: &Archive, entry: &Entry) -> Result<Self, SourceError> {
        let (at, what) = (archive.at(&entry.config), CONFIG.what);
        let bytes = read_bounded(file(archive, &entry.config, what)?, &at, CONFIG)?;
        let digest = Digest::of(&bytes);
        if let Some(named) = named_digest(&entry.config).filter(|named| *named != digest) {
            return Err(wrong_digest(at, what, digest, named));
        }
        let content = parse(&bytes, &at, CONFIG)?;
        Ok(Self { blob: Blob { digest, size: bytes.len() as u64 }, content })
    }
}

/// Opens a file that an image names. `what` describes the file in messages.
pub(super) fn file(
    archive: &Archive,
    name: &str,
    what: &'static str,
) -> Result<Opened, SourceError> {
    let missing = || SourceError::MissingBlob { at: archive.at(name), what };
    archive.open(name)?.ok_or_else(missing)
}

/// Returns the digest in the name of a file, `HEX`, `HEX.json` or `HEX.tar` in any directory.
pub(super) fn named_digest(name: &str) -> Option<Digest> {
    let last = name.rsplit('/').next()?;
    let hex = last.strip_suffix(".json").or_else(|| last.strip_suffix(".tar")).unwrap_or(last);
    Digest::from_hex(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_made_of_digests_are_known() {
        let hex = "0f".repeat(32);
        let digest: Digest = format!("sha256:{hex}").parse().unwrap();
        for name in [hex.clone(), format!("{hex}.json"), format!("blobs/sha256/{hex}")] {
            assert_eq!(named_digest(&name), Some(digest));
        }
        for name in [format!("{hex}/layer.tar"), format!("x{hex}.json"), hex.to_uppercase()] {
            assert_eq!(named_digest(&name), None, "{name}");
        }
    }
}

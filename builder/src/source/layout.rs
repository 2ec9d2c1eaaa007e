//! Opening an OCI image layout directory: `index.json` → manifest → config → layers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use box_image::Digest;
use boxfile_spec::Platform;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

use super::config::ImageConfig;
use super::documents;
use super::documents::{
    Descriptor, INDEX_TYPES, Index, LayoutVersion, MANIFEST_TYPES, Manifest, REF_NAME,
};
use super::error::SourceError;
use crate::layer::{Compression, LayerSource};

/// Bounds on the size of a document, in bytes. Registries bound manifests at 4 MiB.
const INDEX_MAX: u64 = 4 << 20;
const MANIFEST_MAX: u64 = 4 << 20;
const CONFIG_MAX: u64 = 8 << 20;
/// An index may name an index once: multi-platform images are stored so.
const INDEX_DEPTH: usize = 2;

/// Which image of a layout is meant.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The image with this tag, where there are several.
    pub tag: Option<&'a str>,
    /// The image whose manifest has this digest, whatever its tag is by now.
    pub digest: Option<Digest>,
    /// The platform that it must be for.
    pub platform: Platform,
}

/// An image of a layout, resolved to digests. Its layers' bytes are not verified yet.
#[derive(Debug, Clone)]
pub struct Image {
    layout: PathBuf,
    /// The platform that it is for.
    pub platform: Platform,
    /// The manifest's size in bytes.
    pub manifest_size: u64,
    /// The manifest's digest: the image's identity.
    pub manifest: Digest,
    /// The config's digest.
    pub config_digest: Digest,
    /// The config's size in bytes.
    pub config_size: u64,
    /// The config.
    pub config: ImageConfig,
    /// The layers, the lowest first.
    pub layers: Vec<LayerSource>,
}

impl Image {
    /// Returns the bytes of all its blobs: manifest, config and layers.
    pub fn size(&self) -> u64 {
        let sizes = self.layers.iter().map(|layer| layer.size);
        [self.manifest_size, self.config_size].into_iter().chain(sizes).fold(0, u64::saturating_add)
    }

    /// Opens a layer's blob, whose size is as the image names it.
    ///
    /// # Errors
    /// [`SourceError`] where it is missing, unreadable or of another size.
    pub fn open_layer(&self, layer: &LayerSource) -> Result<File, SourceError> {
        open_blob(&self.layout, &layer.digest, layer.size, "a layer")
    }
}

#[cfg(test)]
impl Image {
    /// Makes an image that lies nowhere.
    pub(crate) fn sample(manifest: Digest, layers: &[Digest]) -> Self {
        let layer = |digest: &Digest| LayerSource {
            digest: *digest,
            size: 100,
            compression: Compression::None,
            diff_id: *digest,
        };
        let config = r#"{"architecture":"amd64","os":"linux","rootfs":{"diff_ids":[]}}"#;
        Self {
            layout: PathBuf::new(),
            platform: Platform::LinuxAmd64,
            manifest_size: 10,
            manifest,
            config_digest: manifest,
            config_size: 1,
            config: serde_json::from_str(config).unwrap(),
            layers: layers.iter().map(layer).collect(),
        }
    }
}

/// Opens the image of a layout that is meant: by its digest if one is given, else the one with the
/// tag, or the only one.
///
/// # Errors
/// [`SourceError`], which says what to do.
pub fn open(layout: &Path, wanted: Wanted<'_>) -> Result<Image, SourceError> {
    check_version(layout)?;
    let what = "an image manifest";
    let descriptor = match wanted.digest {
        Some(digest) => by_digest(layout, digest, wanted.platform)?,
        None => by_tag(layout, wanted)?,
    };
    let manifest: Manifest = read_blob(layout, &descriptor, what, MANIFEST_MAX)?;
    if manifest.manifests.is_some() {
        return Err(ambiguous(layout, &descriptor, what));
    }
    let config: ImageConfig = read_blob(layout, &manifest.config, "an image config", CONFIG_MAX)?;
    let (os, architecture) = (config.os.as_str(), config.architecture.as_str());
    if (os, architecture) != ("linux", wanted.platform.architecture()) {
        let (found, wanted) = (format!("{os}/{architecture}"), wanted.platform);
        return Err(SourceError::Platform { path: layout.to_owned(), found, wanted });
    }
    Ok(Image {
        layers: layers(layout, &manifest, &config)?,
        layout: layout.to_owned(),
        platform: wanted.platform,
        manifest_size: descriptor.size,
        manifest: descriptor.digest,
        config_digest: manifest.config.digest,
        config_size: manifest.config.size,
        config,
    })
}

fn by_tag(layout: &Path, wanted: Wanted<'_>) -> Result<Descriptor, SourceError> {
    let index: Index = read_file(&layout.join("index.json"), "an image index", INDEX_MAX)?;
    if index.layers.is_some() || index.config.is_some() {
        let message = "it is a manifest and an index at once".to_owned();
        let path = layout.join("index.json");
        return Err(SourceError::Malformed { path, what: "an image index", message });
    }
    choose(layout, index, wanted)
}

/// Finds the manifest with a digest, if the layout still has it: a tag may have moved on. The
/// digest of an index leads to its manifest for the platform.
fn by_digest(layout: &Path, digest: Digest, platform: Platform) -> Result<Descriptor, SourceError> {
    let path = blob_path(layout, &digest);
    let size = match std::fs::metadata(&path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => return Err(SourceError::Gone { path: layout.to_owned(), digest }),
    };
    let descriptor = Descriptor {
        media_type: MANIFEST_TYPES[0].to_owned(),
        digest,
        size,
        platform: None,
        annotations: BTreeMap::new(),
    };
    match read_blob::<Index>(layout, &descriptor, "an image index", INDEX_MAX) {
        Ok(index) if index.layers.is_none() && index.config.is_none() => {
            only(layout, index.manifests, platform)
        }
        _ => Ok(descriptor),
    }
}

fn check_version(layout: &Path) -> Result<(), SourceError> {
    let path = layout.join("oci-layout");
    if !path.is_file() {
        return Err(SourceError::NotALayout { path: layout.to_owned(), missing: "oci-layout" });
    }
    let version: LayoutVersion = read_file(&path, "an OCI layout version", 4096)?;
    if version.image_layout_version == "1.0.0" {
        return Ok(());
    }
    let message = format!("it is of version {:?}, not 1.0.0", version.image_layout_version);
    Err(SourceError::Malformed { path, what: "an OCI layout version", message })
}

/// Follows an index to the manifest that is meant.
fn choose(layout: &Path, index: Index, wanted: Wanted<'_>) -> Result<Descriptor, SourceError> {
    let mut candidates = index.manifests;
    if let Some(tag) = wanted.tag {
        let tags: Vec<_> =
            candidates.iter().filter_map(|it| it.annotations.get(REF_NAME).cloned()).collect();
        candidates.retain(|it| it.annotations.get(REF_NAME).is_some_and(|name| name == tag));
        if candidates.is_empty() {
            let found = format!("no image tagged {tag:?}");
            return Err(choice(layout, &found, &format!("its tags are {tags:?}")));
        }
    }
    for _ in 0..INDEX_DEPTH {
        let chosen = only(layout, candidates, wanted.platform)?;
        if MANIFEST_TYPES.contains(&chosen.media_type.as_str()) {
            return Ok(chosen);
        }
        if !INDEX_TYPES.contains(&chosen.media_type.as_str()) {
            break;
        }
        let what = "an image index";
        let inner: Index = read_blob(layout, &chosen, what, INDEX_MAX)?;
        if inner.layers.is_some() || inner.config.is_some() {
            return Err(ambiguous(layout, &chosen, what));
        }
        candidates = inner.manifests;
    }
    let path = layout.join("index.json");
    let message = "it names neither a manifest nor an index of manifests".to_owned();
    Err(SourceError::Malformed { path, what: "an image index", message })
}

/// Returns the only candidate, or the only one for the platform.
fn only(
    layout: &Path,
    mut candidates: Vec<Descriptor>,
    platform: Platform,
) -> Result<Descriptor, SourceError> {
    if candidates.len() > 1 {
        let fits = |it: &documents::Platform| {
            it.os == "linux" && it.architecture == platform.architecture()
        };
        candidates.retain(|it| it.platform.as_ref().is_none_or(fits));
    }
    let tags: Vec<_> = candidates.iter().filter_map(|it| it.annotations.get(REF_NAME)).collect();
    match candidates.len() {
        1 => Ok(candidates.remove(0)),
        0 => Err(choice(layout, &format!("no image for {platform}"), "copy one into it")),
        _ => {
            let found = format!("several images, tagged {tags:?}");
            Err(choice(layout, &found, "name one as \"oci:PATH:TAG\""))
        }
    }
}

fn choice(layout: &Path, found: &str, help: &str) -> SourceError {
    SourceError::Choice { path: layout.to_owned(), found: found.to_owned(), help: help.to_owned() }
}

fn ambiguous(layout: &Path, descriptor: &Descriptor, what: &'static str) -> SourceError {
    let message = "it is a manifest and an index at once".to_owned();
    SourceError::Malformed { path: blob_path(layout, &descriptor.digest), what, message }
}

fn layers(
    layout: &Path,
    manifest: &Manifest,
    config: &ImageConfig,
) -> Result<Vec<LayerSource>, SourceError> {
    let (layers, diff_ids) = (&manifest.layers, &config.rootfs.diff_ids);
    if layers.len() != diff_ids.len() {
        let (layers, diff_ids) = (layers.len(), diff_ids.len());
        return Err(SourceError::LayerCount { path: layout.to_owned(), layers, diff_ids });
    }
    let source = |(layer, diff_id): (&Descriptor, &Digest)| {
        let compression = compression(&layer.media_type).ok_or_else(|| SourceError::LayerType {
            path: layout.to_owned(),
            media_type: layer.media_type.clone(),
        })?;
        Ok(LayerSource { digest: layer.digest, size: layer.size, compression, diff_id: *diff_id })
    };
    layers.iter().zip(diff_ids).map(source).collect()
}

fn compression(media_type: &str) -> Option<Compression> {
    match media_type {
        "application/vnd.oci.image.layer.v1.tar"
        | "application/vnd.docker.image.rootfs.diff.tar" => Some(Compression::None),
        "application/vnd.oci.image.layer.v1.tar+gzip"
        | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Some(Compression::Gzip),
        _ => None,
    }
}

fn blob_path(layout: &Path, digest: &Digest) -> PathBuf {
    layout.join("blobs").join("sha256").join(digest.hex())
}

/// Opens a regular file. Opening a pipe would wait for somebody to write to it.
fn open_file(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
}

/// Opens a blob and checks its size.
fn open_blob(
    layout: &Path,
    digest: &Digest,
    size: u64,
    what: &'static str,
) -> Result<File, SourceError> {
    let path = blob_path(layout, digest);
    let file = match open_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SourceError::MissingBlob { digest: *digest, what, path });
        }
        Err(source) => return Err(SourceError::Io { path, source }),
        Ok(file) => file,
    };
    match file.metadata() {
        Err(source) => Err(SourceError::Io { path, source }),
        Ok(metadata) if metadata.len() != size => {
            Err(SourceError::WrongSize { path, what, expected: size, found: metadata.len() })
        }
        Ok(_) => Ok(file),
    }
}

/// Reads a document by its digest.
fn read_blob<T: DeserializeOwned>(
    layout: &Path,
    descriptor: &Descriptor,
    what: &'static str,
    limit: u64,
) -> Result<T, SourceError> {
    let path = blob_path(layout, &descriptor.digest);
    let size = descriptor.size;
    if size > limit {
        return Err(SourceError::TooLarge { path, what, size, limit });
    }
    let file = open_blob(layout, &descriptor.digest, size, what)?;
    let bytes = read_bounded(file, &path, what, limit)?;
    let found = Digest::from_bytes(Sha256::digest(&bytes).into());
    if found != descriptor.digest {
        return Err(SourceError::WrongDigest { path, what, found });
    }
    parse(&bytes, path, what)
}

/// Reads a document by its name.
fn read_file<T: DeserializeOwned>(
    path: &Path,
    what: &'static str,
    limit: u64,
) -> Result<T, SourceError> {
    let file =
        open_file(path).map_err(|source| SourceError::Io { path: path.to_owned(), source })?;
    parse(&read_bounded(file, path, what, limit)?, path.to_owned(), what)
}

fn read_bounded(
    file: File,
    path: &Path,
    what: &'static str,
    limit: u64,
) -> Result<Vec<u8>, SourceError> {
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| SourceError::Io { path: path.to_owned(), source })?;
    let size = bytes.len() as u64;
    if size > limit {
        return Err(SourceError::TooLarge { path: path.to_owned(), what, size, limit });
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(
    bytes: &[u8],
    path: PathBuf,
    what: &'static str,
) -> Result<T, SourceError> {
    serde_json::from_slice(bytes).map_err(|error| SourceError::Malformed {
        path,
        what,
        message: error.to_string(),
    })
}

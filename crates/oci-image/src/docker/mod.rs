//! What `docker save` writes: an archive with a `manifest.json` that names configs and layers by their
//! files, not by digests.
//!
//! Two forms are read. The older one has `HEX.json` for each config and `ID/layer.tar`, a file or a
//! link to another, for each layer; the newer one is an OCI image layout beside that. In both, an image
//! has no manifest that could be its identity, so this is the config's digest, which `docker images`
//! shows as the image's ID.

mod entry;
mod layers;
mod name;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use box_digest::Digest;
use boxfile_spec::Platform;

use super::archive::Archive;
use super::documents::Manifest;
use super::error::SourceError;
use super::files::Files;
use super::find::Wanted;
use super::image::{Home, Identity, Image};
use super::layout::MARKER;
use super::place::{Blobs, Opened};
use entry::{Config, Entry, entries};
use name::Name;

/// The file that makes an archive one of `docker save`.
pub(super) const MANIFEST_FILE: &str = "manifest.json";

/// The blobs of one image of an archive: which file has which digest.
#[derive(Debug)]
struct Members {
    archive: Archive,
    names: BTreeMap<Digest, String>,
}

impl Blobs for Members {
    fn title(&self) -> String {
        self.archive.title()
    }

    fn at(&self, digest: &Digest) -> String {
        match self.names.get(digest) {
            Some(name) => self.archive.at(name),
            None => self.archive.at(&digest.to_string()),
        }
    }

    fn open(&self, digest: &Digest, _: u64) -> Result<Option<Opened>, SourceError> {
        self.names.get(digest).map_or(Ok(None), |name| self.archive.open(name))
    }
}

/// Finds the image of an archive that is meant: by its config's digest if one is given, else the one
/// that has the name or tag, or the only one.
pub(super) fn find(path: &Path, wanted: Wanted<'_>) -> Result<Image, SourceError> {
    let archive = Archive::open(path)?;
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
) -> Result<Image, SourceError> {
    let (layers, mut names) = layers::layers(&archive, entry, &config.diff_ids)?;
    names.insert(config.named.digest, entry.config.clone());
    let identity = Identity { digest: config.named.digest, size: 0 };
    let manifest = Manifest { config: config.named, layers };
    let blobs = Arc::new(Members { archive, names });
    Image::assemble(&*blobs, Home::Local(blobs.clone()), (identity, &manifest), platform)
}

fn by_digest(
    archive: &Archive,
    entries: Vec<Entry>,
    digest: Digest,
) -> Result<(Entry, Config), SourceError> {
    for entry in entries {
        let config = Config::read(archive, &entry)?;
        if config.named.digest == digest {
            return Ok((entry, config));
        }
    }
    Err(SourceError::Gone { place: archive.title(), digest })
}

/// Returns the image that a reference names: fully, or else only by its tag.
fn by_name(
    archive: &Archive,
    entries: Vec<Entry>,
    wanted: Option<&str>,
) -> Result<Entry, SourceError> {
    let names: Vec<String> = entries.iter().flat_map(|it| it.names.clone()).collect();
    let count = entries.len();
    let choice =
        |found| SourceError::Choice { place: archive.title(), found, help: help(count, &names) };
    let mut found = match wanted {
        None => entries,
        Some(wanted) => matching(entries, wanted),
    };
    match (found.len(), wanted) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(wanted)) => Err(choice(format!("no image {wanted:?}"))),
        (0, None) => Err(choice("no image".to_owned())),
        (_, Some(wanted)) => Err(choice(format!("several images {wanted:?}"))),
        (_, None) => Err(choice(format!("{count} images"))),
    }
}

/// Says what to write for an archive with so many images, of these names.
fn help(count: usize, names: &[String]) -> String {
    match (count, names) {
        (0, _) => "save one with `docker save NAME -o FILE`".to_owned(),
        (1, []) => "its only image has no name: write \"docker-archive:FILE\"".to_owned(),
        (_, []) => "its images have no names: save each into an archive of its own".to_owned(),
        _ => format!("its images are {names:?}: name one as \"docker-archive:FILE:NAME:TAG\""),
    }
}

fn matching(entries: Vec<Entry>, wanted: &str) -> Vec<Entry> {
    let full = Name::parse(wanted);
    let named = |entry: &Entry, test: &dyn Fn(&Name) -> bool| {
        entry.names.iter().any(|name| test(&Name::parse(name)))
    };
    let (exact, others): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| named(entry, &|name| *name == full));
    if !exact.is_empty() {
        return exact;
    }
    others.into_iter().filter(|entry| named(entry, &|name| name.tag == wanted)).collect()
}

/// Says what is wrong with an archive without a `manifest.json`.
fn no_image(path: &Path, archive: &Archive) -> SourceError {
    let help = if archive.has(MARKER) {
        format!("it is an OCI image layout: write \"oci-archive:{}\"", path.display())
    } else if archive.has("repositories") {
        "it is of a docker older than 1.10: load it into a newer one and save it again".to_owned()
    } else {
        format!("make it with `docker save NAME -o {}`", path.display())
    };
    SourceError::NoImage { path: path.to_owned(), missing: MANIFEST_FILE, help }
}

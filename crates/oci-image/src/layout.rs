//! An OCI image layout (image-layout.md), whether it is a directory or an archive.

use box_digest::Digest;

use super::documents::{Descriptor, LayoutVersion, read_index};
use super::error::SourceError;
use super::files::Files;
use super::place::{Blobs, MANIFEST_MAX, Opened, Place, parse, read_bounded};

/// The file that makes a directory an image layout.
pub(super) const MARKER: &str = "oci-layout";
const INDEX_FILE: &str = "index.json";
const INDEX: &str = "an image index";
const VERSION: &str = "an OCI layout version";
const VERSION_MAX: u64 = 4096;

/// A layout whose version was checked.
#[derive(Debug)]
pub(super) struct Layout<F> {
    files: F,
    /// What a reference to one of its images looks like.
    form: &'static str,
}

impl<F: Files> Layout<F> {
    /// Checks that files are those of a layout; `lacks` makes the error where one is missing.
    pub(super) fn open(
        files: F,
        form: &'static str,
        lacks: impl FnOnce(&F) -> SourceError,
    ) -> Result<Self, SourceError> {
        let Some(opened) = files.open(MARKER)? else { return Err(lacks(&files)) };
        let at = || files.at(MARKER);
        let bytes = read_bounded(opened, at, (VERSION, VERSION_MAX))?;
        let LayoutVersion { image_layout_version: version } = parse(&bytes, at, VERSION)?;
        if version == "1.0.0" {
            return Ok(Self { files, form });
        }
        let message = format!("it is of version {version:?}, not 1.0.0");
        Err(SourceError::Malformed { at: at(), what: VERSION, message })
    }

    fn index(&self) -> Result<Vec<Descriptor>, SourceError> {
        let at = || self.files.at(INDEX_FILE);
        let opened = self.files.open(INDEX_FILE)?;
        let opened = opened.ok_or_else(|| SourceError::MissingBlob { at: at(), what: INDEX })?;
        let bytes = read_bounded(opened, at, (INDEX, MANIFEST_MAX))?;
        read_index(&bytes).map_err(|message| SourceError::Malformed {
            at: at(),
            what: INDEX,
            message,
        })
    }
}

fn name(digest: &Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

impl<F: Files> Blobs for Layout<F> {
    fn title(&self) -> String {
        self.files.title()
    }

    fn at(&self, digest: &Digest) -> String {
        self.files.at(&name(digest))
    }

    fn open(&self, digest: &Digest, _: u64) -> Result<Option<Opened>, SourceError> {
        self.files.open(&name(digest))
    }
}

impl<F: Files> Place for Layout<F> {
    fn tagged(&self, tag: Option<&str>) -> Result<Vec<Descriptor>, SourceError> {
        let all = self.index()?;
        let Some(tag) = tag else { return Ok(all) };
        let tags: Vec<String> = all.iter().filter_map(|it| it.tag().map(str::to_owned)).collect();
        let found: Vec<_> = all.into_iter().filter(|it| it.tag() == Some(tag)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        Err(SourceError::Choice {
            place: self.title(),
            found: format!("no image tagged {tag:?}"),
            help: format!("its tags are {tags:?}"),
        })
    }

    fn open_manifest(&self, digest: &Digest) -> Result<Option<Opened>, SourceError> {
        self.files.open(&name(digest))
    }

    fn form(&self) -> &'static str {
        self.form
    }
}

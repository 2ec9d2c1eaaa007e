//! An [OCI image layout](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md)
//! in a directory or an archive.

use box_contract::manifest::{INDEX_FILE, LAYOUT_FILE, LAYOUT_VERSION, blob_name};
use box_digest::Digest;
use oci_spec::image::{Descriptor, OciLayout};

use super::documents::{Blob, read_index, tag};
use super::error::SourceError;
use super::files::Files;
use super::form::Form;
use super::source::{
    BlobSource, Bound, INDEX, ImageStore, Opened, Tagged, parse, read_bounded, verified,
};

const VERSION: Bound = Bound { what: "an OCI layout version", limit: 4096, ..INDEX };

/// A layout whose version was checked.
#[derive(Debug)]
pub(super) struct Layout<F> {
    files: F,
    form: Form,
}

impl<F: Files> Layout<F> {
    /// Opens a layout and checks its version. `lacks` makes the error for files without the version file `oci-layout`.
    pub(super) fn open(
        files: F,
        form: Form,
        lacks: impl FnOnce(&F) -> SourceError,
    ) -> Result<Self, SourceError> {
        let Some(opened) = files.open(LAYOUT_FILE)? else { return Err(lacks(&files)) };
        let at = files.at(LAYOUT_FILE);
        let layout: OciLayout = parse(&read_bounded(opened, &at, VERSION)?, &at, VERSION)?;
        let version = layout.image_layout_version();
        if version == LAYOUT_VERSION {
            return Ok(Self { files, form });
        }
        let message = format!("its version is not {LAYOUT_VERSION}");
        Err(SourceError::malformed(&at, VERSION.what, &message))
    }

    fn index(&self) -> Result<Vec<Descriptor>, SourceError> {
        let (at, what) = (self.files.at(INDEX_FILE), INDEX.what);
        let Some(opened) = self.files.open(INDEX_FILE)? else {
            return Err(SourceError::MissingBlob { at, what });
        };
        let bytes = read_bounded(opened, &at, INDEX)?;
        read_index(&bytes).map_err(|message| SourceError::malformed(&at, what, &message))
    }
}

/// Returns the tag at the end of a full reference, such as `v1` of `registry.example.org/app:v1`.
fn tag_of(name: &str) -> Option<&str> {
    let (_, last) = name.rsplit_once('/')?;
    last.split_once(':').map(|(_, tag)| tag)
}

impl<F: Files> BlobSource for Layout<F> {
    fn title(&self) -> String {
        self.files.title()
    }

    fn at(&self, digest: &Digest) -> String {
        self.files.at(&blob_name(digest))
    }

    fn open(&self, blob: Blob) -> Result<Option<Opened>, SourceError> {
        self.files.open(&blob_name(&blob.digest))
    }
}

impl<F: Files> ImageStore for Layout<F> {
    fn tagged(&self, wanted: Option<&str>) -> Result<Tagged, SourceError> {
        let all = self.index()?;
        let Some(wanted) = wanted else { return Ok(Tagged::Listed(all)) };
        let names = all.iter().filter_map(|it| tag(it).map(str::to_owned)).collect();
        let count = all.len();
        let (mut found, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|it| tag(it) == Some(wanted));
        if found.is_empty() {
            // Some programs write a full reference instead of a tag.
            let of_reference =
                |it: &Descriptor| tag(it).is_some_and(|it| tag_of(it) == Some(wanted));
            found = others.into_iter().filter(of_reference).collect();
        }
        if !found.is_empty() {
            return Ok(Tagged::Listed(found));
        }
        Err(SourceError::Choice {
            place: self.title(),
            found: format!("no image tagged {wanted:?}"),
            is_missing: true,
            count,
            names,
            form: self.form,
        })
    }

    fn read_manifest(
        &self,
        digest: &Digest,
        size: Option<u64>,
        document: Bound,
    ) -> Result<Option<Vec<u8>>, SourceError> {
        let Some(opened) = self.files.open(&blob_name(digest))? else { return Ok(None) };
        let blob = Blob { digest: *digest, size: size.unwrap_or(opened.size) };
        document.check(blob.size, || self.at(digest))?;
        verified(self, blob, document, Some(opened)).map(Some)
    }

    fn form(&self) -> Form {
        self.form
    }
}

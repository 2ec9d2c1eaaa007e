//! From a tag or a digest to an image's manifest: index → … → manifest.
//!
//! Every form of reference goes this way; they differ in where the documents lie.

use box_contract::Platform;
use box_digest::Digest;
use oci_spec::image::{Descriptor, ImageManifest, MediaType};

use super::documents::{Blob, Document, read, tag};
use super::error::SourceError;
use super::media::Kind;
use super::place::{Bound, INDEX, MANIFEST, Place, read_manifest};
use super::platform::{fits, is_attestation, listed};

/// How many indexes may lead to a manifest, one naming the next. Builders nest them once.
const NESTING: usize = 4;

/// Which image of a place is meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The image with this tag, where there are several.
    pub(super) tag: Option<&'a str>,
    /// The image whose manifest, or index, has this digest, whatever its tag is by now.
    pub(super) digest: Option<Digest>,
    /// The platform that it must be for.
    pub(super) platform: Platform,
}

/// A reference to the next document.
struct Next {
    blob: Blob,
    /// The expected type, where that is known.
    media_type: Option<MediaType>,
}

/// Finds the manifest that is meant.
pub(super) fn find(
    place: &dyn Place,
    wanted: Wanted<'_>,
) -> Result<(Blob, ImageManifest), SourceError> {
    let start = match wanted.digest {
        Some(digest) => by_digest(place, digest)?,
        None => by_tag(place, wanted)?,
    };
    follow(place, start, wanted.platform)
}

/// Starts at a digest, if what has it is still there.
fn by_digest(place: &dyn Place, digest: Digest) -> Result<Next, SourceError> {
    match place.open_manifest(&digest)? {
        Some(opened) => Ok(Next { blob: Blob { digest, size: opened.size }, media_type: None }),
        None => Err(SourceError::Gone { place: place.title(), digest }),
    }
}

/// Starts at the only thing that has the tag and is for the platform.
fn by_tag(place: &dyn Place, wanted: Wanted<'_>) -> Result<Next, SourceError> {
    let candidates = place.tagged(wanted.tag)?;
    let mut chosen = only_named(choose(place, candidates, wanted.platform)?);
    // One image may have several tags.
    chosen.dedup_by(|one, other| one.digest() == other.digest());
    match chosen.len() {
        1 => Ok(Next::of(&chosen[0])),
        count => Err(SourceError::Choice {
            place: place.title(),
            found: if count == 0 { "no image" } else { "several images" }.to_owned(),
            is_missing: count == 0,
            count,
            names: chosen.iter().filter_map(tag).map(str::to_owned).collect(),
            form: place.form(),
        }),
    }
}

/// Returns the images that have a name, if any has one. `skopeo copy` to a name that a layout has already leaves the image that had it,
/// without a name.
fn only_named(mut chosen: Vec<Descriptor>) -> Vec<Descriptor> {
    if chosen.iter().any(|it| tag(it).is_some()) {
        chosen.retain(|it| tag(it).is_some());
    }
    chosen
}

/// Follows indexes to a manifest.
fn follow(
    place: &dyn Place,
    mut next: Next,
    platform: Platform,
) -> Result<(Blob, ImageManifest), SourceError> {
    for _ in 0..=NESTING {
        match document(place, &next)? {
            Document::Manifest(manifest) => return Ok((next.blob, *manifest)),
            Document::Index(manifests) => {
                // The first of several counts (image-index.md, `platform`).
                let chosen = choose(place, manifests, platform)?;
                let empty = || malformed(place, &next, INDEX, "it names no image".to_owned());
                next = chosen.first().map(Next::of).ok_or_else(empty)?;
            }
        }
    }
    Err(malformed(place, &next, INDEX, format!("more than {NESTING} indexes lead to it")))
}

fn document(place: &dyn Place, next: &Next) -> Result<Document, SourceError> {
    let expected = next.media_type.as_ref().map(MediaType::as_ref);
    let kind = expected.map(Kind::of).transpose();
    let bound = match kind.map_err(|reason| malformed(place, next, MANIFEST, reason))? {
        Some(Kind::Index) => INDEX,
        _ => MANIFEST,
    };
    let bytes = read_manifest(place, next.blob, bound)?;
    read(&bytes, expected).map_err(|reason| malformed(place, next, bound, reason))
}

fn malformed(place: &dyn Place, next: &Next, document: Bound, message: String) -> SourceError {
    SourceError::malformed(&place.at(&next.blob.digest), document.what, &message)
}

/// Returns what fits of what an index names: that for the platform, else that without a platform.
fn choose(
    place: &dyn Place,
    candidates: Vec<Descriptor>,
    platform: Platform,
) -> Result<Vec<Descriptor>, SourceError> {
    let images: Vec<_> = candidates.into_iter().filter(|it| !is_attestation(it)).collect();
    let named = |it: &&Descriptor| it.platform().as_ref().is_some_and(|it| fits(it, platform));
    let open = |it: &&Descriptor| it.platform().is_none();
    let mut chosen: Vec<_> = images.iter().filter(named).cloned().collect();
    if chosen.is_empty() {
        chosen = images.iter().filter(open).cloned().collect();
    }
    if chosen.is_empty() && !images.is_empty() {
        let found = listed(images.iter().filter_map(|it| it.platform().as_ref()));
        return Err(SourceError::Platform { place: place.title(), found, wanted: platform });
    }
    Ok(chosen)
}

impl Next {
    fn of(named: &Descriptor) -> Self {
        Self { blob: Blob::of(named), media_type: Some(named.media_type().clone()) }
    }
}

//! Finds the manifest of an image by a tag or a digest: index → … → manifest.
//!
//! The search is the same for all forms of images that have a manifest. An [`ImageStore`] reads the documents.

use box_contract::Platform;
use box_digest::Digest;
use oci_spec::image::{Descriptor, ImageManifest, MediaType};

use super::documents::{Blob, Document, read, tag};
use super::error::SourceError;
use super::media::Kind;
use super::platform::{fits, is_attestation, listed};
use super::source::{Bound, INDEX, ImageStore, MANIFEST, Tagged};

/// The maximum number of nested indexes. Builders write at most an index within an index.
const NESTING: usize = 4;

/// The image to find in a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The tag of the image. It may be absent if the source has only one image.
    pub(super) tag: Option<&'a str>,
    /// The digest of the manifest or index. It takes precedence over the tag, which may name another manifest by now.
    pub(super) digest: Option<Digest>,
    /// The platform of the image.
    pub(super) platform: Platform,
}

/// The next document of the search.
struct Next {
    blob: Blob,
    /// The expected media type, if it is known.
    media_type: Option<MediaType>,
    /// The document, if it has been read already.
    document: Option<Document>,
}

/// Finds the wanted manifest.
pub(super) fn find(
    place: &dyn ImageStore,
    wanted: Wanted<'_>,
) -> Result<(Blob, ImageManifest), SourceError> {
    let start = match wanted.digest {
        Some(digest) => by_digest(place, digest)?,
        None => by_tag(place, wanted)?,
    };
    follow(place, start, wanted.platform)
}

/// Starts with the document of the digest `digest`, if it still exists.
fn by_digest(place: &dyn ImageStore, digest: Digest) -> Result<Next, SourceError> {
    let Some(bytes) = place.read_manifest(&digest, None, MANIFEST)? else {
        return Err(SourceError::Gone { place: place.title(), digest });
    };
    let blob = Blob { digest, size: bytes.len() as u64 };
    let document = read(&bytes, None).map_err(|reason| malformed(place, blob, MANIFEST, reason))?;
    Ok(Next::judged(blob, document))
}

/// Starts with the document for the wanted tag and platform. It must be the only one.
fn by_tag(place: &dyn ImageStore, wanted: Wanted<'_>) -> Result<Next, SourceError> {
    let candidates = match place.tagged(wanted.tag)? {
        Tagged::Listed(candidates) => candidates,
        Tagged::Judged(blob, document) => return Ok(Next::judged(blob, document)),
    };
    let mut chosen = only_named(choose(place, candidates, wanted.platform)?);
    // One image with several tags has an entry for each tag.
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

/// Returns the images with a name, or all images if none has a name. If `skopeo copy` reuses a name in a layout, the previous
/// image stays in the layout without a name.
fn only_named(mut chosen: Vec<Descriptor>) -> Vec<Descriptor> {
    if chosen.iter().any(|it| tag(it).is_some()) {
        chosen.retain(|it| tag(it).is_some());
    }
    chosen
}

/// Follows indexes to a manifest.
fn follow(
    place: &dyn ImageStore,
    mut next: Next,
    platform: Platform,
) -> Result<(Blob, ImageManifest), SourceError> {
    for _ in 0..=NESTING {
        let document = match next.document.take() {
            Some(document) => document,
            None => document(place, &next)?,
        };
        match document {
            Document::Manifest(manifest) => return Ok((next.blob, *manifest)),
            Document::Index(manifests) => {
                // If several entries match, the first takes precedence
                // ([image-index.md](https://github.com/opencontainers/image-spec/blob/v1.1.1/image-index.md), `platform`).
                let chosen = choose(place, manifests, platform)?;
                let empty = || malformed(place, next.blob, INDEX, "it names no image".to_owned());
                next = chosen.first().map(Next::of).ok_or_else(empty)?;
            }
        }
    }
    Err(malformed(place, next.blob, INDEX, format!("more than {NESTING} indexes lead to it")))
}

fn document(place: &dyn ImageStore, next: &Next) -> Result<Document, SourceError> {
    let expected = next.media_type.as_ref().map(MediaType::as_ref);
    let kind = expected.map(Kind::of).transpose();
    let bound = match kind.map_err(|reason| malformed(place, next.blob, MANIFEST, reason))? {
        Some(Kind::Index) => INDEX,
        _ => MANIFEST,
    };
    let Blob { digest, size } = next.blob;
    bound.check(size, || place.at(&digest))?;
    let missing = || SourceError::MissingBlob { at: place.at(&digest), what: bound.what };
    let bytes = place.read_manifest(&digest, Some(size), bound)?.ok_or_else(missing)?;
    read(&bytes, expected).map_err(|reason| malformed(place, next.blob, bound, reason))
}

fn malformed(place: &dyn ImageStore, blob: Blob, document: Bound, message: String) -> SourceError {
    SourceError::malformed(&place.at(&blob.digest), document.what, &message)
}

/// Returns the entries for the platform. If there are none, returns the entries without a platform.
fn choose(
    place: &dyn ImageStore,
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
        let media_type = Some(named.media_type().clone());
        Self { blob: Blob::of(named), media_type, document: None }
    }

    fn judged(blob: Blob, document: Document) -> Self {
        Self { blob, media_type: None, document: Some(document) }
    }
}

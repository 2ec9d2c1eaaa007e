//! The layers of an image in an archive.

use std::collections::BTreeMap;
use std::io::Read;

use box_digest::Digest;
use oci_layer::Compression;
use oci_spec::image::Descriptor;

use super::super::archive::Archive;
use super::super::documents::Blob;
use super::super::error::SourceError;
use super::super::files::Files;
use super::super::layers::{LAYERS_MAX, too_many};
use super::super::media;
use super::entry::{Entry, file, named_digest};

const LAYER: &str = "a layer";
/// How gzip (RFC 1952) and zstd (RFC 8878) streams begin.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// Names the layers of an image by digests, and says which file each of them is.
pub(super) fn layers(
    archive: &Archive,
    entry: &Entry,
    diff_ids: &[Digest],
) -> Result<(Vec<Descriptor>, BTreeMap<Digest, String>), SourceError> {
    check_count(archive, entry.layers.len(), diff_ids.len())?;
    let (mut layers, mut names) = (Vec::new(), BTreeMap::new());
    for (name, diff_id) in entry.layers.iter().zip(diff_ids) {
        let (blob, compression) = layer(archive, name, *diff_id)?;
        names.insert(blob.digest, name.clone());
        layers.push(blob.named(media::layer(compression)));
    }
    Ok((layers, names))
}

fn check_count(archive: &Archive, layers: usize, diff_ids: usize) -> Result<(), SourceError> {
    let place = archive.title();
    if layers > LAYERS_MAX {
        return Err(too_many(&place, layers));
    }
    if layers == diff_ids {
        return Ok(());
    }
    let why = format!("layers in its manifest: {layers}, diff_ids in its config: {diff_ids}");
    Err(SourceError::inconsistent(&place, &why))
}

/// Names a layer. Nothing but its content says whether it is compressed: docker, too, looks there. An
/// uncompressed one is named by what its config says of it; another by its file's name, or, where that
/// is no digest, by what it hashes to. All of this is verified when the layer is read.
fn layer(
    archive: &Archive,
    name: &str,
    diff_id: Digest,
) -> Result<(Blob, Compression), SourceError> {
    let mut opened = file(archive, name, LAYER)?;
    let failed = || SourceError::io(archive.at(name));
    let mut start = Vec::new();
    opened.reader.by_ref().take(ZSTD.len() as u64).read_to_end(&mut start).map_err(failed())?;
    let compression = match start.as_slice() {
        ZSTD => Compression::Zstd,
        start if start.starts_with(GZIP) => Compression::Gzip,
        _ => Compression::None,
    };
    let digest = match (compression, named_digest(name)) {
        (Compression::None, _) => diff_id,
        // The older form names layers by what they are uncompressed.
        (_, Some(named)) if named != diff_id => named,
        _ => Digest::of_reader(start.as_slice().chain(opened.reader)).map_err(failed())?.0,
    };
    Ok((Blob { digest, size: opened.size }, compression))
}

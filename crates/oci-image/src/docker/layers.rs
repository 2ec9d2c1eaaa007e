//! The layers of an image in an archive.

use host_fs::FileError;
use std::collections::BTreeMap;
use std::io::Read;

use box_digest::Digest;
use oci_layer::{Compression, START};
use oci_spec::image::{Descriptor, ImageConfiguration};

use super::super::archive::Archive;
use super::super::documents::{Blob, sha256};
use super::super::error::SourceError;
use super::super::files::Files;
use super::super::layers::{LAYER, check_count};
use super::super::media;
use super::entry::{Entry, file, named_digest};

/// Returns the layers of an image as descriptors, and the file of each digest.
pub(super) fn layers(
    archive: &Archive,
    entry: &Entry,
    config: &ImageConfiguration,
) -> Result<(Vec<Descriptor>, BTreeMap<Digest, String>), SourceError> {
    check_count(|| archive.title(), config, entry.layers.len())?;
    let (mut layers, mut names) = (Vec::new(), BTreeMap::new());
    for (name, diff_id) in entry.layers.iter().zip(config.rootfs().diff_ids()) {
        let (blob, compression) = layer(archive, name, sha256(diff_id))?;
        names.insert(blob.digest, name.clone());
        layers.push(blob.named(media::layer(compression)));
    }
    Ok((layers, names))
}

/// Returns the digest, size and compression of a layer. As in docker, its first bytes decide the compression. The digest of an
/// uncompressed layer is its diff ID in the config. The digest of a compressed layer is taken from the file's name, or computed
/// if the name has none. All of them are verified when the layer is read.
fn layer(
    archive: &Archive,
    name: &str,
    diff_id: Digest,
) -> Result<(Blob, Compression), SourceError> {
    let mut opened = file(archive, name, LAYER)?;
    let failed = || FileError::of("read", archive.at(name));
    let mut start = Vec::new();
    opened.reader.by_ref().take(START as u64).read_to_end(&mut start).map_err(failed())?;
    let compression = Compression::of_start(&start);
    let digest = match (compression, named_digest(name)) {
        (Compression::None, _) => diff_id,
        // In the older form, the name of a compressed layer has its diff ID, which is not the digest of the file.
        (_, Some(named)) if named != diff_id => named,
        _ => Digest::of_reader(start.as_slice().chain(opened.reader)).map_err(failed())?.0,
    };
    Ok((Blob { digest, size: opened.size }, compression))
}

//! The parts of a box other than its rootfs.

use box_contract::Descriptor;
use box_contract::Manifest;
use box_contract::manifest::{
    CONFIG_TYPE, INIT_TYPE, KERNEL_TYPE, LISTING_TYPE, METADATA_TYPE, SEGMENT_TYPE,
};
use box_digest::Digest;
use serde::Serialize;

use crate::opened::Documents;

/// A part of a box, other than the rootfs, that differs.
#[derive(Debug, Serialize)]
pub struct PartDifference {
    /// The part's role: `init`, `kernel`, `config`, `listing`, `rootfs`, `metadata`, `segment` or
    /// `manifest`.
    pub name: &'static str,
    /// The part's digest in the first box. `None` if that box lacks it.
    pub a: Option<Digest>,
    /// The part's digest in the second box. `None` if that box lacks it.
    pub b: Option<Digest>,
}

/// Compares the init and the kernel of two boxes. The other parts follow from these and the files, so they are compared only
/// if init and kernel are equal, and the trees (`equal`): first the config and the listing, then the files of the rootfs, and
/// then the manifest. So two boxes of different digests always differ in a part or in a file.
pub fn parts(a: &Documents, b: &Documents, equal: bool) -> Vec<PartDifference> {
    let differing = |names: &[(&'static str, &str)]| -> Vec<PartDifference> {
        let parts = names.iter().map(|(name, media_type)| PartDifference {
            name,
            a: digest(&a.manifest, media_type),
            b: digest(&b.manifest, media_type),
        });
        parts.filter(|part| part.a != part.b).collect()
    };
    let boots = differing(&[("init", INIT_TYPE), ("kernel", KERNEL_TYPE)]);
    if !equal || !boots.is_empty() {
        return boots;
    }
    let documents = differing(&[("config", CONFIG_TYPE), ("listing", LISTING_TYPE)]);
    let found = if documents.is_empty() { rootfs(a, b) } else { documents };
    if found.is_empty() { manifest(a, b) } else { found }
}

/// Compares the files of two rootfs, by their position.
fn rootfs(a: &Documents, b: &Documents) -> Vec<PartDifference> {
    let [one, other] = [a, b].map(Documents::parts);
    let pairs =
        (0..one.len().max(other.len())).map(|at| [&one, &other].map(|it| it.get(at).copied()));
    let differing = pairs.filter_map(|pair| {
        let [a, b] = pair.map(|it| it.map(|part| part.digest));
        let role = pair.into_iter().flatten().next().map(role)?;
        (a != b).then_some(PartDifference { name: role, a, b })
    });
    differing.collect()
}

fn role(part: &Descriptor) -> &'static str {
    match part.media_type.as_str() {
        METADATA_TYPE => "metadata",
        SEGMENT_TYPE => "segment",
        _ => "rootfs",
    }
}

/// Compares the digests of two boxes. Two manifests that name the same parts can still differ, for example in an annotation.
fn manifest(a: &Documents, b: &Documents) -> Vec<PartDifference> {
    let differs = a.digest != b.digest;
    let part = PartDifference { name: "manifest", a: Some(a.digest), b: Some(b.digest) };
    differs.then_some(part).into_iter().collect()
}

fn digest(manifest: &Manifest, media_type: &str) -> Option<Digest> {
    let config = Some(&manifest.config).filter(|config| config.media_type == media_type);
    manifest.blob(media_type).or(config).map(|blob| blob.digest)
}

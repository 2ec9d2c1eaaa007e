//! The parts of a box other than its rootfs.

use box_contract::Manifest;
use box_contract::manifest::{CONFIG_TYPE, INIT_TYPE, KERNEL_TYPE, LISTING_TYPE};
use box_digest::Digest;
use serde::Serialize;

use crate::opened::OpenBox;

/// A part of a box, other than the rootfs, that differs.
#[derive(Debug, Serialize)]
pub struct PartDifference {
    /// The part's role: `init`, `kernel`, `config` or `listing`.
    pub name: &'static str,
    /// The part's digest in the first box. `None` if that box lacks it.
    pub a: Option<Digest>,
    /// The part's digest in the second box. `None` if that box lacks it.
    pub b: Option<Digest>,
}

/// Compares the init and the kernel of two boxes. The config and the listing follow from these and
/// the rootfs, so they are compared only if init and kernel are equal, and the trees (`equal`).
pub fn parts(a: &OpenBox, b: &OpenBox, equal: bool) -> Vec<PartDifference> {
    let differing = |names: &[(&'static str, &str)]| -> Vec<PartDifference> {
        let parts = names.iter().map(|(name, media_type)| PartDifference {
            name,
            a: digest(&a.manifest, media_type),
            b: digest(&b.manifest, media_type),
        });
        parts.filter(|part| part.a != part.b).collect()
    };
    let boots = differing(&[("init", INIT_TYPE), ("kernel", KERNEL_TYPE)]);
    if equal && boots.is_empty() {
        return differing(&[("config", CONFIG_TYPE), ("listing", LISTING_TYPE)]);
    }
    boots
}

fn digest(manifest: &Manifest, media_type: &str) -> Option<Digest> {
    let config = Some(&manifest.config).filter(|config| config.media_type == media_type);
    manifest.blob(media_type).or(config).map(|blob| blob.digest)
}

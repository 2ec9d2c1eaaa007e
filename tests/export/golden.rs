//! The bytes of format epoch 3, pinned. They never change once the epoch is released.
//!
//! To pin them again before that, copy what a failed test prints. A box's run plan is a file of its
//! rootfs, so that a change of the plan's form changes them, too. The box digest is not here: kernel and
//! init have a part in it, which no epoch fixes.

use box_image::ComponentName;
use box_image::manifest::{FORMAT_EPOCH, LISTING_TYPE, ROOTFS_TYPE};
use box_image::wire::PROTOCOL;
use box_inspect::export::OciImage;

use crate::made::Made;
use crate::specimens::{Specimen, large, small};

/// Lists the digest of every form of a box.
fn digests(specimen: &Specimen) -> String {
    let made = Made::of(specimen);
    let (opened, whole) = (made.opened(), made.whole());
    let agent = made.component(ComponentName::Agent);
    let named = |kind| opened.manifest.blob(kind).unwrap().digest;
    let tar = whole.tar(&mut std::io::sink()).unwrap().digest;
    let oci = OciImage::of(&agent).unwrap().manifest().digest;
    [
        format!("tree    {}", whole.tree().digest()),
        format!("agent   {}", agent.tree().digest()),
        format!("erofs   {}", named(ROOTFS_TYPE)),
        format!("tar     {tar}"),
        format!("oci     {oci}"),
        format!("listing {}", named(LISTING_TYPE)),
    ]
    .join("\n")
}

/// Says why a changed digest is a defect.
fn check(found: &str, pinned: &str) {
    assert!(
        found == pinned,
        "the bytes of format epoch {FORMAT_EPOCH} have changed, and the bytes of a released epoch \
         never change:\nundo the change, or give it a new epoch that keeps the old one as it is\n\
         found:\n{found}\npinned:\n{pinned}"
    );
}

#[test]
fn the_small_box() {
    check(&digests(&small()), SMALL);
}

#[test]
fn the_larger_box() {
    check(&digests(&large()), LARGE);
}

/// The init of every box has the mark of its protocol, so the config can say it.
#[test]
fn the_config_names_the_protocol_of_the_init() {
    assert_eq!(Made::of(&small()).opened().config.protocol, Some(PROTOCOL));
}

#[test]
fn these_are_of_epoch_three() {
    assert_eq!(FORMAT_EPOCH, 3);
}

const SMALL: &str = "\
tree    blake3:0e40e87e2195fd75cca233d4d47aa798ae069fef02e6b53b53dda98f15659345
agent   blake3:e9b6324dae1e88184198ff2e01417135d76377aab78788efa31b97169d6dfe35
erofs   sha256:8756fdebddc9a5ad77bbd2b165ad39a5346e73833acd29129bfb555bd19ba3e4
tar     sha256:c172fa3d6f7bb97578fc0b8fbb9bb495904253fe5bce97f23d855fa38be9618e
oci     sha256:27aca9ffe500d17e4b9f4e1c552598f05be3fa91595457e7ce931d4b1ea7115c
listing sha256:2e336fb2f3eef1f286b7b7dd17f1133d1e2172154ffe660e2068622ee550e04f";

const LARGE: &str = "\
tree    blake3:33cfc75a15b797d8f0015096ed3eb7e478371391d0b7383e645b2886644e5868
agent   blake3:6f5debc55dc9690f833bef7f0b80045737ddaf834c1043391c501b09955952a6
erofs   sha256:b1629ab33630474241f95f763f554abcdeaae57dc215d8146e1d588fb19939f7
tar     sha256:daef3f5e9200f8e26202b661375daeb0aa452a257a166e8de7ec78aec409b04c
oci     sha256:301b3763ab8b8e56feed6e322b604a465e11a7c6f07acd5ba5d22c6cf54d4821
listing sha256:49f2bb5adf74019bd744f41742b80c686041f9dd47bf15e13317031df5e8a9c2";

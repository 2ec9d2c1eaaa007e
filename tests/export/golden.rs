//! The bytes of format epoch 2, pinned. They never change once the epoch is released.
//!
//! To pin them again before that, copy what a failed test prints. A box's run plan is a file of its
//! rootfs, so that a change of the plan's form changes them, too. The box digest is not here: kernel and
//! init have a part in it, which no epoch fixes.

use box_image::ComponentName;
use box_image::manifest::{FORMAT_EPOCH, LISTING_TYPE, ROOTFS_TYPE};
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

#[test]
fn these_are_of_epoch_two() {
    assert_eq!(FORMAT_EPOCH, 2);
}

const SMALL: &str = "\
tree    blake3:a374178fdafa7ea3996b45b1e4c244bbfe970426ad378920ace5ef9b0750beec
agent   blake3:e9b6324dae1e88184198ff2e01417135d76377aab78788efa31b97169d6dfe35
erofs   sha256:bc95fca84d61791e1f9ef668bddd31289a9dd08d5a36072f3e4230743eef57d9
tar     sha256:7a687b34bc6727f7b0f6de4f8e6a6346997df1e22c53ed6e40097f6ec769563f
oci     sha256:27aca9ffe500d17e4b9f4e1c552598f05be3fa91595457e7ce931d4b1ea7115c
listing sha256:650d9c65ab1e1ee4635d599574ab00b43572b158ca56af1bda62fb0b6cfb7a59";

const LARGE: &str = "\
tree    blake3:0bede007e1e195cf7a0f484fece3ef6705017594a1081d66fdd1ef81d2f13741
agent   blake3:6f5debc55dc9690f833bef7f0b80045737ddaf834c1043391c501b09955952a6
erofs   sha256:34a29297c48bdff50e898d9f16406f0be49a80ec6a5c2fba1de105717090be37
tar     sha256:ade745d2a9b74a7224a5c004dab0451d3cbd15468e97c7c12b15bb8b9698ab35
oci     sha256:301b3763ab8b8e56feed6e322b604a465e11a7c6f07acd5ba5d22c6cf54d4821
listing sha256:6c53791581a1e5a150a9fec09bf7a4ad8d9d256bd3ab418d0be72337ff47fe04";

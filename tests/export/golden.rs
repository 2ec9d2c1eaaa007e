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
tree    blake3:ff7c47341a431e034372e537e75d4b01c27d39eeb3b68048d7beae47ced7d772
agent   blake3:e9b6324dae1e88184198ff2e01417135d76377aab78788efa31b97169d6dfe35
erofs   sha256:d004d4a01556027c7ef38e7ac9d18a13381095a93a7c981a8ba7f7bc0ae74501
tar     sha256:831fed992e48953a6fae99af31f8570b20ab50aa797cfbec5a055f61efc20b0e
oci     sha256:27aca9ffe500d17e4b9f4e1c552598f05be3fa91595457e7ce931d4b1ea7115c
listing sha256:056c8417b0a108a934aec9b68898ab6cb6f992dca3cab62ede58347e0a84213d";

const LARGE: &str = "\
tree    blake3:1e93cd304272d9cc4558c33f1296e1179697195164061980a232b6482e8d7b79
agent   blake3:9da19646d326762db7c1f930eed953c6a9b7982178019921a7a495d7cc6f1769
erofs   sha256:3900d0e481cdf851736732641cd895d93203255cca5f3cfab1c7c0b48d92d29b
tar     sha256:58ac050428bf93964e104167b74385629a789872fc6b15fee67b2549f84f1f38
oci     sha256:9a562822663209694a9024cfcb4491e598a465b65f9e281a308d9f4880373a9d
listing sha256:538518dee19c54c26346fa5d1ecf18834ff352357d5074302ccb3f7c68cf0e60";

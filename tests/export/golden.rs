//! The bytes of format epoch 1, pinned. They never change once the epoch is released.
//!
//! To pin them anew before that, copy what a failed test prints. A box's run plan is a file of its
//! rootfs, so that a change of the plan's form counts, too. The box digest is not here: kernel and
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
fn these_are_of_epoch_one() {
    assert_eq!(FORMAT_EPOCH, 1);
}

const SMALL: &str = "\
tree    blake3:028a10cecd851984b2100d3359e409c1590aa121cc5a638651d2f771a795979d
agent   blake3:aa70165cc6a3a1752443880c56dc02f54474a991c90c6a1d9f54a471e5c9bd41
erofs   sha256:d004d4a01556027c7ef38e7ac9d18a13381095a93a7c981a8ba7f7bc0ae74501
tar     sha256:831fed992e48953a6fae99af31f8570b20ab50aa797cfbec5a055f61efc20b0e
oci     sha256:27aca9ffe500d17e4b9f4e1c552598f05be3fa91595457e7ce931d4b1ea7115c
listing sha256:ab28dca5881f7a36612fb9ada013e5c5d5686ab34921699cdb8fab4978303ff3";

const LARGE: &str = "\
tree    blake3:c56aff2abd048c7595333402d1d6c89c9d5176e041119887f3997fd34e59d6c9
agent   blake3:e658f78940e478265bc661f4d99c1dee98ccb042d5735d622495723afb86b68f
erofs   sha256:3900d0e481cdf851736732641cd895d93203255cca5f3cfab1c7c0b48d92d29b
tar     sha256:58ac050428bf93964e104167b74385629a789872fc6b15fee67b2549f84f1f38
oci     sha256:9a562822663209694a9024cfcb4491e598a465b65f9e281a308d9f4880373a9d
listing sha256:5d5810e5d4b81a56f267b1a99826208cd4cb389fbe623973322ed79a8004c11a";

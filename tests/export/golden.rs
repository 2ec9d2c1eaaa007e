//! Pins the bytes of format epoch 4. They never change once the epoch is released.
//!
//! To pin them again before the release, copy the output of a failed test. The box digest is not pinned, because it depends on
//! the run plan, the kernel and the init, which may change within an epoch.

use box_contract::ComponentName;
use box_contract::manifest::{FORMAT_EPOCH, LISTING_TYPE};
use box_contract::wire::PROTOCOL;
use box_inspect::export::OciImage;

use crate::made::Made;
use crate::specimens::{Specimen, large, small};

/// Returns one line for each digest: of the trees, the forms and the blobs of a box.
fn digests(specimen: &Specimen) -> String {
    let made = Made::of(specimen);
    let (opened, whole) = (made.opened(), made.whole());
    let agent = made.component(ComponentName::Agent);
    let named = |kind| opened.manifest.blob(kind).unwrap().digest;
    let tar = whole.tar(&mut std::io::sink()).unwrap().digest;
    let oci = OciImage::of(&agent).unwrap().manifest().digest;
    let parts = opened.rootfs.parts().iter();
    let parts = parts.map(|part| format!("{:<8} {}", part.role(), part.descriptor.digest));
    let forms = [
        format!("tree     {}", whole.tree().digest()),
        format!("agent    {}", agent.tree().digest()),
        format!("tar      {tar}"),
        format!("oci      {oci}"),
        format!("listing  {}", named(LISTING_TYPE)),
    ];
    forms.into_iter().chain(parts).collect::<Vec<_>>().join("\n")
}

/// Fails with an explanation if a digest has changed.
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

/// Tests that the config has the protocol version, which the build reads from the init.
#[test]
fn the_config_names_the_protocol_of_the_init() {
    assert_eq!(Made::of(&small()).opened().config.protocol, Some(PROTOCOL));
}

#[test]
fn these_are_of_epoch_four() {
    assert_eq!(FORMAT_EPOCH, 4);
}

const SMALL: &str = "\
tree     blake3:3add25efbb07b9444ec4bb04ef2e16668c5cdaf27d68b37faa83c120190a4cb0
agent    blake3:e9b6324dae1e88184198ff2e01417135d76377aab78788efa31b97169d6dfe35
tar      sha256:bdc31f3a6298f294757f13b3a217f8a2a559f0fcc18f597b520353eebb996b62
oci      sha256:27aca9ffe500d17e4b9f4e1c552598f05be3fa91595457e7ce931d4b1ea7115c
listing  sha256:23b03a7b103f2c0b68beae21a92a560428764651805bd7750e43e26e539e635c
metadata sha256:540cff130e8a3869e4dd54194fecd66a03b776e2021e50b9bf20deda6f9da8d7";

const LARGE: &str = "\
tree     blake3:d500c1a614ff4bf4b58aba215e072ae64f2372b605d438ab466fb8cce64acdcd
agent    blake3:097da262261a9401fae8a9741de31726b6b714865072330874e7fa2b24be4006
tar      sha256:c2f52b60c7413d3b89a31b3ae15f0dd0aef9919d271ac6e677d0825730674224
oci      sha256:04701f4c578fb5a0a129d193acddc07e66dde2aa18535df1416a1465fa92845b
listing  sha256:23318c301f24ace01afb26e9f9936703fcfb5734057ad12611b5c433390bd5f4
metadata sha256:6907f74598cde0113e1c81c7d79dbc3548edbaaa5f934061429cd97abceea169
segment  sha256:9c1015f68b54ba9172f189a197a2668504a9f4e380a53450f9376c716e8f60cc";

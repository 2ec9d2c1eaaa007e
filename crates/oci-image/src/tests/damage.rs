//! Damaged archives give an error or the same image; never another image, and never a panic.

use std::fs;
use std::sync::LazyLock;

use proptest::prelude::*;
use testkit::images::{Compression, Image as Declared, Saved, pack};

use super::*;

/// A reference to an archive, the archive, and the expected outcome.
type Whole = (&'static str, Vec<u8>, Option<(Digest, Blake3Digest)>);

/// Each form of archive.
static ARCHIVES: LazyLock<Vec<Whole>> = LazyLock::new(|| {
    let whole = |(text, archive): (_, Vec<u8>)| {
        let outcome = outcome(text, &archive);
        assert!(outcome.is_some());
        (text, archive, outcome)
    };
    archives().into_iter().map(whole).collect()
});

fn archives() -> Vec<(&'static str, Vec<u8>)> {
    let directory = tempfile::tempdir().unwrap();
    let saved = |form| Declared::docker_archive(&[(&sample(), &["app:v1"])], form).bytes().to_vec();
    let layout = |name: &str, compression| {
        let layout = directory.path().join(name);
        sample().write_layout(&layout, "v1", compression).unwrap();
        pack(&layout).unwrap().bytes().to_vec()
    };
    vec![
        ("oci-archive:a.tar", layout("gzip", Compression::Gzip)),
        ("oci-archive:a.tar", layout("zstd", Compression::Zstd)),
        ("docker-archive:a.tar", saved(Saved::Legacy)),
        ("docker-archive:a.tar", saved(Saved::Modern(Compression::Zstd))),
    ]
}

/// The outcome of reading an archive: an identity and a tree, or `None` for an error.
fn outcome(text: &str, archive: &[u8]) -> Option<(Digest, Blake3Digest)> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.tar"), archive).unwrap();
    let image = opened(directory.path(), text).ok()?;
    tree(&image).ok().map(|tree| (image.manifest, tree))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_damaged_archive_gives_the_same_image_or_none(
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
        cut in any::<prop::sample::Index>(),
    ) {
        for (text, archive, whole) in &*ARCHIVES {
            let mut flipped = archive.clone();
            flipped[at.index(archive.len())] ^= 1 << bit;
            let flipped = outcome(text, &flipped);
            prop_assert!(flipped.is_none() || flipped == *whole);
            let short = outcome(text, &archive[..cut.index(archive.len())]);
            prop_assert!(short.is_none() || short == *whole);
        }
    }
}

#[test]
fn an_archive_that_ends_before_its_last_file_does_is_refused() {
    for (text, archive, _) in &*ARCHIVES {
        // At most the padding and two blocks of zeros follow the last file.
        for end in [0, 1, 511, 512, archive.len() / 2, archive.len() - 512 - 1024] {
            assert_eq!(outcome(text, &archive[..end]), None, "{text} {end}");
        }
    }
}

//! Tests that two boxes share exactly the segments of the layers that they share.

use std::path::Path;

use box_cache::Store;
use box_contract::Manifest;
use box_contract::Platform;
use box_contract::manifest::SEGMENT_TYPE;
use box_digest::{Blake3Digest, Digest};
use boxbuild::{InputFile, Pins, Request};
use download::fetch::FetchOptions;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use testkit::images::{Compression, Config, Image, Layer, LayerTar};
use testkit::small_init;

use super::{BLOCK, noise, segment};

const BOXFILE: &str =
    "box \"pair\"\nagent { image \"oci:agent\"; }\nbusiness { image \"oci:business\"; }\n";

/// The number of blocks that the contents of each layer of the pool need. A segment has at least 256.
const POOL: [usize; 9] = [255, 256, 257, 3, 254, 300, 256, 1, 258];

/// A layer of the pool, and its segment's digest. `None` if the layer is too small for a segment.
struct Pooled {
    tar: LayerTar,
    segment: Option<Digest>,
}

impl Pooled {
    fn new(number: u32, blocks: usize) -> Self {
        // The second content needs one block. The third is too small for a segment.
        let large = (blocks - 1).max(1) * BLOCK - usize::try_from(number).unwrap();
        let contents: Vec<_> = [(0, large), (1, 2049), (2, 2048)]
            .map(|(at, size)| noise(3 * number + at, size))
            .into();
        let contents = if blocks == 1 { contents[1..].to_vec() } else { contents };
        let layer = contents.iter().enumerate().fold(Layer::new(), |layer, (at, content)| {
            layer.file(&format!("/layer-{number}/{at}"), 0o644, content.clone())
        });
        let segment = segment(&contents).map(|it| Digest::of(&it));
        assert_eq!(segment.is_some(), blocks >= 256, "{blocks} blocks");
        Self { tar: layer.to_tar(), segment }
    }
}

/// The layers of the agent's image and of the business image, as indexes of the pool.
type Stacks = [Vec<usize>; 2];

/// Writes the images of a box, builds it, and returns its segments in the manifest's order.
fn segments_of(stacks: &Stacks, pool: &[Pooled], store: &Store) -> Vec<Digest> {
    let directory = tempfile::tempdir().unwrap();
    let agent = Layer::new().file("/agent", 0o755, "# an agent").to_tar();
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() }).with(agent);
    let images = [("agent", agent), ("business", Image::new(Config::default()))];
    for ((name, image), stack) in images.into_iter().zip(stacks) {
        let image = stack.iter().fold(image, |image, at| image.with(pool[*at].tar.clone()));
        image.write_layout(&directory.path().join(name), "latest", Compression::None).unwrap();
    }
    std::fs::write(directory.path().join("init"), small_init::bytes()).unwrap();
    let manifest: Manifest = serde_json::from_slice(&built(directory.path(), store)).unwrap();
    let segments = manifest.layers.iter().filter(|it| it.media_type == SEGMENT_TYPE);
    segments.map(|it| it.digest).collect()
}

/// Builds the box of `directory` in this process, and returns its manifest.
fn built(directory: &Path, store: &Store) -> Vec<u8> {
    let boxfile = boxfile_spec::parse(BOXFILE).unwrap();
    let request = Request {
        boxfile: &boxfile,
        base: directory,
        checkout: directory.into(),
        platform: Platform::LinuxAmd64,
        pins: Pins::default(),
        fetch: FetchOptions { offline: true, ..FetchOptions::default() },
        remote: None,
        init: InputFile::found(directory.join("init")),
        kernel: InputFile::found(directory.join("init")),
        builder: Blake3Digest::from_bytes([0; 32]),
    };
    let built = boxbuild::resolve(&request, store).unwrap().build().unwrap();
    store.read(&built.sealed.manifest).unwrap()
}

/// Returns the expected segments of a box: the agent's first, and each once.
fn expected(stacks: &Stacks, pool: &[Pooled]) -> Vec<Digest> {
    let mut found = Vec::new();
    for segment in stacks.iter().flatten().filter_map(|at| pool[*at].segment) {
        if !found.contains(&segment) {
            found.push(segment);
        }
    }
    found
}

/// Generates two images of up to four layers of the pool each, in any order. Both may have the same layer.
fn stacks() -> impl Strategy<Value = Stacks> {
    let stack = |least| {
        let some = proptest::sample::subsequence((0..POOL.len()).collect::<Vec<_>>(), least..=4);
        some.prop_shuffle()
    };
    [stack(0), stack(1)]
}

#[test]
fn pairs_of_boxes_share_the_segments_of_the_layers_that_they_share() {
    let pool: Vec<_> = (0..).zip(POOL).map(|(number, it)| Pooled::new(number, it)).collect();
    // Each box of a pair has its own store, so that both builds write their segments.
    let directories = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let [one, other] = directories.each_ref().map(|it| Store::open(it.path()).unwrap());
    let shared = std::cell::Cell::new(0);
    let mut cases = TestRunner::new(Cases { failure_persistence: None, ..Cases::with_cases(200) });
    cases
        .run(&(stacks(), stacks()), |(a, b)| {
            let found = [segments_of(&a, &pool, &one), segments_of(&b, &pool, &other)];
            prop_assert_eq!(&found[0], &expected(&a, &pool));
            prop_assert_eq!(&found[1], &expected(&b, &pool));
            let mut in_both: Vec<_> = found[0].iter().filter(|it| found[1].contains(it)).collect();
            let layers =
                (0..POOL.len()).filter(|at| [&a, &b].iter().all(|it| it.concat().contains(at)));
            let mut of_both: Vec<_> = layers.filter_map(|at| pool[at].segment.as_ref()).collect();
            in_both.sort();
            of_both.sort();
            prop_assert_eq!(&in_both, &of_both);
            shared.set(shared.get() + in_both.len());
            Ok(())
        })
        .unwrap();
    let shared = shared.get();
    assert!(shared > 100, "only {shared} segments were shared");
}

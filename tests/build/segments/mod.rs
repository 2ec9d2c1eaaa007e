//! Tests of segments. A segment is a blob with the large files of a layer, which boxes share.

mod damaged;
mod once;
mod shared;
mod skills;
mod threads;

use std::fs;
use std::path::PathBuf;

use box_contract::Manifest;
use box_contract::manifest::SEGMENT_TYPE;
use box_digest::Digest;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout, WHOLE};

/// The alignment of each content in a segment, in bytes.
pub(crate) const BLOCK: usize = 4096;

/// Returns pseudorandom bytes that are different for each `number` and in each block.
pub(crate) fn noise(number: u32, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(2_654_435_761).wrapping_add(1);
    let words = std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.rotate_left(7).to_le_bytes()
    });
    words.flatten().take(length).collect()
}

/// Returns the segment that docs/format.md defines for a layer with these contents, which must all differ. Returns `None` if
/// the layer gets no segment.
pub(crate) fn segment(contents: &[Vec<u8>]) -> Option<Vec<u8>> {
    let mut segment = Vec::new();
    for content in contents.iter().filter(|it| it.len() > 2048) {
        segment.extend_from_slice(content);
        segment.resize(segment.len().next_multiple_of(BLOCK), 0);
    }
    (segment.len() >= 1 << 20).then_some(segment)
}

/// Makes a checkout whose agent's image has two layers with segments of the same length, and whose business image has one.
pub(crate) fn checkout() -> Checkout {
    let checkout = Checkout::new();
    let large = |path: &str, number| {
        let layer = Layer::new().mtime(1_700_000_000).file(path, 0o644, noise(number, 1_100_000));
        layer.to_tar()
    };
    let program = Layer::new().file("/agent", 0o755, "# an agent").hardlink("/alias", "/agent");
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() }).with(program.to_tar());
    fs::remove_dir_all(checkout.path("images")).unwrap();
    checkout.image("agent", &agent.with(large("/srv/one", 1)).with(large("/srv/two", 2)));
    checkout.image("business", &Image::new(Config::default()).with(large("/srv/three", 3)));
    checkout.write("Boxfile", BOXFILE);
    checkout
}

/// Returns the paths of the segments of the box `bundle`, in the manifest's order.
pub(crate) fn segments(checkout: &Checkout, bundle: &str) -> Vec<PathBuf> {
    let index: serde_json::Value =
        serde_json::from_str(&checkout.read(&format!("{bundle}/index.json"))).unwrap();
    let blob = |digest: &str| checkout.path(bundle).join("blobs").join(digest.replace(':', "/"));
    let manifest = fs::read(blob(index["manifests"][0]["digest"].as_str().unwrap())).unwrap();
    let manifest: Manifest = serde_json::from_slice(&manifest).unwrap();
    let segments = manifest.layers.iter().filter(|it| it.media_type == SEGMENT_TYPE);
    segments.map(|it| blob(&it.digest.to_string())).collect()
}

#[test]
fn a_segment_is_what_the_page_says() {
    let checkout = checkout();
    checkout.built(WHOLE);
    let expected = [1, 2, 3].map(|number| segment(&[noise(number, 1_100_000)]).unwrap());
    let found = segments(&checkout, "test.box");
    let names: Vec<_> = found.iter().map(|it| it.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, expected.map(|it| Digest::of(&it).hex()));
}

/// Tests the example in docs/format.md.
#[test]
fn the_example_of_the_page() {
    let checkout = Checkout::new();
    let (model, index) = (noise(1, 1_500_000), noise(2, 5000));
    let files = Layer::new().file("/srv/model", 0o644, model.clone());
    let files = files.file("/srv/copy", 0o644, model.clone()).file("/srv/index", 0o644, index);
    let program = Layer::new().file("/agent", 0o755, "# an agent").to_tar();
    let entrypoint = vec!["/agent".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() }).with(program);
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &image.with(files.to_tar()));
    checkout.built(WHOLE);
    let found = segments(&checkout, "test.box");
    let expected = segment(&[model, noise(2, 5000)]).unwrap();
    assert_eq!((found.len(), expected.len()), (1, 1_511_424));
    assert!(fs::read(&found[0]).unwrap() == expected, "each content once, in their order");
    let (places, metadata) = skills::places(&checkout, "test.box", "/roots/agent/srv/");
    assert_eq!(metadata.len(), 1 << 20);
    let block = |name: &str| places[&format!("/roots/agent/srv/{name}")].1.unwrap() / 4096;
    assert_eq!([block("model"), block("copy"), block("index")], [256, 256, 623]);
}

#[test]
fn inspect_tells_what_layers_hide() {
    let checkout = checkout();
    checkout.built(&[]);
    let hidden = || checkout.run(&["inspect", "test.box", "--json"]).json()["hidden_bytes"].clone();
    assert_eq!(hidden(), 0);
    assert!(!checkout.result(&["inspect", "test.box"]).contains("hidden by layers"));
    // An image whose second layer hides a large file of the first. The first layer has another file, too.
    let first = Layer::new()
        .file("/agent", 0o755, "# an agent")
        .file("/srv/large", 0o644, noise(4, 2_000_000))
        .file("/srv/other", 0o644, noise(5, 3000));
    let above = Layer::new().whiteout("/srv/large");
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() });
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    fs::remove_file(checkout.path("Boxfile.lock")).unwrap();
    checkout.image("agent", &agent.with(first.to_tar()).with(above.to_tar()));
    checkout.built(&[]);
    let blocks = 2_000_000_usize.next_multiple_of(BLOCK);
    assert_eq!(hidden(), blocks);
    let text = checkout.result(&["inspect", "test.box"]);
    assert!(text.contains("hidden by layers  1.9 MiB"), "{text}");
}

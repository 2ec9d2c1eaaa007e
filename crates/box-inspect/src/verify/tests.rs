use std::collections::HashMap;

use box_contract::manifest::{CONFIG_TYPE, LISTING_TYPE, METADATA_TYPE};
use box_contract::{BoxConfig, ComponentName, Manifest};
use box_tree::listing::{FileOrigin, Listing, Origins};
use box_tree::{Inode, Leaf, Meta};
use testkit::TestBox;
use testkit::test_box::config;

use super::*;

/// A tree with the data of its files.
struct Files {
    tree: Tree,
    data: HashMap<Blake3Digest, Vec<u8>>,
}

impl erofs_writer::ContentSource for Files {
    fn copy(&mut self, hash: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.data[hash])
    }
}

impl Files {
    /// The files of a box.
    fn new() -> Self {
        let mut files = Self { tree: Tree::default(), data: HashMap::new() };
        files.add("/etc/passwd", b"root:x:0:0", 0o644);
        files.add("/bin/large", &[7; 10_000], 0o755);
        files
    }

    fn add(&mut self, path: &str, bytes: &[u8], mode: u16) {
        let (directory, name) = path.rsplit_once('/').unwrap();
        let directory = self.tree.ensure_directory(Tree::ROOT, &directory.as_bytes()[1..]);
        let content = Content::of(bytes);
        self.data.insert(content.hash, bytes.to_vec());
        let meta = Meta::root_owned(mode);
        let inode = self.tree.add(Inode::leaf(meta, Leaf::File(content)));
        self.tree.link(directory, name.as_bytes(), inode);
    }

    /// Returns the metadata of a rootfs, and its segment, which contains the large file.
    fn image(&mut self) -> [Vec<u8>; 2] {
        let mut segment = vec![7; 10_000];
        let large = Content::of(&segment).hash;
        segment.resize(12_288, 0);
        let place = |content: &Blake3Digest| (*content == large).then_some(0);
        let behind = Behind { alignment: METADATA_UNIT, size: 12_288, place: &place };
        let mut metadata = Vec::new();
        image_builder(&self.tree).unwrap().write_before(&mut metadata, self, &behind).unwrap();
        [metadata, segment]
    }
}

/// Makes a box with the listing of `files` and the rootfs `rootfs`, which may be of other files. All digests match.
fn sealed(config: BoxConfig, files: &Files, rootfs: &[Vec<u8>; 2]) -> (TestBox, OpenBox) {
    let made = TestBox::with_segments(&config, vec![rootfs[1].clone()]);
    let config = BoxConfig { tree: files.tree.digest(), ..config };
    let listing = Listing { tree: files.tree.clone(), origins: Origins::default() };
    let mut layers = made.manifest.layers.clone();
    layers[0] = made.put(METADATA_TYPE, &rootfs[0]);
    layers[4] = made.put(LISTING_TYPE, &listing.encode().unwrap());
    let config = made.put(CONFIG_TYPE, &serde_json::to_vec(&config).unwrap());
    made.seal(&Manifest::new(config, layers));
    let opened = opened::open(made.path()).unwrap();
    (made, opened)
}

/// Returns the faults of a box, as `name: message`.
fn wrong(opened: &OpenBox) -> Vec<String> {
    let wrong = verify(opened).into_iter().filter_map(|it| Some((it.name, it.error?)));
    wrong.map(|(name, error)| format!("{name}: {error}")).collect()
}

#[test]
fn a_box_that_is_what_it_says_passes() {
    let mut files = Files::new();
    let rootfs = files.image();
    let (_made, opened) = sealed(config(), &files, &rootfs);
    let lines: Vec<String> = verify(&opened).iter().map(Check::to_string).collect();
    let names: Vec<&str> = lines.iter().filter_map(|it| it.split(' ').next()).collect();
    let parts = ["manifest", "config", "metadata", "segment", "init", "kernel", "listing"];
    assert_eq!(names[..7], parts);
    assert_eq!(names[8..], ["files"]);
    assert!(lines.iter().all(|it| it.contains(" ok       ")), "{lines:?}");
}

#[test]
fn other_data_under_the_old_listing_is_found() {
    let other = |path: &str| {
        format!(
            "files: the rootfs of the box is damaged: {path} does not have the content that the \
             listing names"
        )
    };
    let mut files = Files::new();
    let [mut metadata, segment] = files.image();
    let at = metadata.windows(5).position(|it| it == b"root:").unwrap();
    metadata[at..at + 5].copy_from_slice(b"evil:");
    let (_made, opened) = sealed(config(), &files, &[metadata, segment]);
    assert_eq!(wrong(&opened), [other("/etc/passwd")]);
    let [metadata, mut segment] = files.image();
    segment[9_999] ^= 1;
    let (_made, opened) = sealed(config(), &files, &[metadata, segment]);
    assert_eq!(wrong(&opened), [other("/bin/large")]);
}

#[test]
fn other_entries_and_attributes_under_the_old_listing_are_found() {
    let other = "files: the rootfs of the box is damaged: its entries or their attributes are not \
                 those that the listing names";
    let files = Files::new();
    let mut set_id = Files::new();
    set_id.add("/bin/large", &[7; 10_000], 0o4755);
    let mut more = Files::new();
    more.add("/etc/shadow", b"", 0o600);
    for rootfs in [set_id.image(), more.image()] {
        let (_made, opened) = sealed(config(), &files, &rootfs);
        assert_eq!(wrong(&opened), [other]);
    }
    let [mut longer, segment] = Files::new().image();
    longer.extend(vec![0; 1 << 20]);
    let (_made, opened) = sealed(config(), &files, &[longer, segment.clone()]);
    // The offset of the large file is in the added bytes.
    assert!(wrong(&opened)[0].contains("/bin/large does not have the content"));
    // The metadata contain a content that the segment also contains, which no build writes.
    let mut metadata = Vec::new();
    let mut own = Files::new();
    let behind = Behind { alignment: METADATA_UNIT, size: 12_288, place: &|_| None };
    let tree = own.tree.clone();
    image_builder(&tree).unwrap().write_before(&mut metadata, &mut own, &behind).unwrap();
    let (_made, opened) = sealed(config(), &files, &[metadata, segment]);
    assert!(wrong(&opened).is_empty(), "which segment has a content, the layers say");
}

#[test]
fn a_place_outside_of_the_segments_is_found() {
    let files = Files::new();
    let [metadata, segment] = Files::new().image();
    let block = u32::try_from(metadata.len() / 4096).unwrap();
    let at = metadata.windows(4).position(|it| it == block.to_le_bytes()).unwrap();
    for moved in [block + 1, block + 3, u32::MAX, 0] {
        let mut metadata = metadata.clone();
        metadata[at..at + 4].copy_from_slice(&moved.to_le_bytes());
        let (_made, opened) = sealed(config(), &files, &[metadata, segment.clone()]);
        let wrong = wrong(&opened);
        assert_eq!(wrong.len(), 1, "{moved}: {wrong:?}");
        assert!(wrong[0].starts_with("files: the rootfs of the box is damaged: "), "{wrong:?}");
    }
}

#[test]
fn no_more_of_a_directory_is_read_than_its_names_take() {
    let files = Files::new();
    let [mut metadata, segment] = Files::new().image();
    // The size of the root directory, the first inode.
    metadata[4096 + 8..4096 + 16].copy_from_slice(&(1_u64 << 50).to_le_bytes());
    let (_made, opened) = sealed(config(), &files, &[metadata, segment]);
    assert!(wrong(&opened)[0].contains("its entries or their attributes are not those"));
    assert!(VerifiedContents::open(&opened, &files.tree).is_err());
}

#[test]
fn the_files_of_an_old_box_are_not_compared() {
    let made = TestBox::epoch3(&config());
    let opened = opened::open(made.path()).unwrap();
    let wrong = wrong(&opened);
    assert!(wrong.iter().any(|it| it.contains("is of format epoch 3: ")), "{wrong:?}");
    let checks = verify(&opened);
    let plan = checks.last().unwrap();
    assert_eq!((plan.name.as_str(), plan.error.is_none()), ("plan", true));
}

#[test]
fn boxes_of_one_listing_have_one_rootfs() {
    let mut files = Files::new();
    let [mut metadata, segment] = files.image();
    let (_made, opened) = sealed(config(), &files, &[metadata.clone(), segment.clone()]);
    opened::check_same_rootfs(&opened, &opened, &Origins::default()).unwrap();
    let last = metadata.len() - 1;
    metadata[last] ^= 1;
    let (_forged, forged) = sealed(config(), &files, &[metadata, segment]);
    let check = |origins: &Origins| opened::check_same_rootfs(&opened, &forged, origins);
    let file = FileOrigin { component: ComponentName::Agent, path: "conf".into() };
    check(&Origins { files: vec![file], ..Origins::default() }).unwrap();
    let error = check(&Origins::default()).unwrap_err().to_string();
    assert!(error.starts_with("the listings are equal, but the rootfs files differ: "), "{error}");
}

#[test]
fn a_forged_image_is_not_exported() {
    let mut files = Files::new();
    let mut rootfs = files.image();
    let (_made, opened) = sealed(config(), &files, &rootfs);
    let mut out = Vec::new();
    crate::export::copy_rootfs(&opened, &mut out).unwrap();
    assert_eq!(out, rootfs.concat());
    rootfs[0][5000] ^= 1;
    let (_made, forged) = sealed(config(), &files, &rootfs);
    let mut out = Vec::new();
    crate::export::copy_rootfs(&forged, &mut out).unwrap_err();
    assert_eq!(out, b"", "nothing is written of it");
}

#[test]
fn what_no_file_has_of_a_segment_is_counted() {
    let mut files = Files::new();
    let [metadata, segment] = files.image();
    let (_made, opened) = sealed(config(), &files, &[metadata, segment]);
    let contents = VerifiedContents::open(&opened, &files.tree).unwrap();
    assert_eq!(contents.hidden_bytes(&files.tree), 0);
    // As if the file were hidden.
    assert_eq!(contents.hidden_bytes(&Tree::default()), 12_288);
}

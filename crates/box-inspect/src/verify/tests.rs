use std::collections::HashMap;

use box_image::manifest::{CONFIG_TYPE, LISTING_TYPE, ROOTFS_TYPE};
use box_image::plan::PLAN_PATH;
use box_image::{BoxConfig, Manifest};
use box_tree::listing::{Listing, Origins};
use box_tree::{Inode, Leaf, Meta};
use testkit::TestBox;
use testkit::test_box::config;

use super::*;

/// A tree with the data of its files.
struct Files {
    tree: Tree,
    data: HashMap<Blake3Digest, Vec<u8>>,
}

impl erofs_writer::Contents for Files {
    fn copy(&mut self, hash: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.data[hash])
    }
}

impl Files {
    /// The files of a box with this config.
    fn of(config: &BoxConfig) -> Self {
        let mut files = Self { tree: Tree::default(), data: HashMap::new() };
        files.add(PLAN_PATH, &serde_json::to_vec(&config.plan).unwrap(), 0o644);
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

    fn image(&mut self) -> Vec<u8> {
        let mut image = Vec::new();
        image_builder(&self.tree).unwrap().write(&mut image, self).unwrap();
        image
    }
}

/// Makes a box of these files, with a rootfs that may be another, under digests that are all right.
fn sealed(config: BoxConfig, files: &Files, rootfs: &[u8]) -> (TestBox, OpenBox) {
    let made = TestBox::new(&config);
    let config = BoxConfig { tree: files.tree.digest(), ..config };
    let listing = Listing { tree: files.tree.clone(), origins: Origins::default() };
    let mut layers = made.manifest.layers.clone();
    layers[0] = made.put(ROOTFS_TYPE, rootfs);
    layers[3] = made.put(LISTING_TYPE, &listing.encode().unwrap());
    let config = made.put(CONFIG_TYPE, &serde_json::to_vec(&config).unwrap());
    made.seal(&Manifest::new(config, layers));
    let opened = opened::open(made.path()).unwrap();
    (made, opened)
}

/// Returns what is wrong with a box, as `name: message`.
fn wrong(opened: &OpenBox) -> Vec<String> {
    let wrong = verify(opened).into_iter().filter_map(|it| Some((it.name, it.error?)));
    wrong.map(|(name, error)| format!("{name}: {error}")).collect()
}

#[test]
fn a_box_that_is_what_it_says_passes() {
    let mut files = Files::of(&config());
    let rootfs = files.image();
    let (_made, opened) = sealed(config(), &files, &rootfs);
    let lines: Vec<String> = verify(&opened).iter().map(Check::to_string).collect();
    let names: Vec<&str> = lines.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names[..6], ["manifest", "config", "rootfs", "init", "kernel", "listing"]);
    assert_eq!(names[7..], ["files", "plan"]);
    assert!(lines.iter().all(|it| it.contains(" ok       ")), "{lines:?}");
}

#[test]
fn other_data_under_the_old_listing_is_found() {
    let mut files = Files::of(&config());
    let mut rootfs = files.image();
    let at = rootfs.windows(5).position(|it| it == b"root:").unwrap();
    rootfs[at..at + 5].copy_from_slice(b"evil:");
    let (_made, opened) = sealed(config(), &files, &rootfs);
    let other = "files: the rootfs of the box is damaged: /etc/passwd does not have the content \
                 that the listing names";
    assert_eq!(wrong(&opened), [other]);
}

#[test]
fn other_entries_and_attributes_under_the_old_listing_are_found() {
    let other = "files: the rootfs of the box is damaged: its entries or their attributes are not \
                 those that the listing names";
    let files = Files::of(&config());
    let mut set_id = Files::of(&config());
    set_id.add("/bin/large", &[7; 10_000], 0o4755);
    let mut longer = Files::of(&config()).image();
    longer.extend([0; 4096]);
    for rootfs in [set_id.image(), longer] {
        let (_made, opened) = sealed(config(), &files, &rootfs);
        assert_eq!(wrong(&opened), [other]);
    }
    let mut rootfs = Files::of(&config()).image();
    rootfs.truncate(rootfs.len() - 4096);
    let (_made, opened) = sealed(config(), &files, &rootfs);
    assert_eq!(wrong(&opened).len(), 1);
}

#[test]
fn a_plan_that_init_would_not_read_is_found() {
    let mut files = Files::of(&config());
    let rootfs = files.image();
    let mut other = config();
    other.plan.agent.argv = vec!["/bin/harmless".into()];
    let (made, opened) = sealed(other, &files, &rootfs);
    let message = format!(
        "plan: {PLAN_PATH} in the rootfs {} is not the plan of the box's config",
        made.blob(ROOTFS_TYPE).display()
    );
    assert_eq!(wrong(&opened), [message]);
}

#[test]
fn boxes_of_one_tree_have_one_rootfs() {
    let mut files = Files::of(&config());
    let mut rootfs = files.image();
    let (_made, opened) = sealed(config(), &files, &rootfs);
    opened::check_same_rootfs(&opened, &opened).unwrap();
    let last = rootfs.len() - 1;
    rootfs[last] ^= 1;
    let (_forged, forged) = sealed(config(), &files, &rootfs);
    let error = opened::check_same_rootfs(&opened, &forged).unwrap_err().to_string();
    assert!(error.starts_with("the listings are equal, but the rootfs files differ: "), "{error}");
}

#[test]
fn a_forged_image_is_not_exported() {
    let mut files = Files::of(&config());
    let mut rootfs = files.image();
    let (_made, opened) = sealed(config(), &files, &rootfs);
    let mut out = Vec::new();
    crate::export::copy_rootfs(&opened, &mut out).unwrap();
    assert_eq!(out, rootfs);
    rootfs[5000] ^= 1;
    let (_made, forged) = sealed(config(), &files, &rootfs);
    let mut out = Vec::new();
    crate::export::copy_rootfs(&forged, &mut out).unwrap_err();
    assert_eq!(out, b"", "nothing is written of it");
}

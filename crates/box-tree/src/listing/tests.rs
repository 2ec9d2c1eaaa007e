//! Listings: real ones, damaged ones and ones that are too large.

use proptest::prelude::*;

use super::*;
use crate::{Content, Follow, Kind, Leaf, Meta};

fn sample() -> Listing {
    let mut tree = Tree::default();
    tree.inode_mut(Tree::ROOT).meta.mode = 0o700;
    let etc = tree.ensure_directory(Tree::ROOT, b"etc");
    tree.set_meta(etc, &Meta::root_owned(0o711), Origin::Layer(ComponentName::Business, 3));
    for (name, leaf, origin) in [
        ("etc.conf", Leaf::File(Content::of(b"x")), Origin::Skill(0)),
        ("link", Leaf::Symlink(b"etc".to_vec()), Origin::Layer(ComponentName::Agent, 0)),
        ("null", Leaf::CharDevice(1, 3), Origin::Program),
        ("own", Leaf::File(Content::of(b"own")), Origin::File(0)),
    ] {
        let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), leaf).from(origin));
        tree.link(Tree::ROOT, name.as_bytes(), inode);
        tree.link(etc, name.as_bytes(), inode);
    }
    let image = |component, layers| ImageOrigin {
        component,
        layers: vec![Digest::from_bytes([2; 32]); layers],
    };
    let origins = Origins {
        images: vec![image(ComponentName::Agent, 1), image(ComponentName::Business, 4)],
        program: Some(Digest::from_bytes([3; 32])),
        skills: vec!["greet".to_owned()],
        files: vec![FileOrigin { component: ComponentName::Business, path: "conf/own".to_owned() }],
    };
    Listing { tree, origins }
}

/// Lists every name with its attributes, data and origin.
fn facts(listing: &Listing) -> Vec<(Vec<u8>, Meta, String, Origin)> {
    let fact = |(path, id)| {
        let inode = listing.tree.inode(id);
        let kind = match &inode.kind {
            Kind::Directory(_) => "directory".to_owned(),
            Kind::Leaf(leaf) => format!("{leaf:?}"),
        };
        (path, inode.meta.clone(), kind, inode.origin)
    };
    entries(&listing.tree).map(fact).collect()
}

#[test]
fn a_listing_reads_back() {
    let listing = sample();
    let read = Listing::decode(&listing.encode().unwrap()).unwrap();
    assert_eq!(facts(&read), facts(&listing));
    assert_eq!(read.origins, listing.origins);
    assert_eq!(read.tree.digest(), listing.tree.digest());
    assert_eq!(read.encode().unwrap(), listing.encode().unwrap());
}

#[test]
fn an_origin_that_names_nothing_is_refused() {
    let strip: [fn(&mut Origins); 5] = [
        |it| it.skills.clear(),
        |it| it.files.clear(),
        |it| it.program = None,
        |it| drop(it.images.remove(0)),
        |it| it.images[1].layers.truncate(3),
    ];
    for strip in strip {
        let mut listing = sample();
        strip(&mut listing.origins);
        let error = Listing::decode(&listing.encode().unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("an origin names what is not there"), "{error}");
    }
}

#[test]
fn origins_are_named() {
    let listing = sample();
    let found = |path: &[u8]| listing.find(b"", path, Follow::Parents).unwrap().id;
    let named = |path: &[u8]| listing.origin(found(path)).unwrap().to_string();
    assert_eq!(named(b"etc"), "business layer 4 020202020202");
    assert_eq!(named(b"/link"), "agent layer 1 020202020202");
    assert_eq!(named(b"//etc/./etc.conf"), "skill greet");
    assert_eq!(named(b"/null"), "agent program 030303030303");
    assert_eq!(named(b"/own"), "business file conf/own");
    assert_eq!(named(b"."), "generated");
}

#[test]
fn a_path_that_leads_nowhere_says_where_it_ends() {
    let listing = sample();
    let find = |path: &[u8]| listing.find(b"", path, Follow::Parents);
    let error = |path: &[u8]| find(path).unwrap_err().to_string();
    assert_eq!(error(b"/etc/nul"), "there is no /etc/nul");
    let Err(FindError::Missing { siblings, .. }) = find(b"/etc/nul") else { panic!() };
    assert!(siblings.contains(&"null".to_owned()));
    assert_eq!(error(b"/wholly/other"), "there is no /wholly");
    assert_eq!(error(b"/null/x"), "/null is not a directory");
    assert_eq!(error(b"/null/../etc"), "/null is not a directory");
    let long = format!("/{}", "etc/../".repeat(2049));
    assert!(error(long.as_bytes()).ends_with("/etc/.. is too long once its links are followed"));
    assert_eq!(error(b"/link/nul"), "there is no /etc/nul");
}

#[test]
fn links_are_followed_in_the_directories_of_a_path() {
    let mut listing = sample();
    let mut add = |root: &[u8], name: &[u8], target: &[u8]| {
        let leaf = Leaf::Symlink(target.to_vec());
        let link = listing.tree.add(Inode::leaf(Meta::root_owned(0o777), leaf));
        let root = listing.tree.reach(root).unwrap();
        listing.tree.link(root, name, link);
    };
    add(b"/etc", b"up", b"/../..//etc");
    add(b"/etc", b"self", b"/");
    add(b"/etc", b"loop", b"loop");
    let find = |root: &[u8], path: &[u8], follow| {
        let found = listing.find(root, path, follow).map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8(found.path).unwrap())
    };
    let parents = |path: &[u8]| find(b"", path, Follow::Parents).unwrap();
    assert_eq!(parents(b"/link"), "/link");
    assert_eq!(parents(b"link/null"), "/etc/null");
    assert_eq!(parents(b"/etc/up/up//null"), "/etc/null");
    assert_eq!(parents(b"/link/../null"), "/null");
    assert_eq!(parents(b"../.."), "");
    assert_eq!(find(b"", b"/link", Follow::All).unwrap(), "/etc");
    // Of a process whose root is /etc.
    assert_eq!(find(b"/etc", b"/self/self/null", Follow::Parents).unwrap(), "/null");
    assert_eq!(find(b"/etc", b"up", Follow::All).unwrap_err(), "there is no /etc");
    let endless = find(b"", b"/etc/loop/x", Follow::Parents).unwrap_err();
    assert_eq!(endless, "/etc/loop/x leads through too many symbolic links");
}

#[test]
fn an_empty_tree_has_a_root() {
    let empty = Listing { tree: Tree::default(), origins: Origins::default() };
    let read = Listing::decode(&empty.encode().unwrap()).unwrap();
    assert_eq!(read.tree.digest(), Tree::default().digest());
    let bytes = empty.encode().unwrap();
    let none = bytes.len() - 4 - 9 - 1 - 1 - 2 - 4 - 4 - 8 - 4 - 4;
    let mut bytes = bytes[..none].to_vec();
    bytes[none - 4..].fill(0);
    assert!(Listing::decode(&bytes).is_err());
}

/// The listing of a root and of a pipe with so many attributes, each of four bytes.
fn with_attributes(count: u32) -> Vec<u8> {
    let mut listing = Listing { tree: Tree::default(), origins: Origins::default() };
    let mut meta = Meta::root_owned(0);
    for at in 0..count {
        meta.xattrs.insert(at.to_be_bytes().to_vec(), Vec::new());
    }
    let pipe = listing.tree.add(Inode::leaf(meta, Leaf::Fifo));
    listing.tree.link(Tree::ROOT, b"pipe", pipe);
    listing.encode().unwrap()
}

#[test]
fn a_listing_takes_no_more_memory_than_that_of_a_build() {
    let most = 128 << 10;
    assert!(Listing::decode(&with_attributes(most / 4)).is_ok());
    assert!(Listing::decode(&with_attributes(most / 4 + 1)).is_err());
    let mut bytes = sample().encode().unwrap();
    let origins = serde_json::to_vec(&sample().origins).unwrap();
    let count_at = MAGIC.len() + 4 + origins.len();
    bytes[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let error = Listing::decode(&bytes).unwrap_err().to_string();
    assert_eq!(error, "it has more than 2097152 entries");
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let mut listing = sample();
    listing.origins.skills.extend(vec![String::new(); 1 << 20]);
    assert!(listing.encode().is_ok());
    listing.origins.skills.extend(vec![String::new(); 1 << 20]);
    let error = listing.encode().unwrap_err().to_string();
    assert_eq!(error, "its origins have more than 4 MiB");
}

proptest! {
    #[test]
    fn damage_is_an_error_or_another_listing(
        at in any::<prop::sample::Index>(), change in 1..=255u8, cut in any::<bool>(),
    ) {
        let mut bytes = sample().encode().unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] ^= change }
        if let Ok(read) = Listing::decode(&bytes) {
            prop_assert_eq!(read.encode().unwrap(), bytes);
        }
    }
}

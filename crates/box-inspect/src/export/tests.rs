//! Round trips of trees through archives, and trees that a form cannot represent.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::PathBuf;

use box_contract::manifest::METADATA_TYPE;
use box_contract::plan::User;
use box_contract::{Descriptor, Namespaces};
use box_digest::{Blake3Digest, Digest};
use box_layout::{Blob, Rootfs};
use box_tree::erofs::image_builder;
use box_tree::{Content, Inode, Leaf, Meta};
use oci_layer::{Compression, LayerSource, Limits, decode, flatten};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;

/// The contents of a tree's files, by their hashes.
#[derive(Default)]
struct Data(HashMap<Blake3Digest, Vec<u8>>);

impl Data {
    fn add(&mut self, bytes: &[u8]) -> Leaf {
        let content = Content::of(bytes);
        self.0.insert(content.hash, bytes.to_vec());
        Leaf::File(content)
    }
}

impl erofs_writer::ContentSource for Data {
    fn copy(&mut self, id: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.0[id])
    }
}

/// Makes an export of a tree, as if from a box.
fn export(tree: Tree, mut data: Data) -> Export {
    let mut rootfs = tempfile::tempfile().unwrap();
    image_builder(&tree).unwrap().write(&mut rootfs, &mut data).unwrap();
    rootfs.flush().unwrap();
    let size = rootfs.metadata().unwrap().len();
    let descriptor = Descriptor::new(METADATA_TYPE, Digest::of(b"of nothing that is read"), size);
    let part = Blob { path: PathBuf::new(), descriptor, file: rootfs, is_stored: false };
    let contents = VerifiedContents::of(Rootfs::new(vec![part]).unwrap(), &tree).unwrap();
    Export { contents, tree, plan: None }
}

/// Reads an archive as a layer.
fn read(archive: &[u8]) -> Tree {
    let Written { digest, size } = Written::of(archive);
    let source = LayerSource { digest, size, compression: Compression::None, diff_id: digest };
    let index =
        decode(&source, archive, &mut io::sink(), &mut io::sink(), &Limits::default()).unwrap();
    flatten(ComponentName::Agent, [(digest, &index)]).unwrap()
}

fn any_meta() -> impl Strategy<Value = Meta> {
    let attribute = ("user\\.[a-c%]{1,3}", vec(any::<u8>(), 1..40));
    let xattrs = btree_map(attribute.0.prop_map(String::into_bytes), attribute.1, 0..3);
    let mtime = prop_oneof![any::<i64>(), -9i64..9];
    let nanoseconds = prop_oneof![Just(0), 0u32..1_000_000_000];
    (0u16..0o10000, any::<u32>(), any::<u32>(), mtime, nanoseconds, xattrs).prop_map(
        |(mode, uid, gid, mtime, mtime_nsec, xattrs)| Meta {
            mode,
            uid,
            gid,
            mtime,
            mtime_nsec,
            xattrs,
        },
    )
}

/// The type of an entry: a hard link to an earlier entry, a directory, or a leaf.
#[derive(Debug, Clone)]
enum Entry {
    Link(prop::sample::Index),
    Directory,
    File(Vec<u8>),
    Leaf(Leaf),
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let target = vec(1u8..=255, 1..200);
    let device = (0u32..4096, 0u32..1 << 20);
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Entry::Link),
        Just(Entry::Directory),
        vec(any::<u8>(), 0..6000).prop_map(Entry::File),
        target.prop_map(|target| Entry::Leaf(Leaf::Symlink(target))),
        device.clone().prop_map(|(major, minor)| Entry::Leaf(Leaf::CharDevice(major, minor))),
        device.prop_map(|(major, minor)| Entry::Leaf(Leaf::BlockDevice(major, minor))),
        Just(Entry::Leaf(Leaf::Fifo)),
    ]
}

/// A name that is no whiteout.
fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof!["[a-d]", "[a-z]{99,255}"]
        .prop_map(String::into_bytes)
        .boxed()
        .prop_union(vec(0x80u8..=255, 1..150).boxed())
}

type Described = (Vec<Vec<u8>>, Meta, Entry);

/// Makes a tree of entries, each in the directory of its path. An entry replaces an earlier one at
/// the same path. A hard link before all leaves is left out.
fn tree(root: Meta, entries: Vec<Described>) -> (Tree, Data) {
    let (mut tree, mut data) = (Tree::default(), Data::default());
    tree.inode_mut(Tree::ROOT).meta = root;
    let mut leaves = Vec::new();
    for (mut path, meta, entry) in entries {
        let Some(name) = path.pop() else { continue };
        let directory = path.iter().fold(Tree::ROOT, |at, name| tree.ensure_directory(at, name));
        let id = match entry {
            Entry::Link(_) if leaves.is_empty() => continue,
            Entry::Link(index) => *index.get(&leaves),
            Entry::Directory => tree.add(Inode::directory(meta)),
            Entry::File(bytes) => tree.add(Inode::leaf(meta, data.add(&bytes))),
            // Linux has no other mode for a symbolic link.
            Entry::Leaf(leaf @ Leaf::Symlink(_)) => {
                tree.add(Inode::leaf(Meta { mode: 0o777, ..meta }, leaf))
            }
            Entry::Leaf(leaf) => tree.add(Inode::leaf(meta, leaf)),
        };
        if tree.inode(id).names().is_none() {
            leaves.push(id);
        }
        tree.link(directory, &name, id);
    }
    (tree, data)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_tree_comes_back_from_its_archive(
        root in any_meta(),
        entries in vec((vec(any_name(), 1..4), any_meta(), any_entry()), 0..30),
    ) {
        let (tree, data) = tree(root, entries);
        let digest = tree.digest();
        let mut archive = Vec::new();
        let written = export(tree, data).tar(&mut archive).unwrap();
        prop_assert_eq!(written, Written::of(&archive));
        prop_assert_eq!(read(&archive).digest(), digest);
    }
}

/// A tree with one pipe of this name and meta below directories.
fn pipe(depth: usize, name: &[u8], meta: Meta) -> Tree {
    let mut tree = Tree::default();
    let directory = (0..depth).fold(Tree::ROOT, |at, _| tree.ensure_directory(at, b"d"));
    let pipe = tree.add(Inode::leaf(meta, Leaf::Fifo));
    tree.link(directory, name, pipe);
    tree
}

#[test]
fn a_tree_too_deep_for_a_directory_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let extract = |depth| {
        let tree = pipe(depth, b"pipe", Meta::root_owned(0o600));
        export(tree, Data::default()).directory(&directory.path().join("to"), Ownership::Caller)
    };
    let error = extract(501).unwrap_err();
    assert!(matches!(error, ExportError::NoPlace { form: "the format dir", .. }), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    extract(400).unwrap();
}

#[test]
fn what_linux_gives_no_pipe_is_left_out_or_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let extract = |to: &str, ownership| {
        let mut meta = Meta::root_owned(0o600);
        meta.xattrs.insert(b"user.note".to_vec(), b"for files and directories only".to_vec());
        let tree = pipe(1, b"pipe", meta);
        export(tree, Data::default()).directory(&directory.path().join(to), ownership)
    };
    let left_out = extract("caller", Ownership::Caller).unwrap();
    assert_eq!(left_out, LeftOut { xattrs: 1, ..LeftOut::default() });
    let error = extract("box", Ownership::Box).unwrap_err();
    assert_eq!(error.to_string(), "cannot set the owner and attributes of /d/pipe of the box");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn an_attribute_without_a_value_is_in_no_archive() {
    let mut meta = Meta::root_owned(0o600);
    meta.xattrs.insert(b"user.empty".to_vec(), Vec::new());
    let export = export(pipe(1, b"pipe", meta), Data::default());
    let error = export.tar(&mut io::sink()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/d/pipe has an extended attribute without a value, which a tar archive cannot hold"
    );
}

/// A plan that starts a program.
fn plan() -> ComponentPlan {
    ComponentPlan {
        root: "/".to_owned(),
        argv: vec!["/bin/agent".to_owned()],
        env: Vec::new(),
        launch_env: Vec::new(),
        workdir: "/".to_owned(),
        user: User::ROOT,
        hostname: "agent-host".to_owned(),
        namespaces: Namespaces { mount: true, pid: true, ipc: true, uts: true, net: false },
        limits: box_contract::Limits { memory_bytes: 0, cpu_weight: 100, pids: 0 },
        rlimits: box_contract::plan::Rlimits::default(),
        capabilities: box_contract::Capabilities::default(),
        system: box_contract::SystemDirectories::default(),
        autostart: false,
        restart: box_contract::Restart::default(),
        stop_signal: None,
        port: None,
        health: None,
    }
}

#[test]
fn a_name_that_means_a_removal_is_in_no_image() {
    let image = |name: &[u8]| {
        let tree = pipe(1, name, Meta::root_owned(0o600));
        let export = Export { plan: Some(plan()), ..export(tree, Data::default()) };
        OciImage::of(&export).map(|image| image.manifest())
    };
    for fine in [b".wh".as_slice(), b"a.wh.b", b".what"] {
        image(fine).unwrap();
    }
    for bad in [b".wh.a".as_slice(), b".wh..wh..opq", b".wh."] {
        assert!(matches!(image(bad), Err(ExportError::NoPlace { .. })), "{bad:?}");
    }
}

#[test]
fn the_whole_tree_of_a_box_is_no_image() {
    let export = export(Tree::default(), Data::default());
    assert!(matches!(OciImage::of(&export), Err(ExportError::WhichComponent)));
}

#[test]
fn what_gives_rights_on_the_host_is_counted() {
    let (mut tree, mut data) = (Tree::default(), Data::default());
    let set_id = Meta { mode: 0o4755, ..Meta::root_owned(0) };
    let mut capable = Meta::root_owned(0o755);
    capable.xattrs.insert(b"security.capability".to_vec(), vec![1]);
    for (name, meta, leaf) in [
        ("plain", Meta::root_owned(0o755), data.add(b"plain")),
        ("su", set_id.clone(), data.add(b"su")),
        ("ping", capable, data.add(b"ping")),
        ("disk", Meta::root_owned(0o666), Leaf::BlockDevice(8, 0)),
        ("null", set_id.clone(), Leaf::CharDevice(1, 3)),
        ("link", set_id, Leaf::Symlink(b"su".to_vec())),
    ] {
        let inode = tree.add(Inode::leaf(meta, leaf));
        tree.link(Tree::ROOT, name.as_bytes(), inode);
    }
    let export = export(tree, data);
    let counted = Privileged { devices: 2, set_id: 1, capabilities: 1 };
    assert_eq!(export.privileged(Ownership::Box), counted);
    assert!(
        counted.warning().unwrap().contains("1 set-uid or set-gid, 1 with capabilities, 2 devices")
    );
    assert_eq!(export.privileged(Ownership::Caller), Privileged::default());
    assert_eq!(Privileged::default().warning(), None);
}

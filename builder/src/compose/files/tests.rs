//! The paths of the checkout's files in a root.

use std::collections::BTreeMap;

use box_cache::Store;
use box_tree::Content;
use boxfile_spec::parse;
use checkout::files::Files;
use oci_image::Config;
use oci_layer::LayerIndex;
use proptest::prelude::*;

use super::*;
use crate::pack::ContentMap;

/// An image with `/etc/app/` (0700, of user 5), `/etc/motd`, `/lib` → `usr/lib`, `/guest` → `/a3s`, a link to itself, a
/// dangling link, and a passwd file with the user `app`.
fn image() -> (Tree, &'static [u8]) {
    let passwd = b"app:x:1000:100::/home/app:\n";
    let mut tree = Tree::default();
    let app = tree.make_directories(b"/etc/app").unwrap();
    tree.inode_mut(app).meta = Meta { uid: 5, ..Meta::root_owned(0o700) };
    tree.make_directories(b"/usr/lib").unwrap();
    let mut add = |path: &str, leaf| {
        let (directory, name) = path::split(path.as_bytes());
        let directory = tree.make_directories(directory).unwrap();
        let layer = Origin::Layer(ComponentName::Agent, 0);
        let inode = tree.add(Inode::leaf(Meta::root_owned(0o644), leaf).from(layer));
        tree.link(directory, name, inode);
    };
    add("/etc/passwd", Leaf::File(Content::of(passwd)));
    add("/etc/motd", Leaf::File(Content::of(b"welcome")));
    for (link, target) in
        [("/lib", "usr/lib"), ("/guest", "/a3s"), ("/loop", "loop"), ("/dead", "var/dead")]
    {
        add(link, Leaf::Symlink(target.as_bytes().to_vec()));
    }
    (tree, passwd)
}

/// The checkout: `file`, `run` (executable), and the directory `dir` with a file, an executable, a link and a
/// subdirectory.
fn source(path: &str) -> Source {
    let mut tree = Tree::default();
    let mut add = |directory, name: &str, mode, leaf| {
        let inode = tree.add(Inode::leaf(Meta::root_owned(mode), leaf));
        tree.link(directory, name.as_bytes(), inode);
        inode
    };
    let file = || Leaf::File(Content::of(path.as_bytes()));
    let named = match path {
        "file" => add(Tree::ROOT, "file", 0o644, file()),
        "run" => add(Tree::ROOT, "run", 0o755, file()),
        _ => {
            add(Tree::ROOT, "file", 0o644, file());
            add(Tree::ROOT, "run", 0o755, file());
            add(Tree::ROOT, "link", 0o777, Leaf::Symlink(b"file".to_vec()));
            let inner = tree.ensure_directory(Tree::ROOT, b"inner");
            let file = tree.add(Inode::leaf(Meta::root_owned(0o644), file()));
            tree.link(inner, b"file", file);
            Tree::ROOT
        }
    };
    Source { files: Files { tree, data: BTreeMap::new() }, named }
}

fn boxfile(lines: &str) -> Boxfile {
    parse(&format!("box b\nagent {{\nimage \"oci:a\"\n{lines}\n}}\n")).unwrap()
}

/// Puts the files that `lines` declare into the image.
fn baked(tree: Tree, passwd: &[u8], lines: &str) -> Result<Tree, ComposeError> {
    let boxfile = boxfile(lines);
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let (mut index, mut map) = (LayerIndex::default(), ContentMap::default());
    index.contents.push((Content::of(passwd), 0));
    map.add(store.put(passwd).unwrap(), &index.contents);
    let baked = |declared: &BakedFile| Baked {
        component: ComponentName::Agent,
        declared: declared.clone(),
        source: source(&declared.path.value),
    };
    let files: Vec<Baked> = boxfile.agent.component.files.iter().map(baked).collect();
    let mut flat = FlatImage { component: ComponentName::Agent, process: Config::default(), tree };
    bake(&mut flat, &files, &boxfile, &mut map.reader(&store)).map(|()| flat.tree)
}

/// Puts the files that `lines` declare into the image, and lists the new entries: the files, and the parents that were
/// created.
fn new(lines: &str) -> Vec<String> {
    let (image, passwd) = image();
    let tree = baked(image.clone(), passwd, lines).unwrap();
    let line = |(path, id): (Vec<u8>, InodeId)| {
        let Inode { meta, origin, .. } = tree.inode(id);
        let known = image.reach(&path).is_ok_and(|id| image.inode(id).origin == *origin);
        let from = match origin {
            Origin::File(number) => number.to_string(),
            _ => "-".to_owned(),
        };
        let shown =
            format!("{} {:o} {}:{} {from}", path::lossy(&path), meta.mode, meta.uid, meta.gid);
        (!known).then_some(shown)
    };
    entries(&tree).filter_map(line).collect()
}

/// Returns the error for files that cannot be put into the image.
fn refused(lines: &str) -> String {
    let (image, passwd) = image();
    baked(image, passwd, lines).unwrap_err().to_string()
}

#[test]
fn a_file_is_where_it_is_put() {
    assert_eq!(new("file \"file\" to=\"/etc/app/\""), ["/etc/app/file 644 0:0 0"]);
    assert_eq!(new("file \"run\" to=\"/etc/motd\""), ["/etc/motd 755 0:0 0"], "replaced");
    assert_eq!(
        new("file \"run\" to=\"/opt/bin/\" mode=\"0600\" owner=\"7:8\""),
        ["/opt 755 0:0 -", "/opt/bin 755 0:0 -", "/opt/bin/run 600 7:8 0"],
        "what is made on the way is root's"
    );
}

#[test]
fn a_directory_is_laid_over_one_that_is_there() {
    let lines = "file \"dir\" to=\"/etc/app\" mode=\"0640\" owner=\"7:8\"
        file \"file\" to=\"/etc/app/more\"";
    let expected = [
        "/etc/app/file 640 7:8 0",
        "/etc/app/inner 755 7:8 0",
        "/etc/app/inner/file 640 7:8 0",
        "/etc/app/link 777 7:8 0",
        "/etc/app/more 644 0:0 1",
        "/etc/app/run 640 7:8 0",
    ];
    assert_eq!(new(lines), expected, "/etc/app itself stays as it is");
    assert_eq!(new("file \"dir\" to=\"/srv/app\"")[..2], ["/srv 755 0:0 -", "/srv/app 755 0:0 0"]);
}

#[test]
fn links_of_the_image_are_followed_within_its_root() {
    for to in ["/lib/", "/lib/file"] {
        let lines = format!("file \"file\" to=\"{to}\"");
        assert_eq!(new(&lines), ["/usr/lib/file 644 0:0 0"], "{to}");
    }
    assert_eq!(new("file \"dir\" to=\"/lib\"")[0], "/usr/lib/file 644 0:0 0");
    let made = new("file \"file\" to=\"/dead/\"");
    assert_eq!(made, ["/var 755 0:0 -", "/var/dead 755 0:0 -", "/var/dead/file 644 0:0 0"]);
    assert_eq!(new("file \"file\" to=\"/dead\""), ["/dead 644 0:0 0"], "the link is replaced");
}

#[test]
fn owners_are_those_of_the_image() {
    let lines =
        "file \"file\" to=\"/etc/passwd\" owner=\"app\"\nfile \"run\" to=\"/run\" owner=\"app:3\"";
    assert_eq!(new(lines), ["/etc/passwd 644 1000:100 0", "/run 755 1000:3 1"]);
    let unknown = "the agent component's file belongs to \"apps\", but the image's /etc/passwd has no such name";
    assert_eq!(refused("file \"file\" to=\"/x\" owner=\"apps\""), unknown);
}

#[test]
fn what_is_in_the_way_is_an_error() {
    for (lines, expected) in [
        (
            "file \"file\" to=\"/etc\"",
            "file cannot be at /etc of the agent component: there is a directory",
        ),
        (
            "file \"file\" to=\"/lib\"",
            "file cannot be at /lib of the agent component: there is a directory",
        ),
        (
            "file \"file\" to=\"/etc/motd/\"",
            "file cannot be at /etc/motd/file of the agent component: \"/etc/motd\" is not a directory",
        ),
        (
            "file \"dir\" to=\"/etc/motd\"",
            "dir cannot be at /etc/motd of the agent component: \"/etc/motd\" is not a directory",
        ),
        (
            "file \"file\" to=\"/loop/\"",
            "file cannot be at /loop/file of the agent component: too many symbolic links",
        ),
        (
            "file \"file\" to=\"/guest/skills/x\"",
            "file cannot be at /guest/skills/x of the agent component: it is at /a3s/skills/x, and the \
             guest has its own /a3s/skills",
        ),
        (
            "file \"dir\" to=\"/srv\"\nfile \"file\" to=\"/srv/inner/file\"",
            "file cannot be at /srv/inner/file of the agent component: dir is there",
        ),
        (
            "file \"file\" to=\"/lib/x\"\nfile \"run\" to=\"/usr/lib/x\"",
            "run cannot be at /usr/lib/x of the agent component: file is there",
        ),
    ] {
        assert_eq!(refused(lines), expected);
    }
}

#[test]
fn a_clash_names_both_places() {
    let (image, passwd) = image();
    let lines = "file \"dir\" to=\"/srv\"\nfile \"file\" to=\"/srv/run\"";
    let boxfile = boxfile(lines);
    let [dir, file] = boxfile.agent.component.files.as_slice() else { panic!("{lines}") };
    let error = baked(image, passwd, lines).unwrap_err();
    assert_eq!((error.span(), error.further_span()), (Some(file.to.span), Some(dir.to.span)));
}

#[test]
fn the_program_of_a_boxfile_is_not_replaced() {
    let (mut image, passwd) = image();
    let bin = image.make_directories(b"/agent/bin").unwrap();
    let leaf = Leaf::File(Content::of(b"program"));
    let program = image.add(Inode::leaf(Meta::root_owned(0o755), leaf).from(Origin::Program));
    image.link(bin, b"agent", program);
    let error = baked(image, passwd, "file \"file\" to=\"/agent/bin/agent\"").unwrap_err();
    assert!(error.to_string().ends_with(": the agent's program is there"), "{error}");
}

#[test]
fn what_the_box_would_hide_is_an_error() {
    let (image, passwd) = image();
    let tree =
        baked(image, passwd, "file \"file\" to=\"/etc/\"\nfile \"run\" to=\"/etc/hosts\"").unwrap();
    let boxfile = boxfile("file \"file\" to=\"/etc/\"\nfile \"run\" to=\"/etc/hosts\"");
    let file = |it: &BakedFile| Baked {
        component: ComponentName::Agent,
        declared: it.clone(),
        source: source(&it.path.value),
    };
    let files: Vec<Baked> = boxfile.agent.component.files.iter().map(file).collect();
    let root = ComponentRoot { components: vec![ComponentName::Agent], name: "agent", tree: &tree };
    let system = |name: &[u8]| {
        let mut tree = Tree::default();
        let etc = tree.ensure_directory(Tree::ROOT, b"etc");
        let file = tree.add(Inode::leaf(Meta::root_owned(0o644), Leaf::File(Content::of(b""))));
        tree.link(etc, name, file);
        System { component: ComponentName::Agent, tree, data: Vec::new() }
    };
    assert!(check_visible(&root, &[system(b"resolv.conf"), system(b"passwd")], &files).is_ok());
    let error = check_visible(&root, &[system(b"hosts")], &files).unwrap_err();
    assert_eq!(
        error.to_string(),
        "run cannot be at /etc/hosts of the agent component: the box has its own file there"
    );
    let mut business = system(b"hosts");
    business.component = ComponentName::Business;
    assert!(check_visible(&root, &[business], &files).is_ok());
}

proptest! {
    /// Only the declared paths change, regardless of the image's links and the order of the lines.
    #[test]
    fn nothing_else_changes(
        links in prop::collection::btree_map("[ab]", "(/|\\.\\./)?[ab](/[ab])?", 0..3),
        to in prop::sample::subsequence(vec!["/a/b/x", "/a/y", "/b/z", "/c/a/w"], 1..4),
    ) {
        let mut image = image().0;
        for (name, target) in &links {
            let link = Leaf::Symlink(target.as_bytes().to_vec());
            let link = image.add(Inode::leaf(Meta::root_owned(0o777), link));
            image.link(Tree::ROOT, name.as_bytes(), link);
        }
        let lines = |to: &[&str]| {
            let line = |(to, path): (&&str, &str)| format!("file \"{path}\" to=\"{to}\"\n");
            to.iter().zip(["file", "run", "dir"]).map(line).collect::<Vec<_>>()
        };
        let forth = lines(&to);
        let back: String = forth.iter().rev().cloned().collect();
        let result = baked(image.clone(), b"", &forth.concat());
        let reverse = baked(image.clone(), b"", &back);
        prop_assert_eq!(
            result.as_ref().map(Tree::digest).map_err(ToString::to_string),
            reverse.as_ref().map(Tree::digest).map_err(ToString::to_string)
        );
        if let Ok(tree) = &result {
            for (path, id) in entries(&image) {
                let (old, now) = (image.inode(id), tree.inode(tree.reach(&path).unwrap()));
                prop_assert_eq!((&old.meta, old.target()), (&now.meta, now.target()));
            }
            for to in &to {
                let id = tree.lookup(to.as_bytes());
                let origin = id.map(|id| tree.inode(id).origin);
                prop_assert!(matches!(origin, Some(Origin::File(_))), "{} in {:?}", to, links);
            }
        }
    }
}

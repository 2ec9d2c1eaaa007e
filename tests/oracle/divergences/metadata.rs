//! Owners, permissions, times and extended attributes.

use std::time::SystemTime;

use testkit::images::{Entry, Kind, Layer};

use super::{both, seconds};
use crate::compare::differences;
use crate::listing::Listing;

/// layer.md does not mention directories without an entry.
///
/// boxbuild sets their time to 0, so that a tree does not depend on the time of the build. umoci leaves them the time of the
/// unpacking. It leaves that time to their parents, too, even to parents with an entry.
#[test]
fn times_of_directories_that_no_entry_names() {
    let start = SystemTime::now();
    let layer = Layer::new().mtime(7).dir("d", 0o755).file("d/e/f/a", 0o644, "");
    let (ours, theirs) = both(&[layer]);
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let found: Vec<_> = differences(&ours, &theirs);
    let fields: Vec<_> = found.iter().map(|it| (it.path.as_str(), it.field)).collect();
    assert_eq!(fields, [("/d", "mtime"), ("/d/e", "mtime"), ("/d/e/f", "mtime")]);
    let time = |listing: &Listing, path: &str| listing[path.as_bytes()].mtime.0;
    assert_eq!(["/d", "/d/e", "/d/e/f"].map(|path| time(&ours, path)), [7, 0, 0]);
    for path in ["/d", "/d/e", "/d/e/f"] {
        assert!(time(&theirs, path) >= seconds(start));
    }
}

/// Linux gives a directory below a set-group-ID directory the parent's group and the set-group-ID bit (mkdir(2)), so umoci's
/// directories without an entry have both. boxbuild gives all directories without an entry the same attributes.
#[test]
fn directories_below_set_gid_ones() {
    let layer = Layer::new().owner(0, 50).dir("d", 0o2775).file("d/e/a", 0o644, "");
    let (ours, theirs) = both(&[layer]);
    let made = |listing: &Listing| {
        let entry = &listing[b"/d/e".as_slice()];
        (entry.mode, entry.gid)
    };
    assert_eq!(made(&ours.unwrap()), (0o755, 0));
    assert_eq!(made(&theirs.unwrap()), (0o2755, 50));
}

/// layer.md lists "Extended Attributes" among the attributes that a layer keeps.
///
/// umoci omits a file's SELinux label, because it would apply to the host that unpacks. boxbuild keeps the label for the box.
#[test]
fn labels_of_selinux() {
    let label = "system_u:object_r:bin_t:s0\0";
    let layer = Layer::new().file("a", 0o644, "").xattr("security.selinux", label);
    let (ours, theirs) = both(&[layer]);
    let has = |listing: &Listing| {
        listing[b"/a".as_slice()].xattrs.contains_key(b"security.selinux".as_slice())
    };
    assert!(has(&ours.unwrap()) && !has(&theirs.unwrap()));
}

/// Linux allows `user.*` attributes on files and directories only (xattr(7)). umoci fails to write one on a symbolic link.
/// boxbuild keeps it, although the guest cannot read it.
#[test]
fn attributes_of_users_on_links() {
    let (ours, theirs) = both(&[Layer::new().symlink("a", "b").xattr("user.a", "b")]);
    assert!(ours.unwrap()[b"/a".as_slice()].xattrs.contains_key(b"user.a".as_slice()));
    assert!(theirs.unwrap_err().contains("operation not permitted"));
}

/// Both read features alike that the random stacks lack: names of any bytes, long names, large owners and times, attributes of
/// the root.
#[test]
fn odd_names_and_attributes_are_read_alike() {
    let odd = |name: &[u8]| Entry {
        name: name.to_vec(),
        kind: Kind::File(b"odd".to_vec()),
        mode: 0o6755,
        uid: 4_000_000,
        gid: 65_534,
        mtime: 1 << 33,
        xattrs: vec![
            ("user.\u{e9}".to_owned(), vec![0, 10, 61, 255]),
            ("user.a b=c".to_owned(), vec![7]),
        ],
    };
    let long = ["d/".repeat(60), "n".repeat(255)].concat();
    let layer = Layer::new()
        .dir("./", 0o1711)
        .xattr("user.root", "r")
        .record("mtime", "-1.000000001")
        .entry(odd(b"\xff\xfe not utf-8 \x01"))
        .entry(odd(b"new\nline"))
        .entry(odd(b"..."))
        .entry(odd(b".whx"))
        .entry(odd(b"/absolute//and/./odd"))
        .dir(&long, 0o755)
        .symlink("link", &"t".repeat(4095))
        .record("mtime", "2147483648.999999999")
        .device("device", 0o600, 4095, 0xf_ffff);
    let (ours, theirs) = both(&[layer.clone(), layer]);
    let (ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
    assert_eq!(ours.len(), 1 + 4 + 3 + 61 + 2);
    let named = |path: &&Vec<u8>| path.starts_with(b"/d/") || path.starts_with(b"/absolute");
    for path in ours.keys().filter(named) {
        // See `times_of_directories_that_no_entry_names`.
        theirs.get_mut(path).unwrap().mtime = ours[path].mtime;
    }
    theirs.get_mut(b"/d".as_slice()).unwrap().mtime = (0, 0);
    assert_eq!(differences(&ours, &theirs), []);
}

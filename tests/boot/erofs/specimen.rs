//! A tree with every edge case of the EROFS format that a kernel can show.

use std::iter;

use box_contract::plan::PLAN_PATH;
use erofs_writer::{Meta, Node};

use super::model::Model;

/// The metadata of an inode by default.
fn meta() -> Meta {
    Meta { mode: 0o644, uid: 1, gid: 2, mtime: 1_700_000_000, mtime_nsec: 7, xattrs: Vec::new() }
}

fn directory() -> Meta {
    Meta { mode: 0o755, ..meta() }
}

/// Returns `length` bytes, each of which depends on its index and on `seed`.
fn bytes(length: usize, seed: u8) -> Vec<u8> {
    let byte = |index: usize| (index / 251 + index).to_le_bytes()[0] ^ seed;
    (0..length).map(byte).collect()
}

/// Returns the tree, with `plan` at [`PLAN_PATH`], where the init of epoch 3 reads it.
pub(crate) fn specimen(plan: Vec<u8>) -> Model {
    let root = Meta { mode: 0o1711, uid: 3, gid: 4, ..meta() };
    let mut model = Model::new(root);
    model.add(b"/boxbuild", directory(), Node::Directory);
    model.add_file(PLAN_PATH.as_bytes(), meta(), plan);
    add_files(&mut model);
    add_links(&mut model);
    add_special(&mut model);
    add_metas(&mut model);
    add_xattrs(&mut model);
    add_names(&mut model);
    add_directories(&mut model);
    model
}

/// Adds files with sizes around block boundaries and around the greatest size that is stored after the inode, and files with
/// the same content.
fn add_files(model: &mut Model) {
    model.add(b"/files", directory(), Node::Directory);
    let sizes =
        [0, 1, 2047, 2048, 2049, 4031, 4032, 4033, 4095, 4096, 4097, 8191, 8192, 8193, 1_000_001];
    for (size, seed) in sizes.into_iter().zip(0..) {
        model.add_file(format!("/files/{size}").as_bytes(), meta(), bytes(size, seed));
    }
    for size in [5, 2048, 4096, 10_000] {
        for copy in ["a", "b", "c"] {
            model.add_file(format!("/files/{size}{copy}").as_bytes(), meta(), bytes(size, 0x80));
        }
    }
}

/// Adds hard links to a file, a pipe and a symlink, within and across directories, and symlinks whose targets are stored after
/// the inode and in blocks.
fn add_links(model: &mut Model) {
    model.add(b"/links", directory(), Node::Directory);
    model.add(b"/links/below", directory(), Node::Directory);
    let file = model.add_file(b"/links/file", meta(), bytes(3000, 1));
    let fifo = model.add(b"/links/fifo", meta(), Node::Fifo);
    let symlink = model.add(b"/links/symlink", meta(), Node::Symlink { target: b"file".to_vec() });
    for (name, id) in [("file", file), ("fifo", fifo), ("symlink", symlink)] {
        model.link(format!("/links/below/{name}").as_bytes(), id);
        model.link(format!("/links/again-{name}").as_bytes(), id);
    }
    model.add_file(b"/links/equal-but-another", meta(), bytes(3000, 1));
    for length in [1, 59, 60, 4031, 4032, 4033, 4095] {
        let target = bytes(length, 0).into_iter().map(|byte| byte % 26 + b'a').collect();
        let path = format!("/links/{length}");
        model.add(path.as_bytes(), meta(), Node::Symlink { target });
    }
    let target = b"../\xff\x01 \\".to_vec();
    model.add(b"/links/raw", Meta { mode: 0o777, ..meta() }, Node::Symlink { target });
}

fn add_special(model: &mut Model) {
    model.add(b"/special", directory(), Node::Directory);
    model.add(b"/special/fifo", meta(), Node::Fifo);
    model.add(b"/special/socket", meta(), Node::Socket);
    for (major, minor) in [(0, 0), (1, 3), (259, 70_000), (4095, 1_048_575)] {
        let name = |kind| format!("/special/{kind}-{major}-{minor}").into_bytes();
        model.add(&name("char"), meta(), Node::CharDevice { major, minor });
        model.add(&name("block"), meta(), Node::BlockDevice { major, minor });
    }
}

/// Adds modes, owners and times over their whole range. The owner 2^32 - 1 is left out: Linux uses it as "no id".
fn add_metas(model: &mut Model) {
    model.add(b"/metas", directory(), Node::Directory);
    for mode in [0, 0o1, 0o4755, 0o2755, 0o1777, 0o7777] {
        let path = |kind| format!("/metas/{kind}-{mode:o}").into_bytes();
        model.add(&path("dir"), Meta { mode, ..meta() }, Node::Directory);
        model.add_file(&path("file"), Meta { mode, ..meta() }, bytes(10, 2));
    }
    for id in [0, 65_535, 65_536, u32::MAX - 1] {
        let path = format!("/metas/owner-{id}");
        model.add(path.as_bytes(), Meta { uid: id, gid: u32::MAX - 1 - id, ..meta() }, Node::Fifo);
    }
    let long_ago = -(1 << 31) - 1;
    for mtime in [i64::MIN, long_ago, -1, 0, 1, 1 << 31, 1 << 32, 1 << 33, i64::MAX] {
        for mtime_nsec in [0, 1, 999_999_999] {
            let path = format!("/metas/time{mtime}.{mtime_nsec}");
            model.add(path.as_bytes(), Meta { mtime, mtime_nsec, ..meta() }, Node::Fifo);
        }
    }
}

type Xattrs = Vec<(Vec<u8>, Vec<u8>)>;

fn pair(name: &str, value: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    (name.as_bytes().to_vec(), value)
}

/// Returns an ACL in the format of `include/uapi/linux/posix_acl_xattr.h`: version 2, then the tag, permissions and id of each
/// entry. Besides the owner, the group and others, it has an entry for user 1000.
fn acl() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 7, u32::MAX),
        (0x02, 5, 1000),
        (0x04, 5, u32::MAX),
        (0x10, 7, u32::MAX),
        (0x20, 0, u32::MAX),
    ];
    let mut value = vec![2, 0, 0, 0];
    for (tag, permissions, id) in entries {
        value.extend_from_slice(&tag.to_le_bytes());
        value.extend_from_slice(&permissions.to_le_bytes());
        value.extend_from_slice(&id.to_le_bytes());
    }
    value
}

/// Returns `cap_net_bind_service` as permitted and effective, as a `struct vfs_cap_data` of revision 2.
fn capability() -> Vec<u8> {
    let mut value = vec![1, 0, 0, 2, 0, 4, 0, 0];
    value.resize(20, 0);
    value
}

/// Adds files with extended attributes: each namespace, the longest name, the longest value, and the greatest total size.
fn add_xattrs(model: &mut Model) {
    model.add(b"/xattrs", directory(), Node::Directory);
    let longest = format!("user.{}", "n".repeat(250));
    let most = 262_148 - 12 - 3 * 65_536 - 5;
    let of_files: [(&str, Xattrs); 6] = [
        ("few", vec![pair("user.b", bytes(9, 0)), pair("user.a", Vec::new())]),
        ("capability", vec![pair("security.capability", capability())]),
        ("acl", vec![pair("system.posix_acl_access", acl()), pair("trusted.t", bytes(3, 0))]),
        ("longest-name", vec![pair(&longest, bytes(300, 3)), pair("user.raw\u{e9}", vec![0])]),
        ("longest-value", vec![pair("user.most", bytes(65_535, 4)), pair("user.z", bytes(1, 5))]),
        ("all-that-fits", {
            let three = ["user.a", "user.b", "user.c"].into_iter().zip(10..);
            let three = three.map(|(name, seed)| pair(name, bytes(65_531, seed)));
            three.chain([pair("user.d", bytes(most, 13))]).collect()
        }),
    ];
    for ((name, xattrs), seed) in of_files.into_iter().zip(0x10..) {
        let path = |suffix| format!("/xattrs/{name}{suffix}").into_bytes();
        let meta = Meta { xattrs, ..meta() };
        model.add_file(&path("-inline"), meta.clone(), bytes(100, seed));
        model.add_file(&path("-blocks"), meta, bytes(5000, seed));
    }
    add_more_xattrs(model);
}

/// Adds a file with many extended attributes, and other types of inodes with extended attributes.
fn add_more_xattrs(model: &mut Model) {
    let many = (0..200).map(|n| pair(&format!("user.{n:03}"), bytes(n, 6))).collect();
    model.add_file(b"/xattrs/many", Meta { xattrs: many, ..meta() }, bytes(2000, 0x42));
    let default = vec![pair("system.posix_acl_default", acl()), pair("user.dir", bytes(4096, 7))];
    model.add(b"/xattrs/directory", Meta { xattrs: default, ..directory() }, Node::Directory);
    model.add(b"/xattrs/directory/child", directory(), Node::Directory);
    // On other inodes than files and directories, Linux has no user.* attributes and ACLs.
    let others = vec![pair("trusted.t", bytes(900, 8)), pair("security.s", bytes(900, 9))];
    for (name, node) in [
        ("symlink", Node::Symlink { target: b"few-inline".to_vec() }),
        ("long-symlink", Node::Symlink { target: vec![b'x'; 4000] }),
        ("fifo", Node::Fifo),
        ("device", Node::CharDevice { major: 1, minor: 5 }),
    ] {
        let meta = Meta { xattrs: others.clone(), ..meta() };
        model.add(format!("/xattrs/{name}").as_bytes(), meta, node);
    }
}

/// Adds names with every byte that a name can have, names of every length, and a path of nearly 4096 bytes.
fn add_names(model: &mut Model) {
    model.add(b"/names", directory(), Node::Directory);
    let fifo = model.add(b"/names/fifo", meta(), Node::Fifo);
    for byte in (1..=255).filter(|byte| !b"./".contains(byte)) {
        model.link(&[b"/names/", [byte].as_slice()].concat(), fifo);
        model.link(&[b"/names/=", [byte, byte].as_slice()].concat(), fifo);
    }
    for length in 2..=255 {
        model.link(&[b"/names/", vec![b'n'; length].as_slice()].concat(), fifo);
    }
    for name in ["...", ".a", "..a", ".-"] {
        model.link(format!("/names/{name}").as_bytes(), fifo);
    }
    let mut path = b"/deep".to_vec();
    model.add(&path, directory(), Node::Directory);
    let (long, short) = (vec![0xFE; 255], vec![b'd']);
    for name in iter::repeat_n(&long, 15).chain(iter::repeat_n(&short, 100)) {
        path = [path.as_slice(), b"/", name].concat();
        model.add(&path, directory(), Node::Directory);
    }
    model.add_file(&[path.as_slice(), b"/end"].concat(), meta(), bytes(7, 0x77));
}

/// Adds directories with sizes around a block and around the space after an inode, and a large directory.
fn add_directories(model: &mut Model) {
    model.add(b"/directories", directory(), Node::Directory);
    let fifo = model.add(b"/directories/fifo", meta(), Node::Fifo);
    // In a block of 4096 bytes, `.`, `..` and 14 names of 241 bytes leave 527 bytes: two more entries of 12 bytes, with names of
    // 251 and at most 252 bytes. After an inode, 64 bytes less are free, so the last name has at most 188 bytes.
    for last in [187, 188, 189, 251, 252, 253, 255] {
        let path = format!("/directories/{last}");
        model.add(path.as_bytes(), directory(), Node::Directory);
        let names = (0..14).map(|n| format!("{n:0241}")).chain(["x".repeat(251), "y".repeat(last)]);
        names.for_each(|name| model.link(format!("{path}/{name}").as_bytes(), fifo));
    }
    model.add(b"/directories/many", directory(), Node::Directory);
    for number in 0..900 {
        let path = format!("/directories/many/{number:060}");
        match number % 3 {
            0 => drop(model.add_file(path.as_bytes(), meta(), path.clone().into_bytes())),
            1 => drop(model.add(path.as_bytes(), directory(), Node::Directory)),
            _ => model.link(path.as_bytes(), fifo),
        }
    }
}

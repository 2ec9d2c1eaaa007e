//! Tests of the owners in an exported directory, as root and as another user.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use box_contract::ComponentName;
use box_inspect::export::{LeftOut, Ownership};
use box_tree::{Kind, entries};

use crate::command::{export, stderr_text};
use crate::made::Made;
use crate::readers::of_directory;
use crate::specimens::small;

#[test]
fn everything_is_the_callers_and_nothing_gives_rights_away() {
    let made = Made::of(&small());
    let directory = made.path("directory");
    let export = made.component(ComponentName::Agent);
    let left_out = export.directory(&directory, Ownership::Caller).unwrap();
    // Devices: `null` and `zero`. Set-user-ID or set-group-ID: `agent` and the directory `srv`. xattrs: `security.capability`.
    assert_eq!(left_out, LeftOut { devices: 2, set_id: 2, xattrs: 1 });
    assert!(!directory.join("srv/null").exists() && !directory.join("srv/zero").exists());
    let own = fs::metadata(made.path("")).unwrap();
    let found = of_directory(&directory);
    let expected: BTreeMap<_, _> = entries(export.tree()).collect();
    for (path, id) in entries(&found) {
        let (inode, expected) = (found.inode(id), export.tree().inode(expected[&path]));
        assert_eq!((inode.meta.uid, inode.meta.gid), (own.uid(), own.gid()), "{path:?}");
        assert_eq!(inode.meta.mode, expected.meta.mode & !0o6000, "{path:?}");
        assert_eq!(inode.meta.mtime, expected.meta.mtime, "{path:?}");
        if let Kind::Leaf(_) = expected.kind {
            assert_eq!(inode.kind, expected.kind, "{path:?}");
        }
    }
    assert_eq!(entries(&found).count(), expected.len() - 2, "all but the devices");
    let ping = found.inode(found.lookup(b"bin/ping").unwrap());
    let names: Vec<_> =
        ping.meta.xattrs.keys().map(|name| name.escape_ascii().to_string()).collect();
    assert_eq!(names, ["user.note"]);
}

#[test]
fn the_program_says_what_it_left_out() {
    let made = Made::of(&small());
    let args = ["made.box", "--format", "dir", "--component", "agent", "--no-owner"];
    let output = export(&made.path(""), &args);
    assert!(output.status.success());
    insta::assert_snapshot!(stderr_text(&output), @r"
    note: left out devices that only root can make: 2
    note: left out set-uid and set-gid bits, which are for the owners in the box: 2
    note: left out extended attributes that only root can set or the file system does not take: 1
    exported: made-agent.dir
    ");
    let tree = made.component(ComponentName::Agent).tree().digest();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{tree}\n"));
}

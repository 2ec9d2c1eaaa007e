//! Tests that exports of the same box have the same bytes, whatever the directory, the umask and the locale.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use box_inspect::export::Ownership;

use crate::command::{exported, stderr_text, under_umask};
use crate::made::Made;
use crate::readers::{assert_same, of_directory};
use crate::specimens::small;

/// Exports in every form with this umask and time zone, and returns the printed digests.
fn digests(made: &Made, directory: &Path, umask: &str, zone: &str) -> Vec<String> {
    fs::create_dir(directory).unwrap();
    let bundle = made.bundle();
    let forms: [&[&str]; 6] = [
        &["--format", "erofs"],
        &["--format", "tar"],
        &["--format", "dir"],
        &["--format", "tar", "--component", "business"],
        &["--format", "oci", "--component", "agent"],
        &["--format", "oci", "--component", "agent", "-o", "agent.tar"],
    ];
    let run = |form: &&[&str]| {
        let args = [&[bundle.to_str().unwrap()], *form].concat();
        let mut command = under_umask(directory, umask, &args);
        let output = command.env("TZ", zone).env("LC_ALL", "tr_TR.UTF-8").output().unwrap();
        assert!(output.status.success(), "{}", stderr_text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    forms.iter().map(run).collect()
}

#[test]
fn neither_umask_nor_time_zone_has_a_part_in_it() {
    let made = Made::of(&small());
    let (one, other) = (made.path("one"), made.path("other"));
    let first = digests(&made, &one, "022", "UTC");
    assert_eq!(digests(&made, &other, "077", "Asia/Tokyo"), first);
    let names = crate::made::names(&one);
    assert_eq!(
        names,
        ["agent.tar", "made-agent.oci", "made-business.tar", "made.dir", "made.erofs", "made.tar",]
    );
    for name in ["agent.tar", "made-business.tar", "made.erofs", "made.tar"] {
        let read = |directory: &Path| fs::read(directory.join(name)).unwrap();
        assert!(read(&one) == read(&other), "{name}");
    }
    assert_same(&of_directory(&one.join("made.dir")), &of_directory(&other.join("made.dir")));
    let layouts = [&one, &other].map(|it| of_directory(&it.join("made-agent.oci/blobs")));
    assert_eq!(contents(&layouts[0]), contents(&layouts[1]));
    // The umask affects the mode of the exported archive, but not the modes in the tree.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&one.join("made.tar")), mode(&other.join("made.tar"))], [0o644, 0o600]);
}

/// Returns the paths and contents of all entries in a tree that are not directories.
fn contents(tree: &box_tree::Tree) -> Vec<String> {
    use box_tree::{Kind, entries};

    let line = |(path, id): (Vec<u8>, _)| match &tree.inode(id).kind {
        Kind::Leaf(leaf) => Some(format!("{} {leaf:?}", path.escape_ascii())),
        Kind::Directory(_) => None,
    };
    entries(tree).filter_map(line).collect()
}

#[test]
fn standard_output_gets_the_same_bytes_as_a_file() {
    let made = Made::of(&small());
    for (form, name) in [("tar", "made.tar"), ("erofs", "made.erofs")] {
        let args = ["made.box", "--format", form];
        exported(&made.path(""), &args);
        let args = [args.as_slice(), &["-o", "-"]].concat();
        let output = under_umask(&made.path(""), "022", &args).output().unwrap();
        assert!(output.stdout == fs::read(made.path(name)).unwrap(), "{form}");
        assert_eq!(stderr_text(&output), "");
    }
}

#[test]
fn the_program_extracts_what_the_library_does() {
    let made = Made::of(&small());
    let report = exported(&made.path(""), &["made.box", "--format", "dir", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    made.whole().directory(&made.path("library"), Ownership::Box).unwrap();
    let (program, library) = (made.path("made.dir"), made.path("library"));
    assert_same(&of_directory(&program), &of_directory(&library));
    assert_eq!(report["tree"], made.opened().config.tree.to_string());
    assert_eq!(report["box"], made.opened().digest.to_string());
    let nothing = serde_json::json!({ "devices": 0, "set_id": 0, "xattrs": 0 });
    assert_eq!(report["left_out"], nothing);
}

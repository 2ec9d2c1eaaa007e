//! Paths through symbolic links, and paths with `..`. layer.md does not mention them.

use testkit::images::Layer;

use super::{both, cause, check_paths};

/// boxbuild resolves a path as Linux does (path_resolution(7)): `file/..` fails if `file` is not a directory. umoci removes the
/// component before `..`, whatever it is.
#[test]
fn over_a_file_and_back() {
    let (ours, theirs) = both(&[Layer::new()
        .file("file", 0o644, "")
        .dir("real", 0o755)
        .symlink("link", "file/../real")
        .file("link/a", 0o644, "")]);
    assert!(cause(ours).contains("\"file\" is not a directory"));
    assert!(theirs.unwrap().contains_key(b"/real/a".as_slice()));
    // Both remove a component that does not exist.
    let layer =
        Layer::new().dir("real", 0o755).symlink("link", "absent/../real").file("link/a", 0o644, "");
    let expected = ["/link", "/real", "/real/a"];
    check_paths(&[layer], &expected, &expected);
}

/// boxbuild follows up to 40 links in a path, as Linux does. umoci follows up to 255.
#[test]
fn many_links_in_a_row() {
    let row = |length: u32| {
        let links = (1..=length).fold(Layer::new().dir("l0", 0o755), |layer, at| {
            layer.symlink(&format!("l{at}"), &format!("l{}", at - 1))
        });
        both(&[links.file(&format!("l{length}/a"), 0o644, "")])
    };
    let (ours, theirs) = row(40);
    assert!(ours.is_ok() && theirs.is_ok());
    let (ours, theirs) = row(41);
    assert!(cause(ours).contains("too many symbolic links"));
    assert!(theirs.is_ok());
    let (ours, theirs) = row(256);
    assert!(ours.is_err() && theirs.is_err());
}

/// boxbuild refuses an entry whose path contains `..`. umoci resolves it, with the image's root as its own parent.
#[test]
fn upwards() {
    for path in ["../a", "d/../a", "d/../../a"] {
        let (ours, theirs) = both(&[Layer::new().dir("d", 0o755).file(path, 0o644, "")]);
        assert!(ours.unwrap_err().kind.to_string().contains("leaves the image"), "{path}");
        assert!(theirs.unwrap().contains_key(b"/a".as_slice()), "{path}");
    }
}

/// Both refuse hard links to absent files, to themselves and to directories, and paths through files and link loops.
#[test]
fn impossible_links_are_refused_by_both() {
    let circle = || Layer::new().symlink("a", "a");
    let stacks = [
        vec![Layer::new().hardlink("b", "a")],
        vec![Layer::new().file("a", 0o644, "").hardlink("a", "a")],
        vec![Layer::new().dir("a", 0o755).hardlink("b", "a")],
        vec![Layer::new().file("a", 0o644, "").file("a/b", 0o644, "")],
        vec![circle().file("a/b", 0o644, "")],
        vec![circle(), Layer::new().whiteout("a/b")],
        vec![circle(), Layer::new().opaque("a")],
    ];
    for stack in stacks {
        let (ours, theirs) = both(&stack);
        assert!(ours.is_err(), "{stack:?}");
        assert!(theirs.is_err(), "{stack:?}");
    }
}

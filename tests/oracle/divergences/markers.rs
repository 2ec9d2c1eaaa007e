//! Whiteouts and opaque markers.

use testkit::images::Layer;

use super::{both, check_paths};

/// "`a/.wh..wh..opq` is applied first … regardless of the ordering in which the whiteout file was
/// encountered"; "files … in the same layer … can only be hidden by whiteout files in subsequent
/// layers".
///
/// boxbuild applies all markers first. umoci applies each marker at its position in the layer, and spares what the layer has
/// written before it: the directories of its entries, with the attributes from lower layers, and the targets of its hard
/// links.
#[test]
fn markers_in_their_turn() {
    let lower = Layer::new().dir("d", 0o711).file("d/a", 0o644, "");
    let upper = Layer::new().file("d/b", 0o644, "").whiteout("d");
    let (ours, theirs) = both(&[lower.clone(), upper]);
    let mode = |listing: &crate::listing::Listing| listing[b"/d".as_slice()].mode;
    assert_eq!(mode(&ours.unwrap()), 0o755, "a directory that the layer implies");
    assert_eq!(mode(&theirs.unwrap()), 0o711, "the hidden one");

    let first = Layer::new().whiteout("d").file("d/b", 0o644, "");
    let (ours, theirs) = both(&[lower.clone(), first]);
    assert_eq!([mode(&ours.unwrap()), mode(&theirs.unwrap())], [0o755; 2], "umoci agrees here");

    let linked = Layer::new().hardlink("b", "d/a").whiteout("d/a");
    let (ours, theirs) = both(&[lower, linked]);
    assert!(
        ours.unwrap_err().kind.to_string().contains("hard link to \"d/a\", which is not there")
    );
    assert!(theirs.unwrap().contains_key(b"/b".as_slice()));

    let lower = Layer::new().file("d", 0o644, "");
    let through_a_file = Layer::new().file("d/b", 0o644, "").whiteout("d");
    let (ours, theirs) = both(&[lower, through_a_file]);
    assert!(ours.unwrap().contains_key(b"/d/b".as_slice()));
    assert!(theirs.unwrap_err().contains("not a directory"));
}

/// "Whiteout files MUST only apply to resources in lower/parent layers"; an opaque marker hides the
/// "siblings … in the lower layer". layer.md says nothing of symbolic links.
///
/// If a layer replaces a lower layer's symbolic link by a directory, boxbuild does not apply the layer's markers to the link's
/// target, in any order. umoci follows the link if the marker comes before the entry that replaces the link.
#[test]
fn markers_behind_a_link_that_is_replaced() {
    let lower = || Layer::new().file("real/a", 0o644, "").symlink("d", "real");
    let with_real = ["/d", "/d/new", "/real", "/real/a"];
    let marker_first = Layer::new().opaque("d").dir("d", 0o755).file("d/new", 0o644, "");
    check_paths(&[lower(), marker_first], &with_real, &["/d", "/d/new", "/real"]);
    let marker_first = Layer::new().whiteout("d/a").dir("d", 0o755).file("d/new", 0o644, "");
    check_paths(&[lower(), marker_first], &with_real, &["/d", "/d/new", "/real"]);
    let entry_first = Layer::new().dir("d", 0o755).opaque("d").file("d/new", 0o644, "");
    check_paths(&[lower(), entry_first], &with_real, &with_real);
    // If the layer keeps the link, both follow it.
    let through = Layer::new().opaque("d").file("d/new", 0o644, "");
    let expected = ["/d", "/real", "/real/new"];
    check_paths(&[lower(), through], &expected, &expected);
}

/// "it is not possible to create a filesystem which has a file or directory with a name beginning
/// with `.wh.`".
///
/// boxbuild refuses an entry below such a directory. umoci creates the directory.
#[test]
fn directories_that_are_named_like_markers() {
    let (ours, theirs) = both(&[Layer::new().file(".wh.d/a", 0o644, "")]);
    assert!(ours.unwrap_err().kind.to_string().contains("is below a whiteout"));
    assert!(theirs.unwrap().contains_key(b"/.wh.d/a".as_slice()));
}

/// layer.md does not mention the metadata of AUFS, which old images contain.
///
/// boxbuild omits the metadata, and follows hard links to its files. umoci creates the metadata's files.
#[test]
fn metadata_of_aufs() {
    let layer = Layer::new()
        .file(".wh..wh.aufs", 0o644, "")
        .dir(".wh..wh.orph", 0o700)
        .dir(".wh..wh.plnk", 0o700)
        .file(".wh..wh.plnk/1.2", 0o644, "data")
        .hardlink("a", ".wh..wh.plnk/1.2");
    let theirs = ["/.wh..wh.plnk", "/.wh..wh.plnk/1.2", "/a"];
    check_paths(&[layer], &["/a"], &theirs);
}

/// Both refuse malformed markers: "A `.wh.` file, without a basename to delete, is invalid".
#[test]
fn malformed_markers_are_refused_by_both() {
    for name in [".wh.", "d/.wh.", "d/.wh..", "d/.wh..."] {
        let (ours, theirs) = both(&[
            Layer::new().dir("d", 0o755).file("d/a", 0o644, ""),
            Layer::new().file(name, 0o644, ""),
        ]);
        assert!(ours.is_err(), "{name}");
        assert!(theirs.is_err(), "{name}");
    }
}

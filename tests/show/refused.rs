//! Tests of the messages for boxes and paths that cannot be shown.

use std::fs;

use box_contract::manifest::LISTING_TYPE;

use crate::checkout::{Checkout, files, shown};
use crate::fixture::{blob, built, manifest, reseal};

#[test]
fn directories_that_are_not_boxes() {
    let checkout = Checkout::new();
    let ls = |path| checkout.fails(&["ls", path]);
    insta::assert_snapshot!(ls("missing.box"), @r"
    error: there is no missing.box
      = help: name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`
    ");
    insta::assert_snapshot!(ls("images/agent"), @r"
    error: images/agent is an OCI image, not a box
      = help: a box is what `boxbuild build` writes, such as NAME.box; `boxbuild init oci:DIR` begins one from this image, and `boxbuild diff` reads it as oci:DIR
    ");
    insta::assert_snapshot!(ls("./Boxfile"), @r"
    error: ./Boxfile is not a box: it is not a directory
      = help: name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`
    ");
    fs::create_dir(checkout.path("empty.box")).unwrap();
    insta::assert_snapshot!(ls("empty.box"), @r"
    error: empty.box is not a box: it has no file `oci-layout`
      = help: name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`
    ");
    checkout.write("bad.box/oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    checkout.write("bad.box/index.json", "{");
    insta::assert_snapshot!(ls("bad.box"), @"
    error: bad.box/index.json is malformed: EOF while parsing an object at line 1 column 1
      = help: build the box again with this version of boxbuild
    ");
    fs::remove_file(checkout.path("bad.box/index.json")).unwrap();
    fs::create_dir(checkout.path("bad.box/index.json")).unwrap();
    insta::assert_snapshot!(ls("bad.box"), @r"
    error: bad.box/index.json is not a regular file; a box consists of regular files only
      = help: copy the box with its files, not with links to them
    ");
    let ran = checkout.run(&["inspect", "./images", "--json"]);
    assert_eq!(ran.code, 1);
    assert!(ran.json()["errors"][0]["message"].as_str().unwrap().contains("is not a box"));
    assert_eq!(checkout.run(&["ls"]).code, 2);
}

#[test]
fn a_path_that_is_not_in_the_box() {
    let checkout = built();
    let ls = |path| checkout.fails(&["ls", "test.box", path]);
    insta::assert_snapshot!(ls("/roots/agnet/usr"), @"
    error: the box test.box has no /roots/agnet
      = help: did you mean /roots/agent?
    ");
    insta::assert_snapshot!(ls("/etc"), @"
    error: the box test.box has no /etc
      = help: `boxbuild ls test.box / --depth 1` lists what is there
    ");
    insta::assert_snapshot!(ls("/usr/base"), @"
    error: the box test.box has no /usr
      = help: did you mean /roots/agent/usr/base or /roots/business/usr/base?
    ");
    insta::assert_snapshot!(ls("/agent/link"), @"
    error: the box test.box has no /agent
      = help: did you mean /roots/agent/agent/link?
    ");
    insta::assert_snapshot!(ls("/roots/agent/agent/link/x"), @"
    error: /roots/agent/agent/notes is not a directory
      = help: leave out what is after it
    ");
    insta::assert_snapshot!(ls("/roots/agent/agent/run/x"), @"
    error: /roots/agent/agent/run is not a directory
      = help: leave out what is after it
    ");
    insta::assert_snapshot!(ls("/roots/agent/agent/wild\u{fffd}\u{1b}[2J"), @"
    error: the box test.box has no /roots/agent/agent/wild��[2J
      = help: `boxbuild ls test.box /roots/agent/agent --depth 1` lists what is there
    ");
}

#[test]
fn a_damaged_listing() {
    let checkout = built();
    let manifest = manifest(&checkout);
    let path = blob(&checkout, &manifest.blob(LISTING_TYPE).unwrap().digest);
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    // Removes the store, which has the blob that the box lacks.
    fs::remove_dir_all(checkout.path("store")).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        for args in [&["ls", "test.box"][..], &["inspect", "test.box"], &["diff", "test.box", "."]]
        {
            let message = checkout.fails(args);
            assert!(message.contains("has the digest sha256:"), "{args:?}: {message}");
        }
    }
    insta::assert_snapshot!(shown(&checkout.fails(&["ls", "test.box"])), @r"
    error: test.box/blobs/sha256/DIGEST has the digest sha256:DIGEST, but its manifest says sha256:DIGEST
      = help: the file was damaged or changed after the build; build or copy the box again
    ");
    fs::remove_file(&path).unwrap();
    let missing = checkout.fails(&["ls", "test.box", "--store", "none"]);
    insta::assert_snapshot!(shown(&missing), @"
    error: the listing sha256:DIGEST is neither in test.box nor in the store (none/blobs)
      = help: fetch, load or build the box again: `boxlaunch pull`, `boxlaunch load` or `boxbuild build`; or name the store that has the rest with --store or BOXBUILD_STORE_RO. A directory that can be copied: `boxbuild build -o DIR`
    ");
}

#[test]
fn a_listing_that_lies() {
    let checkout = built();
    let whole = manifest(&checkout);
    let bytes = fs::read(blob(&checkout, &whole.blob(LISTING_TYPE).unwrap().digest)).unwrap();
    let replace = |bytes: &[u8]| {
        let digest = box_digest::Digest::of(bytes);
        fs::write(blob(&checkout, &digest), bytes).unwrap();
        let mut manifest = whole.clone();
        let named = manifest.layers.iter_mut().find(|it| it.media_type == LISTING_TYPE).unwrap();
        (named.digest, named.size) = (digest, bytes.len() as u64);
        reseal(&checkout, &manifest);
        shown(&checkout.fails(&["ls", "test.box"]))
    };
    insta::assert_snapshot!(replace(b"boxbuild listing 2\n"), @"
    error: the listing of test.box is damaged: it is of another version
      = help: build or copy the box again
    ");
    insta::assert_snapshot!(replace(&bytes[..bytes.len() - 1]), @"
    error: the listing of test.box is damaged: it ends early
      = help: build or copy the box again
    ");
    // Changes the last entry's nanoseconds, which precede the 4-byte number of attributes.
    let mut other = bytes.clone();
    other[bytes.len() - 5] = 1;
    insta::assert_snapshot!(replace(&other), @r"
    error: the listing of test.box does not match its rootfs
      = help: the box was changed after the build: do not use it
    ");
}

#[test]
fn a_box_without_a_listing() {
    let checkout = built();
    let mut manifest = manifest(&checkout);
    manifest.layers.retain(|it| it.media_type != LISTING_TYPE);
    reseal(&checkout, &manifest);
    let error = |args: &[&str]| checkout.fails(args);
    insta::assert_snapshot!(error(&["ls", "test.box"]), @"
    error: test.box does not name exactly one listing (application/vnd.boxbuild.listing.v1)
      = help: build it again with this version of boxbuild
    ");
    assert_eq!(error(&["inspect", "test.box", "--sbom"]), error(&["ls", "test.box"]));
}

#[test]
fn nothing_is_ever_written() {
    let checkout = built();
    fs::create_dir(checkout.path("tmp")).unwrap();
    let before = files(checkout.root());
    for args in [
        &["ls", "test.box", "--json"][..],
        &["inspect", "test.box"],
        &["inspect", "test.box", "--sbom"],
        &["diff", "test.box", "test.box"],
        &["diff", "--component", "agent", "test.box", "oci:images/agent"],
        &["diff", "test.box", "./skills"],
    ] {
        let ran = checkout.boxbuild(args).env("TMPDIR", checkout.path("tmp")).output().unwrap();
        assert!([Some(0), Some(5)].contains(&ran.status.code()), "{args:?}");
        assert!(files(checkout.root()) == before, "{args:?}");
        assert_eq!(fs::read_dir(checkout.path("tmp")).unwrap().count(), 0, "{args:?}");
    }
}

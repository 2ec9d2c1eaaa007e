//! Tests with boxes whose segments are damaged, exchanged or missing.

use std::fs;
use std::path::Path;

use testkit::damage::flip;
use testkit::test_box::BoxFiles;

use crate::checkout::{Checkout, WHOLE};

/// A damage to the segments of a box, and the expected messages of the commands.
struct Harm {
    name: &'static str,
    /// Damages the first of two segments.
    apply: fn(&BoxFiles, [&Path; 2]),
    /// The beginning of the segment's line in the output of `verify`.
    verdict: &'static str,
    /// A part of the error of `cat` for the file in the segment. `None` if the file's content is intact.
    cat: Option<&'static str>,
}

const DATA: &str = "/roots/agent/srv/one does not have the content that the listing names";

const HARMS: [Harm; 5] = [
    Harm {
        name: "one bit",
        apply: |files, [one, _]| flip(files, one),
        verdict: "segment  DIFFERS",
        cat: Some(DATA),
    },
    Harm {
        name: "the last byte",
        // The last byte belongs to no file, so only the segment's digest reveals the change.
        apply: |files, [one, _]| {
            let mut bytes = fs::read(one).unwrap();
            *bytes.last_mut().unwrap() = 1;
            files.replace(one, &bytes);
        },
        verdict: "segment  DIFFERS",
        cat: None,
    },
    Harm {
        name: "cut short",
        apply: |files, [one, _]| {
            let bytes = fs::read(one).unwrap();
            files.replace(one, &bytes[..bytes.len() - 4096]);
        },
        verdict: "segment  DIFFERS",
        cat: Some("bytes, but its manifest says"),
    },
    Harm {
        name: "swapped",
        apply: |files, [one, two]| {
            let [first, second] = [one, two].map(|it| fs::read(it).unwrap());
            assert!(first.len() == second.len() && first != second);
            files.replace(one, &second);
            files.replace(two, &first);
        },
        verdict: "segment  DIFFERS",
        cat: Some(DATA),
    },
    Harm {
        name: "missing",
        apply: |_, [one, _]| fs::remove_file(one).unwrap(),
        verdict: "",
        cat: Some("the segment sha256:"),
    },
];

#[test]
fn every_command_names_what_is_wrong() {
    let checkout = super::checkout();
    checkout.built(WHOLE);
    for harm in &HARMS {
        let bundle = "harmed.box";
        copy(&checkout, bundle);
        let paths = super::segments(&checkout, bundle);
        let digest = paths[0].file_name().unwrap().to_str().unwrap().to_owned();
        (harm.apply)(&BoxFiles::of(&checkout.path(bundle)), [&paths[0], &paths[1]]);
        let is_refused = |args: &[&str]| {
            // Uses an empty store, because the checkout's store has the intact segment.
            let output = checkout.boxbuild(args).args(["--store", "none"]).output().unwrap();
            let (notes, code) = (String::from_utf8(output.stderr).unwrap(), output.status.code());
            // Ignores the stdout of `cat`, which prints the content before the damage.
            let is_verify = args[0] == "verify";
            let result =
                if is_verify { String::from_utf8(output.stdout).unwrap() } else { String::new() };
            let what = format!("{}: {args:?}: {notes}{result}", harm.name);
            // The exit code 5 of `verify` means that a blob differs from its digest.
            let expected = if is_verify { 5 } else { 1 };
            assert_eq!(code, Some(expected), "{what}");
            what
        };
        let verified = is_refused(&["verify", bundle]);
        // A box with a missing segment cannot be opened.
        if harm.name == "missing" {
            assert!(
                verified.contains(&digest)
                    && verified.contains("is neither in harmed.box nor in the store"),
                "{verified}"
            );
        } else {
            let is_its = |line: &&str| line.starts_with("segment") && line.contains(&digest);
            let line = verified.lines().find(is_its).unwrap_or_default();
            assert!(line.starts_with(harm.verdict), "{verified}");
        }
        for args in [
            ["--format", "erofs"].as_slice(),
            &["--format", "tar"],
            &["--format", "dir"],
            &["--format", "oci", "--component", "agent"],
        ] {
            let message = is_refused(&[&["export", bundle, "--output", "out"], args].concat());
            assert!(message.contains(&digest) || message.contains(DATA), "{message}");
            assert!(!checkout.path("out").exists(), "{message}");
        }
        if let Some(says) = harm.cat {
            let message = is_refused(&["cat", bundle, "/roots/agent/srv/one"]);
            assert!(
                message.contains(says) && (says == DATA || message.contains(&digest)),
                "{message}"
            );
        }
    }
}

/// Copies the box `test.box` to `bundle`, so that damage to the copy affects no other box.
fn copy(checkout: &Checkout, bundle: &str) {
    fs::remove_dir_all(checkout.path(bundle)).ok();
    for (path, bytes) in crate::checkout::files(&checkout.path("test.box")) {
        checkout.write(&format!("{bundle}/{}", path.display()), bytes);
    }
}

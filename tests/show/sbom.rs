//! Tests of the SBOM of a box.

use std::collections::BTreeSet;
use std::fs;

use box_contract::manifest::METADATA_TYPE;
use serde_json::Value;
use testbed::Workspace;
use testbed::prerequisites::spdx_validator;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, WHOLE};
use crate::fixture::{blob, manifest};

const STATUS: &str = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\n\
                      Version: 2.36-9+deb12u4\n\nPackage: broken\nStatus: install ok installed\n";
const INSTALLED: &str = "P:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\nF:lib\nR:ld-musl.so\n\n";

/// Builds a box with packages of each package manager.
fn built() -> Checkout {
    let checkout = Checkout::new();
    let base = Layer::new()
        .file("/etc/os-release", 0o644, "ID=debian\nVERSION_ID=\"12\"\n")
        .file("/var/lib/dpkg/status", 0o644, STATUS)
        .file(
            "/usr/lib/python3/a.dist-info/METADATA",
            0o644,
            "Name: a\nVersion: 1\nLicense: Own\n",
        );
    let app = Layer::new().file("/agent", 0o755, "# /bin/sh\n").file(
        "/app/node_modules/@s/p/package.json",
        0o644,
        r#"{"name":"@s/p","version":"2"}"#,
    );
    let entrypoint = vec!["/agent".to_owned()];
    let agent = Image::new(Config { entrypoint, ..Config::default() });
    fs::remove_dir_all(checkout.path("images")).unwrap();
    checkout.image("agent", &agent.with(base.to_tar()).with(app.to_tar()));
    let alpine = Layer::new()
        .file("/etc/os-release", 0o644, "ID=alpine\nVERSION_ID=3.20.1\n")
        .file("/lib/ld-musl.so", 0o755, "")
        .file("/lib/apk/db/installed", 0o644, INSTALLED);
    checkout.image("business", &Image::new(Config::default()).with(alpine.to_tar()));
    checkout.built(WHOLE);
    checkout
}

fn document(checkout: &Checkout) -> Value {
    serde_json::from_str(&checkout.result(&["inspect", "test.box", "--sbom"])).unwrap()
}

fn texts<'v>(list: &'v Value, field: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().filter_map(|it| it[field].as_str()).collect()
}

#[test]
fn the_packages_of_all_databases_are_in_it() {
    let document = document(&built());
    let purls = document["packages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["externalRefs"][0]["referenceLocator"].as_str());
    let purls: BTreeSet<&str> = purls.collect();
    let expected = [
        "pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.1",
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u4?arch=amd64&distro=debian-12",
        "pkg:npm/%40s/p@2",
        "pkg:pypi/a@1",
    ];
    assert_eq!(purls, expected.into());
    let names: BTreeSet<&str> = texts(&document["packages"], "name").into_iter().collect();
    let parts = ["test", "agent", "business", "greet", "linux", "box-init"];
    assert!(parts.iter().all(|part| names.contains(part)), "{names:?}");
    assert!(document["comment"].as_str().unwrap().contains("Left out: /roots/agent/var/lib/dpkg"));
}

#[test]
fn every_reference_leads_somewhere() {
    let document = document(&built());
    let ids = texts(&document["packages"], "SPDXID");
    let known: BTreeSet<&str> = ids.iter().copied().chain(["SPDXRef-DOCUMENT"]).collect();
    assert_eq!(known.len(), ids.len() + 1, "an identifier is there twice");
    let relationships = &document["relationships"];
    let related = texts(relationships, "relatedSpdxElement");
    let all = texts(relationships, "spdxElementId").into_iter().chain(related.iter().copied());
    assert!(all.into_iter().all(|id| known.contains(id)));
    let contained: BTreeSet<&str> = related.into_iter().collect();
    assert_eq!(contained.len(), ids.len(), "a package belongs to nothing");
}

#[test]
fn the_validator_of_spdx_finds_nothing() {
    let validator = spdx_validator(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let checkout = built();
    let path = checkout.path("box.spdx.json");
    let text = checkout.result(&["inspect", "test.box", "--sbom"]);
    fs::write(&path, &text).unwrap();
    assert_eq!(validator.check(&path).unwrap(), "");
    // As a control, checks that the validator rejects invalid documents.
    for (from, to) in [
        ("\"spdxElementId\":\"SPDXRef-box", "\"spdxElementId\":\"SPDXRef-other"),
        ("pkg:npm/", "npm/"),
        ("\"licenseDeclared\":\"MIT\"", "\"licenseDeclared\":\"MIT-ish\""),
        ("SPDX-2.3", "SPDX-2.9"),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        assert_ne!(validator.check(&path).unwrap_or_else(|it| it.to_string()), "", "{to}");
    }
}

#[test]
fn two_builds_have_the_same_bytes_and_another_box_another_namespace() {
    let (one, two) = (built(), built());
    let sbom = |checkout: &Checkout| checkout.result(&["inspect", "test.box", "--sbom"]);
    assert_eq!(sbom(&one), sbom(&two));
    two.edit("Boxfile", "\"test\"", "\"other\"");
    two.built(&["--output", "test.box"]);
    let namespace = |checkout| document(checkout)["documentNamespace"].clone();
    assert_ne!(namespace(&one), namespace(&two));
}

/// Replaces a byte of dpkg's database in the metadata of `test.box`.
fn damage_database(checkout: &Checkout) {
    let path = blob(checkout, &manifest(checkout).blob(METADATA_TYPE).unwrap().digest);
    let mut metadata = fs::read(&path).unwrap();
    let version = b"2.36-9";
    let at = metadata.windows(version.len()).position(|it| it == version).unwrap();
    metadata[at] = b'3';
    // The blob is also in the store.
    fs::remove_file(&path).unwrap();
    fs::write(&path, metadata).unwrap();
}

#[test]
fn a_database_with_another_content_is_damage_for_every_reader() {
    let checkout = built();
    // Both listings have the same database.
    checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    checkout.result(&["update"]);
    checkout.built(&["--output", "other.box"]);
    damage_database(&checkout);
    for args in [
        &["report", "test.box", "-o", "page.html", "--json"][..],
        &["report", "test.box", "other.box", "-o", "page.html", "--json"],
        &["diff", "test.box", "other.box", "--json"],
    ] {
        let ran = checkout.run(args);
        let report = ran.json();
        assert_eq!(report["errors"][0]["code"], "box-damaged", "{args:?}: {report}");
        assert_eq!(ran.code, 1, "{args:?}");
    }
    let help = checkout.fails(&["inspect", "test.box", "--sbom"]);
    assert!(help.contains("copy or build the box again"), "{help}");
}

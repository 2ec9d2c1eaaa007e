//! Compares reports on a box with real Debian packages with the output of umoci and dpkg.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;
use testbed::Workspace;
use testbed::debian::DebianImages;
use testbed::prerequisites::{Package, packages, spdx_validator};
use testbed::program;

use crate::checkout::Checkout;

const BOXFILE: &str = "box \"real\"\nagent { image \"oci:images/real\"; }\n";

/// Returns the Debian packages in an SBOM: name and version, sorted.
fn in_sbom(document: &Value) -> Vec<String> {
    let is_deb = |it: &&Value| {
        let purl = it["externalRefs"][0]["referenceLocator"].as_str();
        purl.is_some_and(|purl| purl.starts_with("pkg:deb/debian/"))
    };
    let text = |it: &Value, field: &str| it[field].as_str().unwrap().to_owned();
    let packages = document["packages"].as_array().unwrap().iter().filter(is_deb);
    let mut found: Vec<String> =
        packages.map(|it| format!("{} {}", text(it, "name"), text(it, "versionInfo"))).collect();
    found.sort();
    found
}

/// Returns the packages that dpkg lists in the image that umoci has unpacked: name and version, sorted.
fn as_dpkg_says(checkout: &Checkout) -> Vec<String> {
    let mut dpkg = Command::new("dpkg-query");
    dpkg.args(["--admindir=out/rootfs/var/lib/dpkg", "--show"]);
    dpkg.args(["--showformat", "${Package} ${Version}\\n"]).current_dir(checkout.root());
    let text = String::from_utf8(program::run(&mut dpkg).unwrap()).unwrap();
    let mut found: Vec<String> = text.lines().map(str::to_owned).collect();
    found.sort();
    found
}

#[test]
fn files_are_as_umoci_unpacks_them_and_packages_as_dpkg_lists_them() {
    let workspace = Workspace::find();
    packages(&[Package::Umoci], &mut |line| println!("{line}")).unwrap();
    let images = DebianImages::make(&workspace, &mut |line| println!("{line}")).unwrap();
    let checkout = Checkout::new();
    symlink(&images.agent, checkout.path("images/real")).unwrap();
    checkout.write("Boxfile", BOXFILE);
    checkout.built(&["--output", "real.box"]);
    let mut umoci = Command::new("umoci");
    umoci.args(["unpack", "--image", "images/real:latest", "out"]).current_dir(checkout.root());
    program::run(&mut umoci).unwrap();

    let ran = checkout.run(&["diff", "--component", "agent", "real.box", "out/rootfs"]);
    assert_eq!((ran.code, ran.result.as_str()), (0, ""), "{}", ran.notes);

    let text = checkout.result(&["inspect", "real.box", "--sbom"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let found = in_sbom(&document);
    assert!(found.iter().any(|it| it.starts_with("python3 ")), "{found:?}");
    assert_eq!(found, as_dpkg_says(&checkout));
    checkout.write("real.spdx.json", text);
    let validator = spdx_validator(&workspace, &mut |line| println!("{line}")).unwrap();
    assert_eq!(validator.check(&checkout.path("real.spdx.json")).unwrap(), "");
}

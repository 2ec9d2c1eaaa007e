//! Tests of the SBOM of a merged root, in which each image has its own package database.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use testbed::Workspace;
use testbed::prerequisites::spdx_validator;
use testkit::images::Layer;

use crate::scene::Scene;

const DEBIAN: &str = "ID=debian\nVERSION_ID=\"12\"\n";

/// Returns a layer whose dpkg database has these packages, by name and version.
fn debian(packages: &[(&str, &str)]) -> Layer {
    let paragraph = |(name, version): &(&str, &str)| {
        format!(
            "Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n\n"
        )
    };
    let status: String = packages.iter().map(paragraph).collect();
    Layer::new().file("/etc/os-release", 0o644, DEBIAN).file("/var/lib/dpkg/status", 0o644, status)
}

fn sbom(scene: &Scene) -> String {
    let ran = scene.run(&["inspect", "one.box", "--sbom"]);
    assert_eq!((ran.code, ran.notes.as_str()), (0, ""));
    ran.result
}

/// Returns the packages in an SBOM by package URL, each with the names of the images that contain it.
fn packages(document: &Value) -> BTreeMap<&str, Vec<&str>> {
    let list = |name: &str| document[name].as_array().unwrap().iter();
    let name = |id: &Value| list("packages").find(|it| it["SPDXID"] == *id)?["name"].as_str();
    let images = |id: &Value| {
        let of = list("relationships").filter(|it| it["relatedSpdxElement"] == *id);
        of.filter_map(|it| name(&it["spdxElementId"])).collect()
    };
    let packages = list("packages").filter_map(|it| {
        let purl = it["externalRefs"][0]["referenceLocator"].as_str()?;
        Some((purl.split('?').next()?, images(&it["SPDXID"])))
    });
    packages.collect()
}

#[test]
fn the_packages_of_both_images_are_in_it() {
    let agent = debian(&[("base", "1"), ("libssl", "3.0"), ("python3", "3.11")]);
    let business = debian(&[("base", "1"), ("libssl", "3.1"), ("nodejs", "18")]);
    for policy in ["prefer-agent", "prefer-business", "drop"] {
        let decided = format!("conflict \"/var/lib/dpkg/status\" policy=\"{policy}\"\n");
        let scene = Scene::new(agent.clone(), business.clone(), &decided);
        let built = scene.builds().json();
        let text = sbom(&scene);
        let document: Value = serde_json::from_str(&text).unwrap();
        let expected = [
            ("pkg:deb/debian/base@1", vec!["agent", "business"]),
            ("pkg:deb/debian/libssl@3.0", vec!["agent"]),
            ("pkg:deb/debian/libssl@3.1", vec!["business"]),
            ("pkg:deb/debian/nodejs@18", vec!["business"]),
            ("pkg:deb/debian/python3@3.11", vec!["agent"]),
        ];
        assert_eq!(packages(&document), expected.into(), "{policy}");
        assert!(!document["comment"].as_str().unwrap().contains("Left out"), "{policy}");

        // A box that the build takes from the store has the same SBOM.
        fs::remove_dir_all(scene.path("one.box")).unwrap();
        let again = scene.builds().json();
        assert_eq!((&again["cached"], &again["box"]), (&true.into(), &built["box"]));
        assert_eq!(sbom(&scene), text);
        assert_eq!(scene.run(&["plan", "--json"]).json()["tree"], built["tree"]);
    }
}

#[test]
fn two_package_managers_are_in_it_each_with_its_own_distribution() {
    let apk = "P:busybox\nV:1.36\nA:x86_64\nL:GPL-2.0-only\nm:Jo <jo@example.org>\n\n";
    let alpine = Layer::new()
        .file("/etc/os-release", 0o644, "ID=alpine\nVERSION_ID=3.20.1\n")
        .file("/lib/apk/db/installed", 0o644, apk);
    let decided = "conflict \"/etc/os-release\" policy=\"prefer-agent\"\n";
    let scene = Scene::new(debian(&[("base", "1")]), alpine, decided);
    scene.builds();
    let text = sbom(&scene);
    let document: Value = serde_json::from_str(&text).unwrap();
    let expected = [
        ("pkg:apk/alpine/busybox@1.36", vec!["business"]),
        ("pkg:deb/debian/base@1", vec!["agent"]),
    ];
    assert_eq!(packages(&document), expected.into());
    assert!(text.contains("\"supplier\":\"Organization: Jo (jo@example.org)\""), "{text}");
    let path = scene.path("one.spdx.json");
    fs::write(&path, &text).unwrap();
    let validator = spdx_validator(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    assert_eq!(validator.check(&path).unwrap(), "");
}

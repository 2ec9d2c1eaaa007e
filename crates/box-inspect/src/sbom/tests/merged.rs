//! Two images that are merged into one root.

use std::collections::BTreeSet;

use super::*;

const BUSINESS: [Origin; 2] =
    [Origin::Layer(ComponentName::Business, 0), Origin::Layer(ComponentName::Business, 1)];

/// Returns the document of a box whose root is merged from two images with the same lower layer.
fn merged(mut root: Fixture, agent: Fixture, business: Fixture) -> Value {
    let mut plan = plan();
    plan.agent.root = "/roots/merged".to_owned();
    plan.business.as_mut().unwrap().root.clone_from(&plan.agent.root);
    keep_databases(
        &mut root.tree,
        [(ComponentName::Agent, &agent.tree), (ComponentName::Business, &business.tree)],
    );
    root.data.extend(agent.data.into_iter().chain(business.data));
    let bytes = root.bytes_of(&plan, [[0x11, 0x12], [0x11, 0x22]]);
    serde_json::from_slice(&bytes).unwrap()
}

fn status(packages: &[(&str, &str)]) -> String {
    packages
        .iter()
        .map(|(name, version)| format!("Package: {name}\nVersion: {version}\n\n"))
        .collect()
}

#[test]
fn a_merged_root_has_the_packages_of_both_images() {
    const STATUS: &str = "/var/lib/dpkg/status";
    let debian = "ID=debian\nVERSION_ID=12\n";
    let image = |origins: [Origin; 2], packages: &[(&str, &str)]| {
        let image = Fixture::default().file(origins[0], "/usr/lib/os-release", debian);
        let image = link(image, "/etc/os-release", "../usr/lib/os-release");
        image.file(origins[1], STATUS, status(packages))
    };
    let agent = image(AGENT, &[("base", "1"), ("libc6", "1"), ("python", "3")]);
    let business = image(BUSINESS, &[("base", "1"), ("libc6", "2"), ("node", "18")]);
    let root = Fixture::default()
        .file(AGENT[0], "/roots/merged/etc/os-release", debian)
        .file(AGENT[1], "/roots/merged/var/lib/dpkg/status", "Package: base\nVersion: 1\n")
        .file(AGENT[0], "/roots/merged/var/lib/dpkg/info/base.list", "")
        .file(AGENT[0], "/roots/merged/var/lib/dpkg/info/libc6.list", "")
        .file(AGENT[1], "/roots/merged/var/lib/dpkg/info/python.list", "")
        .file(BUSINESS[1], "/roots/merged/var/lib/dpkg/info/node.list", "")
        .file(
            BUSINESS[0],
            "/roots/merged/node_modules/p/package.json",
            r#"{"name":"p","version":"1"}"#,
        );
    let document = merged(root, agent, business);
    insta::assert_snapshot!(packages(&document).join("\n"), @"
    pkg:deb/debian/base@1?distro=debian-12 NOASSERTION /boxbuild/packages/agent/var/lib/dpkg/status, from agent image layer 1; /boxbuild/packages/business/var/lib/dpkg/status, from business image layer 1
    pkg:deb/debian/libc6@1?distro=debian-12 NOASSERTION /boxbuild/packages/agent/var/lib/dpkg/status, from agent image layer 1
    pkg:deb/debian/libc6@2?distro=debian-12 NOASSERTION /boxbuild/packages/business/var/lib/dpkg/status, from business image layer 2
    pkg:deb/debian/node@18?distro=debian-12 NOASSERTION /boxbuild/packages/business/var/lib/dpkg/status, from business image layer 2
    pkg:deb/debian/python@3?distro=debian-12 NOASSERTION /boxbuild/packages/agent/var/lib/dpkg/status, from agent image layer 2
    pkg:npm/p@1 NOASSERTION /roots/merged/node_modules/p/package.json, from business image layer 1
    ");
    let parts: BTreeSet<&str> = containers(&document, "base").into_iter().collect();
    assert_eq!(parts.len(), 2, "both images contain it: {parts:?}");
    assert_eq!(containers(&document, "libc6").len(), 2, "one for each version");
    assert!(!document["comment"].as_str().unwrap().contains("Left out"));
}

/// Returns the identifiers of the items that contain the packages with this name.
fn containers<'d>(document: &'d Value, name: &str) -> Vec<&'d str> {
    let packages = document["packages"].as_array().unwrap().iter();
    let ids: Vec<&Value> =
        packages.filter(|it| it["name"] == name).map(|it| &it["SPDXID"]).collect();
    let relationships = document["relationships"].as_array().unwrap().iter();
    let of = relationships.filter(|it| ids.contains(&&it["relatedSpdxElement"]));
    of.map(|it| it["spdxElementId"].as_str().unwrap()).collect()
}

#[test]
fn a_merged_root_has_the_packages_of_two_package_managers() {
    let agent = Fixture::default()
        .file(AGENT[0], "/etc/os-release", "ID=debian\n")
        .file(AGENT[0], "/var/lib/dpkg/status.d/tzdata", "Package: tzdata\nVersion: 1\n")
        .file(AGENT[0], "/var/lib/dpkg/status.d/tzdata.md5sums", "");
    let business = Fixture::default().file(BUSINESS[0], "/etc/os-release", "ID=alpine\n").file(
        BUSINESS[1],
        "/usr/lib/apk/db/installed",
        "P:a\nV:2\nA:x86_64\nm:Jo <jo@a.org>\n",
    );
    let business = link(business, "/lib", "usr/lib");
    let root = Fixture::default().file(AGENT[0], "/roots/merged/etc/os-release", "ID=debian\n");
    let document = merged(root, agent, business);
    let a = document["packages"].as_array().unwrap().iter().find(|it| it["name"] == "a");
    assert_eq!(a.unwrap()["supplier"], "Organization: Jo (jo@a.org)");
    insta::assert_snapshot!(packages(&document).join("\n"), @"
    pkg:apk/alpine/a@2?arch=x86_64&distro=alpine NOASSERTION /boxbuild/packages/business/lib/apk/db/installed, from business image layer 2
    pkg:deb/debian/tzdata@1?distro=debian NOASSERTION /boxbuild/packages/agent/var/lib/dpkg/status.d/tzdata, from agent image layer 1
    ");
}

#[test]
fn images_without_packages_have_no_databases() {
    let image = || {
        let image = Fixture::default().file(AGENT[0], "/etc/os-release", "ID=debian\n");
        image.leaf(AGENT[0], "/var/lib/dpkg/status", Leaf::Fifo)
    };
    let mut root = Tree::default();
    keep_databases(&mut root, [(ComponentName::Agent, &image().tree)]);
    assert_eq!(entries(&root).count(), 1);
}

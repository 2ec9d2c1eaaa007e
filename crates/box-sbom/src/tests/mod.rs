//! Package databases: real ones, malformed ones and hostile ones.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Write};

use box_contract::{ComponentName, RunPlan};
use box_digest::Digest;
use box_tree::listing::{FileOrigin, ImageOrigin, Origins};
use box_tree::{Content, Inode, Leaf, Meta, Origin, Tree};
use proptest::prelude::*;
use serde_json::Value;

use super::*;

mod merged;

fn plan() -> RunPlan {
    let mut plan = testkit::test_box::config().plan;
    plan.name = "test".to_owned();
    let mut business = plan.agent.clone();
    business.root = "/roots/business".to_owned();
    plan.business = Some(business);
    plan
}

/// A tree that is being made, and the bytes of its files.
#[derive(Default)]
struct Fixture {
    tree: Tree,
    data: HashMap<Blake3Digest, Vec<u8>>,
}

struct Data<'d>(&'d HashMap<Blake3Digest, Vec<u8>>);

impl ReadContent for Data<'_> {
    fn copy_head(&mut self, content: Content, limit: u64, out: &mut dyn Write) -> io::Result<()> {
        let data = self.0.get(&content.hash).ok_or_else(|| io::Error::other("no data"))?;
        io::copy(&mut data.take(limit), out).map(drop)
    }
}

impl Fixture {
    /// Adds a file of the agent's image (layer 0 or 1), or of the skill.
    fn file(mut self, origin: Origin, path: &str, data: impl AsRef<[u8]>) -> Self {
        let content = Content::of(data.as_ref());
        self.data.insert(content.hash, data.as_ref().to_vec());
        self.leaf(origin, path, Leaf::File(content))
    }

    fn leaf(mut self, origin: Origin, path: &str, leaf: Leaf) -> Self {
        let (directory, name) = path.rsplit_once('/').unwrap();
        let directory = self.tree.make_directories(directory.as_bytes()).unwrap();
        let inode = Inode::leaf(Meta::root_owned(0o644), leaf);
        let inode = self.tree.add(inode.from(origin));
        self.tree.link(directory, name.as_bytes(), inode);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes_of(&plan(), [[0x11, 0x12], [0x21, 0x22]])
    }

    /// Writes the document of a box whose images have layers of these digests.
    fn bytes_of(&self, plan: &RunPlan, layers: [[u8; 2]; 2]) -> Vec<u8> {
        self.bytes_with(plan, layers, Vec::new())
    }

    fn bytes_with(&self, plan: &RunPlan, layers: [[u8; 2]; 2], files: Vec<FileOrigin>) -> Vec<u8> {
        let digest = |byte| Digest::from_bytes([byte; 32]);
        let image = |(component, layers): (_, [u8; 2])| ImageOrigin {
            component,
            layers: layers.map(digest).to_vec(),
        };
        let origins = Origins {
            images: ComponentName::ALL.into_iter().zip(layers).map(image).collect(),
            program: None,
            skills: vec!["greet".to_owned()],
            files,
        };
        let listing = Listing { tree: self.tree.clone(), origins };
        let subject = Subject {
            digest: Digest::from_bytes([5; 32]),
            plan,
            listing: &listing,
            tree: Blake3Digest::from_bytes([0; 32]),
            kernel: (Digest::from_bytes([3; 32]), "Linux version 6.12.34 (me@here) #1\n"),
            init: Digest::from_bytes([4; 32]),
        };
        let mut bytes = Vec::new();
        super::document(&subject, &mut Data(&self.data)).unwrap().write(&mut bytes).unwrap();
        bytes
    }

    fn document(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap()
    }

    fn packages(&self) -> Vec<String> {
        packages(&self.document())
    }

    fn comment(&self) -> String {
        self.document()["comment"].as_str().unwrap().to_owned()
    }
}

/// Lists the packages of databases: purl, license, and where they came from.
fn packages(document: &Value) -> Vec<String> {
    let packages = document["packages"].as_array().unwrap().iter();
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let mut packages: Vec<String> = packages
        .filter_map(|it| {
            let purl = text(&it["externalRefs"].get(0)?["referenceLocator"]);
            let from = text(&it["sourceInfo"]);
            let from: Vec<_> = from.split("; ").map(|it| it.split(" sha256:").next()).collect();
            let from = from.into_iter().flatten().collect::<Vec<_>>().join("; ");
            Some(format!("{purl} {} {from}", text(&it["licenseDeclared"])))
        })
        .collect();
    packages.sort();
    packages
}

const AGENT: [Origin; 2] =
    [Origin::Layer(ComponentName::Agent, 0), Origin::Layer(ComponentName::Agent, 1)];

const STATUS: &str = "Package: libc6
Status: install ok installed
Maintainer: Somebody <somebody@example.org>
Architecture: amd64
Multi-Arch: same
Version: 2.36-9+deb12u4
Description: a library
 Version: of the description

Package: gone
Status: deinstall ok config-files
Version: 1

Package: base-files
Status: install ok installed
Architecture: amd64
Version: 12.4+deb12u5

Package: broken
Status: install ok installed

Package: bad name
Version: 1
";

#[test]
fn dpkg() {
    let fixture = Fixture::default()
        .file(AGENT[0], "/roots/agent/usr/lib/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
        .leaf(
            AGENT[0],
            "/roots/agent/etc/os-release",
            Leaf::Symlink(b"../usr/lib/os-release".into()),
        )
        .file(AGENT[1], "/roots/agent/var/lib/dpkg/status", STATUS)
        .file(AGENT[0], "/roots/agent/var/lib/dpkg/info/base-files.list", "")
        .file(AGENT[0], "/roots/agent/var/lib/dpkg/info/libc6:amd64.list", "")
        .file(
            AGENT[1],
            "/roots/agent/var/lib/dpkg/status.d/tzdata",
            "Package: tzdata\nVersion: 2024a-0\n",
        )
        .file(AGENT[1], "/roots/agent/var/lib/dpkg/status.d/tzdata.md5sums", "00  usr/x\n");
    let document = fixture.document();
    let libc = document["packages"].as_array().unwrap().iter().find(|it| it["name"] == "libc6");
    assert_eq!(libc.unwrap()["supplier"], "Organization: Somebody (somebody@example.org)");
    insta::assert_snapshot!(fixture.packages().join("\n"), @r"
    pkg:deb/debian/base-files@12.4%2Bdeb12u5?arch=amd64&distro=debian-12 NOASSERTION /roots/agent/var/lib/dpkg/status, from agent image layer 1
    pkg:deb/debian/libc6@2.36-9%2Bdeb12u4?arch=amd64&distro=debian-12 NOASSERTION /roots/agent/var/lib/dpkg/status, from agent image layer 1
    pkg:deb/debian/tzdata@2024a-0?distro=debian-12 NOASSERTION /roots/agent/var/lib/dpkg/status.d/tzdata, from agent image layer 2
    ");
    insta::assert_snapshot!(fixture.comment(), @"The box has the tree blake3:0000000000000000000000000000000000000000000000000000000000000000. Left out: /roots/agent/var/lib/dpkg/status: an entry has no name or version that a package can have; /roots/agent/var/lib/dpkg/status: an entry has no name or version that a package can have.");
}

#[test]
fn a_package_counts_if_its_files_are_there() {
    let states = [
        ("installed", true),
        ("triggers-pending", true),
        ("triggers-awaited", true),
        ("unpacked", true),
        ("half-configured", true),
        ("half-installed", true),
        ("config-files", false),
        ("not-installed", false),
    ];
    let entry = |(state, _): &(&str, bool)| {
        format!("Package: p-{state}\nStatus: deinstall ok {state}\nVersion: 1\n\n")
    };
    let status: String = states.iter().map(entry).collect();
    let fixture = Fixture::default().file(AGENT[0], "/roots/agent/var/lib/dpkg/status", status);
    let found = fixture.packages();
    for (state, expected) in states {
        let purl = format!("pkg:deb/debian/p-{state}@1 ");
        assert_eq!(found.iter().any(|it| it.starts_with(&purl)), expected, "{state}");
    }
}

#[test]
fn pacman() {
    let desc = |text: &str| text.replace('|', "\n");
    let fixture = Fixture::default()
        .file(AGENT[0], "/roots/agent/etc/os-release", "ID=arch\n")
        .file(
            AGENT[1],
            "/roots/agent/var/lib/pacman/local/bash-5.2.037-1/desc",
            desc("%NAME%|bash||%VERSION%|5.2.037-1||%ARCH%|x86_64||%LICENSE%|GPL-3.0-or-later|MIT||%PACKAGER%|A B <a@example.org>|"),
        )
        .file(AGENT[0], "/roots/agent/var/lib/pacman/local/ALPM_DB_VERSION", "9\n")
        .file(AGENT[0], "/roots/agent/var/lib/pacman/local/broken-1/desc", desc("%NAME%|broken|"));
    insta::assert_snapshot!(fixture.packages().join("\n"), @"pkg:alpm/arch/bash@5.2.037-1?arch=x86_64&distro=arch GPL-3.0-or-later AND MIT /roots/agent/var/lib/pacman/local/bash-5.2.037-1/desc, from agent image layer 2");
    let document = fixture.document();
    let bash = document["packages"].as_array().unwrap().iter().find(|it| it["name"] == "bash");
    assert_eq!(bash.unwrap()["supplier"], "Organization: A B (a@example.org)");
    assert!(fixture.comment().ends_with(
        "Left out: /roots/agent/var/lib/pacman/local/broken-1/desc: an entry has no name or version that a package can have."
    ), "{}", fixture.comment());
}

#[test]
fn a_database_that_is_not_read_is_named() {
    for (path, manager) in [
        ("/usr/lib/sysimage/rpm/rpmdb.sqlite", "rpm"),
        ("/var/lib/rpm/Packages", "rpm"),
        ("/nix/var/nix/db/db.sqlite", "Nix"),
        ("/var/db/pkg/sys-apps/sed-4.9/PF", "Portage"),
        ("/var/lib/opkg/status", "opkg"),
    ] {
        let whole = format!("/roots/agent{path}");
        let fixture = Fixture::default().file(AGENT[0], &whole, "SQLite format 3");
        let comment = fixture.comment();
        assert!(comment.contains(&format!("the packages of {manager} are not read.")), "{comment}");
        assert!(comment.contains("Left out: /roots/agent/"), "{comment}");
    }
    let fixture =
        Fixture::default().file(AGENT[0], "/roots/agent/usr/lib/sysimage/rpm/rpmdb.sqlite", "");
    let fixture = link(fixture, "/roots/agent/var/lib/rpm", "../../usr/lib/sysimage/rpm");
    assert_eq!(fixture.comment().matches("rpm are not read").count(), 1);
}

#[test]
fn apk() {
    let installed = "C:Q1\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\np:so:libc.musl=1\nF:lib\nR:ld-musl.so\n\
                     \nP:busybox\nV:1.36.1-r29\nA:x86_64\nL:GPL-2.0-only\nF:bin\nF:etc\nR:none\n\nV:1\n";
    let business = Origin::Layer(ComponentName::Business, 1);
    let fixture = Fixture::default()
        .file(business, "/roots/business/etc/os-release", "ID=alpine\nVERSION_ID=3.20.1\n")
        .file(Origin::Layer(ComponentName::Business, 0), "/roots/business/lib/ld-musl.so", "")
        .file(business, "/roots/business/lib/apk/db/installed", installed);
    insta::assert_snapshot!(fixture.packages().join("\n"), @r"
    pkg:apk/alpine/busybox@1.36.1-r29?arch=x86_64&distro=alpine-3.20.1 GPL-2.0-only /roots/business/lib/apk/db/installed, from business image layer 2
    pkg:apk/alpine/musl@1.2.5-r0?arch=x86_64&distro=alpine-3.20.1 MIT /roots/business/lib/apk/db/installed, from business image layer 1
    ");
    insta::assert_snapshot!(fixture.comment(), @"The box has the tree blake3:0000000000000000000000000000000000000000000000000000000000000000. Left out: /roots/business/lib/apk/db/installed: an entry has no name or version that a package can have.");
}

fn link(fixture: Fixture, path: &str, target: &str) -> Fixture {
    fixture.leaf(AGENT[0], path, Leaf::Symlink(target.into()))
}

#[test]
fn databases_are_read_once_through_links_within_the_component() {
    let fixture = Fixture::default()
        .file(AGENT[1], "/roots/agent/usr/lib/dpkg-db/status", "Package: a\nVersion: 1\n")
        .file(AGENT[0], "/roots/agent/usr/lib/dpkg-db/info/a.list", "")
        .file(AGENT[0], "/roots/agent/usr/lib/apk/db/installed", "P:b\nV:2\nF:lib\nR:b.so\n")
        .file(AGENT[1], "/roots/agent/usr/lib/b.so", "");
    let fixture = link(fixture, "/roots/agent/var/lib/dpkg", "/usr/lib/dpkg-db");
    let fixture = link(fixture, "/roots/agent/lib", "usr/lib");
    let fixture = link(fixture, "/roots/agent/var/lib/apk", "../../../../lib/apk");
    insta::assert_snapshot!(fixture.packages().join("\n"), @"
    pkg:apk/alpine/b@2 NOASSERTION /roots/agent/lib/apk/db/installed, from agent image layer 2
    pkg:deb/debian/a@1 NOASSERTION /roots/agent/var/lib/dpkg/status, from agent image layer 1
    ");
    assert!(!fixture.comment().contains("Left out"), "{}", fixture.comment());
}

#[test]
fn links_that_leave_the_component_and_databases_that_are_no_files_are_noted() {
    let fixture = Fixture::default()
        .file(AGENT[0], "/roots/business/dpkg/status", "Package: b\nVersion: 1\n")
        .leaf(AGENT[0], "/roots/agent/lib/apk/db/installed", Leaf::Fifo)
        .leaf(AGENT[0], "/roots/agent/x/node_modules/a/package.json", Leaf::Symlink(b"b".into()));
    let fixture = link(fixture, "/roots/agent/var/lib/dpkg", "/roots/business/dpkg");
    assert_eq!(fixture.packages(), [""; 0]);
    insta::assert_snapshot!(fixture.comment().split_once("Left out: ").unwrap().1, @"/roots/agent/var/lib/dpkg: the symbolic link leads nowhere in the component; /roots/agent/lib/apk/db/installed: it is not read, being a fifo; /roots/agent/x/node_modules/a/package.json: it is not read, being a symlink.");
}

#[test]
fn links_without_an_end_cost_a_bounded_time() {
    let packages: Vec<_> = (0..1000).map(|it| format!("P:a{it}\nV:1\nF:l/l\nR:x\n\n")).collect();
    let fixture = Fixture::default().file(AGENT[0], "/roots/agent/a/b", "").file(
        AGENT[0],
        "/roots/agent/lib/apk/db/installed",
        packages.concat(),
    );
    // Each name below `l` is 1,600 parts of links away.
    let fixture = link(fixture, "/roots/agent/l", &("a/../".repeat(800) + "."));
    assert_eq!(fixture.packages().len(), 1000);
    assert!(fixture.comment().contains("its links are not followed any further"));
}

#[test]
fn python_and_npm() {
    let python = "/roots/agent/usr/lib/python3/dist-packages";
    let fixture = Fixture::default()
        .file(
            AGENT[1],
            &format!("{python}/Flask_Cors-4.0.dist-info/METADATA"),
            "Metadata-Version: 2.1\nName: Flask_Cors\nVersion: 4.0\nLicense: MIT License\n\nVersion: 9\n",
        )
        .file(
            AGENT[0],
            &format!("{python}/new-1.dist-info/METADATA"),
            "Name: new\nVersion: 1\nLicense: UNKNOWN\nLicense-Expression: MIT OR Apache-2.0\n",
        )
        .file(AGENT[0], &format!("{python}/old.egg-info"), "Name: old\nVersion: 0.1\nLicense: UNKNOWN\n")
        .file(AGENT[0], &format!("{python}/odd.egg-info/PKG-INFO"), [0xff, 0xfe, 0x00])
        .file(
            Origin::Skill(0),
            "/a3s/skills/greet/node_modules/@scope/pad/package.json",
            r#"{"name":"@scope/pad","version":"1.0.0","license":{"type":"ISC"}}"#,
        )
        .file(AGENT[0], "/roots/agent/app/node_modules/x/package.json", r#"{"name":"x"}"#);
    insta::assert_snapshot!(fixture.packages().join("\n"), @r"
    pkg:npm/%40scope/pad@1.0.0 ISC /a3s/skills/greet/node_modules/@scope/pad/package.json, from skill greet
    pkg:pypi/flask-cors@4.0 LicenseRef-d159267eeb888180 /roots/agent/usr/lib/python3/dist-packages/Flask_Cors-4.0.dist-info/METADATA, from agent image layer 2
    pkg:pypi/new@1 MIT OR Apache-2.0 /roots/agent/usr/lib/python3/dist-packages/new-1.dist-info/METADATA, from agent image layer 1
    pkg:pypi/old@0.1 NOASSERTION /roots/agent/usr/lib/python3/dist-packages/old.egg-info, from agent image layer 1
    ");
    insta::assert_snapshot!(fixture.comment(), @"The box has the tree blake3:0000000000000000000000000000000000000000000000000000000000000000. Left out: /roots/agent/app/node_modules/x/package.json: it has no name and version that a package can have; /roots/agent/usr/lib/python3/dist-packages/odd.egg-info/PKG-INFO: it has no name and version that a package can have.");
}

#[test]
fn a_file_of_the_checkout_is_a_part_that_has_packages() {
    let path = "/roots/agent/app/node_modules/pad/package.json";
    let fixture =
        Fixture::default().file(Origin::File(1), path, r#"{"name":"pad","version":"1.0.0"}"#);
    let file = |component| FileOrigin { component, path: "app".to_owned() };
    let files = ComponentName::ALL.into_iter().rev().map(file).collect();
    let bytes = fixture.bytes_with(&plan(), [[0x11, 0x12], [0x21, 0x22]], files);
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        packages(&document),
        [format!("pkg:npm/pad@1.0.0 NOASSERTION {path}, from agent file app")]
    );
    let relationships = document["relationships"].as_array().unwrap().iter();
    let of = |it: &Value| it["spdxElementId"].as_str().unwrap().to_owned();
    let pad = |it: &&Value| it["relatedSpdxElement"].as_str().unwrap().contains("npm-pad");
    let within: Vec<String> = relationships.filter(pad).map(of).collect();
    let parts = document["packages"].as_array().unwrap().iter();
    let parts: Vec<&str> = parts.filter_map(|it| it["SPDXID"].as_str()).collect();
    assert!(within.len() == 1 && within[0].starts_with("SPDXRef-file-agent-app-"), "{within:?}");
    assert!(parts.contains(&within[0].as_str()));
    assert_eq!(parts.iter().filter(|it| it.starts_with("SPDXRef-file-")).count(), 2);
}

#[test]
fn a_whole_document() {
    let package = r#"{"name":"pad","version":"1.0.0","license":"Beerware"}"#;
    let fixture =
        Fixture::default().file(AGENT[1], "/roots/agent/node_modules/pad/package.json", package);
    let Value::Object(fields) = fixture.document() else { panic!("no object") };
    let lines = fields.iter().flat_map(|(name, value)| match value {
        Value::Array(items) => items.iter().map(|item| format!("{name}: {item}")).collect(),
        value => vec![format!("{name}: {value}")],
    });
    // The digests of the fixture are of one digit each.
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = ["10", "11", "12", "20", "21", "22", "03", "04"]
        .iter()
        .fold(text, |text, byte| text.replace(&byte.repeat(32), &format!("{byte}…")));
    insta::assert_snapshot!(text, @r#"
    SPDXID: "SPDXRef-DOCUMENT"
    comment: "The box has the tree blake3:0000000000000000000000000000000000000000000000000000000000000000."
    creationInfo: {"comment":"The time is not that of a build: the same input gives the same bytes.","created":"1970-01-01T00:00:00Z","creators":["Tool: boxbuild"]}
    dataLicense: "CC0-1.0"
    documentNamespace: "urn:boxbuild:sbom:6589f726a1377190276f90b2c627efc661c8767c85ddba59cec90315d3f649e6"
    hasExtractedLicensingInfos: {"extractedText":"Beerware","licenseId":"LicenseRef-ab108a2a14d206d0"}
    name: "test"
    packages: {"SPDXID":"SPDXRef-box-box-6a00edf385bdb672","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"test","sourceInfo":"tree blake3:0000000000000000000000000000000000000000000000000000000000000000","supplier":"NOASSERTION","versionInfo":"sha256:0505050505050505050505050505050505050505050505050505050505050505"}
    packages: {"SPDXID":"SPDXRef-image-agent-ed46138788b87ab9","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"agent","primaryPackagePurpose":"CONTAINER","sourceInfo":"layers, the lowest first: sha256:11…, sha256:12…","supplier":"NOASSERTION"}
    packages: {"SPDXID":"SPDXRef-image-business-adca5f6c0480f90c","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"business","primaryPackagePurpose":"CONTAINER","sourceInfo":"layers, the lowest first: sha256:21…, sha256:22…","supplier":"NOASSERTION"}
    packages: {"SPDXID":"SPDXRef-init-box-init-1c78426cee81b8c4","checksums":[{"algorithm":"SHA256","checksumValue":"04…"}],"copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"box-init","supplier":"NOASSERTION","versionInfo":"sha256:04…"}
    packages: {"SPDXID":"SPDXRef-kernel-linux-65df69a785a31041","checksums":[{"algorithm":"SHA256","checksumValue":"03…"}],"copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"linux","primaryPackagePurpose":"OPERATING-SYSTEM","supplier":"NOASSERTION","versionInfo":"6.12.34"}
    packages: {"SPDXID":"SPDXRef-npm-pad-1.0.0-00c89fe9806c188b","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","externalRefs":[{"referenceCategory":"PACKAGE-MANAGER","referenceLocator":"pkg:npm/pad@1.0.0","referenceType":"purl"}],"filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"LicenseRef-ab108a2a14d206d0","name":"pad","sourceInfo":"/roots/agent/node_modules/pad/package.json, from agent image layer 2 sha256:12…","supplier":"NOASSERTION","versionInfo":"1.0.0"}
    packages: {"SPDXID":"SPDXRef-skill-greet-011788819c5809ad","copyrightText":"NOASSERTION","downloadLocation":"NOASSERTION","filesAnalyzed":false,"licenseConcluded":"NOASSERTION","licenseDeclared":"NOASSERTION","name":"greet","supplier":"NOASSERTION"}
    relationships: {"relatedSpdxElement":"SPDXRef-box-box-6a00edf385bdb672","relationshipType":"DESCRIBES","spdxElementId":"SPDXRef-DOCUMENT"}
    relationships: {"relatedSpdxElement":"SPDXRef-image-agent-ed46138788b87ab9","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-image-business-adca5f6c0480f90c","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-init-box-init-1c78426cee81b8c4","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-kernel-linux-65df69a785a31041","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-skill-greet-011788819c5809ad","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-box-box-6a00edf385bdb672"}
    relationships: {"relatedSpdxElement":"SPDXRef-npm-pad-1.0.0-00c89fe9806c188b","relationshipType":"CONTAINS","spdxElementId":"SPDXRef-image-agent-ed46138788b87ab9"}
    spdxVersion: "SPDX-2.3"
    "#);
}

#[test]
fn equal_trees_have_equal_documents_and_others_other_namespaces() {
    let make = |version| {
        let status = format!("Package: a\nVersion: {version}\n");
        Fixture::default().file(AGENT[0], "/roots/agent/var/lib/dpkg/status", status)
    };
    assert_eq!(make(1).bytes(), make(1).bytes());
    let namespace = |fixture: &Fixture| fixture.document()["documentNamespace"].clone();
    assert_ne!(namespace(&make(1)), namespace(&make(2)));
}

#[test]
fn what_is_too_large_or_hostile_is_left_out_and_said() {
    let hostile = "Package: \u{1b}[2Jx\nVersion: 1\n\nPackage: ok\nVersion: 1\u{9b}\n\nPackage: a\nVersion: 1\n";
    let deep = "[".repeat(200_000);
    let mut fixture = Fixture::default()
        .file(AGENT[0], "/roots/agent/var/lib/dpkg/status", hostile)
        .file(AGENT[0], "/roots/agent/node_modules/deep/package.json", deep)
        .leaf(
            AGENT[0],
            "/roots/agent/node_modules/\u{1b}huge/package.json",
            Leaf::File(Content { hash: Blake3Digest::from_bytes([9; 32]), size: 1 << 40 }),
        )
        .leaf(AGENT[0], "/roots/agent/node_modules/pipe/package.json", Leaf::Fifo);
    for number in 0..60 {
        let path = format!("/roots/agent/node_modules/n{number}/package.json");
        fixture = fixture.file(AGENT[0], &path, "{}");
    }
    assert_eq!(
        fixture.packages(),
        [
            "pkg:deb/debian/a@1 NOASSERTION /roots/agent/var/lib/dpkg/status, from agent image layer 1"
        ]
    );
    let comment = fixture.comment();
    assert!(
        comment
            .contains("\u{fffd}huge/package.json: it is not read, having more than 1048576 bytes")
    );
    assert!(comment.ends_with("; and 15 more."), "{comment}");
    let bytes = String::from_utf8(fixture.bytes()).unwrap();
    assert!(!bytes.contains(['\u{1b}', '\u{9b}']));
}

#[test]
fn beyond_the_bound_packages_are_not_read() {
    let status = "Package: a\nVersion: 1\n\n".repeat(scan::PACKAGES_MAX + 5);
    let fixture = Fixture::default()
        .file(AGENT[0], "/roots/agent/var/lib/dpkg/status", status)
        .file(AGENT[0], "/roots/agent/b.dist-info/METADATA", "Name: b\nVersion: 1\n");
    assert_eq!(
        fixture.packages(),
        [
            "pkg:deb/debian/a@1 NOASSERTION /roots/agent/var/lib/dpkg/status, from agent image layer 1"
        ]
    );
    let left_out = "the rest is not read: a box has fewer packages";
    assert_eq!(fixture.comment().matches(left_out).count(), 2);
}

#[test]
fn beyond_the_bound_on_their_paths_packages_are_not_read() {
    let deep = format!("/roots/agent{}", "/nnnnnnnnnnnnnnn".repeat(250));
    let path = |number: usize| format!("{deep}/{number:06}.egg-info");
    let most = scan::PATHS_MAX / path(0).len();
    let fixture = (0..most + 5).fold(Fixture::default(), |fixture, number| {
        fixture.file(AGENT[0], &path(number), "Name: a\nVersion: 1\n")
    });
    let bytes = fixture.bytes();
    let count = bytes.windows(10).filter(|it| it == b"pkg:pypi/a").count();
    assert_eq!(count, most);
    let left_out = "the rest is not read: the paths of a box's packages are shorter";
    let place = format!("{}: {left_out}", path(most));
    assert!(fixture.comment().contains(&place), "{}", &fixture.comment()[..200]);
}

#[test]
fn all_databases_together_have_a_bound() {
    let mut fixture = Fixture::default().file(AGENT[0], "/data", "Name: a\nVersion: 1\n");
    let hash = Content::of(b"Name: a\nVersion: 1\n").hash;
    for number in 0..520 {
        let path = format!("/roots/agent/{number}.dist-info/METADATA");
        fixture = fixture.leaf(AGENT[0], &path, Leaf::File(Content { hash, size: 1 << 20 }));
    }
    assert_eq!(fixture.packages().len(), 512);
    assert!(fixture.comment().contains("it is not read: the files before it had 536870912 bytes"));
}

/// Something like a database: lines with fields that are read, and others.
fn database() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just("Package"),
        Just("Version"),
        Just("Name"),
        Just("P"),
        Just("V"),
        Just("F"),
        Just("R"),
        Just("License"),
        Just("Status"),
        Just("ID"),
        Just("VERSION_ID"),
    ];
    let line = prop_oneof![
        (name, "[ :=]{1,2}", "\\PC{0,6}")
            .prop_map(|(name, sign, value)| { format!("{name}{sign}{value}\n").into_bytes() }),
        Just(b"\n".to_vec()),
        Just(br#"{"name":"a","version":"1"}"#.to_vec()),
        prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(line, 0..12).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn whatever_is_in_a_database_there_is_a_document(data in database()) {
        let mut fixture = Fixture::default();
        for path in [
            "/roots/agent/etc/os-release",
            "/roots/agent/var/lib/dpkg/status",
            "/roots/agent/lib/apk/db/installed",
            "/roots/agent/a.dist-info/METADATA",
            "/roots/agent/node_modules/a/package.json",
        ] {
            fixture = fixture.file(AGENT[0], path, &data);
        }
        let document = fixture.document();
        let packages = document["packages"].as_array().unwrap();
        let ids: BTreeSet<&str> = packages.iter().filter_map(|it| it["SPDXID"].as_str()).collect();
        prop_assert_eq!(ids.len(), packages.len());
        let allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
        prop_assert!(ids.iter().all(|id| id.starts_with("SPDXRef-") && id.chars().all(allowed)));
        let text = String::from_utf8(fixture.bytes()).unwrap();
        prop_assert_eq!(safe_text::shown(&text), text);
    }
}

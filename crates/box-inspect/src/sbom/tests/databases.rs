//! The databases of each package manager.

use super::*;

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

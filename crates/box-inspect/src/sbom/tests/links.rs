//! Databases behind symbolic links.

use super::*;

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
    // The link `l` has 1,600 components, which each path below `l` follows.
    let fixture = link(fixture, "/roots/agent/l", &("a/../".repeat(800) + "."));
    assert_eq!(fixture.packages().len(), 1000);
    assert!(fixture.comment().contains("its links are not followed any further"));
}

//! Databases that are malformed, or larger than is read.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

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
    let status = "Package: a\nVersion: 1\n\n".repeat(scan::MAX_PACKAGES + 5);
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
    let most = scan::MAX_PATHS / path(0).len();
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

/// Generates texts that resemble a database: lines with fields that are read, and other lines.
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

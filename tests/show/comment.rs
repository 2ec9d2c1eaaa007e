//! Tests of `boxbuild diff --format markdown`.

use std::fs;

use testbed::prerequisites::{Markdown, markdown};
use testbed::{DockerRegistry, Workspace};
use testkit::images::{Config, Image, Layer};

use crate::checkout::{Checkout, Ran, WHOLE, shown};

/// Returns an entry of dpkg's database.
fn package(name: &str, version: &str) -> String {
    format!(
        "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n"
    )
}

/// Writes an image of the agent, whose top layer has dpkg's database and more files.
fn agent(checkout: &Checkout, status: &str, files: &[(&str, &str)]) {
    let base = Layer::new().file("/agent", 0o755, "# /bin/sh\n").to_tar();
    let mut top = Layer::new()
        .file("/etc/os-release", 0o644, "ID=debian\nVERSION_ID=\"12\"\n")
        .file("/var/lib/dpkg/status", 0o644, status);
    for (path, data) in files {
        top = top.file(path, 0o644, *data);
    }
    let entrypoint = vec!["/agent".to_owned()];
    let image = Image::new(Config { entrypoint, ..Config::default() });
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &image.with(base).with(top.to_tar()));
}

/// Builds `old.box` and `new.box`, which differ in everything that a comment has.
fn two_boxes() -> Checkout {
    let checkout = Checkout::new();
    let status = package("gone", "1") + &package("libc6", "2.36-9") + &package("same", "1");
    agent(&checkout, &status, &[("/data/old", "old"), ("/data/both", "one")]);
    checkout.built(&["--output", "old.box"]);
    let status = package("libc6", "2.36-10") + &package("new", "1:2") + &package("same", "1");
    agent(&checkout, &status, &[("/data/both", "other"), ("/data/large", &"x".repeat(5000))]);
    let more = "    health \"tcp\"\n    capabilities add=\"NET_RAW\"\n    env FEATURE=\"on\"\n";
    checkout.edit("Boxfile", "    health \"tcp\"\n", more);
    let more = "budget total=\"900ms\"\nnetwork \"shared\"\nvm cpus=2";
    checkout.edit("Boxfile", "vm cpus=1", more);
    checkout.result(&["update"]);
    checkout.built(&["--output", "new.box"]);
    checkout
}

/// Replaces both sizes of the box, which contain that of the init, so that only their difference is
/// left.
fn without_sizes_of_box(comment: &str) -> String {
    let line = |line: &str| {
        let Some(row) = line.strip_prefix("| box |") else { return line.to_owned() };
        let cells: Vec<&str> = row.split('|').collect();
        assert!(cells[..2].iter().all(|it| it.ends_with(" MiB ")), "{line}");
        format!("| box | SIZE | SIZE |{}|", cells[2])
    };
    comment.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn comment(checkout: &Checkout, args: &[&str]) -> Ran {
    checkout.run(&[&["diff", "--format", "markdown"], args].concat())
}

#[test]
fn a_comment_says_what_a_change_allows_installs_and_costs() {
    let checkout = two_boxes();
    let ran = comment(&checkout, &["old.box", "new.box"]);
    assert_eq!((ran.code, ran.notes.as_str()), (5, ""));
    insta::assert_snapshot!(without_sizes_of_box(&shown(&ran.result)));
    let same = comment(&checkout, &["old.box", "old.box"]);
    assert_eq!(same.code, 0);
    insta::assert_snapshot!(without_sizes_of_box(&shown(&same.result)));
}

#[test]
fn an_ignored_field_hides_no_package() {
    let checkout = Checkout::new();
    for (name, version) in [("old.box", "1"), ("new.box", "2")] {
        agent(&checkout, &package("libc6", version), &[]);
        checkout.result(&["update"]);
        checkout.built(&["--output", name]);
    }
    let text = checkout.run(&["diff", "old.box", "new.box", "--ignore", "content"]).result;
    assert!(text.starts_with("package  agent deb libc6  1 → 2\n"), "{text}");
}

#[test]
fn packages_and_permissions_are_in_the_other_forms_too() {
    let checkout = two_boxes();
    let text = checkout.run(&["diff", "old.box", "new.box"]).result;
    let lines: Vec<&str> = text.lines().filter(|it| it.starts_with("package")).collect();
    let expected = [
        "package  agent deb gone  -1",
        "package  agent deb libc6  2.36-9 → 2.36-10",
        "package  agent deb new  +1:2",
    ];
    assert_eq!(lines, expected);
    let report = checkout.run(&["diff", "old.box", "new.box", "--json"]).json();
    crate::schema::assert_fits("diff", &report);
    let libc = serde_json::json!(
        { "part": "agent", "kind": "deb", "name": "libc6", "a": ["2.36-9"], "b": ["2.36-10"] }
    );
    assert_eq!(report["packages"][1], libc);
    assert_eq!(report["permissions"][0]["field"], "network");
    assert_eq!(report["permissions"][0]["effect"], "more");
}

/// Names that no reader may obey. Each is one word, as in a package database.
const HOSTILE: [&str; 8] = [
    "`|**x**|`",
    "</code></details><img/src=x>",
    "[link](https://evil.example)",
    "@mention",
    "https://evil.example/x",
    "www.evil.example",
    "me@evil.example",
    "-->\\`|\\|``&#96;#12",
];

#[test]
fn no_name_in_a_box_has_an_effect_on_the_comment() {
    let reader = markdown(&Workspace::find(), &mut |line| println!("{line}")).unwrap();
    let checkout = Checkout::new();
    agent(&checkout, "", &[]);
    checkout.built(&["--output", "old.box"]);
    let status: String = HOSTILE.map(|name| package(name, name)).concat();
    let names = HOSTILE.map(|name| format!("/d/{}\n| x |", name.replace('/', "_")));
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
    agent(&checkout, &status, &files);
    let line = format!("    health \"tcp\"\n    env FEATURE={:?}\n", HOSTILE.join(" "));
    checkout.edit("Boxfile", "    health \"tcp\"\n", &line);
    checkout.result(&["update"]);
    checkout.built(&["--output", "new.box"]);
    let read = |text: &str| {
        checkout.write("comment.md", text);
        reader.read(&checkout.path("comment.md")).unwrap()
    };
    let ran = comment(&checkout, &["old.box", "new.box"]);
    let Markdown { text, code, tags } = read(&ran.result);
    let expected = "code details h3 p strong summary table tbody td th thead tr";
    assert_eq!(tags.into_iter().collect::<Vec<_>>().join(" "), expected);
    for name in HOSTILE {
        // A backtick and `|` are outside of the code, between two pieces of it.
        for piece in name.split(['`', '|']).filter(|it| !it.is_empty()) {
            assert!(code.contains(piece), "{piece}: {code}");
        }
    }
    for foreign in ["evil", "mention", "img", "**"] {
        assert!(!text.contains(foreign), "{foreign}: {text}");
    }
    // As a control, the reader has to find what a foreign text could do.
    for (hostile, tag) in [("<img src=x>", "img"), ("https://evil.example", "a"), ("a | b", "td")] {
        let table = format!("| x |\n|---|\n| {hostile} |\n\n{hostile}\n");
        assert!(read(&table).tags.contains(tag), "{hostile}");
    }
}

#[test]
fn only_two_whole_boxes_give_a_comment() {
    let checkout = Checkout::new();
    checkout.built(WHOLE);
    for args in [
        &["test.box", "./skills"][..],
        &["test.box", "test.box", "/roots"],
        &["test.box", "test.box", "--component", "agent"],
    ] {
        let ran = comment(&checkout, args);
        assert_eq!((ran.code, ran.result.as_str()), (2, ""), "{args:?}");
        assert!(ran.notes.starts_with("error: `--format markdown` compares two whole boxes"));
    }
    assert_eq!(comment(&checkout, &["test.box", "test.box", "--json"]).code, 2);
}

#[test]
fn the_box_of_a_registry_is_compared_if_the_store_lacks_it() {
    let registry = DockerRegistry::open(&Workspace::find(), &mut |line| println!("{line}"));
    let registry = registry.unwrap();
    let checkout = two_boxes();
    let config = format!("[registry.\"{}\"]\nplain-http = true\n", registry.host());
    checkout.write("registries.toml", config);
    let reference = format!("{}/team/box:v1", registry.host());
    let run = |store: &str, args: &[&str]| {
        let mut command = checkout.boxbuild(args);
        command.env("BOXBUILD_REGISTRIES", checkout.path("registries.toml"));
        Ran::of(command.args(["--store", store]))
    };
    let missing = run("two", &["diff", &reference, "new.box"]);
    assert_eq!((missing.code, missing.result.as_str()), (1, ""));
    assert!(missing.notes.contains("has no team/box with the tag \"v1\""), "{}", missing.notes);
    assert_eq!(run("one", &["push", "old.box", &reference]).code, 0);
    let args = ["diff", &reference, "new.box", "--format", "markdown"];
    let first = run("two", &args);
    assert_eq!((first.code, first.notes.as_str()), (5, ""));
    let local = comment(&checkout, &["old.box", "new.box"]).result;
    assert_eq!(first.result, local.replacen("old.box", &reference, 1));
    // A pull makes it a box of the store, and no registry is needed any more.
    assert_eq!(run("two", &["pull", &reference]).code, 0);
    drop(registry);
    let again = run("two", &args);
    assert_eq!((again.result, again.notes.as_str()), (first.result, ""));
}

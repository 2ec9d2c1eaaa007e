//! The text of a lock, and its entries.

use insta::assert_snapshot;

use super::*;

#[test]
fn the_text() {
    let chosen =
        |entry: &&LockEntry| ["agent", "init", "skill:greet"].contains(&entry.name.as_str());
    let lock = lock(example().entries().filter(chosen).cloned());
    assert_snapshot!(lock.write(), @r#"
    # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
    # Do not edit. `boxbuild lock` follows the Boxfile; `boxbuild update [NAME...]` resolves again.
    version = 2
    epoch = 1

    [[entry]]
    name = "agent"
    kind = "image"
    source = "registry.example.com/agent:v1"
    platform = "linux/amd64"
    digest = "sha256:abababababababababababababababababababababababababababababababab"
    size = 4096
    layers = [
        "sha256:1111111111111111111111111111111111111111111111111111111111111111",
        "sha256:2222222222222222222222222222222222222222222222222222222222222222",
    ]

    [[entry]]
    name = "agent"
    kind = "image"
    source = "registry.example.com/agent:v1"
    platform = "linux/arm64"
    digest = "sha256:abababababababababababababababababababababababababababababababab"
    size = 4096
    layers = [
        "sha256:1111111111111111111111111111111111111111111111111111111111111111",
        "sha256:2222222222222222222222222222222222222222222222222222222222222222",
    ]

    [[entry]]
    name = "init"
    kind = "init"
    source = ""
    platform = "linux/amd64"
    digest = "sha256:abababababababababababababababababababababababababababababababab"
    size = 4096

    [[entry]]
    name = "skill:greet"
    kind = "skill"
    source = "skills/greet"
    digest = "blake3:5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c5c"
    size = 4096
    "#);
}

#[test]
fn a_lock_without_entries() {
    let text = Lock::new(3).write();
    assert_snapshot!(text, @"
    # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
    # Do not edit. `boxbuild lock` follows the Boxfile; `boxbuild update [NAME...]` resolves again.
    version = 2
    epoch = 3
    ");
    assert_eq!(Lock::parse(&text), Ok(Lock::new(3)));
}

#[test]
fn every_line_is_short_lf_ended_and_without_trailing_white_space() {
    let text = example().write();
    assert!(text.ends_with('\n') && !text.ends_with("\n\n") && !text.contains('\r'));
    assert!(text.lines().all(|line| line.len() <= 100 && line.trim_end() == line));
}

#[test]
fn invisible_characters_are_escaped() {
    let name = "env:\"a\\b\n\r\t\u{0}\u{7f}\u{85}\u{202e}\u{feff}é漢\u{1f600}";
    let mut lock = Lock::new(1);
    lock.set(entry(name, PinKind::EnvFile, "", None));
    let text = lock.write();
    let escaped = r#"name = "env:\"a\\b\U0000000A\U0000000D\U00000009\U00000000\U0000007F\U00000085\U0000202E\U0000FEFFé漢😀""#;
    assert!(text.contains(escaped), "{text}");
    // The text can be reviewed, but not parsed.
    assert!(Lock::parse(&text).is_err());
}

#[test]
fn line_ends_comments_order_and_spacing_are_free() {
    let text = example().write();
    assert_eq!(Lock::parse(&text.replace('\n', "\r\n")), Ok(example()));
    assert_eq!(Lock::parse(&format!("\u{feff}{text}")), Ok(example()));
    assert_eq!(Lock::parse(&text.replace('\n', " # why\n  ")), Ok(example()));
    let (head, entries) = text.split_once("\n[[entry]]\n").unwrap();
    let mut entries: Vec<&str> = entries.split("\n[[entry]]\n").collect();
    entries.reverse();
    let reversed = format!("{head}\n[[entry]]\n{}", entries.join("\n[[entry]]\n"));
    assert_ne!(reversed, text);
    assert_eq!(Lock::parse(&reversed), Ok(example()));
}

#[test]
fn an_entry_of_another_name_changes_no_line_of_the_others() {
    let mut lock = example();
    let before = lock.write();
    lock.set(entry("skill:new", PinKind::Skill, "skills/new", None));
    let after = lock.write();
    assert_eq!(after.strip_prefix(&before).map(|added| added.lines().count()), Some(7));
}

#[test]
fn branches_that_add_in_different_places_merge_into_a_valid_lock() {
    // `git merge` keeps additions at different lines from both sides.
    let base = example().write();
    let (first, last) = base.split_at(base.find("\n[[entry]]\nname = \"business\"").unwrap());
    let added = |name| {
        let mut lock = Lock::new(1);
        lock.set(entry(name, PinKind::Skill, "skills/x", None));
        lock.write()[Lock::new(1).write().len()..].to_owned()
    };
    let merged = format!("{first}{}{last}{}", added("bravo"), added("zulu"));
    let lock = Lock::parse(&merged).unwrap();
    assert_eq!(lock.entries().count(), example().entries().count() + 2);
    assert_eq!(lock.write(), merged);
}

#[test]
fn a_lock_of_version_1_is_read_and_its_checks_are_ignored() {
    let current = example().write();
    let former = current
        .replace("version = 2\n", "version = 1\n")
        .replace("\nsize = 4096\n", "\nsize = 4096\ncheck = \"77f6cd5b8e4f0a21\"\n");
    assert_eq!(former.matches("check = ").count(), 8);
    assert_eq!(Lock::parse(&former), Ok(example()));
    assert_eq!(Lock::parse(&former).unwrap().write(), current);
}

#[test]
fn a_file_is_recognized_as_a_lock_whatever_is_wrong_with_it() {
    let text = example().write();
    for text in [
        text.clone(),
        text.replace('\n', "\r\n"),
        format!("<<<<<<< HEAD\n{text}"),
        replaced("version = 2", "version ="),
    ] {
        assert!(Lock::is_lock(&text), "{text}");
    }
    for text in ["", "my thesis\n", "box \"hello\"\n", "version = 4\n\n[[package]]\nname = \"a\"\n"]
    {
        assert!(!Lock::is_lock(text), "{text}");
    }
}

#[test]
fn entries_are_found_and_replaced_by_name_and_platform() {
    let [amd64, arm64] = Platform::ALL;
    let mut lock = example();
    let names: Vec<_> = lock.entries().map(LockEntry::key).take(3).collect();
    assert_eq!(
        names,
        [("agent", Some(amd64)), ("agent", Some(arm64)), ("agent-tool", Some(amd64))]
    );
    assert_eq!(lock.get("agent", None), None);
    assert_eq!(lock.get("skill:greet", Some(amd64)), None);
    assert_eq!(lock.get("skill:greet", None).unwrap().source, "skills/greet");

    let old = lock.get("agent", Some(arm64)).unwrap().clone();
    let new = LockEntry { size: 5, ..old.clone() };
    assert_eq!(lock.set(new.clone()), Some(old));
    assert_eq!(lock.get("agent", Some(arm64)), Some(&new));
    assert_eq!(lock.entries().count(), 8);
}

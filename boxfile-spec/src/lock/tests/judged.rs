//! What users read when entries are well written and yet not what boxbuild wrote.

use insta::assert_snapshot;

use super::*;

#[test]
fn an_entry_that_is_there_twice() {
    let twice = |text: &str| {
        let start = text.rfind("\n[[entry]]").unwrap();
        format!("{text}{}", &text[start..])
    };
    assert_snapshot!(after(twice), @r#"
    error: the entry `skill:greet` is there twice
       --> Boxfile.lock:85:8
        |
     77 | name = "skill:greet"
        |        ------------- first here
    ...
     85 | name = "skill:greet"
        |        ^^^^^^^^^^^^^ here again
        |
        = help: delete one of the two, and run `boxbuild lock`
    "#);
}

#[test]
fn entries_changed_by_hand() {
    assert_snapshot!(replaced("agent:v1", "agent:v2"), @r#"
    error: the entry `agent` for linux/amd64 does not fit its check
       --> Boxfile.lock:17:9
        |
      7 | name = "agent"
        |        ------- something in this entry was changed by hand or lost in a merge
    ...
     17 | check = "7965677b6de8b4f2"
        |         ^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("blake3:5c", "blake3:5d"), @r#"
    error: the entry `skill:greet` does not fit its check
       --> Boxfile.lock:82:9
        |
     77 | name = "skill:greet"
        |        ------------- something in this entry was changed by hand or lost in a merge
    ...
     82 | check = "508da5bc26716d44"
        |         ^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("check = \"", "check = \"0"), @r#"
    error: the entry `agent` for linux/amd64 does not fit its check
       --> Boxfile.lock:17:9
        |
      7 | name = "agent"
        |        ------- something in this entry was changed by hand or lost in a merge
    ...
     17 | check = "07965677b6de8b4f2"
        |         ^^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
}

#[test]
fn an_entry_taken_from_another_platform() {
    let copied = |text: &str| {
        let start = text.find("\n[[entry]]\nname = \"kernel\"").unwrap();
        let end = start + 1 + text[start + 1..].find("\n[[entry]]").unwrap();
        format!("{text}{}", text[start..end].replace("amd64", "arm64"))
    };
    assert_snapshot!(after(copied), @r#"
    error: the entry `kernel` was resolved for linux/amd64, not for this platform
       --> Boxfile.lock:88:12
        |
     88 | platform = "linux/arm64"
        |            ^^^^^^^^^^^^^ changed or copied by hand
        |
        = help: run `boxbuild lock` to write it anew
    "#);
}

#[test]
fn an_epoch_changed_by_hand() {
    assert_snapshot!(replaced("epoch = 1", "epoch = 2"), @r"
    error: none of the 8 entries fits its check
      --> Boxfile.lock:4:9
       |
     4 | epoch = 2
       |         ^ this, or every entry, was changed by hand
       |
       = help: undo the change, or run `boxbuild lock` to write it anew
    ");
}

#[test]
fn every_broken_entry_is_named_at_once() {
    let change = |text: &str| {
        text.replacen("size = 4096", "size = 1.5", 1)
            .replacen("skills/greet", "skills/other", 1)
            .replacen("\"init\"\nsource", "\"init\"\nsauce", 1)
            .replacen("\"boot/vmlinux\"", "\"boot/vmlinux", 1)
    };
    assert_snapshot!(after(change), @r#"
    error: `size` takes a whole number, not the number `1.5`
       --> Boxfile.lock:12:8
        |
     12 | size = 1.5
        |        ^^^ expected a whole number
        |
        = help: run `boxbuild lock` to write it anew

    error: the entry `init` has no `source`
       --> Boxfile.lock:58:1
        |
     58 | [[entry]]
        | ^^^^^^^^^ `source` is missing
        |
        = help: run `boxbuild lock` to write it anew

    error: the entry `init` has an unknown field `sauce`
       --> Boxfile.lock:61:1
        |
     61 | sauce = ""
        | ^^^^^ no such field
        |
        = help: did you mean `source`? Or run `boxbuild lock` to write it anew

    error: line 70 is not TOML: invalid basic string, expected `"`
       --> Boxfile.lock:70:23
        |
     70 | source = "boot/vmlinux
        |                       ^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew

    error: the entry `skill:greet` does not fit its check
       --> Boxfile.lock:82:9
        |
     77 | name = "skill:greet"
        |        ------------- something in this entry was changed by hand or lost in a merge
    ...
     82 | check = "508da5bc26716d44"
        |         ^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
}

//! The messages about a lock that cannot be used.

use insta::assert_snapshot;

use super::*;
use crate::project::lock::write::MARK;

/// Returns the error of the example after a replacement.
fn after(from: &str, to: &str) -> String {
    shown(&replaced(from, to))
}

#[test]
fn not_toml() {
    assert_snapshot!(after("size = 4096", "size = "), @r#"
    error: `size` has no value
       --> Boxfile.lock:12:1
        |
     12 | size =
        | ^^^^ a name alone
        |
        = help: write `name = "value"`; a list of values is written `["a", "b"]`
              or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("size = 4096", "size = 4 096"), @r#"
    error: unexpected `096` after a value
       --> Boxfile.lock:12:10
        |
     12 | size = 4 096
        |          ^^^ a name has one value
        |
        = help: write several as a list, `["a", "b"]`, and each name on a line of its own
              or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("kind = \"image\"", "kind = image"), @r#"
    error: `image` must be in quotes
      --> Boxfile.lock:8:8
       |
     8 | kind = image
       |        ^^^^^ a bare word
       |
       = help: write `"image"`
             or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("kind = \"image\"", "kind = \"image"), @r#"
    error: this string is never closed
      --> Boxfile.lock:8:8
       |
     8 | kind = "image
       |        ^^^^^^ no closing quote on this line
       |
       = help: close it with `"`
             or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("[[entry]]", "[[entry]"), @"
    error: the lock is not TOML: unclosed array table, expected `]`
      --> Boxfile.lock:6:9
       |
     6 | [[entry]
       |         ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", "size = 4096\nsize = 4096"), @"
    error: the lock is not TOML: duplicate key
       --> Boxfile.lock:13:1
        |
     13 | size = 4096
        | ^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("]\n\n", "\n\n"), @"
    error: this list is never closed
       --> Boxfile.lock:13:10
        |
     13 | layers = [
        |          ^ opened here
        |
        = help: close it with `]`
              or run `boxbuild update` to resolve everything again
    ");
}

#[test]
fn not_a_lock() {
    assert_snapshot!(shown(""), @"
    error: this is not a lock
      --> Boxfile.lock:1:1
       |
     1 |
       | ^ boxbuild did not write this file
       |
       = help: move it away, and run `boxbuild lock`
    ");
    assert_snapshot!(shown("box \"hello\"\nagent {\n}\n"), @r#"
    error: this is not a lock
      --> Boxfile.lock:1:1
       |
     1 | box "hello"
       | ^^^^^^^^^^^ boxbuild did not write this file
       |
       = help: move it away, and run `boxbuild lock`
    "#);
    assert_snapshot!(after("version = 2\n", ""), @"
    error: the lock has no `version`
      --> Boxfile.lock:1:1
       |
     1 | # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
       | ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
}

#[test]
fn versions() {
    assert_snapshot!(after("version = 2", "version = 3\nbase = \"x\""), @"
    error: the lock was written by a newer boxbuild
      --> Boxfile.lock:3:11
       |
     3 | version = 3
       |           ^ this boxbuild writes version 2
       |
       = help: use that boxbuild, or run `boxbuild update` to resolve everything again, in version 2
    ");
    assert_snapshot!(after("version = 2", "version = 0"), @"
    error: no lock has version 0
      --> Boxfile.lock:3:11
       |
     3 | version = 0
       |           ^ this boxbuild writes version 2
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("version = 2", "version = \"2\""), @r#"
    error: `version` must be a whole number
      --> Boxfile.lock:3:11
       |
     3 | version = "2"
       |           ^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
}

#[test]
fn merge_conflicts() {
    let conflict = "<<<<<<< HEAD\nsize = 4096\n=======\nsize = 5\n>>>>>>> release-1.2";
    assert_snapshot!(after("size = 4096", conflict), @"
    error: the lock has an unresolved merge conflict
       --> Boxfile.lock:12:1
        |
     12 | <<<<<<< HEAD
        | ^^^^^^^^^^^^ left by the merge
        |
        = help: run `boxbuild update` to resolve everything again, or take one side (`git checkout --ours`) and run `boxbuild lock`
    ");
    // The markers of `jj`, and single markers that are left after an incomplete edit.
    let conflict = "<<<<<<< conflict 1 of 1\n%%%%%%% diff from base to ours\n-size = 4096\n\
        +size = 4097\n+++++++ theirs\nsize = 4098\n>>>>>>> conflict 1 of 1 ends";
    for marks in [conflict, "=======", ">>>>>>> release-1.2", "||||||| 5a4e70c"] {
        let errors = Lock::parse(&replaced("size = 4096", marks)).unwrap_err();
        assert_eq!(errors.to_string(), "the lock has an unresolved merge conflict");
    }
}

#[test]
fn fields_that_are_missing_or_unknown() {
    assert_snapshot!(after("kind = \"image\"\n", ""), @"
    error: the entry `agent` is malformed: missing field `kind`
      --> Boxfile.lock:6:1
       |
     6 | [[entry]]
       | ^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", "size = 4096\ncolour = \"red\""), @r#"
    error: the entry `agent` is malformed: unknown field `colour`, expected one of `name`, `kind`, `source`, `platform`, `digest`, `size`, `layers`
       --> Boxfile.lock:13:1
        |
     13 | colour = "red"
        | ^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("epoch = 1", "epoch = 1\ncolour = \"red\""), @r#"
    error: the lock is malformed: unknown field `colour`, expected `epoch` or `entry`
      --> Boxfile.lock:5:1
       |
     5 | colour = "red"
       | ^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("epoch = 1\n", ""), @"
    error: the lock is malformed: missing field `epoch`
      --> Boxfile.lock:1:1
       |
     1 | # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
       | ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(shown(&format!("{MARK}\nversion = 2\nepoch = 1\n[entry]\nname = \"a\"\n")), @"
    error: `entry` of the lock must be a list of tables, each of which begins with `[[entry]]`
      --> Boxfile.lock:4:1
       |
     4 | [entry]
       | ^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("[[entry]]", "[[entries]]"), @"
    error: the lock is malformed: unknown field `entries`, expected `epoch` or `entry`
      --> Boxfile.lock:6:3
       |
     6 | [[entries]]
       |   ^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
}

#[test]
fn values_of_the_wrong_type() {
    assert_snapshot!(after("size = 4096", "size = \"4096\""), @r#"
    error: `size` of the entry `agent` must be a whole number
       --> Boxfile.lock:12:8
        |
     12 | size = "4096"
        |        ^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("size = 4096", "size = -1"), @"
    error: `size` of the entry `agent` must be a whole number
       --> Boxfile.lock:12:8
        |
     12 | size = -1
        |        ^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("epoch = 1", "epoch = 4294967296"), @"
    error: `epoch` of the lock must be a whole number of at most 32 bits
      --> Boxfile.lock:4:9
       |
     4 | epoch = 4294967296
       |         ^^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("source = \"\"", "source = 1979-05-27"), @"
    error: `source` of the entry `init` must be a string
       --> Boxfile.lock:56:10
        |
     56 | source = 1979-05-27
        |          ^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("kind = \"image\"", "kind = \"picture\""), @r#"
    error: `kind` of the entry `agent` must be one of image, binary, url, skill, env-file, file, kernel, init
      --> Boxfile.lock:8:8
       |
     8 | kind = "picture"
       |        ^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("linux/amd64", "linux/x86_64"), @r#"
    error: `platform` of the entry `agent` must be linux/amd64 or linux/arm64
       --> Boxfile.lock:10:12
        |
     10 | platform = "linux/x86_64"
        |            ^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("layers = [", "layers = [1,"), @"
    error: `layers` of the entry `agent` must be a list of digests: `sha256:` and 64 lower-case hexadecimal digits
       --> Boxfile.lock:13:11
        |
     13 | layers = [1,
        |           ^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("digest = \"sha256:ab", "digest = \"sha256:AB"), @r#"
    error: `digest` of the entry `agent` must be a digest: `sha256:` or `blake3:` and 64 lower-case hexadecimal digits
       --> Boxfile.lock:11:10
        |
     11 | digest = "sha256:ABababababababababababababababababababababababababababababababab"
        |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("sha256:22", "blake3:22"), @r#"
    error: `layers` of the entry `agent` must be a list of digests: `sha256:` and 64 lower-case hexadecimal digits
       --> Boxfile.lock:15:5
        |
     15 |     "blake3:2222222222222222222222222222222222222222222222222222222222222222",
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
}

#[test]
fn the_errors_of_all_entries_are_shown() {
    let text = example().write().replace("size = 4096", "size = -1");
    let text = text.replacen("kind = \"image\"", "kind = image", 1);
    assert_snapshot!(shown(&text), @r#"
    error: `image` must be in quotes
      --> Boxfile.lock:8:8
       |
     8 | kind = image
       |        ^^^^^ a bare word
       |
       = help: write `"image"`
             or run `boxbuild update` to resolve everything again
    "#);
    let text = text.replacen("kind = image", "kind = \"image\"", 1);
    let errors = Lock::parse(&text.replacen("epoch = 1", "epoch = true", 1)).unwrap_err();
    assert_snapshot!(errors.to_string(), @"
    `epoch` of the lock must be a whole number of at most 32 bits
    `size` of the entry `agent` must be a whole number
    `size` of the entry `agent` must be a whole number
    `size` of the entry `agent-tool` must be a whole number
    `size` of the entry `business` must be a whole number
    `size` of the entry `env:.env` must be a whole number
    `size` of the entry `init` must be a whole number
    `size` of the entry `kernel` must be a whole number
    `size` of the entry `skill:greet` must be a whole number
    ");
}

#[test]
fn names_and_sources_that_are_not_what_they_look_like() {
    assert_snapshot!(after("name = \"init\"", "name = \"init\\u001B[2J\""), @r#"
    error: `name` contains the invisible character U+001B
       --> Boxfile.lock:54:8
        |
     54 | name = "init\u001B[2J"
        |        ^^^^^^^^^^^^^^^ not what it looks like
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("boot/vmlinux", "boot/\u{202e}xuniLmv"), @r#"
    error: the invisible character U+202E is not allowed
       --> Boxfile.lock:64:16
        |
     64 | source = "boot/�xuniLmv"
        |                ^ here
        |
        = help: remove the character, or run `boxbuild update` to resolve everything again
    "#);
}

#[test]
fn two_entries_of_one_key() {
    let text = example().write();
    let last = text.rfind("\n[[entry]]").unwrap();
    assert_snapshot!(shown(&format!("{text}{}", &text[last..])), @r#"
    error: the lock has two entries `skill:greet`
       --> Boxfile.lock:77:8
        |
     70 | name = "skill:greet"
        |        ------------- first here
    ...
     77 | name = "skill:greet"
        |        ^^^^^^^^^^^^^ here again
        |
        = help: delete one of the two, and run `boxbuild lock`
    "#);
    assert_snapshot!(after("linux/arm64", "linux/amd64"), @r#"
    error: the lock has two entries `agent` for linux/amd64
       --> Boxfile.lock:19:8
        |
      7 | name = "agent"
        |        ------- first here
    ...
     19 | name = "agent"
        |        ^^^^^^^ here again
        |
        = help: delete one of the two, and run `boxbuild lock`
    "#);
}

#[test]
fn quoted_text_in_messages_is_short_and_safe_to_print() {
    let key = format!("\"\\u001B[2J{}\" = 1\nsize", "x".repeat(1000));
    let message = Lock::parse(&replaced("size", &key)).unwrap_err().to_string();
    assert!(message.contains("unknown field `\u{fffd}[2Jxxx"), "{message}");
    assert!(message.chars().count() < 400 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn too_large_or_too_deep() {
    let large = format!("{MARK}{}", " ".repeat(crate::project::lock::MAX_TEXT + 1 - MARK.len()));
    assert_snapshot!(Lock::parse(&large).unwrap_err().to_string(), @"the file has more than 1048576 bytes");
    assert_snapshot!(after("size = 4096", "size.of.it = 4096"), @"
    error: malformed lock: a `.` outside of quotes
       --> Boxfile.lock:12:5
        |
     12 | size.of.it = 4096
        |     ^ a lock has no dotted keys
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", &format!("size = {}", "[".repeat(100))), @"
    error: tables and lists are nested more than 64 deep
       --> Boxfile.lock:12:72
        |
     12 | size = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
        |                                                                        ^ one too many
        |
        = help: run `boxbuild update` to resolve everything again
    ");
}

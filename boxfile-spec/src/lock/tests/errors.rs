//! The messages about a lock that cannot be used.

use insta::assert_snapshot;

use super::*;

/// Shows the error of the example after a replacement.
fn after(from: &str, to: &str) -> String {
    shown(&replaced(from, to))
}

#[test]
fn not_toml() {
    assert_snapshot!(after("size = 4096", "size = "), @r"
    error: the lock is not TOML: string values must be quoted, expected literal string
       --> Boxfile.lock:12:8
        |
     12 | size =
        |        ^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", "size = 4 096"), @r"
    error: the lock is not TOML: string values must be quoted, expected literal string
       --> Boxfile.lock:12:8
        |
     12 | size = 4 096
        |        ^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("kind = \"image\"", "kind = image"), @r"
    error: the lock is not TOML: invalid float, expected `inf`
      --> Boxfile.lock:8:8
       |
     8 | kind = image
       |        ^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("kind = \"image\"", "kind = \"image"), @r#"
    error: the lock is not TOML: invalid basic string, expected `"`
      --> Boxfile.lock:8:14
       |
     8 | kind = "image
       |              ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("[[entry]]", "[[entry]"), @r"
    error: the lock is not TOML: unclosed array table, expected `]`
      --> Boxfile.lock:6:9
       |
     6 | [[entry]
       |         ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", "size = 4096\nsize = 4096"), @r"
    error: the lock is not TOML: duplicate key
       --> Boxfile.lock:13:1
        |
     13 | size = 4096
        | ^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("]\n\n", "\n\n"), @r#"
    error: the lock is not TOML: missing comma between array elements, expected `,`
       --> Boxfile.lock:19:1
        |
     19 | name = "agent"
        | ^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
}

#[test]
fn not_a_lock() {
    assert_snapshot!(shown(""), @"
    error: malformed lock: missing field `version`
      --> Boxfile.lock:1:1
       |
     1 |
       | ^
       |
       = help: boxbuild did not write this file: move it away, and run `boxbuild lock`
    ");
    assert_snapshot!(shown("box \"hello\"\nagent {\n}\n"), @r#"
    error: the lock is not TOML: key with no value, expected `=`
      --> Boxfile.lock:1:5
       |
     1 | box "hello"
       |     ^
       |
       = help: boxbuild did not write this file: move it away, and run `boxbuild lock`
    "#);
    assert_snapshot!(shown("version = 2\n"), @"
    error: malformed lock: missing field `epoch`
      --> Boxfile.lock:1:1
       |
     1 | version = 2
       | ^
       |
       = help: boxbuild did not write this file: move it away, and run `boxbuild lock`
    ");
}

#[test]
fn versions() {
    assert_snapshot!(after("version = 2", "version = 3\nbase = \"x\""), @r"
    error: the lock was written by a newer boxbuild
      --> Boxfile.lock:3:11
       |
     3 | version = 3
       |           ^ this boxbuild writes version 2
       |
       = help: use that boxbuild, or run `boxbuild update` to resolve everything again, in version 2
    ");
    assert_snapshot!(after("version = 2", "version = 0"), @r"
    error: no lock has version 0
      --> Boxfile.lock:3:11
       |
     3 | version = 0
       |           ^ this boxbuild writes version 2
       |
       = help: run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("version = 2", "version = \"2\""), @r#"
    error: malformed lock: invalid type: string "2", expected u32
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
    assert_snapshot!(after("size = 4096", conflict), @r"
    error: the lock has an unresolved merge conflict
       --> Boxfile.lock:12:1
        |
     12 | <<<<<<< HEAD
        | ^^^^^^^^^^^^ left by the merge
        |
        = help: run `boxbuild update` to resolve everything again, or take one side (`git checkout --ours`) and run `boxbuild lock`
    ");
    // Of `jj`, and of whoever removed all but one of the markers.
    let conflict = "<<<<<<< conflict 1 of 1\n%%%%%%% diff from base to ours\n-size = 4096\n\
        +size = 4097\n+++++++ theirs\nsize = 4098\n>>>>>>> conflict 1 of 1 ends";
    for marks in [conflict, "=======", ">>>>>>> release-1.2", "||||||| 5a4e70c"] {
        let errors = Lock::parse(&replaced("size = 4096", marks)).unwrap_err();
        assert_eq!(errors.to_string(), "the lock has an unresolved merge conflict");
    }
}

#[test]
fn fields_that_are_missing_or_unknown() {
    assert_snapshot!(after("kind = \"image\"\n", ""), @r"
    error: malformed lock: missing field `kind`
      --> Boxfile.lock:6:1
       |
     6 | [[entry]]
       | ^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", "size = 4096\ncolour = \"red\""), @r#"
    error: malformed lock: unknown field `colour`, expected one of `name`, `kind`, `source`, `platform`, `digest`, `size`, `layers`, `check`
       --> Boxfile.lock:13:1
        |
     13 | colour = "red"
        | ^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("epoch = 1", "epoch = 1\ncolour = \"red\""), @r#"
    error: malformed lock: unknown field `colour`, expected `epoch` or `entry`
      --> Boxfile.lock:5:1
       |
     5 | colour = "red"
       | ^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("epoch = 1\n", ""), @r"
    error: malformed lock: missing field `epoch`
      --> Boxfile.lock:1:1
       |
     1 | # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
       | ^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("[[entry]]", "[[entries]]"), @r"
    error: malformed lock: unknown field `entries`, expected `epoch` or `entry`
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
    error: malformed lock: invalid type: string "4096", expected u64
       --> Boxfile.lock:12:8
        |
     12 | size = "4096"
        |        ^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("size = 4096", "size = -1"), @r"
    error: malformed lock: invalid value: integer `-1`, expected u64
       --> Boxfile.lock:12:8
        |
     12 | size = -1
        |        ^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("epoch = 1", "epoch = 4294967296"), @r"
    error: malformed lock: invalid value: integer `4294967296`, expected u32
      --> Boxfile.lock:4:9
       |
     4 | epoch = 4294967296
       |         ^^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("source = \"\"", "source = 1979-05-27"), @r"
    error: malformed lock: invalid type: map, expected a string
       --> Boxfile.lock:56:10
        |
     56 | source = 1979-05-27
        |          ^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("kind = \"image\"", "kind = \"picture\""), @r#"
    error: malformed lock: unknown variant `picture`, expected one of `image`, `binary`, `url`, `skill`, `env-file`, `kernel`, `init`
      --> Boxfile.lock:8:8
       |
     8 | kind = "picture"
       |        ^^^^^^^^^
       |
       = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("linux/amd64", "linux/x86_64"), @r#"
    error: malformed lock: unknown variant `linux/x86_64`, expected `linux/amd64` or `linux/arm64`
       --> Boxfile.lock:10:12
        |
     10 | platform = "linux/x86_64"
        |            ^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("layers = [", "layers = [1,"), @r"
    error: malformed lock: invalid type: integer `1`, expected a digest
       --> Boxfile.lock:13:11
        |
     13 | layers = [1,
        |           ^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("digest = \"sha256:ab", "digest = \"sha256:AB"), @r#"
    error: malformed lock: the digest "sha256:ABababababababababababababababababababababababababababababababab" does not have 64 lower-case hexadecimal digits after the colon
       --> Boxfile.lock:11:10
        |
     11 | digest = "sha256:ABababababababababababababababababababababababababababababababab"
        |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("sha256:22", "md5:22"), @r#"
    error: malformed lock: the digest "md5:2222222222222222222222222222222222222222222222222222222222222222" does not start with "sha256:"
       --> Boxfile.lock:15:5
        |
     15 |     "md5:2222222222222222222222222222222222222222222222222222222222222222",
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    "#);
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
        = help: run `boxbuild update` to resolve everything again
    "#);
    assert_snapshot!(after("boot/vmlinux", "boot/\u{202e}xuniLmv"), @r#"
    error: `source` contains the invisible character U+202E
       --> Boxfile.lock:64:10
        |
     64 | source = "boot/�xuniLmv"
        |          ^^^^^^^^^^^^^^^ not what it looks like
        |
        = help: run `boxbuild update` to resolve everything again
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
fn what_a_message_quotes_is_short_and_safe_to_print() {
    let key = format!("\"\\u001B[2J{}\" = 1\nsize", "x".repeat(1000));
    let message = Lock::parse(&replaced("size", &key)).unwrap_err().to_string();
    assert!(message.starts_with("malformed lock: unknown field `\u{fffd}[2Jxxx"), "{message}");
    assert!(message.chars().count() < 400 && !message.contains('\u{1b}'), "{message}");
}

#[test]
fn too_large_or_too_deep() {
    let large = " ".repeat(crate::lock::MAX_TEXT + 1);
    assert_snapshot!(Lock::parse(&large).unwrap_err().to_string(), @"the file has 1048577 bytes, which is more than 1048576");
    assert_snapshot!(after("size = 4096", "size.of.it = 4096"), @r"
    error: malformed lock: a `.` outside of quotes
       --> Boxfile.lock:12:5
        |
     12 | size.of.it = 4096
        |     ^ a lock has no dotted keys
        |
        = help: run `boxbuild update` to resolve everything again
    ");
    assert_snapshot!(after("size = 4096", &format!("size = {}", "[".repeat(100))), @r"
    error: the lock is not TOML: cannot recurse further; max recursion depth met
       --> Boxfile.lock:12:88
        |
     12 | size = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
        |                                                                                        ^
        |
        = help: undo the edit, or run `boxbuild update` to resolve everything again
    ");
}

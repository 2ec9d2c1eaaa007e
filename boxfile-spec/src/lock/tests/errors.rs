//! What users read when a lock is not one: no TOML, another version, a conflict, too large.

use insta::assert_snapshot;

use super::*;

#[test]
fn not_toml() {
    assert_snapshot!(replaced("size = 4096", "size = "), @r"
    error: line 12 is not TOML: a value is missing behind the `=`
       --> Boxfile.lock:12:8
        |
     12 | size =
        |        ^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("size = 4096", "size = 4 096"), @r"
    error: line 12 is not TOML: string values must be quoted, expected literal string
       --> Boxfile.lock:12:8
        |
     12 | size = 4 096
        |        ^^^^^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("kind = \"image\"", "kind = image"), @r"
    error: line 8 is not TOML: the text `image` needs quotes
      --> Boxfile.lock:8:8
       |
     8 | kind = image
       |        ^^^^^
       |
       = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("kind = \"image\"", "kind = \"image"), @r#"
    error: line 8 is not TOML: invalid basic string, expected `"`
      --> Boxfile.lock:8:14
       |
     8 | kind = "image
       |              ^
       |
       = help: undo the edit, or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("[[entry]]", "[[entry]"), @r"
    error: line 6 is not TOML: unclosed array table, expected `]`
      --> Boxfile.lock:6:9
       |
     6 | [[entry]
       |         ^
       |
       = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("epoch = 1", "epoch 1"), @r"
    error: line 4 is not TOML: key with no value, expected `=`
      --> Boxfile.lock:4:7
       |
     4 | epoch 1
       |       ^
       |
       = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("size = 4096", "size = 4096\nsize = 4096"), @r"
    error: line 13 is not TOML: duplicate key
       --> Boxfile.lock:13:1
        |
     13 | size = 4096
        | ^^^^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew
    ");
}

#[test]
fn an_array_that_does_not_close_leaves_the_other_entries_readable() {
    assert_snapshot!(after(|text| text.replacen("]\ncheck", "check", 1).replace("skills/g", "s/g")), @r#"
    error: line 16 is not TOML: unexpected `=` in array, expected value, `]`
       --> Boxfile.lock:16:7
        |
     16 | check = "7965677b6de8b4f2"
        |       ^
        |
        = help: undo the edit, or run `boxbuild lock` to write it anew

    error: the entry `skill:greet` does not fit its check
       --> Boxfile.lock:81:9
        |
     76 | name = "skill:greet"
        |        ------------- something in this entry was changed by hand or lost in a merge
    ...
     81 | check = "508da5bc26716d44"
        |         ^^^^^^^^^^^^^^^^^^ computed for other values
        |
        = help: undo the change, or run `boxbuild lock` to write it anew
    "#);
}

#[test]
fn not_a_lock() {
    assert_snapshot!(shown(""), @r"
    error: the lock has no `version`
      --> Boxfile.lock:1:1
       |
     1 |
       | ^ `version` is missing
       |
       = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(shown("box \"hello\"\nagent {\n}\n"), @r#"
    error: line 1 is not TOML: key with no value, expected `=`
      --> Boxfile.lock:1:5
       |
     1 | box "hello"
       |     ^
       |
       = help: undo the edit, or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(shown("version = 1\n"), @r"
    error: the lock has no `epoch`
      --> Boxfile.lock:1:1
       |
     1 | version = 1
       | ^ `epoch` is missing
       |
       = help: run `boxbuild lock` to write it anew
    ");
}

#[test]
fn versions() {
    assert_snapshot!(replaced("version = 1", "version = 2\nbase = \"x\""), @r"
    error: the lock was written by a newer boxbuild
      --> Boxfile.lock:3:11
       |
     3 | version = 2
       |           ^ this boxbuild reads and writes version 1
       |
       = help: use that boxbuild, or run `boxbuild lock` to write it anew in version 1
    ");
    assert_snapshot!(replaced("version = 1", "version = 0"), @r"
    error: no lock has version 0
      --> Boxfile.lock:3:11
       |
     3 | version = 0
       |           ^ this boxbuild reads and writes version 1
       |
       = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("version = 1", "version = \"1\""), @r#"
    error: `version` takes a whole number, not the text `1`
      --> Boxfile.lock:3:11
       |
     3 | version = "1"
       |           ^^^ expected a whole number
       |
       = help: run `boxbuild lock` to write it anew
    "#);
}

#[test]
fn merge_conflicts() {
    let conflict = "<<<<<<< HEAD\nsize = 4096\n=======\nsize = 5\n>>>>>>> branch 'new agent'";
    assert_snapshot!(replaced("size = 4096", conflict), @r"
    error: the file has an unresolved merge conflict
       --> Boxfile.lock:12:1
        |
     12 | <<<<<<< HEAD
        | ^^^^^^^^^^^^ one side starts here
    ...
     14 | =======
        | ------- the other side starts here
    ...
     16 | >>>>>>> branch 'new agent'
        | -------------------------- it ends here
        |
        = help: keep either side, and run `boxbuild lock`: it adds what is missing
    ");
    let conflict =
        "<<<<<<< HEAD\nsize = 1\n||||||| 5a4e70c\nsize = 2\n=======\nsize = 3\n>>>>>>> x";
    assert_snapshot!(replaced("size = 4096", conflict), @r"
    error: the file has an unresolved merge conflict
       --> Boxfile.lock:12:1
        |
     12 | <<<<<<< HEAD
        | ^^^^^^^^^^^^ one side starts here
    ...
     14 | ||||||| 5a4e70c
        | --------------- what both sides started from
    ...
     16 | =======
        | ------- the other side starts here
    ...
     18 | >>>>>>> x
        | --------- it ends here
        |
        = help: keep either side, and run `boxbuild lock`: it adds what is missing
    ");
    assert_snapshot!(replaced("size = 4096", ">>>>>>> branch"), @r"
    error: the file has an unresolved merge conflict
       --> Boxfile.lock:12:1
        |
     12 | >>>>>>> branch
        | ^^^^^^^^^^^^^^ left by git
        |
        = help: keep either side, and run `boxbuild lock`: it adds what is missing
    ");
}

#[test]
fn a_ruined_file_gives_the_first_hundred_errors() {
    let head = "version = 1\nepoch = 1\n[[entry]]\n";
    let fields: String = (0..5000).map(|number| format!("x{number} = 1\n")).collect();
    for ruin in ["[[entry]]\n".repeat(5000), format!("layers = [{}]", "1,".repeat(5000)), fields] {
        let errors = Lock::parse(&format!("{head}{ruin}")).unwrap_err();
        assert_eq!(errors.as_slice().len(), 100, "{ruin:.20}");
    }
}

#[test]
fn too_large_or_too_deep() {
    let large = " ".repeat(crate::lock::MAX_TEXT + 1);
    assert_snapshot!(Lock::parse(&large).unwrap_err().to_string(), @r"
    the lock has 16777217 bytes, which is more than 16777216
    ");
    let deep = |value: &str| replaced("size = 4096", &format!("size = {value}"));
    assert_snapshot!(deep(&"[".repeat(65)), @r"
    error: nested too deep: more than 64 brackets and dots
       --> Boxfile.lock:12:70
        |
     12 | size = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[
        |                                                                      ^ not read further
        |
        = help: run `boxbuild lock` to write it anew
    ");
}

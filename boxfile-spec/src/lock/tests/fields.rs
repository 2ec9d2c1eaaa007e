//! What users read when fields are missing, unknown or malformed.

use insta::assert_snapshot;

use super::*;

#[test]
fn fields_that_are_missing_or_unknown() {
    assert_snapshot!(replaced("kind = \"image\"\n", ""), @r"
    error: the entry `agent` has no `kind`
      --> Boxfile.lock:6:1
       |
     6 | [[entry]]
       | ^^^^^^^^^ `kind` is missing
       |
       = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("size = 4096", "sise = 4096\ncolour = \"red\""), @r#"
    error: the entry `agent` has no `size`
      --> Boxfile.lock:6:1
       |
     6 | [[entry]]
       | ^^^^^^^^^ `size` is missing
       |
       = help: run `boxbuild lock` to write it anew

    error: the entry `agent` has an unknown field `sise`
       --> Boxfile.lock:12:1
        |
     12 | sise = 4096
        | ^^^^ no such field
        |
        = help: did you mean `size`? Or run `boxbuild lock` to write it anew

    error: the entry `agent` has an unknown field `colour`
       --> Boxfile.lock:13:1
        |
     13 | colour = "red"
        | ^^^^^^ no such field
        |
        = help: remove it, or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("name = \"agent\"\n", "nam = \"agent\"\n"), @r#"
    error: the entry has no `name`
      --> Boxfile.lock:6:1
       |
     6 | [[entry]]
       | ^^^^^^^^^ `name` is missing
       |
       = help: run `boxbuild lock` to write it anew

    error: the entry has an unknown field `nam`
      --> Boxfile.lock:7:1
       |
     7 | nam = "agent"
       | ^^^ no such field
       |
       = help: did you mean `name`? Or run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("epoch", "epochs"), @r"
    error: the lock has no `epoch`
      --> Boxfile.lock:1:1
       |
     1 | # Written by boxbuild: what each part of the Boxfile was when it was last resolved.
       | ^ `epoch` is missing
       |
       = help: run `boxbuild lock` to write it anew

    error: the lock has an unknown field `epochs`
      --> Boxfile.lock:4:1
       |
     4 | epochs = 1
       | ^^^^^^ no such field
       |
       = help: did you mean `epoch`? Or run `boxbuild lock` to write it anew
    ");
}

#[test]
fn entries_in_another_form() {
    assert_snapshot!(replaced("[[entry]]", "[[entries]]"), @r"
    error: the lock has an unknown field `entries`
      --> Boxfile.lock:6:3
       |
     6 | [[entries]]
       |   ^^^^^^^ no such field
       |
       = help: remove it, or run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("[[entry]]", "[entry]"), @r"
    error: an entry does not start with `[[entry]]`
      --> Boxfile.lock:6:1
       |
     6 | [entry]
       | ^^^^^^^ not an entry
       |
       = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("[[entry]]", "[[entry.more]]"), @r"
    error: an entry does not start with `[[entry]]`
      --> Boxfile.lock:6:1
       |
     6 | [[entry.more]]
       | ^^ not an entry
       |
       = help: run `boxbuild lock` to write it anew
    ");
}

#[test]
fn values_of_the_wrong_type() {
    assert_snapshot!(replaced("size = 4096", "size = \"4096\""), @r#"
    error: `size` takes a whole number, not the text `4096`
       --> Boxfile.lock:12:8
        |
     12 | size = "4096"
        |        ^^^^^^ expected a whole number
        |
        = help: run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("size = 4096", "size = -1"), @r"
    error: `size` is out of range
       --> Boxfile.lock:12:8
        |
     12 | size = -1
        |        ^^ must be from 0 up, with at most 64 bits
        |
        = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("epoch = 1", "epoch = 4294967296"), @r"
    error: `epoch` is out of range
      --> Boxfile.lock:4:9
       |
     4 | epoch = 4294967296
       |         ^^^^^^^^^^ must be from 0 up, with at most 32 bits
       |
       = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("source = \"\"", "source = 1979-05-27"), @r"
    error: `source` takes a text, not a date or time
       --> Boxfile.lock:61:10
        |
     61 | source = 1979-05-27
        |          ^^^^^^^^^^ expected a text
        |
        = help: run `boxbuild lock` to write it anew
    ");
    assert_snapshot!(replaced("kind = \"image\"", "kind = \"picture\""), @r#"
    error: `picture` is not a kind
      --> Boxfile.lock:8:8
       |
     8 | kind = "picture"
       |        ^^^^^^^^^ must be one of image, binary, url, skill, env-file, kernel, init
       |
       = help: run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("linux/amd64", "linux/x86_64"), @r#"
    error: `linux/x86_64` is not a platform
       --> Boxfile.lock:10:12
        |
     10 | platform = "linux/x86_64"
        |            ^^^^^^^^^^^^^^ must be linux/amd64 or linux/arm64
        |
        = help: run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("layers = [", "layers = [1,"), @r"
    error: `layers[]` takes a text, not the number `1`
       --> Boxfile.lock:13:11
        |
     13 | layers = [1,
        |           ^ expected a text
        |
        = help: run `boxbuild lock` to write it anew
    ");
}

#[test]
fn names_and_sources_that_are_not_what_they_look_like() {
    assert_snapshot!(replaced("name = \"init\"", "name = \"init\\u001B[2J\""), @r#"
    error: `name` contains the invisible character U+001B
       --> Boxfile.lock:59:8
        |
     59 | name = "init\u001B[2J"
        |        ^^^^^^^^^^^^^^^ not what it looks like
        |
        = help: run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(replaced("boot/vmlinux", "boot/\u{202e}xuniLmv"), @r#"
    error: `source` contains the invisible character U+202E
       --> Boxfile.lock:70:10
        |
     70 | source = "boot/�xuniLmv"
        |          ^^^^^^^^^^^^^^^ not what it looks like
        |
        = help: run `boxbuild lock` to write it anew
    "#);
}

#[test]
fn malformed_digests() {
    assert_snapshot!(replaced("digest = \"sha256:ab", "digest = \"sha256:AB"), @r#"
    error: `sha256:ABabababababababababababababababababababababababababa…` is not a digest
       --> Boxfile.lock:11:10
        |
     11 | digest = "sha256:ABababababababababababababababababababababababababababababababab"
        |          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ must be `sha256:` or `blake3:` and 64 lower-case hex digits
        |
        = help: run `boxbuild lock` to write it anew
    "#);
    assert_snapshot!(after(|text| text.replacen("sha256:11", "md5:11", 1).replacen("sha256:22", "22", 1)), @r#"
    error: `md5:11111111111111111111111111111111111111111111111111111111…` is not a digest
       --> Boxfile.lock:14:5
        |
     14 |     "md5:1111111111111111111111111111111111111111111111111111111111111111",
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ must be `sha256:` or `blake3:` and 64 lower-case hex digits
        |
        = help: run `boxbuild lock` to write it anew

    error: `222222222222222222222222222222222222222222222222222222222222…` is not a digest
       --> Boxfile.lock:15:5
        |
     15 |     "2222222222222222222222222222222222222222222222222222222222222222",
        |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ must be `sha256:` or `blake3:` and 64 lower-case hex digits
        |
        = help: run `boxbuild lock` to write it anew
    "#);
}

//! The parts of a box and its build: platforms, layout, skills, kernel.

use insta::assert_snapshot;

use crate::file_errors;

#[test]
fn a_platform_is_unknown_or_named_twice() {
    assert_snapshot!(file_errors(r#"platform "linux/amd46" "windows" "linux/arm64" "linux/arm64""#), @r#"
    error: `platform` cannot be `linux/amd46`
      --> Boxfile:3:10
       |
     3 | platform "linux/amd46" "windows" "linux/arm64" "linux/arm64"
       |          ^^^^^^^^^^^^^ no such choice
       |
       = help: did you mean "linux/amd64"?

    error: `platform` cannot be `windows`
      --> Boxfile:3:24
       |
     3 | platform "linux/amd46" "windows" "linux/arm64" "linux/arm64"
       |                        ^^^^^^^^^ no such choice
       |
       = help: write one of "linux/amd64", "linux/arm64"
    "#);
    assert_snapshot!(file_errors(r#"platform"#), @r#"
    error: `platform` needs a name
      --> Boxfile:3:1
       |
     3 | platform
       | ^^^^^^^^ without a name
       |
       = help: for example `platform "linux/amd64" "linux/arm64"`
    "#);
    assert_snapshot!(file_errors(r#"platform "linux/arm64" "linux/amd64" "linux/arm64""#), @r#"
    error: `linux/arm64` is given twice
      --> Boxfile:3:38
       |
     3 | platform "linux/arm64" "linux/amd64" "linux/arm64"
       |          ------------- given first
       |                                      ^^^^^^^^^^^^^ given again
       |
       = help: remove one of them
    "#);
}

#[test]
fn a_layout_is_unknown() {
    assert_snapshot!(file_errors(r#"layout "spilt""#), @r#"
    error: `layout` cannot be `spilt`
      --> Boxfile:3:8
       |
     3 | layout "spilt"
       |        ^^^^^^^ no such choice
       |
       = help: did you mean "split"?
    "#);
    assert_snapshot!(file_errors(r#"layout "overlay""#), @r#"
    error: `layout` cannot be `overlay`
      --> Boxfile:3:8
       |
     3 | layout "overlay"
       |        ^^^^^^^^^ no such choice
       |
       = help: write one of "split", "merged"
    "#);
}

#[test]
fn a_conflict_needs_the_layout_in_which_there_are_any() {
    assert_snapshot!(file_errors(r#"conflict "/etc/motd" policy="drop""#), @r#"
    error: nothing can conflict in the layout `split`
      --> Boxfile:3:1
       |
     3 | conflict "/etc/motd" policy="drop"
       | ^^^^^^^^ has no effect
       |
       = help: remove it, or write `layout "merged"`
    "#);
    assert_snapshot!(file_errors(r#"conflict "/etc/motd" policy="drop"
layout "split""#), @r#"
    error: nothing can conflict in the layout `split`
      --> Boxfile:3:1
       |
     3 | conflict "/etc/motd" policy="drop"
       | ^^^^^^^^ has no effect
     4 | layout "split"
       | ------ the layout
       |
       = help: remove it, or write `layout "merged"`
    "#);
}

#[test]
fn one_image_is_not_merged() {
    assert_snapshot!(file_errors(r#"layout "merged""#), @r#"
    error: without `business` there is only one image, and nothing to merge
      --> Boxfile:3:1
       |
     3 | layout "merged"
       | ^^^^^^ has no effect
       |
       = help: declare `business`, or remove the layout
    "#);
    // Only `busines` is reported, because it may be a misspelling of `business`.
    assert_snapshot!(file_errors("layout \"merged\"\nbusines {\n    image \"oci:b\"\n}"), @"
    error: unknown declaration `busines`
      --> Boxfile:4:1
       |
     4 | busines {
       | ^^^^^^^ no such declaration here
       |
       = help: did you mean `business`?
    ");
}

#[test]
fn a_conflict_is_settled_in_a_way_that_there_is() {
    assert_snapshot!(file_errors(r#"layout "merged"
conflict "/etc/passwd" policy="merge"
conflict "/etc/ld.so.cache" policy="merge"
conflict "etc/motd" policy="drop"
conflict "/usr/../x" policy="prefer"
conflict "/usr/**"
conflict "/etc/passwd" policy="drop""#), @r#"
    error: without `business` there is only one image, and nothing to merge
      --> Boxfile:3:1
       |
     3 | layout "merged"
       | ^^^^^^ has no effect
       |
       = help: declare `business`, or remove the layout

    error: `merge` cannot combine `/etc/ld.so.cache`
      --> Boxfile:5:36
       |
     5 | conflict "/etc/ld.so.cache" policy="merge"
       |                                    ^^^^^^^ only for four files of accounts
       |
       = help: `merge` is for /etc/passwd, /etc/group, /etc/shadow and /etc/gshadow; choose one image's file, or neither

    error: `etc/motd` is not a pattern of paths
      --> Boxfile:6:10
       |
     6 | conflict "etc/motd" policy="drop"
       |          ^^^^^^^^^^ not a pattern
       |
       = help: it begins with `/`; `*` stands for anything but `/`, `**` for anything: "/usr/share/doc/**"

    error: `/usr/../x` is not a pattern of paths
      --> Boxfile:7:10
       |
     7 | conflict "/usr/../x" policy="prefer"
       |          ^^^^^^^^^^^ not a pattern
       |
       = help: it begins with `/`; `*` stands for anything but `/`, `**` for anything: "/usr/share/doc/**"

    error: `policy` cannot be `prefer`
      --> Boxfile:7:29
       |
     7 | conflict "/usr/../x" policy="prefer"
       |                             ^^^^^^^^ no such choice
       |
       = help: did you mean "prefer-agent"?

    error: `conflict` needs `policy`
      --> Boxfile:8:1
       |
     8 | conflict "/usr/**"
       | ^^^^^^^^ without `policy`
       |
       = help: for example `conflict "/etc/motd" policy="prefer-agent"`

    error: the conflict `/etc/passwd` is declared twice
      --> Boxfile:9:10
       |
     4 | conflict "/etc/passwd" policy="merge"
       |          ------------- declared first
    ...
     9 | conflict "/etc/passwd" policy="drop"
       |          ^^^^^^^^^^^^^ declared again
       |
       = help: give one of them another pattern, or remove it
    "#);
}

#[test]
fn a_kernel_is_a_path_a_sha256_or_both() {
    assert_snapshot!(file_errors(r#"kernel"#), @r#"
    error: `kernel` needs a path or a `sha256`
      --> Boxfile:3:1
       |
     3 | kernel
       | ^^^^^^ without a path or a `sha256`
       |
       = help: for example `kernel "lean"`
    "#);
    assert_snapshot!(file_errors(r#"kernel "k" sha256="abc""#), @r#"
    error: a sha256 has 64 hexadecimal digits, in lower case
      --> Boxfile:3:19
       |
     3 | kernel "k" sha256="abc"
       |                   ^^^^^ 3 characters
       |
       = help: the output of `sha256sum` begins with them
    "#);
    assert_snapshot!(file_errors(r#"kernel sha256="sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855""#), @r#"
    error: a sha256 has 64 hexadecimal digits, in lower case
      --> Boxfile:3:15
       |
     3 | kernel sha256="sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 71 characters
       |
       = help: write `sha256="e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"`
    "#);
    assert_snapshot!(file_errors(r#"kernel "" "k""#), @r#"
    error: `kernel` is empty
      --> Boxfile:3:8
       |
     3 | kernel "" "k"
       |        ^^ nothing between the quotes
       |
       = help: write something between the quotes

    error: unexpected argument: the string `k`
      --> Boxfile:3:11
       |
     3 | kernel "" "k"
       |           ^^^ one too many
       |
       = help: remove it; its properties: `sha256`
    "#);
}

/// `skills dir` and single skills.
#[test]
fn a_skill_needs_its_path_and_a_directory_of_skills_its_own() {
    assert_snapshot!(file_errors(r#"skill "c"
skill "d" path="" mode="baked"
skills "skills""#), @r#"
    error: `skill` needs `path`
      --> Boxfile:3:1
       |
     3 | skill "c"
       | ^^^^^ without `path`
       |
       = help: for example `skill "greet" path="skills/greet"`

    error: `path` is empty
      --> Boxfile:4:16
       |
     4 | skill "d" path="" mode="baked"
       |                ^^ nothing between the quotes
       |
       = help: write something between the quotes

    error: `mode` cannot be `baked`
      --> Boxfile:4:24
       |
     4 | skill "d" path="" mode="baked"
       |                        ^^^^^^^ no such choice
       |
       = help: did you mean "bake"?

    error: `skills` needs `dir`
      --> Boxfile:5:1
       |
     5 | skills "skills"
       | ^^^^^^ without `dir`
       |
       = help: for example `skills dir="skills"`

    error: `skills` takes no value, but got the string `skills`
      --> Boxfile:5:8
       |
     5 | skills "skills"
       |        ^^^^^^^^ one too many
       |
       = help: write `skills dir="skills"`
    "#);
    assert_snapshot!(file_errors(r#"skills dir="a"
skills dir="b""#), @r#"
    error: `skills` is declared twice
      --> Boxfile:4:1
       |
     3 | skills dir="a"
       | ------ declared first
     4 | skills dir="b"
       | ^^^^^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
}

//! Files of the checkout that cannot be baked into a component.

use insta::assert_snapshot;

use crate::{agent_errors, errors};

#[test]
fn a_file_has_a_path_and_a_place() {
    assert_snapshot!(agent_errors("    file\n    file \"a\""), @r#"
    error: `file` needs a path and `to`
      --> Boxfile:4:5
       |
     4 |     file
       |     ^^^^ without a path and `to`
       |
       = help: for example `file "conf.yaml" to="/etc/app/" mode="0600" owner="1000:1000"`

    error: `file` needs `to`
      --> Boxfile:5:5
       |
     5 |     file "a"
       |     ^^^^ without `to`
       |
       = help: for example `file "conf.yaml" to="/etc/app/" mode="0600" owner="1000:1000"`
    "#);
    assert_snapshot!(agent_errors("    copy \"a\" \"/b\""), @r#"
    error: unknown declaration `copy`
      --> Boxfile:4:5
       |
     4 |     copy "a" "/b"
       |     ^^^^ no such declaration here
       |
       = help: did you mean `file`?
    "#);
    assert_snapshot!(agent_errors("    file \"a\" \"/b\""), @r#"
    error: `file` needs `to`
      --> Boxfile:4:5
       |
     4 |     file "a" "/b"
       |     ^^^^ without `to`
       |
       = help: for example `file "conf.yaml" to="/etc/app/" mode="0600" owner="1000:1000"`

    error: unexpected argument: the string `/b`
      --> Boxfile:4:14
       |
     4 |     file "a" "/b"
       |              ^^^^ one too many
       |
       = help: write `to="/b"`
    "#);
}

#[test]
fn places_are_absolute_and_plain() {
    let places = ["etc/a", "/etc/../a", "/etc//", ""];
    let lines = places.map(|it| format!("    file \"{}\" to=\"{it}\"", it.len()));
    assert_snapshot!(agent_errors(&lines.join("\n")), @r#"
    error: `to` takes an absolute path, not `etc/a`
      --> Boxfile:4:17
       |
     4 |     file "5" to="etc/a"
       |                 ^^^^^^^ a relative path
       |
       = help: write "/etc/a"

    error: `/etc/../a` is not a plain path
      --> Boxfile:5:17
       |
     5 |     file "9" to="/etc/../a"
       |                 ^^^^^^^^^^^ not a plain path
       |
       = help: write a path without `.`, `..` and `//`: "/etc/app/"

    error: `/etc//` is not a plain path
      --> Boxfile:6:17
       |
     6 |     file "6" to="/etc//"
       |                 ^^^^^^^^ not a plain path
       |
       = help: write a path without `.`, `..` and `//`: "/etc/app/"

    error: `to` is empty
      --> Boxfile:7:17
       |
     7 |     file "0" to=""
       |                 ^^ nothing between the quotes
       |
       = help: write something between the quotes
    "#);
    assert_snapshot!(agent_errors("    file \"a/./..\" to=\"/srv/app\"\n    file \"./\" to=\"/srv/\""), @r#"
    error: `a/..` cannot be put into the box as a whole
      --> Boxfile:4:10
       |
     4 |     file "a/./.." to="/srv/app"
       |          ^^^^^^^^ the Boxfile and its lock would be in it
       |
       = help: name the files and directories that the box needs, one by one

    error: `.` cannot be put into the box as a whole
      --> Boxfile:5:10
       |
     5 |     file "./" to="/srv/"
       |          ^^^^ the Boxfile and its lock would be in it
       |
       = help: name the files and directories that the box needs, one by one
    "#);
}

#[test]
fn modes_are_three_octal_digits() {
    assert_snapshot!(agent_errors("    file \"a\" to=\"/a\" mode=0o644\n    file \"b\" to=\"/b\" mode=\"4755\"\n    file \"c\" to=\"/c\" owner=\"a b\""), @r#"
    error: `mode` takes a string, not the number 420
      --> Boxfile:4:27
       |
     4 |     file "a" to="/a" mode=0o644
       |                           ^^^^^ expected a string
       |
       = help: write `mode="0644"`

    error: `4755` is not a mode
      --> Boxfile:5:27
       |
     5 |     file "b" to="/b" mode="4755"
       |                           ^^^^^^ not three octal digits
       |
       = help: write `mode="0644"`: three octal digits for owner, group and others; set-uid, set-gid and sticky have no effect in a box

    error: `a b` is not a user
      --> Boxfile:6:28
       |
     6 |     file "c" to="/c" owner="a b"
       |                            ^^^^^ not a user
       |
       = help: the name of a user or a group has letters, digits, `_`, `.` and `-`, no `-` first, and at most 256 of them; of any other, write the number
    "#);
}

#[test]
fn a_file_is_of_the_checkout() {
    assert_snapshot!(agent_errors("    file \"/etc/passwd\" to=\"/etc/\"\n    file \"../a\" to=\"/a\""), @r#"
    error: a file of the box must be inside the checkout
      --> Boxfile:4:10
       |
     4 |     file "/etc/passwd" to="/etc/"
       |          ^^^^^^^^^^^^^ an absolute path
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a file of the box must be inside the checkout
      --> Boxfile:5:10
       |
     5 |     file "../a" to="/a"
       |          ^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`
    "#);
}

#[test]
fn no_file_is_where_the_guest_has_its_own() {
    let places = ["/proc/x", "/dev/", "/a3s", "/a3s/skills/x", "/boxbuild/x", "/task/"];
    let lines = places.map(|it| format!("    file \"f{}\" to=\"{it}\"", it.len()));
    assert_snapshot!(agent_errors(&lines.join("\n")), @r#"
    error: no file can be at `/proc/x`
      --> Boxfile:4:18
       |
     4 |     file "f7" to="/proc/x"
       |                  ^^^^^^^^^ the guest has its own `/proc`
       |
       = help: choose another path, for instance "/etc/app/"

    error: no file can be at `/dev/f5`
      --> Boxfile:5:18
       |
     5 |     file "f5" to="/dev/"
       |                  ^^^^^^^ the guest has its own `/dev`
       |
       = help: choose another path, for instance "/etc/app/"

    error: no file can be at `/a3s`
      --> Boxfile:6:18
       |
     6 |     file "f4" to="/a3s"
       |                  ^^^^^^ the guest has its own `/a3s/skills`
       |
       = help: choose another path, for instance "/etc/app/"

    error: no file can be at `/a3s/skills/x`
      --> Boxfile:7:19
       |
     7 |     file "f13" to="/a3s/skills/x"
       |                   ^^^^^^^^^^^^^^^ the guest has its own `/a3s/skills`
       |
       = help: choose another path, for instance "/etc/app/"

    error: no file can be at `/boxbuild/x`
      --> Boxfile:8:19
       |
     8 |     file "f11" to="/boxbuild/x"
       |                   ^^^^^^^^^^^^^ the guest has its own `/boxbuild`
       |
       = help: choose another path, for instance "/etc/app/"

    error: no file can be at `/task/f6`
      --> Boxfile:9:18
       |
     9 |     file "f6" to="/task/"
       |                  ^^^^^^^^ the guest has its own `/task`
       |
       = help: choose another path, for instance "/etc/app/"
    "#);
}

#[test]
fn two_files_at_one_place() {
    assert_snapshot!(agent_errors("    file \"a/x\" to=\"/etc/\"\n    file \"b\" to=\"/etc/x\"\n    file \"c\" to=\"/etc/x\""), @r#"
    error: `/etc/x` is used twice
      --> Boxfile:5:17
       |
     4 |     file "a/x" to="/etc/"
       |                   ------- the place of this `file`
     5 |     file "b" to="/etc/x"
       |                 ^^^^^^^^ the place of this `file`
       |
       = help: give one of them another path, or remove it

    error: `/etc/x` is used twice
      --> Boxfile:6:17
       |
     4 |     file "a/x" to="/etc/"
       |                   ------- the place of this `file`
    ...
     6 |     file "c" to="/etc/x"
       |                 ^^^^^^^^ the place of this `file`
       |
       = help: give one of them another path, or remove it
    "#);
    assert_snapshot!(agent_errors("    file \"a\" to=\"/x\"\n    file \"./a\" to=\"/y\""), @r#"
    error: the file `a` is declared twice
      --> Boxfile:5:10
       |
     4 |     file "a" to="/x"
       |          --- declared first
     5 |     file "./a" to="/y"
       |          ^^^^^ declared again
       |
       = help: give one of them another path, or remove it
    "#);
}

#[test]
fn a_file_that_a_mount_would_hide() {
    let text = "box b
agent {
    image \"oci:i\"
    file \"a\" to=\"/data/\"
    file \"b\" to=\"/run/key\"
}
share \"d\" guest=\"/data\"
secret \"KEY\" path=\"/run/key\"
";
    assert_snapshot!(errors(text), @r#"
    error: `/data/a` is inside `/data`, which is already in use
      --> Boxfile:4:17
       |
     4 |     file "a" to="/data/"
       |                 ^^^^^^^^ the place of this `file`
    ...
     7 | share "d" guest="/data"
       |                 ------- the place of this `share`
       |
       = help: choose paths that are not inside one another

    error: `/run/key` is used twice
      --> Boxfile:5:17
       |
     5 |     file "b" to="/run/key"
       |                 ^^^^^^^^^^ the place of this `file`
    ...
     8 | secret "KEY" path="/run/key"
       |                   ---------- the place of this `secret`
       |
       = help: give one of them another path, or remove it
    "#);
}

#[test]
fn what_a_profile_puts_at_the_place_of_another() {
    let text = "box b
agent {
    image \"oci:i\"
    file \"dev.yaml\" to=\"/etc/app.yaml\"
}
profile \"prod\" {
    agent { file \"prod.yaml\" to=\"/etc/app.yaml\"; }
}
";
    assert_snapshot!(errors(text), @r#"
    error: `/etc/app.yaml` is used twice
      --> Boxfile:7:33
       |
     4 |     file "dev.yaml" to="/etc/app.yaml"
       |                        --------------- the place of this `file`
    ...
     7 |     agent { file "prod.yaml" to="/etc/app.yaml"; }
       |                                 ^^^^^^^^^^^^^^^ the place of this `file`
       |
       = help: give one of them another path, or remove it
    "#);
}

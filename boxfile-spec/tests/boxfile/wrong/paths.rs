//! Paths that cannot be used, or that have invisible characters.

use insta::assert_snapshot;

use crate::{agent_errors, errors};

#[test]
fn paths_of_requests() {
    assert_snapshot!(agent_errors(r#"    health "http" path="/santé""#), @r#"
    error: `/santé` is not the path of a request
      --> Boxfile:4:24
       |
     4 |     health "http" path="/santé"
       |                        ^^^^^^^^ not a path
       |
       = help: percent-encode it: write `path="/sant%C3%A9"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "http" path="a b""#), @r#"
    error: `a b` is not the path of a request
      --> Boxfile:4:24
       |
     4 |     health "http" path="a b"
       |                        ^^^^^ not a path
       |
       = help: percent-encode it: write `path="/a%20b"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "http" path="/a\r\nHost: b""#), @r#"
    error: `/a��Host: b` is not the path of a request
      --> Boxfile:4:24
       |
     4 |     health "http" path="/a\r\nHost: b"
       |                        ^^^^^^^^^^^^^^^ not a path
       |
       = help: it begins with `/` and consists of visible ASCII: "/health"
    "#);
    assert_snapshot!(agent_errors(r#"    health "http" path="" port=80"#), @r#"
    error: `` is not the path of a request
      --> Boxfile:4:24
       |
     4 |     health "http" path="" port=80
       |                        ^^ not a path
       |
       = help: it begins with `/` and consists of visible ASCII: "/health"
    "#);
}

#[test]
fn a_working_directory_is_not_the_kernels() {
    assert_snapshot!(agent_errors(r#"    workdir "/proc/self/cwd""#), @r#"
    error: the working directory cannot be `/proc/self/cwd`
      --> Boxfile:4:13
       |
     4 |     workdir "/proc/self/cwd"
       |             ^^^^^^^^^^^^^^^^ in `/proc`, a file system of the kernel
       |
       = help: choose another directory, for instance "/work"
    "#);
    assert_snapshot!(agent_errors(r#"    workdir "/srv/..//dev""#), @r#"
    error: the working directory cannot be `/srv/..//dev`
      --> Boxfile:4:13
       |
     4 |     workdir "/srv/..//dev"
       |             ^^^^^^^^^^^^^^ in `/dev`, a file system of the kernel
       |
       = help: choose another directory, for instance "/work"
    "#);
}

#[test]
fn paths_that_are_not_what_they_look_like() {
    assert_snapshot!(errors(r#"box b
agent {
    image "oci:i\u{1b}[2Jmages"
    env-file "a.env" "b\nerror: forged"
}
skill s path="skills\u{202e}/s"
kernel "k\u{200b}"
share d guest="/d" host="d\t""#), @r#"
    error: `image` contains the invisible character U+001B
      --> Boxfile:3:11
       |
     3 |     image "oci:i\u{1b}[2Jmages"
       |           ^^^^^^^^^^^^^^^^^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file

    error: `env-file` contains the invisible character U+000A
      --> Boxfile:4:22
       |
     4 |     env-file "a.env" "b\nerror: forged"
       |                      ^^^^^^^^^^^^^^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file

    error: `path` contains the invisible character U+202E
      --> Boxfile:6:14
       |
     6 | skill s path="skills\u{202e}/s"
       |              ^^^^^^^^^^^^^^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file

    error: `kernel` contains the invisible character U+200B
      --> Boxfile:7:8
       |
     7 | kernel "k\u{200b}"
       |        ^^^^^^^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file

    error: `host` contains the invisible character U+0009
      --> Boxfile:8:25
       |
     8 | share d guest="/d" host="d\t"
       |                         ^^^^^ not what it looks like
       |
       = help: remove the character; if the file has it in its name, rename the file
    "#);
    assert_snapshot!(agent_errors(r#"    workdir "a\nerror: forged\u{1b}[2J""#), @r#"
    error: `workdir` takes an absolute path, not `a�error: forged�[2J`
      --> Boxfile:4:13
       |
     4 |     workdir "a\nerror: forged\u{1b}[2J"
       |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^ a relative path
       |
       = help: write "/a�error: forged�[2J"
    "#);
}

#[test]
fn an_archive_without_its_prefix_is_known_by_its_ending() {
    let output = crate::errors("box \"b\"\nagent { image \"./agent.tar\"; }\n");
    let help = r#"an archive is "docker-archive:./agent.tar" or "oci-archive:./agent.tar""#;
    assert!(output.contains(help), "{output}");
}

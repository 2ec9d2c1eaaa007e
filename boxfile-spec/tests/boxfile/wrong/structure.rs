//! Declarations that are unknown, missing, repeated or in the wrong block.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors};

#[test]
fn an_empty_file_lacks_everything() {
    assert_snapshot!(errors(""), @r#"
    error: the file does not declare `box`
      --> Boxfile:1:1
       |
     1 |
       | ^ in this file
       |
       = help: add `box "my-agent"`

    error: the file does not declare `agent`
      --> Boxfile:1:1
       |
     1 |
       | ^ in this file
       |
       = help: add
             agent {
                 image "oci:images/agent"
             }
    "#);
}

#[test]
fn a_misspelt_declaration_is_recognised() {
    assert_snapshot!(errors("box \"b\"\n\nagnet {\n    image \"oci:i\"\n}\n"), @"
    error: unknown declaration `agnet`
      --> Boxfile:3:1
       |
     3 | agnet {
       | ^^^^^ no such declaration here
       |
       = help: did you mean `agent`?
    ");
}

#[test]
fn an_unknown_declaration_gets_the_list() {
    assert_snapshot!(file_errors(r#"widget "data""#), @r#"
    error: unknown declaration `widget`
      --> Boxfile:3:1
       |
     3 | widget "data"
       | ^^^^^^ no such declaration here
       |
       = help: did you mean `budget`?
    "#);
    assert_snapshot!(agent_errors(r#"    sluice "data""#), @r#"
    error: unknown declaration `sluice`
      --> Boxfile:4:5
       |
     4 |     sluice "data"
       |     ^^^^^^ no such declaration here
       |
       = help: the declarations here are `image`, `binary`, `entrypoint`, `args`, `env`, `plain-env`, `env-file`, `file`, `workdir`, `user`, `system`, `port`, `health`, `tools`, `namespaces`, `limits`, `rlimits`, `capabilities`
    "#);
}

#[test]
fn names_from_other_tools_are_recognised() {
    let meant = |lines: &str| {
        let text = format!("box b\nagent {{ image \"oci:i\"; {lines}; }}\n");
        let diagnostics = boxfile_spec::parse(&text).unwrap_err();
        let helps: Vec<String> =
            diagnostics.as_slice().iter().filter_map(|one| one.help().map(str::to_owned)).collect();
        helps.join("; ")
    };
    for (theirs, ours) in [
        ("cmd \"a\"", "args"),
        ("command \"a\"", "args"),
        ("environment A=\"1\"", "env"),
        ("working_dir \"/\"", "workdir"),
        ("healthcheck \"tcp\"", "health"),
        ("ulimits nofile=1", "rlimits"),
        ("cap_add NET_RAW", "capabilities"),
        ("Limits pids=1", "limits"),
    ] {
        assert_eq!(meant(theirs), format!("did you mean `{ours}`?"), "{theirs}");
    }
}

#[test]
fn a_declaration_in_the_wrong_place_is_sent_to_the_right_one() {
    assert_snapshot!(file_errors(r#"workdir "/""#), @r#"
    error: `workdir` does not belong here
      --> Boxfile:3:1
       |
     3 | workdir "/"
       | ^^^^^^^ not allowed here
       |
       = help: it belongs inside `agent { … }` or `business { … }`
    "#);
    assert_snapshot!(agent_errors(r#"    vm cpus=1"#), @"
    error: `vm` does not belong here
      --> Boxfile:4:5
       |
     4 |     vm cpus=1
       |     ^^ not allowed here
       |
       = help: write `vm` at the top level, outside any `{ … }`
    ");
}

#[test]
fn two_agents() {
    assert_snapshot!(errors("box \"b\"\nagent { image \"oci:i\"; }\nagent { image \"oci:j\"; }\nagent\n"), @r#"
    error: a box has exactly one agent
      --> Boxfile:3:1
       |
     2 | agent { image "oci:i"; }
       | ----- declared first
     3 | agent { image "oci:j"; }
       | ^^^^^ declared again
     4 | agent
       | ----- and again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn two_business_applications_and_two_machines() {
    assert_snapshot!(file_errors(r#"business { image "oci:i"; }
business { image "oci:i"; }
vm
vm"#), @r#"
    error: a box has at most one business application
      --> Boxfile:4:1
       |
     3 | business { image "oci:i"; }
       | -------- declared first
     4 | business { image "oci:i"; }
       | ^^^^^^^^ declared again
       |
       = help: keep one of them and remove the others

    error: `vm` is empty
      --> Boxfile:5:1
       |
     5 | vm
       | ^^ nothing is given
       |
       = help: for example `vm cpus=2 memory="2GiB"`

    error: `vm` is declared twice
      --> Boxfile:6:1
       |
     5 | vm
       | -- declared first
     6 | vm
       | ^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn an_agent_without_a_block() {
    assert_snapshot!(errors("box b\nagent\n"), @r#"
    error: `agent` needs an `image`
      --> Boxfile:2:1
       |
     2 | agent
       | ^^^^^ without an `image`
       |
       = help: add `image "oci:images/agent"`
    "#);
}

#[test]
fn a_component_declares_each_thing_once() {
    assert_snapshot!(agent_errors(r#"    image "oci:j"
    port 1
    port 2"#), @r#"
    error: `image` is declared twice
      --> Boxfile:4:5
       |
     3 | image "oci:i"
       | ----- declared first
     4 |     image "oci:j"
       |     ^^^^^ declared again
       |
       = help: keep one of them and remove the others

    error: `port` is declared twice
      --> Boxfile:6:5
       |
     5 |     port 1
       |     ---- declared first
     6 |     port 2
       |     ^^^^ declared again
       |
       = help: keep one of them and remove the others
    "#);
}

#[test]
fn a_block_where_none_belongs() {
    assert_snapshot!(file_errors(r#"vm { cpus 2; }"#), @r#"
    error: `vm` takes no block
      --> Boxfile:3:4
       |
     3 | vm { cpus 2; }
       |    ^ opened here
       |
       = help: for example `vm cpus=2 memory="2GiB"`
    "#);
}

#[test]
fn an_unknown_property() {
    assert_snapshot!(agent_errors(r#"    limits memroy="64MiB" swap=1"#), @r#"
    error: `limits` has no property `memroy`
      --> Boxfile:4:12
       |
     4 |     limits memroy="64MiB" swap=1
       |            ^^^^^^ no such property
       |
       = help: did you mean `memory`?

    error: `limits` has no property `swap`
      --> Boxfile:4:27
       |
     4 |     limits memroy="64MiB" swap=1
       |                           ^^^^ no such property
       |
       = help: its properties: `memory`, `pids`, `cpu-weight`, `cpu-shares`
    "#);
}

#[test]
fn one_argument_too_many() {
    assert_snapshot!(file_errors(r#"layout "split" "merged""#), @r#"
    error: unexpected argument: the string `merged`
      --> Boxfile:3:16
       |
     3 | layout "split" "merged"
       |                ^^^^^^^^ one too many
       |
       = help: remove it
    "#);
    assert_snapshot!(agent_errors(r#"    env "A=1""#), @r#"
    error: `env` takes variables
      --> Boxfile:4:9
       |
     4 |     env "A=1"
       |         ^^^^^ no variable
       |
       = help: write `env A="1"`
    "#);
}

#[test]
fn a_property_given_twice() {
    assert_snapshot!(agent_errors(r#"    limits pids=1 pids=2"#), @"
    error: `pids` is given twice
      --> Boxfile:4:19
       |
     4 |     limits pids=1 pids=2
       |            ---- given first
       |                   ^^^^ given again
       |
       = help: remove one of them
    ");
}

#[test]
fn an_error_in_a_line_hides_no_error_in_another() {
    assert_snapshot!(errors("box hello!\nagent {\n    imgae oci:a/b\n    image a/b\n    limits memory = 64MiB pids=(1 2) cpu-weight=1x\n    port 0\n}\nvm [1, 2]\n"), @r#"
    error: `hello!` is not a valid name
      --> Boxfile:1:5
       |
     1 | box hello!
       |     ^^^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write "hello"

    error: `oci:a/b` must be in quotes
      --> Boxfile:3:11
       |
     3 |     imgae oci:a/b
       |           ^^^^^^^ a bare word cannot contain this
       |
       = help: write `"oci:a/b"`

    error: `a/b` must be in quotes
      --> Boxfile:4:11
       |
     4 |     image a/b
       |           ^^^ a bare word cannot contain this
       |
       = help: write `"a/b"`

    error: `64MiB` is not a number
      --> Boxfile:5:21
       |
     5 |     limits memory = 64MiB pids=(1 2) cpu-weight=1x
       |                     ^^^^^ begins like a number
       |
       = help: write a string in quotes: `"64MiB"`

    error: `(` has no meaning here
      --> Boxfile:5:32
       |
     5 |     limits memory = 64MiB pids=(1 2) cpu-weight=1x
       |                                ^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`

    error: `port` is out of range
      --> Boxfile:6:10
       |
     6 |     port 0
       |          ^ must be from 1 to 65535

    error: `[` has no meaning here
      --> Boxfile:8:4
       |
     8 | vm [1, 2]
       |    ^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`
    "#);
    assert_snapshot!(errors("box b/c\nagent x=[1] {\n    imgae \"oci:a\"\n}\nbudget total=1s\nkernel a\\b\n"), @r#"
    error: `b/c` must be in quotes
      --> Boxfile:1:5
       |
     1 | box b/c
       |     ^^^ a bare word cannot contain this
       |
       = help: write `"b/c"`

    error: `[` has no meaning here
      --> Boxfile:2:9
       |
     2 | agent x=[1] {
       |         ^^^ unexpected
       |
       = help: values follow one another with spaces between them: `args "a" "b"`

    error: unknown declaration `imgae`
      --> Boxfile:3:5
       |
     3 |     imgae "oci:a"
       |     ^^^^^ no such declaration here
       |
       = help: did you mean `image`?

    error: `1s` is not a number
      --> Boxfile:5:14
       |
     5 | budget total=1s
       |              ^^ begins like a number
       |
       = help: write a string in quotes: `"1s"`

    error: `a\b` must be in quotes
      --> Boxfile:6:8
       |
     6 | kernel a\b
       |        ^^^ a bare word cannot contain this
       |
       = help: write `"a\\b"`
    "#);
}

#[test]
fn a_property_that_is_looked_at_twice_is_reported_once() {
    assert_snapshot!(agent_errors(r#"    limits memory="64MiB" memory="65MiB"
    namespaces uts=#false uts=#true hostname="h""#), @r#"
    error: `memory` is given twice
      --> Boxfile:4:27
       |
     4 |     limits memory="64MiB" memory="65MiB"
       |            ------ given first
       |                           ^^^^^^ given again
       |
       = help: remove one of them

    error: `uts` is given twice
      --> Boxfile:5:27
       |
     5 |     namespaces uts=#false uts=#true hostname="h"
       |                --- given first
       |                           ^^^ given again
       |
       = help: remove one of them

    error: a component without its own `uts` namespace cannot have its own host name
      --> Boxfile:5:46
       |
     5 |     namespaces uts=#false uts=#true hostname="h"
       |                    ------ switched off
       |                                              ^^^ needs `uts=#true`
       |
       = help: remove `hostname`, or `uts`
    "#);
}

#[test]
fn every_error_of_a_file_at_once() {
    assert_snapshot!(errors("box \"B\"\nagent {\n    image oci:i\n    port 0\n    limits memory=64\n    healht \"tcp\"\n}\nvm cpus=0 cups=1\nskill\n"), @r#"
    error: `B` is not a valid name
      --> Boxfile:1:5
       |
     1 | box "B"
       |     ^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write "b"

    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 0
       |          ^ must be from 1 to 65535

    error: `memory` has no unit
      --> Boxfile:5:19
       |
     5 |     limits memory=64
       |                   ^^ a bare number
       |
       = help: write `memory="64MiB"`, or `memory="64B"` for bytes

    error: unknown declaration `healht`
      --> Boxfile:6:5
       |
     6 |     healht "tcp"
       |     ^^^^^^ no such declaration here
       |
       = help: did you mean `health`?

    error: `cpus` is out of range
      --> Boxfile:8:9
       |
     8 | vm cpus=0 cups=1
       |         ^ must be from 1 to 16

    error: `vm` has no property `cups`
      --> Boxfile:8:11
       |
     8 | vm cpus=0 cups=1
       |           ^^^^ no such property
       |
       = help: did you mean `cpus`?

    error: `skill` needs a name and `path`
      --> Boxfile:9:1
       |
     9 | skill
       | ^^^^^ without a name and `path`
       |
       = help: for example `skill "greet" path="skills/greet"`
    "#);
}

//! Files written with the habits of other languages.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors, read, shown};

#[test]
fn a_toml_text_under_the_name_of_a_kdl_file() {
    let text = "# My box.\nbox = \"b\"\n\n[agent]\nimage = \"oci:i\"\nargs = [\n  \"a\",\n]\n";
    assert_snapshot!(errors(text), @r#"
    error: the file's name says KDL, but it is written in TOML
      --> Boxfile:2:1
       |
     2 | box = "b"
       | ^^^^^^^^^ TOML from here on
       |
       = help: give it a name that ends with `.toml`: `Boxfile.toml`
    "#);
    // Whatever else is wrong, brackets at the beginning leave no doubt.
    assert_snapshot!(errors("[agent]\nimage = oci:i\n"), @r"
    error: the file's name says KDL, but it is written in TOML
      --> Boxfile:1:1
       |
     1 | [agent]
       | ^^^^^^^ TOML from here on
       |
       = help: give it a name that ends with `.toml`: `Boxfile.toml`
    ");
    let base = shown(&read(&[("Boxfile.toml", "extends = \"base\"\n"), ("base", text)], None));
    assert_snapshot!(base, @r#"
    error: the file's name says KDL, but it is written in TOML
      --> base:2:1
       |
     2 | box = "b"
       | ^^^^^^^^^ TOML from here on
       |
       = help: give it a name that ends with `.toml`: `Boxfile.toml`
    "#);
}

#[test]
fn a_kdl_text_with_some_toml_in_it_is_kdl() {
    assert_snapshot!(errors("box = \"b\"\nagent {\n    image = \"oci:i\"\n    port=80\n}\n"), @r#"
    error: the value of a declaration follows its name without `=`
      --> Boxfile:1:5
       |
     1 | box = "b"
       |     ^ not in KDL
       |
       = help: write `box "b"`

    error: the value of a declaration follows its name without `=`
      --> Boxfile:3:11
       |
     3 |     image = "oci:i"
       |           ^ not in KDL
       |
       = help: write `image "oci:i"`

    error: the value of a declaration follows its name without `=`
      --> Boxfile:4:9
       |
     4 |     port=80
       |         ^ not in KDL
       |
       = help: write `port 80`
    "#);
}

#[test]
fn a_comment_as_in_a_shell() {
    assert_snapshot!(file_errors("# what it's for (and why), x = y\n#vm cpus=2"), @r"
    error: this is not a comment
      --> Boxfile:3:1
       |
     3 | # what it's for (and why), x = y
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not in KDL
       |
       = help: a comment begins with `//`

    error: this is not a comment
      --> Boxfile:4:1
       |
     4 | #vm cpus=2
       | ^^^^^^^^^^ not in KDL
       |
       = help: a comment begins with `//`
    ");
}

#[test]
fn a_comment_as_in_a_shell_after_a_declaration() {
    assert_snapshot!(file_errors("vm cpus=2 # it's enough, x = y"), @"
    error: this is not a comment
      --> Boxfile:3:11
       |
     3 | vm cpus=2 # it's enough, x = y
       |           ^^^^^^^^^^^^^^^^^^^^ not in KDL
       |
       = help: a comment begins with `//`
    ");
}

#[test]
fn typographic_quotes() {
    assert_snapshot!(file_errors("layout “merged”\nshare ‘a b’ guest=“/a"), @r#"
    error: typographic quotes are not quotes
      --> Boxfile:3:8
       |
     3 | layout “merged”
       |        ^^^^^^^^ not straight quotes
       |
       = help: write `"merged"`

    error: typographic quotes are not quotes
      --> Boxfile:4:7
       |
     4 | share ‘a b’ guest=“/a
       |       ^^^^^ not straight quotes
       |
       = help: write `"a b"`

    error: typographic quotes are not quotes
      --> Boxfile:4:19
       |
     4 | share ‘a b’ guest=“/a
       |                   ^^^ not straight quotes
       |
       = help: write `"/a"`
    "#);
}

#[test]
fn a_value_behind_an_equals_sign() {
    assert_snapshot!(agent_errors("    workdir = /srv\n    args = [\"a\", \"b\"]\n    autostart = true\n    env = { }\n    user = a b \"c"), @r#"
    error: the value of a declaration follows its name without `=`
      --> Boxfile:4:13
       |
     4 |     workdir = /srv
       |             ^ not in KDL
       |
       = help: write `workdir "/srv"`

    error: the value of a declaration follows its name without `=`
      --> Boxfile:5:10
       |
     5 |     args = ["a", "b"]
       |          ^ not in KDL
       |
       = help: write `args "a" "b"`

    error: the value of a declaration follows its name without `=`
      --> Boxfile:6:15
       |
     6 |     autostart = true
       |               ^ not in KDL
       |
       = help: write `autostart #true`

    error: `=` must stand between a name and a value
      --> Boxfile:7:9
       |
     7 |     env = { }
       |         ^ one of them is missing
       |
       = help: write `name="value"`, or remove the `=`

    error: nothing can stand inside of `env`
      --> Boxfile:7:11
       |
     7 |     env = { }
       |           ^ opened here
       |
       = help: for example `env LOG_LEVEL="info" LANG="C.UTF-8"`

    error: this text is never closed
      --> Boxfile:8:16
       |
     8 |     user = a b "c
       |                ^^ no closing quote on this line
       |
       = help: close it with `"`
    "#);
}

#[test]
fn a_name_with_a_colon() {
    assert_snapshot!(file_errors("agent:\n  image: \"oci:i\"\n  vm:\n  whatever: 1"), @r#"
    error: unknown declaration `agent:`
      --> Boxfile:3:1
       |
     3 | agent:
       | ^^^^^^ no such declaration here
       |
       = help: did you mean `agent`?

    error: `image:` does not belong here
      --> Boxfile:4:3
       |
     4 |   image: "oci:i"
       |   ^^^^^^ in the wrong place
       |
       = help: it belongs inside `agent { … }` or `business { … }`

    error: unknown declaration `vm:`
      --> Boxfile:5:3
       |
     5 |   vm:
       |   ^^^ no such declaration here
       |
       = help: did you mean `vm`?

    error: unknown declaration `whatever:`
      --> Boxfile:6:3
       |
     6 |   whatever: 1
       |   ^^^^^^^^^ no such declaration here
       |
       = help: write `whatever`, without the `:`
    "#);
}

#[test]
fn texts_in_single_quotes() {
    assert_snapshot!(agent_errors("    entrypoint 'sh' '-c' 'echo hi' \"it's\"\n    env A='x' B='a b\n    'user' app"), @r#"
    error: a text stands in double quotes
      --> Boxfile:4:16
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                ^^^^ in single quotes
       |
       = help: write `"sh"`

    error: a text stands in double quotes
      --> Boxfile:4:21
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                     ^^^^ in single quotes
       |
       = help: write `"-c"`

    error: a text stands in double quotes
      --> Boxfile:4:26
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                          ^^^^^^^^^ in single quotes
       |
       = help: write `"echo hi"`

    error: a text stands in double quotes
      --> Boxfile:5:11
       |
     5 |     env A='x' B='a b
       |           ^^^ in single quotes
       |
       = help: write `"x"`

    error: a text stands in double quotes
      --> Boxfile:5:17
       |
     5 |     env A='x' B='a b
       |                 ^^ in single quotes
       |
       = help: write `"a"`

    error: a text stands in double quotes
      --> Boxfile:6:5
       |
     6 |     'user' app
       |     ^^^^^^ in single quotes
       |
       = help: write `"user"`
    "#);
}

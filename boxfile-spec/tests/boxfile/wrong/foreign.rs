//! Files that use the syntax of other languages.

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
    // A bracket at the start of the file is certainly TOML, even if the TOML has errors.
    assert_snapshot!(errors("[agent]\nimage = oci:i\n"), @"
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
    assert_snapshot!(file_errors("# what it's for (and why), x = y\n#vm cpus=2"), @"
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
    error: typographic quotes cannot enclose a string
      --> Boxfile:3:8
       |
     3 | layout “merged”
       |        ^^^^^^^^ not straight quotes
       |
       = help: write `"merged"`

    error: typographic quotes cannot enclose a string
      --> Boxfile:4:7
       |
     4 | share ‘a b’ guest=“/a
       |       ^^^^^ not straight quotes
       |
       = help: write `"a b"`

    error: typographic quotes cannot enclose a string
      --> Boxfile:4:19
       |
     4 | share ‘a b’ guest=“/a
       |                   ^^^ not straight quotes
       |
       = help: write `"/a"`
    "#);
}

#[test]
fn a_value_after_an_equals_sign() {
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

    error: `env` takes no block
      --> Boxfile:7:11
       |
     7 |     env = { }
       |           ^ opened here
       |
       = help: for example `env LOG_LEVEL="info" LANG="C.UTF-8"`

    error: this string is never closed
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
       |   ^^^^^^ not allowed here
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
       = help: the declarations here are `box`, `extends`, `platform`, `agent`, `business`, `skill`, `skills`, `agents`, `mcp`, `hook`, `vm`, `layout`, `conflict`, `share`, `volume`, `scratch`, `disk`, `network`, `publish`, `secret`, `service`, `ssh-agent`, `task`, `logs`, `cap`, `sandbox`, `budget`, `kernel`, `profile`
    "#);
}

#[test]
fn texts_in_single_quotes() {
    assert_snapshot!(agent_errors("    entrypoint 'sh' '-c' 'echo hi' \"it's\"\n    env A='x' B='a b\n    'user' app"), @r#"
    error: a string is written in double quotes
      --> Boxfile:4:16
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                ^^^^ in single quotes
       |
       = help: write `"sh"`

    error: a string is written in double quotes
      --> Boxfile:4:21
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                     ^^^^ in single quotes
       |
       = help: write `"-c"`

    error: a string is written in double quotes
      --> Boxfile:4:26
       |
     4 |     entrypoint 'sh' '-c' 'echo hi' "it's"
       |                          ^^^^^^^^^ in single quotes
       |
       = help: write `"echo hi"`

    error: a string is written in double quotes
      --> Boxfile:5:11
       |
     5 |     env A='x' B='a b
       |           ^^^ in single quotes
       |
       = help: write `"x"`

    error: a string is written in double quotes
      --> Boxfile:5:17
       |
     5 |     env A='x' B='a b
       |                 ^^ in single quotes
       |
       = help: write `"a"`

    error: a string is written in double quotes
      --> Boxfile:6:5
       |
     6 |     'user' app
       |     ^^^^^^ in single quotes
       |
       = help: write `"user"`
    "#);
}

#[test]
fn a_property_as_a_declaration_of_its_own() {
    assert_snapshot!(agent_errors("hostname web\nmemory \"1g\"\npids 7\nnofile 9\nhostname \"a b\""), @r#"
    error: unknown declaration `hostname`
      --> Boxfile:4:1
       |
     4 | hostname web
       | ^^^^^^^^ no such declaration here
       |
       = help: write `namespaces hostname="web"`

    error: unknown declaration `memory`
      --> Boxfile:5:1
       |
     5 | memory "1g"
       | ^^^^^^ no such declaration here
       |
       = help: write `limits memory="1GiB"`

    error: unknown declaration `pids`
      --> Boxfile:6:1
       |
     6 | pids 7
       | ^^^^ no such declaration here
       |
       = help: write `limits pids=7`

    error: unknown declaration `nofile`
      --> Boxfile:7:1
       |
     7 | nofile 9
       | ^^^^^^ no such declaration here
       |
       = help: write `rlimits nofile=9`

    error: unknown declaration `hostname`
      --> Boxfile:8:1
       |
     8 | hostname "a b"
       | ^^^^^^^^ no such declaration here
       |
       = help: the declarations here are `image`, `binary`, `entrypoint`, `args`, `env`, `plain-env`, `env-file`, `file`, `workdir`, `user`, `system`, `port`, `health`, `tools`, `namespaces`, `limits`, `rlimits`, `capabilities`
    "#);
    assert_snapshot!(file_errors("cpus 2\ntotal \"5s\""), @r#"
    error: unknown declaration `cpus`
      --> Boxfile:3:1
       |
     3 | cpus 2
       | ^^^^ no such declaration here
       |
       = help: write `vm cpus=2`

    error: unknown declaration `total`
      --> Boxfile:4:1
       |
     4 | total "5s"
       | ^^^^^ no such declaration here
       |
       = help: write `budget total="5s"`
    "#);
}

#[test]
fn an_argument_that_is_meant_as_a_property() {
    let lines =
        "limits \"2g\" foo=1\nhealth tcp x\nenv \"LOG=info\" LOG\nenv \"API_TOKEN=hunter2hunter2\"";
    assert_snapshot!(agent_errors(lines), @r#"
    error: `limits` takes no value, but got the string `2g`
      --> Boxfile:4:8
       |
     4 | limits "2g" foo=1
       |        ^^^^ one too many
       |
       = help: write `limits memory="2GiB"`

    error: `limits` has no property `foo`
      --> Boxfile:4:13
       |
     4 | limits "2g" foo=1
       |             ^^^ no such property
       |
       = help: its properties: `memory`, `pids`, `cpu-weight`, `cpu-shares`

    error: unexpected argument: the string `x`
      --> Boxfile:5:12
       |
     5 | health tcp x
       |            ^ one too many
       |
       = help: remove it; its properties: `port`

    error: `env` takes variables
      --> Boxfile:6:5
       |
     6 | env "LOG=info" LOG
       |     ^^^^^^^^^^ no variable
       |
       = help: write `env LOG="info"`

    error: `env` takes variables
      --> Boxfile:6:16
       |
     6 | env "LOG=info" LOG
       |                ^^^ no variable
       |
       = help: write `env LOG="value"`

    error: `env` takes variables
      --> Boxfile:7:5
       |
     7 | env "************************"
       |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ no variable
       |
       = help: write `env API_TOKEN="…"`
    "#);
    assert_snapshot!(file_errors("budget \"5s\"\nvm 2 \"1GiB\"\nskill s \"skills/s\"\nlayout split merged"), @r#"
    error: `budget` takes no value, but got the string `5s`
      --> Boxfile:3:8
       |
     3 | budget "5s"
       |        ^^^^ one too many
       |
       = help: write `budget total="5s"`

    error: `vm` takes no value, but got the number 2
      --> Boxfile:4:4
       |
     4 | vm 2 "1GiB"
       |    ^ one too many
       |
       = help: write `vm cpus=2`

    error: `vm` takes no value, but got the string `1GiB`
      --> Boxfile:4:6
       |
     4 | vm 2 "1GiB"
       |      ^^^^^^ one too many
       |
       = help: write `vm memory="1GiB"`

    error: `skill` needs `path`
      --> Boxfile:5:1
       |
     5 | skill s "skills/s"
       | ^^^^^ without `path`
       |
       = help: for example `skill "greet" path="skills/greet"`

    error: unexpected argument: the string `skills/s`
      --> Boxfile:5:9
       |
     5 | skill s "skills/s"
       |         ^^^^^^^^^^ one too many
       |
       = help: write `path="skills/s"`

    error: unexpected argument: the string `merged`
      --> Boxfile:6:14
       |
     6 | layout split merged
       |              ^^^^^^ one too many
       |
       = help: remove it
    "#);
    let toml =
        "box = \"b\"\nbudget = \"5s\"\n[agent]\nimage = \"oci:i\"\nenv = [\"A=1\"]\nport = 80,\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `budget` takes no value, but got the string `5s`
      --> Boxfile.toml:2:10
       |
     2 | budget = "5s"
       |          ^^^^ one too many
       |
       = help: write `budget = { total = "5s" }`

    error: `env` takes variables
      --> Boxfile.toml:5:7
       |
     5 | env = ["A=1"]
       |       ^^^^^^^ no variable
       |
       = help: write `env = { NAME = "value" }`

    error: `,` has no meaning here
      --> Boxfile.toml:6:10
       |
     6 | port = 80,
       |          ^ unexpected
       |
       = help: remove the `,`: each name is on a line of its own
    "#);
}

#[test]
fn references_of_other_tools() {
    let images =
        ["“debian”", "h/x@md5:ab", "docker://h/x@sha512:zz", "docker://u:p/w@host/x", "Foo", ""];
    let found = images.map(|image| errors(&format!("box b\nagent {{ image \"{image}\"; }}\n")));
    assert!(!found.concat().contains("p/w"));
    assert_snapshot!(found.join("\n\n"), @r#"
    error: `“debian”` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "“debian”"; }
       |               ^^^^^^^^^^ not a repository name
       |
       = help: remove the typographic quotes: "debian"

    error: a digest of the algorithm md5 is not supported
      --> Boxfile:2:15
       |
     2 | agent { image "h/x@md5:ab"; }
       |               ^^^^^^^^^^^^ after the `@`
       |
       = help: write the image's sha256: `@sha256:` and 64 hexadecimal digits

    error: a digest of the algorithm sha512 is not supported
      --> Boxfile:2:15
       |
     2 | agent { image "docker://h/x@sha512:zz"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^ after the `@`
       |
       = help: write the image's sha256: `@sha256:` and 64 hexadecimal digits

    error: an image reference takes no user or password
      --> Boxfile:2:15
       |
     2 | agent { image "*********************"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout
       |
       = help: leave out what is in front of the `@`, and log in: docker login HOST

    error: `Foo` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "Foo"; }
       |               ^^^^^ not a repository name
       |
       = help: a repository name has lower-case letters only: "foo"

    error: `image` is empty
      --> Boxfile:2:15
       |
     2 | agent { image ""; }
       |               ^^ nothing between the quotes
       |
       = help: name an image, such as "oci:images/agent"
    "#);
    assert_snapshot!(errors("box b\nagent { image \"debian\",\n}\n"), @r#"
    error: `,` has no meaning here
      --> Boxfile:2:15
       |
     2 | agent { image "debian",
       |               ^^^^^^^^^ unexpected
       |
       = help: remove the `,`: values follow one another with spaces between them: `args "a" "b"`
    "#);
}

#[test]
fn one_argument_that_is_probably_several() {
    let warnings = |lines: &str| {
        let text = format!("box b\nagent {{\n image \"oci:i\"\n {lines}\n}}\n");
        let document = read(&[("Boxfile", &text)], None);
        assert!(document.boxfile.is_some());
        shown(&document)
    };
    assert_snapshot!(warnings("args \"serve --name 'a b'\""), @r#"
    warning: `args` is one argument with spaces in it, and no shell splits it
      --> Boxfile:4:7
       |
     4 |  args "serve --name 'a b'"
       |       ^^^^^^^^^^^^^^^^^^^^ one argument
       |
       = help: for 3 arguments, write `args "serve" "--name" "a b"`
    "#);
    for lines in [
        "args \"Summarize it.\"",
        "args \"summarize what there is in here\"",
        "args \"a\" \"b c\"",
        "args one",
        "args \"echo $HOME\"",
        "entrypoint \"/bin/sh\" \"-c\"\n args \"echo a b\"",
    ] {
        assert_eq!(warnings(lines), "", "{lines}");
    }
    let toml = "box = \"b\"\n[agent]\nimage = \"oci:i\"\nargs = \"a b\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    warning: `args` is one argument with spaces in it, and no shell splits it
      --> Boxfile.toml:4:8
       |
     4 | args = "a b"
       |        ^^^^^ one argument
       |
       = help: for 2 arguments, write `args = ["a", "b"]`
    "#);
}

#[test]
fn a_declaration_that_is_written_as_a_property() {
    assert_snapshot!(errors("box b\nagent image=\"oci:i\" port=80\n"), @r#"
    error: `image` is a declaration inside `agent`, not a property
      --> Boxfile:2:7
       |
     2 | agent image="oci:i" port=80
       |       ^^^^^ not a property
       |
       = help: write `agent { image "oci:i" }`

    error: `port` is a declaration inside `agent`, not a property
      --> Boxfile:2:21
       |
     2 | agent image="oci:i" port=80
       |                     ^^^^ not a property
       |
       = help: write `agent { port 80 }`
    "#);
    assert_snapshot!(errors("box b\nagent \"oci:images/agent\"\n"), @r#"
    error: `agent` takes no value, but got the string `oci:images/agent`
      --> Boxfile:2:7
       |
     2 | agent "oci:images/agent"
       |       ^^^^^^^^^^^^^^^^^^ one too many
       |
       = help: write `agent { image "oci:images/agent" }`
    "#);
    assert_snapshot!(agent_errors("capabilities \"SYS_ADMIN\" \"FOO\"\nlimits \"\""), @r#"
    error: `capabilities` takes no value, but got the string `SYS_ADMIN`
      --> Boxfile:4:14
       |
     4 | capabilities "SYS_ADMIN" "FOO"
       |              ^^^^^^^^^^^ one too many
       |
       = help: write `capabilities add="SYS_ADMIN FOO"`

    error: `limits` takes no value, but got the string ``
      --> Boxfile:5:8
       |
     5 | limits ""
       |        ^^ one too many
       |
       = help: for example `limits memory="512MiB" pids=100 cpu-weight=20`
    "#);
    let toml = "box = \"b\"\nagent = \"oci:i\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `agent` takes no value, but got the string `oci:i`
      --> Boxfile.toml:2:9
       |
     2 | agent = "oci:i"
       |         ^^^^^^^ one too many
       |
       = help: write `agent = { image = "oci:i" }`
    "#);
    let toml = "box = \"b\"\n[agent]\nimage = \"oci:i\"\ncapabilities = { add = [\"KILL\"] }\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `add` takes a string, not a list
      --> Boxfile.toml:4:24
       |
     4 | capabilities = { add = ["KILL"] }
       |                        ^^^^^^^^ expected a string
       |
       = help: write `add = "KILL NET_RAW"`: the names, with spaces between them
    "#);
}

#[test]
fn options_of_docker_that_are_properties_here() {
    let business = "business {\n    image \"oci:i\"\n    restart \"always\"\n    hostname \"x\"\n}";
    assert_snapshot!(file_errors(business), @r#"
    error: unknown declaration `restart`
      --> Boxfile:5:5
       |
     5 |     restart "always"
       |     ^^^^^^^ no such declaration here
       |
       = help: write `autostart #true restart="always"`

    error: unknown declaration `hostname`
      --> Boxfile:6:5
       |
     6 |     hostname "x"
       |     ^^^^^^^^ no such declaration here
       |
       = help: write `namespaces hostname="x"`
    "#);
    assert_snapshot!(file_errors("name: hello"), @"
    error: unknown declaration `name:`
      --> Boxfile:3:1
       |
     3 | name: hello
       | ^^^^^ no such declaration here
       |
       = help: did you mean `box`?
    ");
}

#[test]
fn a_dockerfile() {
    let text = "# syntax=docker/dockerfile:1\nFROM python:3.12-slim AS base\nRUN apt-get update && \\\n    apt-get install -y git\n\
                COPY . /app\nCMD [\"python\", \"app.py\"]\n";
    assert_snapshot!(errors(text), @r#"
    error: a Boxfile declares a box of finished images, and `FROM` makes an image
      --> Boxfile:2:1
       |
     2 | FROM python:3.12-slim AS base
       | ^^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`
    "#);
    assert_snapshot!(errors("ARG V=1\nfrom a:$V\n"), @r#"
    error: a Boxfile declares a box of finished images, and `ARG` makes an image
      --> Boxfile:1:1
       |
     1 | ARG V=1
       | ^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`
    "#);
}

#[test]
fn what_makes_an_image_in_a_boxfile() {
    assert_snapshot!(errors("box \"b\"\nFROM python:3.12\nRUN apt-get install -y 'git'\nCOPY . /app\n"), @r#"
    error: a Boxfile declares a box of finished images, and `FROM` makes an image
      --> Boxfile:2:1
       |
     2 | FROM python:3.12
       | ^^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`
    "#);
    assert_snapshot!(file_errors("packages \"git\" \"curl\""), @r#"
    error: a Boxfile declares a box of finished images, and `packages` makes an image
      --> Boxfile:3:1
       |
     3 | packages "git" "curl"
       | ^^^^^^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`
    "#);
    assert_snapshot!(agent_errors("run \"apt-get update && apt-get install -y git\"\nport 0"), @r#"
    error: a Boxfile declares a box of finished images, and `run` makes an image
      --> Boxfile:4:1
       |
     4 | run "apt-get update && apt-get install -y git"
       | ^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`

    error: `port` is out of range
      --> Boxfile:5:6
       |
     5 | port 0
       |      ^ must be from 1 to 65535
    "#);
    let toml = "box = \"b\"\npackages = [\"git\"]\n[agent]\nimage = \"oci:i\"\nrun = \"make\"\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: a Boxfile declares a box of finished images, and `packages` makes an image
      --> Boxfile.toml:2:1
       |
     2 | packages = ["git"]
       | ^^^^^^^^ not in a Boxfile
       |
       = help: make the image with a Dockerfile: `docker build -t NAME .` or `podman build -t NAME .`; push it to a registry, or write it to a file with `docker save -o image.tar NAME` (or `podman save`); then name it in `agent`, as `image "HOST/NAME:TAG"` or `image "docker-archive:image.tar"`
    "#);
    // Only declarations are meant, and no names that a user chooses.
    assert_snapshot!(agent_errors("env RUN=\"1\" FROM=\"2\"\nport 0"), @"
    error: `port` is out of range
      --> Boxfile:5:6
       |
     5 | port 0
       |      ^ must be from 1 to 65535
    ");
}

#[test]
fn images_that_a_container_engine_keeps() {
    assert_snapshot!(file_errors_of_image("docker-daemon:python:3.12"), @r#"
    error: `docker-daemon:python:3.12` is kept by another program, which boxbuild does not ask
      --> Boxfile:3:11
       |
     3 |     image "docker-daemon:python:3.12"
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^ not in a file or a registry
       |
       = help: write the image to a file: `docker save -o image.tar python:3.12`; its reference is then "docker-archive:image.tar"
    "#);
    assert_snapshot!(file_errors_of_image("containers-storage:[overlay@/var/lib]x"), @r#"
    error: `containers-storage:[overlay@/var/lib]x` is kept by another program, which boxbuild does not ask
      --> Boxfile:3:11
       |
     3 |     image "containers-storage:[overlay@/var/lib]x"
       |           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not in a file or a registry
       |
       = help: write the image to a file: `podman save -o image.tar NAME`; its reference is then "docker-archive:image.tar"
    "#);
}

fn file_errors_of_image(image: &str) -> String {
    errors(&format!("box \"b\"\nagent {{\n    image \"{image}\"\n}}\n"))
}

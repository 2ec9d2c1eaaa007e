//! Values of a wrong type or form.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors};

#[test]
fn names() {
    assert_snapshot!(errors("box \"My Agent\"\nagent { image \"oci:i\"; }\n"), @r#"
    error: `My Agent` is not a valid name
      --> Boxfile:1:5
       |
     1 | box "My Agent"
       |     ^^^^^^^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write "my-agent"
    "#);
    assert_snapshot!(errors("box\nagent { image \"oci:i\"; }\n"), @r#"
    error: `box` needs a name
      --> Boxfile:1:1
       |
     1 | box
       | ^^^ without a name
       |
       = help: for example `box "my-agent"`
    "#);
    assert_snapshot!(errors("box 5\nagent { image \"oci:i\"; }\n"), @r#"
    error: `box` takes a string, not the number 5
      --> Boxfile:1:5
       |
     1 | box 5
       |     ^ expected a string
       |
       = help: write it in quotes: "5"
    "#);
    assert_snapshot!(file_errors(r#"skill "../x" path="x""#), @r#"
    error: `../x` is not a valid name
      --> Boxfile:3:7
       |
     3 | skill "../x" path="x"
       |       ^^^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write "x"
    "#);
}

fn image_error(reference: &str) -> String {
    errors(&format!("box b\nagent {{ image \"{reference}\"; }}\n"))
}

#[test]
fn images_of_no_kind() {
    assert_snapshot!(image_error("https://example.com/agent"), @r#"
    error: `https://example.com/agent` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "https://example.com/agent"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^ unknown scheme
       |
       = help: an image of a registry is "docker://example.com/agent"
    "#);
    assert_snapshot!(image_error("docker://bob:hunter2@example.com/x"), @r#"
    error: an image reference takes no user or password
      --> Boxfile:2:15
       |
     2 | agent { image "**********************************"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in the checkout
       |
       = help: leave out what is in front of the `@`, and log in: docker login HOST
    "#);
    let host = image_error("docker://bob:hunter2@shanghai.example:5000/x");
    assert!(host.starts_with("error: an image reference takes no user or password"), "{host}");
    assert!(!host.contains("hunter2"), "{host}");
    assert_snapshot!(image_error("debian@sha256:12xy"), @r#"
    error: the image's digest is not a sha256
      --> Boxfile:2:15
       |
     2 | agent { image "debian@sha256:12xy"; }
       |               ^^^^^^^^^^^^^^^^^^^^ after the `@`
       |
       = help: write `@sha256:` and 64 hexadecimal digits in lower case
    "#);
    assert_snapshot!(image_error("example.com/x@sha512:12ab"), @r#"
    error: a digest of the algorithm sha512 is not supported
      --> Boxfile:2:15
       |
     2 | agent { image "example.com/x@sha512:12ab"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^ after the `@`
       |
       = help: write the image's sha256: `@sha256:` and 64 hexadecimal digits
    "#);
    assert_snapshot!(image_error("oic:images/agent"), @r#"
    error: `oic:images/agent` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "oic:images/agent"; }
       |               ^^^^^^^^^^^^^^^^^^ unknown scheme
       |
       = help: did you mean "oci:images/agent"?
    "#);
    assert_snapshot!(image_error("./images/agent"), @r#"
    error: `./images/agent` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "./images/agent"; }
       |               ^^^^^^^^^^^^^^^^ not a repository name
       |
       = help: a directory with an OCI image layout is "oci:./images/agent"
    "#);
    assert_snapshot!(image_error("MyAgent"), @r#"
    error: `MyAgent` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "MyAgent"; }
       |               ^^^^^^^^^ not a repository name
       |
       = help: a repository name has lower-case letters only: "myagent"
    "#);
    assert_snapshot!(image_error("docker://example.com/Agent//x"), @r#"
    error: `docker://example.com/Agent//x` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "docker://example.com/Agent//x"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a repository name
       |
       = help: an image is "oci:DIR", "oci-archive:FILE", "docker-archive:FILE" or "docker://HOST/NAME", each perhaps followed by `:TAG`
    "#);
    assert_snapshot!(errors("box b\nagent { image; }\n"), @r#"
    error: `image` needs a reference
      --> Boxfile:2:9
       |
     2 | agent { image; }
       |         ^^^^^ without a reference
       |
       = help: for example `image "oci:images/agent"`
    "#);
}

#[test]
fn images_without_a_place_and_with_a_wrong_tag_or_digest() {
    assert_snapshot!(image_error("oci:"), @r#"
    error: the reference names no directory
      --> Boxfile:2:15
       |
     2 | agent { image "oci:"; }
       |               ^^^^^^ nothing after the first colon
       |
       = help: an image is "oci:DIR", "oci-archive:FILE", "docker-archive:FILE" or "docker://HOST/NAME", each perhaps followed by `:TAG`
    "#);
    assert_snapshot!(image_error("docker-archive::v1"), @r#"
    error: the reference names no file
      --> Boxfile:2:15
       |
     2 | agent { image "docker-archive::v1"; }
       |               ^^^^^^^^^^^^^^^^^^^^ nothing after the first colon
       |
       = help: an image is "oci:DIR", "oci-archive:FILE", "docker-archive:FILE" or "docker://HOST/NAME", each perhaps followed by `:TAG`
    "#);
    assert_snapshot!(image_error("docker-archive:a.tar:Team//App"), @r#"
    error: `Team/App` is not a valid image reference
      --> Boxfile:2:15
       |
     2 | agent { image "docker-archive:a.tar:Team//App"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a repository name
       |
       = help: a repository name has lower-case letters only: "team/app"
    "#);
    assert_snapshot!(image_error("oci:a:b/c-"), @r#"
    error: `b/c-` does not name an image of a layout
      --> Boxfile:2:15
       |
     2 | agent { image "oci:a:b/c-"; }
       |               ^^^^^^^^^^^^ what follows the colon
       |
       = help: write the name that the layout's index.json gives the image (`org.opencontainers.image.ref.name`): a tag such as `v1`, or a reference such as `registry.example.org/team/app:v1`
    "#);
    assert_snapshot!(image_error("nginx:-1"), @r#"
    error: `-1` is not a tag
      --> Boxfile:2:15
       |
     2 | agent { image "nginx:-1"; }
       |               ^^^^^^^^^^ what follows the colon
       |
       = help: a tag has letters, digits, `_`, `.` and `-`, at most 128, and does not begin with `.` or `-`
    "#);
    assert_snapshot!(image_error("oci:a@sha256:12"), @r#"
    error: the image's digest is not a sha256
      --> Boxfile:2:15
       |
     2 | agent { image "oci:a@sha256:12"; }
       |               ^^^^^^^^^^^^^^^^^ after the `@`
       |
       = help: write `@sha256:` and 64 hexadecimal digits in lower case
    "#);
    assert_snapshot!(image_error(&format!("docker-archive:a@sha256:{}", "0".repeat(64))), @r#"
    error: a docker archive has no digests to name
      --> Boxfile:2:15
       |
     2 | agent { image "docker-archive:a@sha256:0000000000000000000000000000000000000000000000000000000000000000"; }
       |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ after the `@`
       |
       = help: remove `@sha256:…`; the lock pins what is in the archive
    "#);
    assert_snapshot!(image_error("oci:a\\u{0}b"), @r#"
    error: `image` contains a NUL character
      --> Boxfile:2:15
       |
     2 | agent { image "oci:a\u{0}b"; }
       |               ^^^^^^^^^^^^^ no program can receive this
       |
       = help: remove the `\u{0}`
    "#);
}

#[test]
fn argument_lists() {
    assert_snapshot!(agent_errors(r#"    entrypoint"#), @r#"
    error: `entrypoint` needs a program
      --> Boxfile:4:5
       |
     4 |     entrypoint
       |     ^^^^^^^^^^ without a program
       |
       = help: for example `entrypoint "/bin/agent" "--option"`
    "#);
    assert_snapshot!(agent_errors(r#"    entrypoint """#), @r#"
    error: `entrypoint` is empty
      --> Boxfile:4:16
       |
     4 |     entrypoint ""
       |                ^^ nothing between the quotes
       |
       = help: write something between the quotes
    "#);
    assert_snapshot!(agent_errors(r#"    args "--level" 5 #true #null 1.5"#), @r#"
    error: `args` takes a string, not the number 5
      --> Boxfile:4:20
       |
     4 |     args "--level" 5 #true #null 1.5
       |                    ^ expected a string
       |
       = help: write it in quotes: "5"

    error: `args` takes a string, not `#true`
      --> Boxfile:4:22
       |
     4 |     args "--level" 5 #true #null 1.5
       |                      ^^^^^ expected a string
       |
       = help: write it in quotes: "true"

    error: `args` takes a string, not `#null`
      --> Boxfile:4:28
       |
     4 |     args "--level" 5 #true #null 1.5
       |                            ^^^^^ expected a string
       |
       = help: leave it out

    error: `args` takes a string, not the number 1.5
      --> Boxfile:4:34
       |
     4 |     args "--level" 5 #true #null 1.5
       |                                  ^^^ expected a string
       |
       = help: write it in quotes: "1.5"
    "#);
}

#[test]
fn environment() {
    assert_snapshot!(agent_errors(r#"    env A-B="1" PORT=80"#), @r#"
    error: `A-B` cannot name an environment variable
      --> Boxfile:4:9
       |
     4 |     env A-B="1" PORT=80
       |         ^^^ not a variable's name
       |
       = help: a variable's name has letters, digits and `_`, and does not begin with a digit

    error: `PORT` takes a string, not the number 80
      --> Boxfile:4:22
       |
     4 |     env A-B="1" PORT=80
       |                      ^^ expected a string
       |
       = help: write it in quotes: "80"
    "#);
    assert_snapshot!(agent_errors(r#"    env"#), @r#"
    error: `env` needs a variable
      --> Boxfile:4:5
       |
     4 |     env
       |     ^^^ without a variable
       |
       = help: for example `env LOG_LEVEL="info" LANG="C.UTF-8"`
    "#);
    assert_snapshot!(agent_errors(r#"    env A=#true"#), @r#"
    error: `A` takes a string, not `#true`
      --> Boxfile:4:11
       |
     4 |     env A=#true
       |           ^^^^^ expected a string
       |
       = help: write it in quotes: "true"
    "#);
}

#[test]
fn a_value_that_is_no_text_stays_in_the_help() {
    let output = agent_errors("    env AGENT 1\n    env DEBUG #true\n");
    for help in ["write `env AGENT=\"1\"` for", "write `env DEBUG=\"true\"` for"] {
        assert!(output.contains(help), "{output}");
    }
}

#[test]
fn variables_that_are_given_at_launch() {
    assert_snapshot!(agent_errors("    env LOG info\n    env A b c\n    env B launch=#false C=d"), @r#"
    error: it is unclear whether the value of `LOG` is fixed or a default
      --> Boxfile:4:13
       |
     4 |     env LOG info
       |             ^^^^ its value
       |
       = help: write `env LOG="info"` for a value of every start, or `env LOG "info" launch=#true` for one that `boxlaunch run -e` may replace

    error: it is unclear whether the value of `A` is fixed or a default
      --> Boxfile:5:11
       |
     5 |     env A b c
       |           ^ its value
       |
       = help: write `env A="b"` for a value of every start, or `env A "b" launch=#true` for one that `boxlaunch run -e` may replace

    error: `A` has one value at most
      --> Boxfile:5:13
       |
     5 |     env A b c
       |             ^ one too many
       |
       = help: write each variable with an `env` for itself

    error: `B` has no value, and none may be given at launch
      --> Boxfile:6:18
       |
     6 |     env B launch=#false C=*
       |                  ^^^^^^ it would never have a value
       |
       = help: remove `launch`, or write `B="value"`

    error: `C` stands beside the variable `B`
      --> Boxfile:6:25
       |
     6 |     env B launch=#false C=*
       |                         ^ no property of a variable
       |
       = help: write it with an `env` for itself
    "#);
    assert_snapshot!(agent_errors("    env A=x\n    env A y launch=#true\n    env 1A\n    env D 1 launch=yes"), @r#"
    error: `A` is given twice
      --> Boxfile:5:9
       |
     4 |     env A=x
       |         - given first
     5 |     env A y launch=#true
       |         ^ given again
       |
       = help: remove one of them

    error: `1A` is not a number
      --> Boxfile:6:9
       |
     6 |     env 1A
       |         ^^ begins like a number
       |
       = help: write a string in quotes: `"1A"`

    error: `launch` takes a boolean, not the string `yes`
      --> Boxfile:7:20
       |
     7 |     env D 1 launch=yes
       |                    ^^^ expected a boolean
       |
       = help: write `#true` or `#false`, without quotes
    "#);
    assert_snapshot!(agent_errors("    env API_TOKEN\n    env DB_PASSWORD \"\" launch=#true"), @r#"
    error: `API_TOKEN` looks like a secret that is given as a plain value
      --> Boxfile:4:9
       |
     4 |     env API_TOKEN
       |         ^^^^^^^^^ it would be in the box's record
       |
       = help: declare it by name alone, outside of the component: `secret "API_TOKEN"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env API_TOKEN`

    error: `DB_PASSWORD` looks like a secret written as a plain value
      --> Boxfile:5:21
       |
     5 |     env DB_PASSWORD "" launch=#true
       |                     ^^ it would be in the checkout and in every box
       |
       = help: declare it by name alone, outside of the component: `secret "DB_PASSWORD"` (`boxlaunch run --secret` gives its value); if it is not a secret, write `plain-env DB_PASSWORD "…" launch=#true`
    "#);
    assert_snapshot!(errors("box b\nagent { image oci:i; env KEY; }\nsecret KEY\n"), @r#"
    error: `KEY` is a secret and a plain value at once
      --> Boxfile:2:26
       |
     2 | agent { image oci:i; env KEY; }
       |                          ^^^ a plain value here
     3 | secret KEY
       |        --- declared as a secret
       |
       = help: remove the plain value: the launcher hands the secret over; or rename one of them
    "#);
}

#[test]
fn directories() {
    assert_snapshot!(agent_errors(r#"    workdir "work""#), @r#"
    error: `workdir` takes an absolute path, not `work`
      --> Boxfile:4:13
       |
     4 |     workdir "work"
       |             ^^^^^^ a relative path
       |
       = help: write "/work"
    "#);
    assert_snapshot!(agent_errors(r#"    workdir """#), @r#"
    error: `workdir` is empty
      --> Boxfile:4:13
       |
     4 |     workdir ""
       |             ^^ nothing between the quotes
       |
       = help: write something between the quotes
    "#);
}

#[test]
fn ports() {
    assert_snapshot!(agent_errors(r#"    port 0"#), @"
    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 0
       |          ^ must be from 1 to 65535
    ");
    assert_snapshot!(agent_errors(r#"    port 65536"#), @"
    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 65536
       |          ^^^^^ must be from 1 to 65535
    ");
    assert_snapshot!(agent_errors(r#"    port "4088""#), @r#"
    error: `port` takes a whole number, not the string `4088`
      --> Boxfile:4:10
       |
     4 |     port "4088"
       |          ^^^^^^ expected a whole number
       |
       = help: write it without quotes: 4088
    "#);
    assert_snapshot!(agent_errors(r#"    port"#), @"
    error: `port` needs a number
      --> Boxfile:4:5
       |
     4 |     port
       |     ^^^^ without a number
       |
       = help: for example `port 4088`
    ");
}

#[test]
fn health_checks() {
    assert_snapshot!(agent_errors(r#"    health "htpp" path="/""#), @r#"
    error: `health` cannot be `htpp`
      --> Boxfile:4:12
       |
     4 |     health "htpp" path="/"
       |            ^^^^^^ no such choice
       |
       = help: did you mean "http"?
    "#);
    assert_snapshot!(agent_errors(r#"    health "ping""#), @r#"
    error: `health` cannot be `ping`
      --> Boxfile:4:12
       |
     4 |     health "ping"
       |            ^^^^^^ no such choice
       |
       = help: write one of "tcp", "http", "grpc", "a3s", "exec", "none"
    "#);
    assert_snapshot!(agent_errors(r#"    health "http""#), @r#"
    error: `health` needs `path`
      --> Boxfile:4:5
       |
     4 |     health "http"
       |     ^^^^^^ without `path`
       |
       = help: for example `health "http" path="/health" port=8080`
    "#);
    assert_snapshot!(agent_errors(r#"    health "http" path="health""#), @r#"
    error: `health` is not the path of a request
      --> Boxfile:4:24
       |
     4 |     health "http" path="health"
       |                        ^^^^^^^^ not a path
       |
       = help: write `path="/health"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "grpc" service="a b" path="/""#), @r#"
    error: `a b` is not the name of a gRPC service
      --> Boxfile:4:27
       |
     4 |     health "grpc" service="a b" path="/"
       |                           ^^^^^ not a service
       |
       = help: it has letters, digits, `_` and `.`, at most 100: "acme.v1.Orders"

    error: `path` is not allowed with the kind `grpc`
      --> Boxfile:4:33
       |
     4 |     health "grpc" service="a b" path="/"
       |                                 ^^^^ has no effect here
       |
       = help: remove `path`
    "#);
    assert_snapshot!(errors("box \"b\"\nagent {\n    image \"oci:i\"\n}\nbusiness {\n    image \"oci:j\"\n    health \"tcp\"\n}\n"), @r#"
    error: `health` needs `port`
      --> Boxfile:7:5
       |
     7 |     health "tcp"
       |     ^^^^^^ without `port`
       |
       = help: for example `health "http" path="/health" port=8080`
    "#);
    assert_snapshot!(agent_errors(r#"    health "exec""#), @r#"
    error: the health check `exec` needs a program to run
      --> Boxfile:4:5
       |
     4 |     health "exec"
       |     ^^^^^^ without a program
       |
       = help: write `health "exec" "/bin/check"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "tcp" path="/""#), @r#"
    error: `path` is not allowed with the kind `tcp`
      --> Boxfile:4:18
       |
     4 |     health "tcp" path="/"
       |                  ^^^^ has no effect here
       |
       = help: remove `path`
    "#);
}

#[test]
fn namespaces() {
    assert_snapshot!(agent_errors(r#"    namespaces net="true" user=#true"#), @r#"
    error: `net` takes a boolean, not the string `true`
      --> Boxfile:4:20
       |
     4 |     namespaces net="true" user=#true
       |                    ^^^^^^ expected a boolean
       |
       = help: write `#true` or `#false`, without quotes

    error: `namespaces` has no property `user`
      --> Boxfile:4:27
       |
     4 |     namespaces net="true" user=#true
       |                           ^^^^ no such property
       |
       = help: its properties: `mount`, `pid`, `ipc`, `uts`, `net`, `hostname`
    "#);
    assert_snapshot!(agent_errors(r#"    namespaces hostname="my.host""#), @r#"
    error: `my.host` is not a host name
      --> Boxfile:4:25
       |
     4 |     namespaces hostname="my.host"
       |                         ^^^^^^^^^ not a host name
       |
       = help: it has letters, digits and inner hyphens, at most 63, and no dots: "agent-host"
    "#);
    assert_snapshot!(agent_errors(r#"    namespaces uts=#false hostname="h""#), @r#"
    error: a component without its own `uts` namespace cannot have its own host name
      --> Boxfile:4:36
       |
     4 |     namespaces uts=#false hostname="h"
       |                    ------ switched off
       |                                    ^^^ needs `uts=#true`
       |
       = help: remove `hostname`, or `uts`
    "#);
}

#[test]
fn a_tag_that_is_empty() {
    for image in ["ghcr.io/acme/app:", "oci:images/agent:", "docker-archive:a.tar:"] {
        let text = errors(&format!("box b\nagent {{\n    image \"{image}\"\n}}\n"));
        assert!(text.starts_with("error: the tag is empty\n"), "{text}");
    }
}

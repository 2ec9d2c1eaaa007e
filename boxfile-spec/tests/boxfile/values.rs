//! Values of a wrong type, form or range.

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
       = help: a name has lower-case letters, digits and inner hyphens, at most 63: "my-agent"; write "my-agent"
    "#);
    assert_snapshot!(errors("box\nagent { image \"oci:i\"; }\n"), @r#"
    error: `box` needs a name
      --> Boxfile:1:1
       |
     1 | box
       | ^^^ without a name
       |
       = help: write `box "my-agent"`
    "#);
    assert_snapshot!(errors("box 5\nagent { image \"oci:i\"; }\n"), @r#"
    error: `box` takes a text, not the number 5
      --> Boxfile:1:5
       |
     1 | box 5
       |     ^ expected a text
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
       = help: a name has lower-case letters, digits and inner hyphens, at most 63: "my-agent"; write "x"
    "#);
}

#[test]
fn images() {
    assert_snapshot!(errors("box b\nagent { image \"docker://nginx\"; }\n"), @r#"
    error: `docker://nginx` is not an image that can be read
      --> Boxfile:2:15
       |
     2 | agent { image "docker://nginx"; }
       |               ^^^^^^^^^^^^^^^^ only `oci:` is supported
       |
       = help: write `image "oci:PATH"` or `image "oci:PATH:TAG"`, where PATH is an OCI image layout directory
    "#);
    assert_snapshot!(errors("box b\nagent { image \"nginx:latest\"; }\n"), @r#"
    error: `nginx:latest` is not an image that can be read
      --> Boxfile:2:15
       |
     2 | agent { image "nginx:latest"; }
       |               ^^^^^^^^^^^^^^ only `oci:` is supported
       |
       = help: write `image "oci:PATH"` or `image "oci:PATH:TAG"`, where PATH is an OCI image layout directory
    "#);
    assert_snapshot!(errors("box b\nagent { image \"oci:\"; }\n"), @r#"
    error: `oci:` names no directory
      --> Boxfile:2:15
       |
     2 | agent { image "oci:"; }
       |               ^^^^^^ nothing behind `oci:`
       |
       = help: write `image "oci:PATH"` or `image "oci:PATH:TAG"`, where PATH is an OCI image layout directory
    "#);
    assert_snapshot!(errors("box b\nagent { image \"oci:a:b/c\"; }\n"), @r#"
    error: `b/c` is not a tag
      --> Boxfile:2:15
       |
     2 | agent { image "oci:a:b/c"; }
       |               ^^^^^^^^^^^ what is behind the colon
       |
       = help: write `image "oci:PATH"` or `image "oci:PATH:TAG"`, where PATH is an OCI image layout directory
    "#);
    assert_snapshot!(errors("box b\nagent { image \"oci:a\\u{0}b\"; }\n"), @r#"
    error: the text of `image` contains a NUL character
      --> Boxfile:2:15
       |
     2 | agent { image "oci:a\u{0}b"; }
       |               ^^^^^^^^^^^^^ no program can receive this
       |
       = help: remove the `\u{0}`
    "#);
    assert_snapshot!(errors("box b\nagent { image; }\n"), @r#"
    error: `image` needs a reference to an image
      --> Boxfile:2:9
       |
     2 | agent { image; }
       |         ^^^^^ without a reference to an image
       |
       = help: write `image "oci:images/agent"`
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
       = help: write `entrypoint "/bin/agent" "--option"`
    "#);
    assert_snapshot!(agent_errors(r#"    entrypoint """#), @r#"
    error: the text of `entrypoint` is empty
      --> Boxfile:4:16
       |
     4 |     entrypoint ""
       |                ^^ nothing between the quotes
       |
       = help: write a path or name between the quotes
    "#);
    assert_snapshot!(agent_errors(r#"    args "--level" 5 #true #null 1.5"#), @r#"
    error: `args` takes a text, not the number 5
      --> Boxfile:4:20
       |
     4 |     args "--level" 5 #true #null 1.5
       |                    ^ expected a text
       |
       = help: write it in quotes: "5"

    error: `args` takes a text, not `#true`
      --> Boxfile:4:22
       |
     4 |     args "--level" 5 #true #null 1.5
       |                      ^^^^^ expected a text
       |
       = help: write it in quotes: "true"

    error: `args` takes a text, not `#null`
      --> Boxfile:4:28
       |
     4 |     args "--level" 5 #true #null 1.5
       |                            ^^^^^ expected a text
       |
       = help: leave it out where there is nothing to say

    error: `args` takes a text, not the number 1.5
      --> Boxfile:4:34
       |
     4 |     args "--level" 5 #true #null 1.5
       |                                  ^^^ expected a text
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

    error: `PORT` takes a text, not the number 80
      --> Boxfile:4:22
       |
     4 |     env A-B="1" PORT=80
       |                      ^^ expected a text
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
       = help: write `env NAME="value"`
    "#);
    assert_snapshot!(agent_errors(r#"    env A=#true"#), @r#"
    error: `A` takes a text, not `#true`
      --> Boxfile:4:11
       |
     4 |     env A=#true
       |           ^^^^^ expected a text
       |
       = help: write it in quotes: "true"
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
       = help: write `workdir "/work"`
    "#);
    assert_snapshot!(agent_errors(r#"    workdir """#), @r#"
    error: the text of `workdir` is empty
      --> Boxfile:4:13
       |
     4 |     workdir ""
       |             ^^ nothing between the quotes
       |
       = help: write a path or name between the quotes
    "#);
}

#[test]
fn ports() {
    assert_snapshot!(agent_errors(r#"    port 0"#), @r"
    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 0
       |          ^ must be from 1 to 65535
    ");
    assert_snapshot!(agent_errors(r#"    port 65536"#), @r"
    error: `port` is out of range
      --> Boxfile:4:10
       |
     4 |     port 65536
       |          ^^^^^ must be from 1 to 65535
    ");
    assert_snapshot!(agent_errors(r#"    port "4088""#), @r#"
    error: `port` takes a whole number, not the text `4088`
      --> Boxfile:4:10
       |
     4 |     port "4088"
       |          ^^^^^^ expected a whole number
       |
       = help: write it without quotes: 4088
    "#);
    assert_snapshot!(agent_errors(r#"    port"#), @r"
    error: `port` needs a number
      --> Boxfile:4:5
       |
     4 |     port
       |     ^^^^ without a number
       |
       = help: write `port 4088`
    ");
}

#[test]
fn health_checks() {
    assert_snapshot!(agent_errors(r#"    health "htpp" path="/""#), @r#"
    error: unknown kind of health check: `htpp`
      --> Boxfile:4:12
       |
     4 |     health "htpp" path="/"
       |            ^^^^^^ no such kind
       |
       = help: did you mean "http"?
    "#);
    assert_snapshot!(agent_errors(r#"    health "ping""#), @r#"
    error: unknown kind of health check: `ping`
      --> Boxfile:4:12
       |
     4 |     health "ping"
       |            ^^^^^^ no such kind
       |
       = help: write `health "tcp"`, `health "http" path="/health"`, `health "exec" "/bin/check"` or `health "none"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "http""#), @r#"
    error: `health` needs `path`
      --> Boxfile:4:5
       |
     4 |     health "http"
       |     ^^^^^^ without `path`
       |
       = help: write `health "tcp"`, `health "http" path="/health"`, `health "exec" "/bin/check"` or `health "none"`
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
    assert_snapshot!(agent_errors(r#"    health "exec""#), @r#"
    error: `health` needs a program
      --> Boxfile:4:5
       |
     4 |     health "exec"
       |     ^^^^^^ without a program
       |
       = help: write `health "tcp"`, `health "http" path="/health"`, `health "exec" "/bin/check"` or `health "none"`
    "#);
    assert_snapshot!(agent_errors(r#"    health "tcp" path="/""#), @r#"
    error: `health` has no property `path`
      --> Boxfile:4:18
       |
     4 |     health "tcp" path="/"
       |                  ^^^^ no such property
       |
       = help: write `health "tcp"`, `health "http" path="/health"`, `health "exec" "/bin/check"` or `health "none"`
    "#);
}

#[test]
fn namespaces() {
    assert_snapshot!(agent_errors(r#"    namespaces net="true" user=#true"#), @r#"
    error: `net` takes a truth value, not the text `true`
      --> Boxfile:4:20
       |
     4 |     namespaces net="true" user=#true
       |                    ^^^^^^ expected a truth value
       |
       = help: write `net=#true` or `net=#false`

    error: `namespaces` has no property `user`
      --> Boxfile:4:27
       |
     4 |     namespaces net="true" user=#true
       |                           ^^^^ no such property
       |
       = help: write `namespaces net=#true hostname="my-host"`
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
       = help: remove `hostname` or `uts=#false`
    "#);
}

#[test]
fn sizes() {
    assert_snapshot!(agent_errors(r#"    limits memory=64"#), @r#"
    error: `memory` has no unit
      --> Boxfile:4:19
       |
     4 |     limits memory=64
       |                   ^^ a bare number
       |
       = help: write `memory="64MiB"`, or `memory="64B"` for bytes
    "#);
    assert_snapshot!(agent_errors(r#"    limits memory="64M""#), @r#"
    error: `64M` is not a size
      --> Boxfile:4:19
       |
     4 |     limits memory="64M"
       |                   ^^^^^ `memory` takes a size
       |
       = help: write `memory="64MiB"`
    "#);
    assert_snapshot!(agent_errors(r#"    limits memory="lots""#), @r#"
    error: `lots` is not a size
      --> Boxfile:4:19
       |
     4 |     limits memory="lots"
       |                   ^^^^^^ `memory` takes a size
       |
       = help: a size is a whole number and one of B, KiB, MiB, GiB, KB, MB, GB: "512MiB"
    "#);
    assert_snapshot!(agent_errors(r#"    limits memory=#true"#), @r#"
    error: `memory` takes a size, not `#true`
      --> Boxfile:4:19
       |
     4 |     limits memory=#true
       |                   ^^^^^ expected a size
       |
       = help: a size is a whole number and one of B, KiB, MiB, GiB, KB, MB, GB: "512MiB"
    "#);
    assert_snapshot!(agent_errors(r#"    limits memory="1MiB""#), @r#"
    error: a memory of 1MiB is less than is possible
      --> Boxfile:4:19
       |
     4 |     limits memory="1MiB"
       |                   ^^^^^^ must be from 4MiB to 64GiB
       |
       = help: write `memory="4MiB"`
    "#);
    assert_snapshot!(file_errors(r#"vm memory="65GiB""#), @r#"
    error: a memory of 65GiB is more than is possible
      --> Boxfile:3:11
       |
     3 | vm memory="65GiB"
       |           ^^^^^^^ must be from 64MiB to 64GiB
       |
       = help: write `memory="64GiB"`
    "#);
    assert_snapshot!(file_errors(r#"vm memory="1000MB""#), @r#"
    error: the memory of a machine is a whole number of MiB
      --> Boxfile:3:11
       |
     3 | vm memory="1000MB"
       |           ^^^^^^^^ not a multiple of 1MiB
       |
       = help: write `memory="954MiB"`
    "#);
}

#[test]
fn processes_and_weights() {
    assert_snapshot!(agent_errors(r#"    limits pids=0 cpu-weight=10001"#), @r"
    error: `pids` is out of range
      --> Boxfile:4:17
       |
     4 |     limits pids=0 cpu-weight=10001
       |                 ^ must be from 1 to 4194304

    error: `cpu-weight` is out of range
      --> Boxfile:4:30
       |
     4 |     limits pids=0 cpu-weight=10001
       |                              ^^^^^ must be from 1 to 10000
    ");
    assert_snapshot!(agent_errors(r#"    limits cpu-shares=1"#), @r"
    error: `cpu-shares` is out of range
      --> Boxfile:4:23
       |
     4 |     limits cpu-shares=1
       |                       ^ must be from 2 to 262144
    ");
    assert_snapshot!(agent_errors(r#"    limits cpu-weight=100 cpu-shares=1024"#), @r"
    error: `cpu-weight` and `cpu-shares` are two ways to say the same
      --> Boxfile:4:38
       |
     4 |     limits cpu-weight=100 cpu-shares=1024
       |                       --- this
       |                                      ^^^^ and this
       |
       = help: remove `cpu-shares`
    ");
    assert_snapshot!(file_errors(r#"vm cpus=17"#), @r"
    error: `cpus` is out of range
      --> Boxfile:3:9
       |
     3 | vm cpus=17
       |         ^^ must be from 1 to 16
    ");
}

#[test]
fn budgets() {
    assert_snapshot!(file_errors(r#"budget total=700"#), @r#"
    error: `total` has no unit
      --> Boxfile:3:14
       |
     3 | budget total=700
       |              ^^^ a bare number
       |
       = help: write `total="700ms"`, or `total="700s"`
    "#);
    assert_snapshot!(file_errors(r#"budget total="700""#), @r#"
    error: `700` is not a duration
      --> Boxfile:3:14
       |
     3 | budget total="700"
       |              ^^^^^ `total` takes a duration
       |
       = help: a duration is a number and ms or s, down to the millisecond: "500ms", "3s", "1.5s"
    "#);
    assert_snapshot!(file_errors(r#"budget total="0s" kernel="1.2345s""#), @r#"
    error: nothing starts in no time
      --> Boxfile:3:14
       |
     3 | budget total="0s" kernel="1.2345s"
       |              ^^^^ must be at least 1ms
       |
       = help: write `total="1ms"` or more, or leave `total` out

    error: `1.2345s` is not a duration
      --> Boxfile:3:26
       |
     3 | budget total="0s" kernel="1.2345s"
       |                          ^^^^^^^^^ `kernel` takes a duration
       |
       = help: a duration is a number and ms or s, down to the millisecond: "500ms", "3s", "1.5s"
    "#);
}

#[test]
fn layouts() {
    assert_snapshot!(file_errors(r#"layout "merged""#), @r#"
    error: the layout `merged` is not supported
      --> Boxfile:3:8
       |
     3 | layout "merged"
       |        ^^^^^^^^ this version builds `split` only
       |
       = help: write `layout "split"`, where each image keeps its own root, or leave it out
    "#);
    assert_snapshot!(file_errors(r#"layout "spilt""#), @r#"
    error: unknown layout `spilt`
      --> Boxfile:3:8
       |
     3 | layout "spilt"
       |        ^^^^^^^ this version builds `split` only
       |
       = help: write `layout "split"`, where each image keeps its own root, or leave it out
    "#);
}

#[test]
fn kernels() {
    assert_snapshot!(file_errors(r#"kernel"#), @r#"
    error: `kernel` needs a path or a `sha256`
      --> Boxfile:3:1
       |
     3 | kernel
       | ^^^^^^ without a path or a `sha256`
       |
       = help: write `kernel "vendor/libkrunfw.so.5"`, `kernel sha256="…"` with 64 hexadecimal digits, or both
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
}

#[test]
fn skills() {
    assert_snapshot!(file_errors(r#"skill "a" path="/a"
skill "b" path="../b"
skill "c"
skill "d" path="""#), @r#"
    error: a skill must lie inside the Boxfile's directory
      --> Boxfile:3:16
       |
     3 | skill "a" path="/a"
       |                ^^^^ an absolute path
       |
       = help: copy the skill to the Boxfile and name it from there: `path="skills/greet"`

    error: a skill must lie inside the Boxfile's directory
      --> Boxfile:4:16
       |
     4 | skill "b" path="../b"
       |                ^^^^^^ `..` leads out of it
       |
       = help: copy the skill to the Boxfile and name it from there: `path="skills/greet"`

    error: `skill` needs `path`
      --> Boxfile:5:1
       |
     5 | skill "c"
       | ^^^^^ without `path`
       |
       = help: write `skill "greet" path="skills/greet"`

    error: the text of `path` is empty
      --> Boxfile:6:16
       |
     6 | skill "d" path=""
       |                ^^ nothing between the quotes
       |
       = help: write a path or name between the quotes
    "#);
}

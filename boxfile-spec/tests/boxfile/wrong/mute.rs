//! Declarations that are empty or incomplete.

use insta::assert_snapshot;

use crate::{agent_errors, file_errors, read, shown};

#[test]
fn a_declaration_that_says_nothing() {
    assert_snapshot!(file_errors("vm\nbudget"), @r#"
    error: `vm` is empty
      --> Boxfile:3:1
       |
     3 | vm
       | ^^ nothing is given
       |
       = help: for example `vm cpus=2 memory="2GiB"`

    error: `budget` is empty
      --> Boxfile:4:1
       |
     4 | budget
       | ^^^^^^ nothing is given
       |
       = help: for example `budget total="700ms" kernel="400ms"`
    "#);
    assert_snapshot!(agent_errors("    limits\n    rlimits\n    namespaces"), @r#"
    error: `limits` is empty
      --> Boxfile:4:5
       |
     4 |     limits
       |     ^^^^^^ nothing is given
       |
       = help: for example `limits memory="512MiB" pids=100 cpu-weight=20`

    error: `rlimits` is empty
      --> Boxfile:5:5
       |
     5 |     rlimits
       |     ^^^^^^^ nothing is given
       |
       = help: for example `rlimits nofile=1024 nproc=1024 address-space="2GiB"`

    error: `namespaces` is empty
      --> Boxfile:6:5
       |
     6 |     namespaces
       |     ^^^^^^^^^^ nothing is given
       |
       = help: for example `namespaces net=#true hostname="my-host"`
    "#);
    assert_snapshot!(file_errors("sandbox \"ci\" {\n    writable\n    ask\n}\ntask \"t\" type=\"a\" description=\"b\" {\n    tags\n}"), @r#"
    error: `writable` is empty
      --> Boxfile:4:5
       |
     4 |     writable
       |     ^^^^^^^^ nothing is given
       |
       = help: for example `writable "/workspace"`

    error: `ask` is empty
      --> Boxfile:5:5
       |
     5 |     ask
       |     ^^^ nothing is given
       |
       = help: for example `ask "git commit *"`

    error: `tags` is empty
      --> Boxfile:8:5
       |
     8 |     tags
       |     ^^^^ nothing is given
       |
       = help: for example `tags "parser" "cleanup"`
    "#);
}

#[test]
fn a_table_that_says_nothing() {
    let text = "box = \"b\"\nvm = {}\n\n[agent]\nimage = \"oci:i\"\nargs = []\n\n[agent.limits]\n\n[logs]\n\n[cap.payments]\n\n[network]\nmode = \"filtered\"\nallow = []\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", text)], None)), @r#"
    error: `vm` is empty
      --> Boxfile.toml:2:1
       |
     2 | vm = {}
       | ^^ nothing is given
       |
       = help: for example `vm = { cpus = 2, memory = "2GiB" }`

    error: `limits` is empty
      --> Boxfile.toml:8:8
       |
     8 | [agent.limits]
       |        ^^^^^^ nothing is given
       |
       = help: for example `limits = { memory = "512MiB", pids = 100, cpu-weight = 20 }`

    error: `allow` needs a peer
       --> Boxfile.toml:16:1
        |
     16 | allow = []
        | ^^^^^ without a peer
        |
        = help: for example `allow = ["api.example.com", "*.example.org", { peer = "db.example.com", port = 5432 }]`
    "#);
}

#[test]
fn all_that_a_declaration_lacks_is_one_error() {
    assert_snapshot!(file_errors("share\nscratch \"s\"\ncap"), @r#"
    error: `share` needs a name and `guest`
      --> Boxfile:3:1
       |
     3 | share
       | ^^^^^ without a name and `guest`
       |
       = help: for example `share "workspace" guest="/a3s/workspace" access="rw"`

    error: `scratch` needs `guest` and `size`
      --> Boxfile:4:1
       |
     4 | scratch "s"
       | ^^^^^^^ without `guest` and `size`
       |
       = help: for example `scratch "cache" guest="/var/cache" size="2GiB"`

    error: `cap` needs a kind
      --> Boxfile:5:1
       |
     5 | cap
       | ^^^ without a kind
       |
       = help: for example `cap "http" timeout="10s"`
    "#);
}

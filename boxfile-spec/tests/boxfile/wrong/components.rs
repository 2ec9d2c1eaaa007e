//! The agent and the business application.

use insta::assert_snapshot;

use crate::{agent_errors, errors, file_errors, read, shown};

#[test]
fn the_kind_of_an_agent_fits_what_it_is_made_of() {
    assert_snapshot!(errors("box b\nagent kind=\"a3s-code\" { image \"oci:i\"; }\n"), @r#"
    error: `kind` cannot be `a3s-code`
      --> Boxfile:2:12
       |
     2 | agent kind="a3s-code" { image "oci:i"; }
       |            ^^^^^^^^^^ no such choice
       |
       = help: did you mean "a3s_code"?
    "#);
    assert_snapshot!(errors("box b\nagent kind=\"local_binary\" {\n    image \"oci:i\"\n}\n"), @r#"
    error: the agent's `kind` does not match its `image` and `binary`
      --> Boxfile:2:12
       |
     2 | agent kind="local_binary" {
       |            ^^^^^^^^^^^^^^ declared here
       |
       = help: this kind needs a `binary`; add one, or remove `kind`
    "#);
    assert_snapshot!(errors("box b\nagent kind=\"opencode\" {\n    binary \"bin/agent\"\n}\n"), @r#"
    error: the agent's `kind` does not match its `image` and `binary`
      --> Boxfile:2:12
       |
     2 | agent kind="opencode" {
       |            ^^^^^^^^^^ declared here
     3 |     binary "bin/agent"
       |     ------ makes it a `local_binary`
       |
       = help: write `local_binary`, or remove `kind` or `binary`
    "#);
    assert_snapshot!(errors("box b\nagent kind=\"remote_binary\" {\n    binary \"bin/agent\"\n}\n"), @r#"
    error: the agent's `kind` does not match its `image` and `binary`
      --> Boxfile:2:12
       |
     2 | agent kind="remote_binary" {
       |            ^^^^^^^^^^^^^^^ declared here
     3 |     binary "bin/agent"
       |     ------ makes it a `local_binary`
       |
       = help: write `local_binary`, or remove `kind` or `binary`
    "#);
    assert_snapshot!(errors("box b\nagent kind=\"local_binary\" {\n    port 80\n}\n"), @r#"
    error: `agent` needs a `binary`
      --> Boxfile:2:1
       |
     2 | agent kind="local_binary" {
       | ^^^^^ without a `binary`
       |
       = help: add `binary "bin/agent"`
    "#);
    assert_snapshot!(errors("box b\nagent kind=\"opencode\" {\n    port 80\n}\n"), @r#"
    error: `agent` needs an `image`
      --> Boxfile:2:1
       |
     2 | agent kind="opencode" {
       | ^^^^^ without an `image`
       |
       = help: `boxbuild init --agent opencode` writes a Boxfile with the commands that make one; or add `image "oci:images/agent"`
    "#);
    assert_snapshot!(errors("box b\nagent \"opencode\" {\n    image \"oci:i\"\n}\n"), @r#"
    error: `agent` takes no value, but got the string `opencode`
      --> Boxfile:2:7
       |
     2 | agent "opencode" {
       |       ^^^^^^^^^^ one too many
       |
       = help: write `agent kind="opencode"`
    "#);
}

/// A digest pins a downloaded program.
#[test]
fn a_binary_that_is_downloaded_needs_its_sha256() {
    assert_snapshot!(errors("box b\nagent { binary \"https://example.com/agent\"; }\n"), @r#"
    error: a binary that is downloaded needs its `sha256`
      --> Boxfile:2:9
       |
     2 | agent { binary "https://example.com/agent"; }
       |         ^^^^^^ without `sha256`
       |
       = help: add `sha256="…"`, of which `sha256sum FILE` prints the 64 digits
    "#);
    assert_snapshot!(errors("box b\nagent { binary \"https://example.com/agent\" sha256=\"12\"; }\n"), @r#"
    error: a sha256 has 64 hexadecimal digits, in lower case
      --> Boxfile:2:51
       |
     2 | agent { binary "https://example.com/agent" sha256="12"; }
       |                                                   ^^^^ 2 characters
       |
       = help: the output of `sha256sum` begins with them
    "#);
}

#[test]
fn the_url_of_a_binary_is_one_that_can_be_fetched_and_checked_in() {
    let with = |url: &str| {
        errors(&format!(
            "box b\nagent {{\n    binary \"{url}\" sha256=\"{}\"\n}}\n",
            "0".repeat(64)
        ))
    };
    assert_snapshot!(with("https://me:pass@example.com/agent"), @r#"
    error: the URL has a user in it
      --> Boxfile:3:12
       |
     3 |     binary "*********************************" sha256="0000000000000000000000000000000000000000000000000000000000000000"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be checked in
       |
       = help: remove what is in front of the `@`: credentials do not belong in a Boxfile
    "#);
    assert_snapshot!(with("ftp://example.com/agent"), @r#"
    error: `ftp://example.com/agent` is not a URL that can be used
      --> Boxfile:3:12
       |
     3 |     binary "ftp://example.com/agent" sha256="0000000000000000000000000000000000000000000000000000000000000000"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^ another kind of URL
       |
       = help: it begins with `http://` or `https://`
    "#);
    assert_snapshot!(with("https:///agent"), @r#"
    error: `https:///agent` is not a URL
      --> Boxfile:3:12
       |
     3 |     binary "https:///agent" sha256="0000000000000000000000000000000000000000000000000000000000000000"
       |            ^^^^^^^^^^^^^^^^ not a URL
       |
       = help: it has a host, perhaps a port up to 65535, and neither spaces nor backslashes nor characters beyond ASCII: "https://example.com:8443/agent"
    "#);
    assert_snapshot!(with("https://example.com/my agent"), @r#"
    error: `https://example.com/my agent` is not a URL
      --> Boxfile:3:12
       |
     3 |     binary "https://example.com/my agent" sha256="0000000000000000000000000000000000000000000000000000000000000000"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not a URL
       |
       = help: it has a host, perhaps a port up to 65535, and neither spaces nor backslashes nor characters beyond ASCII: "https://example.com:8443/agent"
    "#);
}

#[test]
fn a_binary_is_the_agents() {
    assert_snapshot!(file_errors(r#"business {
    binary "bin/app"
}"#), @r#"
    error: `binary` does not belong here
      --> Boxfile:4:5
       |
     4 |     binary "bin/app"
       |     ^^^^^^ not allowed here
       |
       = help: only the agent has it; write it inside `agent { … }`
    "#);
    assert_snapshot!(errors("box b\nagent { binary \"\"; }\n"), @r#"
    error: `binary` is empty
      --> Boxfile:2:16
       |
     2 | agent { binary ""; }
       |                ^^ nothing between the quotes
       |
       = help: write something between the quotes
    "#);
    assert_snapshot!(errors("box b\nagent { binary; }\n"), @r#"
    error: `binary` needs a source
      --> Boxfile:2:9
       |
     2 | agent { binary; }
       |         ^^^^^^ without a source
       |
       = help: for example `binary "bin/agent"`
    "#);
}

#[test]
fn what_belongs_to_one_component_is_refused_in_the_other() {
    assert_snapshot!(file_errors(r#"business {
    image "oci:i"
    port 80
    health "none"
    tools "bash"
}"#), @r#"
    error: `port` does not belong here
      --> Boxfile:5:5
       |
     5 |     port 80
       |     ^^^^ not allowed here
       |
       = help: only the agent has it; write it inside `agent { … }`

    error: `tools` does not belong here
      --> Boxfile:7:5
       |
     7 |     tools "bash"
       |     ^^^^^ not allowed here
       |
       = help: only the agent has it; write it inside `agent { … }`
    "#);
    assert_snapshot!(agent_errors("    autostart #true"), @"
    error: `autostart` does not belong here
      --> Boxfile:4:5
       |
     4 |     autostart #true
       |     ^^^^^^^^^ not allowed here
       |
       = help: only the business application has it; write it inside `business { … }`
    ");
}

#[test]
fn the_limits_of_a_process_are_in_range_and_cpu_time_in_whole_seconds() {
    assert_snapshot!(agent_errors(r#"    rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB""#), @r#"
    error: `nofile` is out of range
      --> Boxfile:4:20
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                    ^ must be from 1 to 1048576

    error: `nproc` takes a whole number, not the string `1024`
      --> Boxfile:4:28
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                            ^^^^^^ expected a whole number
       |
       = help: write it without quotes: 1024

    error: `address-space` is 1KiB, which is less than 1MiB
      --> Boxfile:4:49
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                                                 ^^^^^^ must be from 1MiB to 1048576GiB
       |
       = help: write `address-space="1MiB"`

    error: the kernel counts CPU time in whole seconds
      --> Boxfile:4:60
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                                                            ^^^^^^^^ not a whole second
       |
       = help: write `cpu="2s"`

    error: `core` has no unit
      --> Boxfile:4:74
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                                                                          ^ a bare number
       |
       = help: write `core="0MiB"`, or `core="0B"` for bytes

    error: `rlimits` has no property `stack`
      --> Boxfile:4:76
       |
     4 |     rlimits nofile=0 nproc="1024" address-space="1KiB" cpu="1500ms" core=0 stack="8MiB"
       |                                                                            ^^^^^ no such property
       |
       = help: its properties: `nofile`, `nproc`, `address-space`, `cpu`, `core`, `file-size`
    "#);
    assert_snapshot!(agent_errors("    rlimits nofiles=1024 1024"), @"
    error: `rlimits` has no property `nofiles`
      --> Boxfile:4:13
       |
     4 |     rlimits nofiles=1024 1024
       |             ^^^^^^^ no such property
       |
       = help: did you mean `nofile`?

    error: `rlimits` takes no value, but got the number 1024
      --> Boxfile:4:26
       |
     4 |     rlimits nofiles=1024 1024
       |                          ^^^^ one too many
       |
       = help: write `rlimits nofile=1024`
    ");
}

#[test]
fn a_limit_on_processes_does_not_hold_root() {
    assert_snapshot!(agent_errors("    user \"0:app\"\n    rlimits nofile=9 nproc=512"), @r#"
    error: `nproc` has no effect on root
      --> Boxfile:5:28
       |
     4 |     user "0:app"
       |          ------- the component runs as root
     5 |     rlimits nofile=9 nproc=512
       |                            ^^^ root is exempt from it
       |
       = help: remove `nproc`, and write `pids=512` in `limits`, which applies to every user
    "#);
    assert_snapshot!(agent_errors("    rlimits nproc=\"many\"\n    user root"), @r#"
    error: `nproc` takes a whole number, not the string `many`
      --> Boxfile:4:19
       |
     4 |     rlimits nproc="many"
       |                   ^^^^^^ expected a whole number
    "#);
    assert_snapshot!(shown(&read(
        &[
            ("Boxfile.toml", "extends = 'base'\nbox = 'b'\n[agent]\nrlimits.nproc = 9\n"),
            ("base", "agent { image \"oci:i\"; user root; }\n"),
        ],
        None,
    )), @r#"
    error: `nproc` has no effect on root
      --> Boxfile.toml:4:17
       |
     4 | rlimits.nproc = 9
       |                 ^ root is exempt from it
       |
      ::: base:1:29
       |
     1 | agent { image "oci:i"; user root; }
       |                             ---- the component runs as root
       |
       = help: remove `nproc`, and write `pids = 9` in `limits`, which applies to every user
    "#);
    for user in ["", "user app;", "user \"1000:0\";"] {
        let text = format!("box b\nagent {{ image \"oci:i\"; rlimits nproc=9; {user} }}\n");
        assert!(boxfile_spec::parse(&text).is_ok(), "{user}");
    }
}

#[test]
fn a_capability_is_one_that_can_be_had() {
    for (line, what) in [
        ("add=\"NET_RWA\"", "did you mean \"NET_RAW\"?"),
        ("drop=\"CAP_CHWN\"", "did you mean \"CHOWN\"?"),
        ("add=\"NET_RAW,IPC_LOCK\"", "write several names with spaces between"),
        ("add=\"teleport\"", "those that a component can have are CHOWN,"),
        ("add=\"ALL\"", "`ALL` cannot be added"),
        ("add=\"NET_RAW cap_mknod\"", "no component can have the capability `MKNOD`"),
        ("add=5", "takes a string"),
        ("add=\"\"", "`add` is empty"),
        ("add=\" \"", "there is no capability"),
    ] {
        let errors = agent_errors(&format!("    capabilities {line}"));
        assert!(errors.contains(what), "{line}: {errors}");
    }
    assert_snapshot!(agent_errors("    capabilities add=\"NET_RAW SYS_ADMIN\""), @r#"
    error: no component can have the capability `SYS_ADMIN`
      --> Boxfile:4:22
       |
     4 |     capabilities add="NET_RAW SYS_ADMIN"
       |                      ^^^^^^^^^^^^^^^^^^^ it allows mounts and namespaces, and includes most other capabilities
       |
       = help: remove it; docs/security.md lists the capabilities that a component can have
    "#);
}

#[test]
fn a_capability_has_an_effect() {
    let lines = r#"    user app
    namespaces mount=#false
    capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN NET_RAW""#;
    assert_snapshot!(agent_errors(lines), @r#"
    error: `add` has no effect on users other than root
      --> Boxfile:6:22
       |
     4 |     user app
       |          --- the component runs as another user
    ...
     6 |     capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN NET_RAW"
       |                      ^^^^^^^^^^^^^^^^^^^^ only root has capabilities
       |
       = help: remove `add`, or let the component run as root

    error: `SYS_CHROOT` needs a component with mounts of its own
      --> Boxfile:6:22
       |
     6 |     capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN NET_RAW"
       |                      ^^^^^^^^^^^^^^^^^^^^ would let it leave its root directory
       |
       = help: remove it, or `mount` of `namespaces`

    error: the capability `NET_RAW` is added and dropped
      --> Boxfile:6:48
       |
     6 |     capabilities add="NET_RAW SYS_CHROOT" drop="CHOWN NET_RAW"
       |                      -------------------- added
       |                                                ^^^^^^^^^^^^^^^ dropped here
       |
       = help: remove it from one of them
    "#);
}

#[test]
fn a_tool_is_one_that_there_is() {
    assert_snapshot!(agent_errors(r#"    tools "bsh" "teleport" 5"#), @r#"
    error: there is no built-in tool `bsh`
      --> Boxfile:4:11
       |
     4 |     tools "bsh" "teleport" 5
       |           ^^^^^ no such tool
       |
       = help: did you mean "bash"?

    error: there is no built-in tool `teleport`
      --> Boxfile:4:17
       |
     4 |     tools "bsh" "teleport" 5
       |                 ^^^^^^^^^^ no such tool
       |
       = help: the tools are ask_user, bash, edit_file, git_commit, git_diff, git_status, glob, grep, read_file, web_fetch, web_search, write_file

    error: `tools` takes a string, not the number 5
      --> Boxfile:4:28
       |
     4 |     tools "bsh" "teleport" 5
       |                            ^ expected a string
       |
       = help: write it in quotes: "5"
    "#);
    assert_snapshot!(agent_errors("    tools"), @r#"
    error: `tools` needs a name
      --> Boxfile:4:5
       |
     4 |     tools
       |     ^^^^^ without a name
       |
       = help: for example `tools "read_file" "grep" "bash"`
    "#);
}

#[test]
fn a_user_is_a_name_or_a_number_in_quotes() {
    assert_snapshot!(agent_errors("    user 1000"), @r#"
    error: `user` takes a string, not the number 1000
      --> Boxfile:4:10
       |
     4 |     user 1000
       |          ^^^^ expected a string
       |
       = help: write it in quotes: "1000"
    "#);
    assert_snapshot!(agent_errors(r#"    user "app:""#), @r#"
    error: `app:` is not a user
      --> Boxfile:4:10
       |
     4 |     user "app:"
       |          ^^^^^^ not a user
       |
       = help: write `USER` or `USER:GROUP`, names or numbers: "app:app", "1000"
    "#);
    assert_snapshot!(agent_errors(r#"    user "app:4294967295""#), @r#"
    error: `app:4294967295` is not a user
      --> Boxfile:4:10
       |
     4 |     user "app:4294967295"
       |          ^^^^^^^^^^^^^^^^ not a user
       |
       = help: the numbers of users and groups go from 0 to 4294967294
    "#);
}

#[test]
fn whether_the_application_starts_is_a_truth_value() {
    assert_snapshot!(file_errors("business {\n    image \"oci:i\"\n    autostart \"yes\"\n}"), @r#"
    error: `autostart` takes a boolean, not the string `yes`
      --> Boxfile:5:15
       |
     5 |     autostart "yes"
       |               ^^^^^ expected a boolean
       |
       = help: write `#true` or `#false`, without quotes
    "#);
    assert_snapshot!(file_errors("business {\n    image \"oci:i\"\n    autostart\n}"), @r#"
    error: `autostart` needs a value
      --> Boxfile:5:5
       |
     5 |     autostart
       |     ^^^^^^^^^ without a value
       |
       = help: for example `autostart #true restart="on-failure"`
    "#);
}

#[test]
fn a_program_that_is_not_started_is_not_started_again() {
    assert_snapshot!(file_errors("business {\n    image \"oci:i\"\n    autostart #false restart=\"always\"\n}"), @r#"
    error: `restart` has no effect on a program that is not started
      --> Boxfile:5:30
       |
     5 |     autostart #false restart="always"
       |                              ^^^^^^^^ has no effect
       |
       = help: remove it, or switch `autostart` on
    "#);
    assert_snapshot!(file_errors("business {\n    image \"oci:i\"\n    autostart #true restart=\"sometimes\"\n}"), @r#"
    error: `restart` cannot be `sometimes`
      --> Boxfile:5:29
       |
     5 |     autostart #true restart="sometimes"
       |                             ^^^^^^^^^^^ no such choice
       |
       = help: write one of "never", "on-failure", "always"
    "#);
}

#[test]
fn an_env_file_has_a_path() {
    assert_snapshot!(agent_errors("    env-file"), @r#"
    error: `env-file` needs a path
      --> Boxfile:4:5
       |
     4 |     env-file
       |     ^^^^^^^^ without a path
       |
       = help: for example `env-file "agent.env"`
    "#);
    assert_snapshot!(agent_errors("    env_file \"agent.env\""), @r#"
    error: unknown declaration `env_file`
      --> Boxfile:4:5
       |
     4 |     env_file "agent.env"
       |     ^^^^^^^^ no such declaration here
       |
       = help: did you mean `env-file`?
    "#);
}

#[test]
fn a_program_of_a_box_cannot_use_vsock() {
    assert_snapshot!(agent_errors("    entrypoint \"/a\" \"--listen=vsock://4088\"\n    args \"vsock://3:1\""), @r#"
    error: `--listen=vsock://4088` names an address of AF_VSOCK, which no program in a box can use
      --> Boxfile:4:21
       |
     4 |     entrypoint "/a" "--listen=vsock://4088"
       |                     ^^^^^^^^^^^^^^^^^^^^^^^ refused in components
       |
       = help: write an address of the loopback, such as "127.0.0.1:4088"

    error: `vsock://3:1` names an address of AF_VSOCK, which no program in a box can use
      --> Boxfile:5:10
       |
     5 |     args "vsock://3:1"
       |          ^^^^^^^^^^^^^ refused in components
       |
       = help: write an address of the loopback, such as "127.0.0.1:4088"
    "#);
    assert_snapshot!(file_errors("business {\n    image \"oci:i\"\n    args \"--listen\" \"vsock://4088\"\n}"), @r#"
    error: `vsock://4088` names an address of AF_VSOCK, which no program in a box can use
      --> Boxfile:5:21
       |
     5 |     args "--listen" "vsock://4088"
       |                     ^^^^^^^^^^^^^^ refused in components
       |
       = help: write an address of the loopback, such as "127.0.0.1:4088"
    "#);
}

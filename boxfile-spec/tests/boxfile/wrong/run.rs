//! Declarations for the run of a box: shares, scratch disks, the task, logs, capabilities, the
//! command policy.

use insta::assert_snapshot;

use crate::{errors, file_errors};

#[test]
fn two_shares_of_one_name() {
    assert_snapshot!(file_errors(r#"share "data" guest="/a"
share "data" guest="/b"
share "data" guest="/c""#), @r#"
    error: the share `data` is declared twice
      --> Boxfile:4:7
       |
     3 | share "data" guest="/a"
       |       ------ declared first
     4 | share "data" guest="/b"
       |       ^^^^^^ declared again
       |
       = help: give one of them another name, or remove it

    error: the share `data` is declared twice
      --> Boxfile:5:7
       |
     3 | share "data" guest="/a"
       |       ------ declared first
    ...
     5 | share "data" guest="/c"
       |       ^^^^^^ declared again
       |
       = help: give one of them another name, or remove it
    "#);
}

#[test]
fn a_share_cannot_hide_directories_of_the_guest() {
    assert_snapshot!(file_errors(r#"share "a" guest="/proc/a"
share "b" guest="/a3s"
share "c" guest="/cap"
share "d" guest="/capture""#), @r#"
    error: nothing can be mounted at `/proc/a`
      --> Boxfile:3:17
       |
     3 | share "a" guest="/proc/a"
       |                 ^^^^^^^^^ the guest has its own `/proc`
       |
       = help: choose another path, for instance "/a3s/workspace"

    error: nothing can be mounted at `/a3s`
      --> Boxfile:4:17
       |
     4 | share "b" guest="/a3s"
       |                 ^^^^^^ the guest has its own `/a3s/skills`
       |
       = help: choose another path, for instance "/a3s/workspace"

    error: nothing can be mounted at `/cap`
      --> Boxfile:5:17
       |
     5 | share "c" guest="/cap"
       |                 ^^^^^^ the guest has its own `/cap`
       |
       = help: choose another path, for instance "/a3s/workspace"
    "#);
}

#[test]
fn a_share_has_a_plain_place_of_its_own() {
    assert_snapshot!(file_errors(r#"share "a" guest="data"
share "b" guest="/data/../etc"
share "c" guest="/"
share "d" guest="~/data"
share "e""#), @r#"
    error: `guest` takes an absolute path, not `data`
      --> Boxfile:3:17
       |
     3 | share "a" guest="data"
       |                 ^^^^^^ a relative path
       |
       = help: write "/data"

    error: `/data/../etc` is not a plain path
      --> Boxfile:4:17
       |
     4 | share "b" guest="/data/../etc"
       |                 ^^^^^^^^^^^^^^ not a plain path
       |
       = help: write a path below `/`, without `.`, `..`, `//` and a slash at its end

    error: `/` is not a plain path
      --> Boxfile:5:17
       |
     5 | share "c" guest="/"
       |                 ^^^ not a plain path
       |
       = help: write a path below `/`, without `.`, `..`, `//` and a slash at its end

    error: `guest` takes an absolute path, not `~/data`
      --> Boxfile:6:17
       |
     6 | share "d" guest="~/data"
       |                 ^^^^^^^^ a relative path
       |
       = help: write the whole path, beginning with `/`: `~` is not expanded here

    error: `share` needs `guest`
      --> Boxfile:7:1
       |
     7 | share "e"
       | ^^^^^ without `guest`
       |
       = help: for example `share "workspace" guest="/a3s/workspace" access="rw"`
    "#);
}

#[test]
fn nothing_is_mounted_on_something_else() {
    assert_snapshot!(file_errors(r#"share "outer" guest="/data"
share "inner" guest="/data/x" component="agent"
share "same" guest="/data/x"
share "under" guest="/data/x/y"
scratch "in" guest="/data/z" size="1GiB"
scratch "disk" guest="/data" size="1GiB" component="agent""#), @r#"
    error: `/data/x` is used twice
      --> Boxfile:5:20
       |
     4 | share "inner" guest="/data/x" component="agent"
       |                     --------- the place of this `share`
     5 | share "same" guest="/data/x"
       |                    ^^^^^^^^^ the place of this `share`
       |
       = help: give one of them another path, or remove it

    error: `/data/z` is inside `/data`, which is already in use
      --> Boxfile:7:20
       |
     3 | share "outer" guest="/data"
       |                     ------- the place of this `share`
    ...
     7 | scratch "in" guest="/data/z" size="1GiB"
       |                    ^^^^^^^^^ the place of this `scratch`
       |
       = help: choose paths that are not inside one another

    error: `/data` is used twice
      --> Boxfile:8:22
       |
     3 | share "outer" guest="/data"
       |                     ------- the place of this `share`
    ...
     8 | scratch "disk" guest="/data" size="1GiB" component="agent"
       |                      ^^^^^^^ the place of this `scratch`
       |
       = help: give one of them another path, or remove it
    "#);
}

/// A share is read-only by default.
#[test]
fn a_share_is_read_or_written_by_those_that_there_are() {
    assert_snapshot!(file_errors(r#"share "a" guest="/a" access="wr" component="all" readonly=#true"#), @r#"
    error: `access` cannot be `wr`
      --> Boxfile:3:29
       |
     3 | share "a" guest="/a" access="wr" component="all" readonly=#true
       |                             ^^^^ no such choice
       |
       = help: did you mean "rw"?

    error: `component` cannot be `all`
      --> Boxfile:3:44
       |
     3 | share "a" guest="/a" access="wr" component="all" readonly=#true
       |                                            ^^^^^ no such choice
       |
       = help: write one of "agent", "business", "both"

    error: `share` has no property `readonly`
      --> Boxfile:3:50
       |
     3 | share "a" guest="/a" access="wr" component="all" readonly=#true
       |                                                  ^^^^^^^^ no such property
       |
       = help: its properties: `guest`, `host`, `access`, `over`, `component`
    "#);
}

#[test]
fn a_scratch_disk_has_a_size() {
    assert_snapshot!(file_errors(r#"scratch "a" guest="/a"
scratch "b" guest="/b" size="1500KiB"
scratch "c" guest="/c" size="2TiB"
scratch "d" guest="/d" size="1KiB""#), @r#"
    error: `scratch` needs `size`
      --> Boxfile:3:1
       |
     3 | scratch "a" guest="/a"
       | ^^^^^^^ without `size`
       |
       = help: for example `scratch "cache" guest="/var/cache" size="2GiB"`

    error: `size` must be a whole number of MiB
      --> Boxfile:4:29
       |
     4 | scratch "b" guest="/b" size="1500KiB"
       |                             ^^^^^^^^^ not a multiple of 1MiB
       |
       = help: write `size="2MiB"`

    error: `2TiB` is not a size
      --> Boxfile:5:29
       |
     5 | scratch "c" guest="/c" size="2TiB"
       |                             ^^^^^^ `size` takes a size
       |
       = help: write `size="2048GiB"`

    error: `size` is 1KiB, which is less than 1MiB
      --> Boxfile:6:29
       |
     6 | scratch "d" guest="/d" size="1KiB"
       |                             ^^^^^^ must be from 1MiB to 1024GiB
       |
       = help: write `size="1MiB"`
    "#);
}

#[test]
fn a_task_says_what_it_is() {
    assert_snapshot!(file_errors("task"), @r#"
    error: `task` needs an id, `type` and `description`
      --> Boxfile:3:1
       |
     3 | task
       | ^^^^ without an id, `type` and `description`
       |
       = help: for example `task "refactor-1" type="code" description="Split the parser" timeout="600s"`
    "#);
    assert_snapshot!(file_errors(r#"task "" type="code" description="x" timeout="10d" input="{files: 1}" {
    tag "a"
    tags ""
}"#), @r#"
    error: `task` is empty
      --> Boxfile:3:6
       |
     3 | task "" type="code" description="x" timeout="10d" input="{files: 1}" {
       |      ^^ nothing between the quotes
       |
       = help: write something between the quotes

    error: `10d` is not a duration
      --> Boxfile:3:45
       |
     3 | task "" type="code" description="x" timeout="10d" input="{files: 1}" {
       |                                             ^^^^^ `timeout` takes a duration
       |
       = help: a duration is a number and ms, s, m or h, down to the millisecond: "500ms", "1.5s", "10m"

    error: `input` is not JSON: key must be a string at line 1 column 2
      --> Boxfile:3:57
       |
     3 | task "" type="code" description="x" timeout="10d" input="{files: 1}" {
       |                                                         ^^^^^^^^^^^^ not JSON
       |
       = help: write a JSON value as one string, for instance "{\"files\": [\"a.rs\"]}"

    error: unknown declaration `tag`
      --> Boxfile:4:5
       |
     4 |     tag "a"
       |     ^^^ no such declaration here
       |
       = help: did you mean `tags`?

    error: `tags` is empty
      --> Boxfile:5:10
       |
     5 |     tags ""
       |          ^^ nothing between the quotes
       |
       = help: write something between the quotes
    "#);
}

#[test]
fn a_verification_has_a_command_and_takes_over_no_directory_of_the_system() {
    let of = |line: &str| {
        file_errors(&format!("task \"t\" type=\"code\" description=\"x\" {{\n    {line}\n}}"))
    };
    for (line, reason) in [
        ("verify", "`verify` needs a program"),
        ("verify \"\"", "`verify` is empty"),
        ("verify make component=business", "component=\"agent\""),
        ("verify make timeout=\"10d\"", "`10d` is not a duration"),
        ("verify make in=agent", "`verify` has no property `in`"),
        ("verify make\nverify npm", "`verify` is declared twice"),
    ] {
        let found = of(line);
        assert!(found.contains(reason), "{line}: {found}");
    }
    let at = |workdir: &str, more: &str| {
        let agent = format!("agent {{\nimage \"oci:i\"\nworkdir \"{workdir}\"\n}}\n{more}");
        let task = "task \"t\" type=\"code\" description=\"x\" { verify make; }";
        format!("box \"b\"\n{agent}\n{task}\n")
    };
    for workdir in ["/", "/etc/app", "/usr"] {
        let found = errors(&at(workdir, ""));
        let reason = format!("`verify` cannot take over the working directory `{workdir}`");
        assert!(found.contains(&reason), "{found}");
    }
    for (workdir, more) in [("/work", ""), ("/etc/app", "share s guest=\"/etc/app\"")] {
        boxfile_spec::parse(&at(workdir, more)).unwrap();
    }
}

#[test]
fn a_log_is_on_or_off() {
    assert_snapshot!(file_errors(r#"logs stdout="yes" stdin=#true"#), @r#"
    error: `stdout` takes a boolean, not the string `yes`
      --> Boxfile:3:13
       |
     3 | logs stdout="yes" stdin=#true
       |             ^^^^^ expected a boolean
       |
       = help: write `#true` or `#false`, without quotes

    error: `logs` has no property `stdin`
      --> Boxfile:3:19
       |
     3 | logs stdout="yes" stdin=#true
       |                   ^^^^^ no such property
       |
       = help: its properties: `stdout`, `stderr`, `events`, `atif`
    "#);
}

#[test]
fn a_capability_is_one_that_there_is_and_has_what_it_needs() {
    assert_snapshot!(file_errors(r#"cap "htpp" timeout="1s"
cap "nostr"
cap "ws" max-connections=0 timeout="1s"
cap "payments" max-connections=2"#), @r#"
    error: `cap` cannot be `htpp`
      --> Boxfile:3:5
       |
     3 | cap "htpp" timeout="1s"
       |     ^^^^^^ no such choice
       |
       = help: did you mean "http"?

    error: the capability `nostr` needs `relays`
      --> Boxfile:4:1
       |
     4 | cap "nostr"
       | ^^^ without `relays`
       |
       = help: add `relays "wss://relay.example.com"` to it

    error: `max-connections` is out of range
      --> Boxfile:5:26
       |
     5 | cap "ws" max-connections=0 timeout="1s"
       |                          ^ must be from 1 to 1024

    error: `timeout` is not allowed with the kind `ws`
      --> Boxfile:5:28
       |
     5 | cap "ws" max-connections=0 timeout="1s"
       |                            ^^^^^^^ has no effect here
       |
       = help: remove `timeout`

    error: `max-connections` is not allowed with the kind `payments`
      --> Boxfile:6:16
       |
     6 | cap "payments" max-connections=2
       |                ^^^^^^^^^^^^^^^ has no effect here
       |
       = help: remove `max-connections`
    "#);
    assert_snapshot!(file_errors(r#"cap "http" {
    relays "wss://relay.example.com"
}
cap "http"
service "s" to="https://s.example""#), @r#"
    error: the capability `http` has no relays
      --> Boxfile:4:5
       |
     4 |     relays "wss://relay.example.com"
       |     ^^^^^^ has no effect here
       |
       = help: remove it, or write it inside of `cap "nostr"`

    error: the cap `http` is declared twice
      --> Boxfile:6:5
       |
     3 | cap "http" {
       |     ------ declared first
    ...
     6 | cap "http"
       |     ^^^^^^ declared again
       |
       = help: give one of them another kind, or remove it
    "#);
    assert_snapshot!(file_errors(r#"cap "nostr" {
    relays "https://relay.example.com" "relay.example.com"
}"#), @r#"
    error: `https://relay.example.com` is not a URL that can be used
      --> Boxfile:4:12
       |
     4 |     relays "https://relay.example.com" "relay.example.com"
       |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^ another kind of URL
       |
       = help: it begins with `wss://` or `ws://`

    error: `relay.example.com` is not a URL
      --> Boxfile:4:40
       |
     4 |     relays "https://relay.example.com" "relay.example.com"
       |                                        ^^^^^^^^^^^^^^^^^^^ without a scheme
       |
       = help: write "wss://relay.example.com"
    "#);
    assert_snapshot!(file_errors("cap \"http\""), @r#"
    error: without a `service`, the capability `http` has nothing to send requests to
      --> Boxfile:3:5
       |
     3 | cap "http"
       |     ^^^^^^ without `service`
       |
       = help: declare one, such as `service "model"`
    "#);
}

#[test]
fn a_policy_starts_from_a_preset() {
    assert_snapshot!(file_errors(r#"sandbox "dev" fallback="ignore" max-output="2GiB""#), @r#"
    error: `sandbox` cannot be `dev`
      --> Boxfile:3:9
       |
     3 | sandbox "dev" fallback="ignore" max-output="2GiB"
       |         ^^^^^ no such choice
       |
       = help: did you mean "development"?

    error: `fallback` cannot be `ignore`
      --> Boxfile:3:24
       |
     3 | sandbox "dev" fallback="ignore" max-output="2GiB"
       |                        ^^^^^^^^ no such choice
       |
       = help: write one of "strict", "warn"

    error: `max-output` is 2GiB, which is more than 1GiB
      --> Boxfile:3:44
       |
     3 | sandbox "dev" fallback="ignore" max-output="2GiB"
       |                                            ^^^^^^ must be from 1B to 1GiB
       |
       = help: write `max-output="1GiB"`
    "#);
    assert_snapshot!(file_errors("sandbox {\n    forbid \"git push *\"\n}"), @r#"
    error: `sandbox` needs a preset
      --> Boxfile:3:1
       |
     3 | sandbox {
       | ^^^^^^^ without a preset
       |
       = help: for example
             sandbox "ci" {
                 writable "/workspace"
                 forbid "git push *"
             }
    "#);
}

#[test]
fn nothing_is_writable_that_is_denied() {
    assert_snapshot!(file_errors(r#"sandbox "ci" {
    writable "/workspace" "/etc/app"
    deny-write "/etc"
    deny-read "secrets"
    allow ""
    deny "rm *"
}"#), @r#"
    error: `/etc/app` is declared writable and denied
      --> Boxfile:4:27
       |
     4 |     writable "/workspace" "/etc/app"
       |                           ^^^^^^^^^^ declared writable
     5 |     deny-write "/etc"
       |                ------ denied, which takes precedence
       |
       = help: remove one of them

    error: `deny-read` takes an absolute path, not `secrets`
      --> Boxfile:6:15
       |
     6 |     deny-read "secrets"
       |               ^^^^^^^^^ a relative path
       |
       = help: write "/secrets"

    error: `allow` is empty
      --> Boxfile:7:11
       |
     7 |     allow ""
       |           ^^ nothing between the quotes
       |
       = help: write something between the quotes

    error: unknown declaration `deny`
      --> Boxfile:8:5
       |
     8 |     deny "rm *"
       |     ^^^^ no such declaration here
       |
       = help: did you mean `forbid`?
    "#);
}

#[test]
fn the_default_policy_needs_a_filter() {
    let errors = |text: &str| {
        let all = file_errors(text);
        all.split("\n\n").skip(1).collect::<Vec<_>>().join("\n\n")
    };
    assert_snapshot!(errors("network \"shared\"\nsandbox \"default\""), @r#"
    error: the preset "default" needs a filter, and the network "shared" has none
      --> Boxfile:4:1
       |
     4 | sandbox "default"
       | ^^^^^^^ for commands, too
       |
       = help: write `sandbox "development"`, or `network "filtered"`
    "#);
}

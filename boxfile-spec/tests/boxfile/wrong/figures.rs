//! Sizes, numbers and durations, and the declarations with such values.

use insta::assert_snapshot;

use crate::{agent_errors, file_errors};

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
    error: `memory` is 1MiB, which is less than 4MiB
      --> Boxfile:4:19
       |
     4 |     limits memory="1MiB"
       |                   ^^^^^^ must be from 4MiB to 64GiB
       |
       = help: write `memory="4MiB"`
    "#);
    assert_snapshot!(file_errors(r#"vm memory="65GiB""#), @r#"
    error: `memory` is 65GiB, which is more than 64GiB
      --> Boxfile:3:11
       |
     3 | vm memory="65GiB"
       |           ^^^^^^^ must be from 64MiB to 64GiB
       |
       = help: write `memory="64GiB"`
    "#);
    assert_snapshot!(file_errors(r#"vm memory="1000MB""#), @r#"
    error: `memory` must be a whole number of MiB
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
    assert_snapshot!(agent_errors(r#"    limits pids=0 cpu-weight=10001"#), @"
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
    assert_snapshot!(agent_errors(r#"    limits cpu-shares=1"#), @"
    error: `cpu-shares` is out of range
      --> Boxfile:4:23
       |
     4 |     limits cpu-shares=1
       |                       ^ must be from 2 to 262144
    ");
    assert_snapshot!(agent_errors(r#"    limits cpu-weight=100 cpu-shares=1024"#), @"
    error: `cpu-weight` and `cpu-shares` set the same limit
      --> Boxfile:4:38
       |
     4 |     limits cpu-weight=100 cpu-shares=1024
       |                       --- this
       |                                      ^^^^ and this
       |
       = help: remove `cpu-shares`
    ");
    assert_snapshot!(file_errors(r#"vm cpus=17"#), @"
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
       = help: a duration is a number and ms, s, m or h, down to the millisecond: "500ms", "1.5s", "10m"
    "#);
    assert_snapshot!(file_errors(r#"budget total="0s" kernel="1.2345s""#), @r#"
    error: `total` must be at least 1ms
      --> Boxfile:3:14
       |
     3 | budget total="0s" kernel="1.2345s"
       |              ^^^^ no time at all
       |
       = help: write `total="1ms"` or more, or leave `total` out

    error: `1.2345s` is not a duration
      --> Boxfile:3:26
       |
     3 | budget total="0s" kernel="1.2345s"
       |                          ^^^^^^^^^ `kernel` takes a duration
       |
       = help: a duration is a number and ms, s, m or h, down to the millisecond: "500ms", "1.5s", "10m"
    "#);
}

#[test]
fn a_unit_in_the_wrong_case_keeps_its_meaning() {
    assert_snapshot!(file_errors("vm memory=\"2048mb\"\nscratch \"a\" guest=\"/a\" size=\"2m\""), @r#"
    error: `2048mb` is not a size
      --> Boxfile:3:11
       |
     3 | vm memory="2048mb"
       |           ^^^^^^^^ `memory` takes a size
       |
       = help: write `memory="2048MB"`

    error: `2m` is not a size
      --> Boxfile:4:29
       |
     4 | scratch "a" guest="/a" size="2m"
       |                             ^^^^ `size` takes a size
       |
       = help: write `size="2MiB"`
    "#);
}

#[test]
fn the_size_of_a_disk_is_written_as_its_argument() {
    let helps = |text: &str| {
        let errors = file_errors(text);
        let helps = errors.lines().filter_map(|line| line.split_once("= help: "));
        helps.map(|(_, help)| help.to_owned()).collect::<Vec<_>>().join("; ")
    };
    for (wrong, help) in [
        ("disk 20", "write `disk \"20MiB\"`, or `disk \"20B\"` for bytes"),
        ("disk \"1MiB\"", "write `disk \"16MiB\"`"),
        ("disk \"20g\"", "write `disk \"20GiB\"`"),
        ("disk \"2000GiB\"", "write `disk \"1024GiB\"`"),
    ] {
        assert_eq!(helps(wrong), help, "{wrong}");
    }
    assert!(
        file_errors("disk").starts_with("error: `disk` needs a size"),
        "{}",
        file_errors("disk")
    );
}

#[test]
fn the_port_of_a_url_is_one() {
    let digest = "0".repeat(64);
    let errors = |url: &str| {
        crate::errors(&format!("box \"b\"\nagent {{ binary \"{url}\" sha256=\"{digest}\"; }}\n"))
    };
    for wrong in [
        "https://:99999/",
        "https://a:65536",
        "https://a:",
        "https://a:b/",
        "https://a:+1/",
        "https://[::1]:x",
    ] {
        assert!(errors(wrong).starts_with(&format!("error: `{wrong}` is not a URL\n")), "{wrong}");
    }
    for right in ["https://a", "https://a:65535/b:c", "https://[::1]", "http://[::1]:80/x?y"] {
        let file = format!("box \"b\"\nagent {{ binary \"{right}\" sha256=\"{digest}\"; }}\n");
        assert!(boxfile_spec::parse(&file).is_ok(), "{right}");
    }
}

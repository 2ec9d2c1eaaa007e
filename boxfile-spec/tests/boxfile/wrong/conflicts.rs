//! Declarations that are valid by themselves but contradict each other.

use insta::assert_snapshot;

use crate::{agent_errors, file_errors};

#[test]
fn the_machine_has_no_room_for_the_components() {
    assert_snapshot!(crate::errors("box b\nagent {\n    image \"oci:i\"\n    limits memory=\"64MiB\"\n}\nbusiness {\n    image \"oci:i\"\n}\nvm memory=\"256MiB\"\n"), @r#"
    error: the components may take 1088MiB, which leaves no memory for the VM itself
      --> Boxfile:9:11
       |
     4 |     limits memory="64MiB"
       |                   ------- may take 64MiB
    ...
     6 | business {
       | -------- may take 1GiB by default
    ...
     9 | vm memory="256MiB"
       |           ^^^^^^^^ must be more than 1088MiB
       |
       = help: write `memory="1344MiB"`, or lower the limits
    "#);
}

#[test]
fn room_for_the_components_alone_is_not_enough() {
    assert_snapshot!(file_errors(r#"vm memory="512MiB""#), @r#"
    error: the components may take 512MiB, which leaves no memory for the VM itself
      --> Boxfile:3:11
       |
     2 | agent { image "oci:i"; }
       | ----- may take 512MiB by default
     3 | vm memory="512MiB"
       |           ^^^^^^^^ must be more than 512MiB
       |
       = help: write `memory="768MiB"`, or lower the limits
    "#);
}

#[test]
fn the_components_want_more_than_any_machine_has() {
    assert_snapshot!(crate::errors("box b\nagent { image \"oci:i\"; limits memory=\"64GiB\"; }\nbusiness { image \"oci:i\"; }\n"), @r#"
    error: the components may take more memory than a VM can have
      --> Boxfile:2:38
       |
     2 | agent { image "oci:i"; limits memory="64GiB"; }
       |                                      ^^^^^^^ may take 64GiB
     3 | business { image "oci:i"; }
       | -------- may take 1GiB by default
       |
       = help: lower the limits to at most 65280MiB together
    "#);
    assert_snapshot!(agent_errors(r#"    limits memory="64GiB"
}
vm memory="64GiB"
business {
    image "oci:i""#), @r#"
    error: the components may take 65GiB, which leaves no memory for the VM itself
      --> Boxfile:6:11
       |
     4 |     limits memory="64GiB"
       |                   ------- may take 64GiB
    ...
     6 | vm memory="64GiB"
       |           ^^^^^^^ must be more than 65GiB
     7 | business {
       | -------- may take 1GiB by default
       |
       = help: lower the limits
    "#);
}

#[test]
fn a_phase_cannot_take_longer_than_the_whole() {
    assert_snapshot!(file_errors(r#"budget total="300ms" kernel="0.4s""#), @r#"
    error: `kernel` is 400ms, but the whole start may take only 300ms
      --> Boxfile:3:29
       |
     3 | budget total="300ms" kernel="0.4s"
       |              ------- the whole start
       |                             ^^^^^^ impossible
       |
       = help: write `total="400ms"` or more, or lower `kernel`
    "#);
    assert_snapshot!(file_errors(r#"budget ready="1d" init="6s""#), @r#"
    error: `1d` is not a duration
      --> Boxfile:3:14
       |
     3 | budget ready="1d" init="6s"
       |              ^^^^ `ready` takes a duration
       |
       = help: a duration is a number and ms, s, m or h, down to the millisecond: "500ms", "1.5s", "10m"

    error: `init` is 6s, but the whole start may take only 5s
      --> Boxfile:3:24
       |
     3 | budget ready="1d" init="6s"
       |                        ^^^^ impossible
       |
       = help: add `total="6s"` or more (it is 5s by default), or lower `init`
    "#);
}

#[test]
fn a_variable_is_set_twice() {
    assert_snapshot!(agent_errors(r#"    env A="1" B="2"
    env A="1""#), @r#"
    error: `A` is given twice
      --> Boxfile:5:9
       |
     4 |     env A="1" B="2"
       |         - given first
     5 |     env A="1"
       |         ^ given again
       |
       = help: remove one of them
    "#);
}

#[test]
fn two_skills_of_one_name() {
    assert_snapshot!(file_errors(r#"skill "greet" path="a"
skill "greet" path="b""#), @r#"
    error: the skill `greet` is declared twice
      --> Boxfile:4:7
       |
     3 | skill "greet" path="a"
       |       ------- declared first
     4 | skill "greet" path="b"
       |       ^^^^^^^ declared again
       |
       = help: give one of them another name, or remove it
    "#);
}

#[test]
fn a_command_is_allowed_and_forbidden() {
    assert_snapshot!(file_errors(r#"sandbox "ci" {
    allow "git push *" "ls"
    ask "ls"
    forbid "rm *" "git push *" "git push *"
}"#), @r#"
    error: `ls` is in both `allow` and `ask`
      --> Boxfile:5:9
       |
     4 |     allow "git push *" "ls"
       |                        ---- in `allow`, which has no effect
     5 |     ask "ls"
       |         ^^^^ in `ask`, which takes precedence
       |
       = help: remove one of them

    error: `git push *` is in both `allow` and `forbid`
      --> Boxfile:6:19
       |
     4 |     allow "git push *" "ls"
       |           ------------ in `allow`, which has no effect
    ...
     6 |     forbid "rm *" "git push *" "git push *"
       |                   ^^^^^^^^^^^^ in `forbid`, which takes precedence
       |
       = help: remove one of them

    error: `git push *` is in both `allow` and `forbid`
      --> Boxfile:6:32
       |
     4 |     allow "git push *" "ls"
       |           ------------ in `allow`, which has no effect
    ...
     6 |     forbid "rm *" "git push *" "git push *"
       |                                ^^^^^^^^^^^^ in `forbid`, which takes precedence
       |
       = help: remove one of them
    "#);
}

#[test]
fn a_working_directory_in_a_read_only_system_is_refused() {
    for path in ["/", "/opt/app", "/usr/../etc", "/var/lib/dpkg"] {
        let errors = agent_errors(&format!("    system \"read-only\"\n    workdir \"{path}\""));
        let message = format!(
            "error: the working directory `{path}` is in the component's system, which is read-only\n"
        );
        assert!(errors.starts_with(&message), "{errors}");
    }
    // The mount of the other component does not make the directory writable.
    let lines = "business { image \"oci:j\"; system \"read-only\"; workdir \"/opt/app\"; }\n";
    let errors = file_errors(&format!("{lines}share \"s\" guest=\"/opt\" component=\"agent\""));
    assert!(errors.contains("which is read-only"), "{errors}");
}

#[test]
fn one_value_has_one_error() {
    assert_snapshot!(agent_errors(r#"    namespaces uts=#false hostname="a.b""#), @r#"
    error: a component without its own `uts` namespace cannot have its own host name
      --> Boxfile:4:36
       |
     4 |     namespaces uts=#false hostname="a.b"
       |                    ------ switched off
       |                                    ^^^^^ needs `uts=#true`
       |
       = help: remove `hostname`, or `uts`
    "#);
    assert_snapshot!(file_errors(r#"vm memory="1MiB""#), @r#"
    error: `memory` is 1MiB, which is less than 64MiB
      --> Boxfile:3:11
       |
     3 | vm memory="1MiB"
       |           ^^^^^^ must be from 64MiB to 64GiB
       |
       = help: write `memory="768MiB"`: the components may take 512MiB
    "#);
    assert_snapshot!(file_errors(r#"vm memory="1000B""#), @r#"
    error: `memory` is 1000B, which is less than 64MiB
      --> Boxfile:3:11
       |
     3 | vm memory="1000B"
       |           ^^^^^^^ must be from 64MiB to 64GiB
       |
       = help: write `memory="768MiB"`: the components may take 512MiB
    "#);
    assert_snapshot!(file_errors(r#"vm memory="100000001B""#), @r#"
    error: the components may take 512MiB, which leaves no memory for the VM itself
      --> Boxfile:3:11
       |
     2 | agent { image "oci:i"; }
       | ----- may take 512MiB by default
     3 | vm memory="100000001B"
       |           ^^^^^^^^^^^^ must be more than 512MiB
       |
       = help: write `memory="768MiB"`, or lower the limits
    "#);
}

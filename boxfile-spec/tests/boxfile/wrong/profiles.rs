//! Errors of profiles.

use insta::assert_snapshot;

use crate::{file_errors, read, shown};

const FILE: &str = "box b\nagent { image \"oci:i\"; }\n";

fn choose(profile: &str, lines: &str) -> String {
    let document = read(&[("Boxfile", &format!("{FILE}{lines}\n"))], Some(profile));
    let unknown = document.unknown_profile.clone().expect("there is no such profile");
    assert_eq!(document.found, []);
    let errors = document.into_result().expect_err("there is no model");
    assert_eq!(errors.as_slice()[0], unknown);
    format!("{}\n= help: {}", unknown.message(), unknown.help().unwrap_or_default())
}

#[test]
fn a_profile_that_the_file_does_not_have() {
    assert_snapshot!(choose("cl", "profile \"ci\" { vm cpus=1; }"), @"
    Boxfile has no profile `cl`
    = help: write `--profile ci`
    ");
    assert_snapshot!(choose("production", "profile \"ci\" { vm cpus=1; }\nprofile \"dev\" { vm cpus=1; }"), @"
    Boxfile has no profile `production`
    = help: its profiles are `ci`, `dev`
    ");
    assert_snapshot!(choose("ci", ""), @r#"
    Boxfile has no profile `ci`
    = help: leave `--profile` out, or declare `profile "ci"`
    "#);
}

#[test]
fn a_profile_that_may_be_in_a_base_that_is_not_read() {
    let document = read(&[("Boxfile", "extends \"nowhere\"")], Some("ci"));
    assert_eq!((document.unknown_profile, document.found.len()), (None, 1));
}

#[test]
fn two_errors_that_read_alike_are_two() {
    let toml = "box = \"b\"\nagent.image = \"oci:i\"\n[profile.a.skill.x]\n[profile.a.skill.y]\n";
    assert_snapshot!(shown(&read(&[("Boxfile.toml", toml)], None)), @r#"
    error: `skill` needs `path`
      --> Boxfile.toml:3:18
       |
     3 | [profile.a.skill.x]
       |                  ^ without `path`
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"

    error: `skill` needs `path`
      --> Boxfile.toml:4:18
       |
     4 | [profile.a.skill.y]
       |                  ^ without `path`
       |
       = help: for example
             [skill.greet]
             path = "skills/greet"
    "#);
}

#[test]
fn an_error_of_a_profile_that_is_not_chosen() {
    assert_snapshot!(file_errors(r#"profile "ci" {
    vm cpus=0
    budgte total="1s"
}"#), @r#"
    error: `cpus` is out of range
      --> Boxfile:4:13
       |
     4 |     vm cpus=0
       |             ^ must be from 1 to 16

    error: unknown declaration `budgte`
      --> Boxfile:5:5
       |
     5 |     budgte total="1s"
       |     ^^^^^^ no such declaration here
       |
       = help: did you mean `budget`?
    "#);
}

#[test]
fn an_error_of_the_file_is_reported_once_for_all_profiles() {
    assert_snapshot!(file_errors(r#"vm cpus=0
profile "a" { layout "split"; }
profile "b" { layout "merged"; }"#), @r#"
    error: `cpus` is out of range
      --> Boxfile:3:9
       |
     3 | vm cpus=0
       |         ^ must be from 1 to 16

    error: without `business` there is only one image, and nothing to merge
      --> Boxfile:5:15
       |
     5 | profile "b" { layout "merged"; }
       |               ^^^^^^ has no effect
       |
       = help: declare `business`, or remove the layout
    "#);
}

#[test]
fn errors_that_only_a_profile_has() {
    assert_snapshot!(file_errors(r#"budget total="1s" kernel="800ms"
profile "fast" {
    budget total="500ms"
}"#), @r#"
    error: `kernel` is 800ms, but the whole start may take only 500ms
      --> Boxfile:3:26
       |
     3 | budget total="1s" kernel="800ms"
       |                          ^^^^^^^ impossible
    ...
     5 |     budget total="500ms"
       |                  ------- the whole start
       |
       = help: write `total="800ms"` or more, or lower `kernel`
    "#);
}

#[test]
fn declarations_that_a_profile_cannot_have() {
    assert_snapshot!(file_errors(r#"profile "ci" {
    box "other"
    extends "base"
    profile "inner" { vm cpus=1; }
    limits memory="1GiB"
}"#), @r#"
    error: `box` does not belong here
      --> Boxfile:4:5
       |
     4 |     box "other"
       |     ^^^ not allowed here
       |
       = help: it is the same in every profile; write it outside of them

    error: `extends` does not belong here
      --> Boxfile:5:5
       |
     5 |     extends "base"
       |     ^^^^^^^ not allowed here
       |
       = help: it is the same in every profile; write it outside of them

    error: `profile` does not belong here
      --> Boxfile:6:5
       |
     6 |     profile "inner" { vm cpus=1; }
       |     ^^^^^^^ not allowed here
       |
       = help: profiles cannot be nested; write it beside this one

    error: `limits` does not belong here
      --> Boxfile:7:5
       |
     7 |     limits memory="1GiB"
       |     ^^^^^^ not allowed here
       |
       = help: it belongs inside `agent { … }` or `business { … }`
    "#);
}

#[test]
fn two_profiles_of_one_name() {
    assert_snapshot!(file_errors(r#"profile "ci" { vm cpus=1; }
profile "ci" { vm cpus=2; }"#), @r#"
    error: the profile `ci` is declared twice
      --> Boxfile:4:9
       |
     3 | profile "ci" { vm cpus=1; }
       |         ---- declared first
     4 | profile "ci" { vm cpus=2; }
       |         ^^^^ declared again
       |
       = help: give one of them another name, or remove it
    "#);
}

#[test]
fn a_profile_has_a_name_and_nothing_beside_it() {
    assert_snapshot!(file_errors("profile { vm cpus=1; }\nprofile \"CI\" cpus=1"), @r#"
    error: `profile` needs a name
      --> Boxfile:3:1
       |
     3 | profile { vm cpus=1; }
       | ^^^^^^^ without a name
       |
       = help: for example
             profile "ci" {
                 budget total="10s"
             }

    error: `CI` is not a valid name
      --> Boxfile:4:9
       |
     4 | profile "CI" cpus=1
       |         ^^^^ not a name
       |
       = help: a name has lower-case letters, digits and inner hyphens, at most 64: "my-agent"; write "ci"

    error: `profile` has no property `cpus`
      --> Boxfile:4:14
       |
     4 | profile "CI" cpus=1
       |              ^^^^ no such property
       |
       = help: remove it
    "#);
}

#[test]
fn too_many_profiles() {
    let profiles: String = (0..18).map(|index| format!("profile \"p{index}\"\n")).collect();
    assert_snapshot!(file_errors(&profiles), @r#"
    error: a Boxfile has at most 16 profiles
       --> Boxfile:19:1
        |
     19 | profile "p16"
        | ^^^^^^^ one too many
    "#);
}

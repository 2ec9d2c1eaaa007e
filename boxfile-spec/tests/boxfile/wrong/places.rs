//! Paths in the guest, and the components that see them.

use insta::assert_snapshot;

use crate::{errors, file_errors};

#[test]
fn a_missing_business_application_cannot_see_anything() {
    assert_snapshot!(file_errors("share \"a\" guest=\"/a\" component=\"business\"\nscratch \"b\" guest=\"/b\" size=\"1GiB\" component=\"business\"\nsecret \"C\" component=\"business\"\nsecret \"D\" component=\"both\""), @r#"
    error: the file declares no business application
      --> Boxfile:3:32
       |
     3 | share "a" guest="/a" component="business"
       |                                ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`

    error: the file declares no business application
      --> Boxfile:4:46
       |
     4 | scratch "b" guest="/b" size="1GiB" component="business"
       |                                              ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`

    error: the file declares no business application
      --> Boxfile:5:22
       |
     5 | secret "C" component="business"
       |                      ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`
    "#);
    // `busines` may be a misspelling of `business`, so a missing business application is not
    // reported.
    assert_snapshot!(file_errors("busines { image \"oci:i\"; }\nsecret \"C\" component=\"business\""), @r#"
    error: unknown declaration `busines`
      --> Boxfile:3:1
       |
     3 | busines { image "oci:i"; }
       | ^^^^^^^ no such declaration here
       |
       = help: did you mean `business`?
    "#);
}

#[test]
fn a_business_application_of_a_profile_exists_there_alone() {
    assert_snapshot!(file_errors("secret \"C\" component=\"business\"\nprofile \"p\" {\n    business { image \"oci:i\"; }\n}"), @r#"
    error: the file declares no business application
      --> Boxfile:3:22
       |
     3 | secret "C" component="business"
       |                      ^^^^^^^^^^ not declared
       |
       = help: write `component="agent"`, or declare `business { … }`
    "#);
}

#[test]
fn a_secret_has_a_place_of_its_own() {
    assert_snapshot!(file_errors("secret \"A\" path=\"/proc/a\"\nsecret \"B\" path=\"/cap\""), @r#"
    error: no secret can be at `/proc/a`
      --> Boxfile:3:17
       |
     3 | secret "A" path="/proc/a"
       |                 ^^^^^^^^^ the guest has its own `/proc`
       |
       = help: choose another path, for instance "/run/secrets/api-key"

    error: no secret can be at `/cap`
      --> Boxfile:4:17
       |
     4 | secret "B" path="/cap"
       |                 ^^^^^^ the guest has its own `/cap`
       |
       = help: choose another path, for instance "/run/secrets/api-key"
    "#);
    assert_snapshot!(file_errors("share \"data\" guest=\"/data\"\nsecret \"A\" path=\"/data/a\"\nsecret \"B\" path=\"/run/b\"\nsecret \"C\" path=\"/run/b\"\nsecret \"D\" path=\"/run/b/d\""), @r#"
    error: `/data/a` is inside `/data`, which is already in use
      --> Boxfile:4:17
       |
     3 | share "data" guest="/data"
       |                    ------- the place of this `share`
     4 | secret "A" path="/data/a"
       |                 ^^^^^^^^^ the place of this `secret`
       |
       = help: choose paths that are not inside one another

    error: `/run/b` is used twice
      --> Boxfile:6:17
       |
     5 | secret "B" path="/run/b"
       |                 -------- the place of this `secret`
     6 | secret "C" path="/run/b"
       |                 ^^^^^^^^ the place of this `secret`
       |
       = help: give one of them another path, or remove it

    error: `/run/b/d` is inside `/run/b`, which is a secret's file
      --> Boxfile:7:17
       |
     5 | secret "B" path="/run/b"
       |                 -------- the place of this `secret`
    ...
     7 | secret "D" path="/run/b/d"
       |                 ^^^^^^^^^^ the place of this `secret`
       |
       = help: choose paths that are not inside one another
    "#);
}

#[test]
fn secrets_of_two_components_may_have_one_place() {
    let text = "box b\nagent { image \"oci:i\"; }\nbusiness { image \"oci:i\"; }\nsecret \"A\" path=\"/run/a\" component=\"agent\"\nsecret \"B\" path=\"/run/a\" component=\"business\"\n";
    assert!(boxfile_spec::parse(text).is_ok());
    let text = text.replace("component=\"agent\"", "component=\"both\"");
    assert!(errors(&text).starts_with("error: `/run/a` is used twice"));
}

#[test]
fn a_refused_place_has_no_further_errors() {
    assert_snapshot!(file_errors("share \"a\" guest=\"/proc\"\nshare \"b\" guest=\"/proc/b\""), @r#"
    error: nothing can be mounted at `/proc`
      --> Boxfile:3:17
       |
     3 | share "a" guest="/proc"
       |                 ^^^^^^^ the guest has its own `/proc`
       |
       = help: choose another path, for instance "/a3s/workspace"

    error: nothing can be mounted at `/proc/b`
      --> Boxfile:4:17
       |
     4 | share "b" guest="/proc/b"
       |                 ^^^^^^^^^ the guest has its own `/proc`
       |
       = help: choose another path, for instance "/a3s/workspace"
    "#);
}

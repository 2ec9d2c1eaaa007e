//! Paths that lead out of the checkout.

use insta::assert_snapshot;

use boxfile_spec::Reach;
use diagnostics::Source;

use crate::{errors, file_errors, read, shown};

/// No base file outside of the checkout is opened, because messages show lines of the files that
/// are read.
#[test]
fn a_base_file_outside_is_not_read() {
    let over = |reach: &Reach, path: &str| {
        let text = format!("extends {path:?}\nbox b\nagent {{ image \"oci:i\"; }}\n");
        let source = Source::new("Boxfile", text);
        let never = |path: &str| panic!("{path} is read");
        shown(&boxfile_spec::read_within(source, None, reach, never))
    };
    let reason = "the checkout is /src, which has `.git`; `--checkout DIR` names a larger one";
    let reach = |up| Reach { up, reason: reason.to_owned() };
    assert_snapshot!(over(&reach(Some(1)), "../../etc/shadow"), @r#"
    error: a base file must be inside the checkout
      --> Boxfile:1:9
       |
     1 | extends "../../etc/shadow"
       |         ^^^^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the checkout, and write its path there; the checkout is /src, which has `.git`; `--checkout DIR` names a larger one
    "#);
    assert_snapshot!(over(&reach(Some(1)), "../a/../../b"), @r#"
    error: a base file must be inside the checkout
      --> Boxfile:1:9
       |
     1 | extends "../a/../../b"
       |         ^^^^^^^^^^^^^^ `..` after another name can lead out of it
       |
       = help: copy it into the checkout, and write its path there
    "#);
    assert_snapshot!(over(&reach(None), "base"), @r#"
    error: a base file must be inside the checkout
      --> Boxfile:1:9
       |
     1 | extends "base"
       |         ^^^^^^ there is no checkout here
       |
       = help: the checkout is /src, which has `.git`; `--checkout DIR` names a larger one
    "#);
}

#[test]
fn a_share_proposes_what_lies_below() {
    for (host, label) in [
        ("", "an empty path"),
        ("/srv", "an absolute path"),
        ("..", "`..` leads out of it"),
        ("../x", "`..` leads out of it"),
        ("a/../b", "`..` leads out of it"),
    ] {
        let output = file_errors(&format!("share \"s\" guest=\"/s\" host=\"{host}\""));
        assert!(output.contains(label) || host.is_empty() && output.contains("empty"), "{output}");
    }
}

#[test]
fn skills_env_files_and_programs_lie_in_the_checkout() {
    assert_snapshot!(file_errors(r#"skill "a" path="/a"
skill "b" path="../b"
skill "c" path="c/../c"
skills dir="../skills""#), @r#"
    error: a skill must be inside the checkout
      --> Boxfile:3:16
       |
     3 | skill "a" path="/a"
       |                ^^^^ an absolute path
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a skill must be inside the checkout
      --> Boxfile:4:16
       |
     4 | skill "b" path="../b"
       |                ^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a skill must be inside the checkout
      --> Boxfile:5:16
       |
     5 | skill "c" path="c/../c"
       |                ^^^^^^^^ `..` after another name can lead out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a directory of skills must be inside the checkout
      --> Boxfile:6:12
       |
     6 | skills dir="../skills"
       |            ^^^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`
    "#);
    assert_snapshot!(errors("box b\nagent {\n    binary \"/usr/bin/agent\"\n    env-file \"agent.env\" \"../secret.env\"\n}\n"), @r#"
    error: the agent's program must be inside the checkout
      --> Boxfile:3:12
       |
     3 |     binary "/usr/bin/agent"
       |            ^^^^^^^^^^^^^^^^ an absolute path
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a file of variables must be inside the checkout
      --> Boxfile:4:26
       |
     4 |     env-file "agent.env" "../secret.env"
       |                          ^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`
    "#);
    assert_snapshot!(file_errors(r#"share "data" guest="/data" host="/srv/data""#), @r#"
    error: a share proposes a directory below the one where the box is launched
      --> Boxfile:3:33
       |
     3 | share "data" guest="/data" host="/srv/data"
       |                                 ^^^^^^^^^^^ an absolute path
       |
       = help: leave `host` out: `boxlaunch run --share` then names the directory, which may be anywhere
    "#);
}

#[test]
fn the_checkout_reaches_up_so_far_and_no_farther() {
    let base =
        "agent { image \"oci:i\"; }\nskill \"a\" path=\"skills/a\"\nskill \"b\" path=\"../b\"\n";
    let document = read(
        &[
            (
                "Boxfile",
                "extends \"../base/base.Boxfile\"\nbox b\nskill \"c\" path=\"../c\"\nskill \"d\" path=\"../../d\"\n",
            ),
            ("../base/base.Boxfile", base),
        ],
        None,
    );
    assert_snapshot!(shown(&document), @r#"
    error: a skill must be inside the checkout
      --> Boxfile:4:16
       |
     4 | skill "d" path="../../d"
       |                ^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`
    "#);
}

#[test]
fn a_path_of_a_base_is_judged_from_the_directory_of_the_base() {
    let document = read(
        &[
            ("Boxfile", "extends \"../base.Boxfile\"\nbox b\n"),
            ("../base.Boxfile", "agent { image \"oci:i\"; }\nskill \"a\" path=\"../a\"\n"),
        ],
        None,
    );
    assert_snapshot!(shown(&document), @r#"
    error: a skill must be inside the checkout
      --> ../base.Boxfile:2:16
       |
     2 | skill "a" path="../a"
       |                ^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`
    "#);
}

#[test]
fn what_the_file_lacks_hides_no_path() {
    assert_snapshot!(errors("business { env-file \"/b.env\"; }\nskill \"a\" path=\"../a\"\nshare \"s\" guest=\"/s\"\nshare \"t\" guest=\"/s\"\n"), @r#"
    error: the file does not declare `box`
      --> Boxfile:1:1
       |
     1 | business { env-file "/b.env"; }
       | ^ in this file
       |
       = help: add `box "my-agent"`

    error: the file does not declare `agent`
      --> Boxfile:1:1
       |
     1 | business { env-file "/b.env"; }
       | ^ in this file
       |
       = help: add
             agent {
                 image "oci:images/agent"
             }

    error: `business` needs an `image`
      --> Boxfile:1:1
       |
     1 | business { env-file "/b.env"; }
       | ^^^^^^^^ without an `image`
       |
       = help: add `image "oci:images/business"`

    error: a file of variables must be inside the checkout
      --> Boxfile:1:21
       |
     1 | business { env-file "/b.env"; }
       |                     ^^^^^^^^ an absolute path
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: a skill must be inside the checkout
      --> Boxfile:2:16
       |
     2 | skill "a" path="../a"
       |                ^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`

    error: `/s` is used twice
      --> Boxfile:4:17
       |
     3 | share "s" guest="/s"
       |                 ---- the place of this `share`
     4 | share "t" guest="/s"
       |                 ^^^^ the place of this `share`
       |
       = help: give one of them another path, or remove it
    "#);
}

//! Tests of exports that `boxbuild` refuses, and of their messages.

use std::fs;

use crate::command::{export, shell, stderr_text};
use crate::made::Made;
use crate::specimens::small;

/// Runs an export that must fail, print nothing on stdout and leave no file. Returns its exit code and stderr.
fn refused(made: &Made, args: &[&str]) -> String {
    let before = made.names();
    let output = export(&made.path(""), args);
    assert_eq!(output.stdout, b"");
    assert_eq!(made.names(), before);
    format!("{}: {}", output.status.code().unwrap(), stderr_text(&output))
}

#[test]
fn what_cannot_be_exported() {
    let made = Made::of(&small());
    fs::create_dir(made.path("empty")).unwrap();
    let message = |args: &[&str]| refused(&made, args);
    insta::assert_snapshot!(message(&["nothing.box"]), @"
    1: error: there is no nothing.box
      = help: name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`
    ");
    insta::assert_snapshot!(message(&["./empty"]), @"
    1: error: ./empty is not a box: it has no file `oci-layout`
      = help: name a box by its directory, such as NAME.box, or by its name: `boxlaunch images`
    ");
    insta::assert_snapshot!(message(&["made.box", "--format", "oci"]), @"
    1: error: the box has an agent and a business application, and an OCI image holds one of them
      = help: choose one with `--component agent` or `--component business`
    ");
    insta::assert_snapshot!(message(&["made.box", "--component", "agent"]), @"
    2: error: `--format erofs` cannot be used with `--component`
      = help: write `--format tar --component agent`
    ");
    insta::assert_snapshot!(message(&["made.box", "--format", "dir", "-o", "-"]), @"
    2: error: a directory cannot go to standard output
      = help: write `--format tar -o -`
    ");
    insta::assert_snapshot!(message(&["made.box", "--format", "tar", "--no-owner"]), @"
    2: error: `--no-owner` can be used only with `--format dir`
      = help: write `--format dir --no-owner`, or leave out `--no-owner`
    ");
    let nowhere =
        message(&["made.box", "--format", "tar", "-o", "none/there", "--component", "agent"]);
    insta::assert_snapshot!(nowhere, @"
    1: error: cannot write none/there: No such file or directory (os error 2)
    ");
    let below_a_file = ["made.box", "--component", "agent", "-o", "program/there", "--format"];
    for form in ["tar", "dir", "oci"] {
        let args = [&below_a_file[..], &[form]].concat();
        let message = message(&args);
        assert_eq!(
            message.trim_end(),
            "1: error: cannot write program/there: Not a directory (os error 20)\n  = help: correct the path: a part of it is a file and not a directory"
        );
    }
    for name in ["agent.tar.gz", "agent.tgz"] {
        let args = ["made.box", "--format", "oci", "--component", "agent", "-o", name];
        insta::allow_duplicates! {
            insta::assert_snapshot!(message(&args).replace(name, "FILE"), @"
            2: error: an OCI image is not written as a compressed archive
              = help: write `--output - | gzip >FILE`
            ");
        }
    }
}

#[test]
fn a_refusal_as_data() {
    let made = Made::of(&small());
    let output = export(&made.path(""), &["nothing.box", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let message = report["errors"][0]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no nothing.box"), "{message}");
    assert_eq!((output.status.code(), stderr_text(&output)), (Some(1), String::new()));
}

#[test]
fn what_is_there_is_left_alone() {
    let made = Made::of(&small());
    fs::create_dir(made.path("there")).unwrap();
    std::os::unix::fs::symlink("nowhere", made.path("dangling")).unwrap();
    for form in ["erofs", "tar", "dir", "oci"] {
        for name in ["there", "there/", "dangling", "program"] {
            let mut args = vec!["made.box", "--format", form, "-o", name];
            args.extend(["--component", "agent"].iter().filter(|_| form != "erofs"));
            let message = refused(&made, &args);
            assert!(
                message.contains("exists\n  = help: name another path with --output, or remove it"),
                "{message}"
            );
        }
    }
    assert_eq!(fs::read_dir(made.path("there")).unwrap().count(), 0);
}

#[test]
fn a_box_without_the_component() {
    let mut specimen = small();
    specimen.boxfile = "box \"alone\"\nagent { image \"oci:agent\"; }\n";
    let made = Made::of(&specimen);
    let message = refused(&made, &["made.box", "--format", "dir", "--component", "business"]);
    insta::assert_snapshot!(message, @r"
    1: error: the box made.box has no business component
      = help: leave out `--component`, or name the other
    ");
    let message = export(&made.path(""), &["made.box", "--format", "oci"]);
    assert!(message.status.success(), "the only component needs no name");
    assert!(made.path("made-agent.oci/index.json").is_file());
}

#[test]
fn standard_output_that_is_full() {
    let made = Made::of(&small());
    let script = "\"$0\" export made.box --format tar -o - > /dev/full";
    let output = shell(&made.path(""), script, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    insta::assert_snapshot!(stderr_text(&output), @"error: cannot write the output: No space left on device (os error 28)");
}

#[test]
fn nothing_is_exported_into_a_box() {
    let made = Made::of(&small());
    for form in ["erofs", "tar", "dir"] {
        for output in ["made.box/blobs/inner", "made.box/none/inner"] {
            let message = refused(&made, &["made.box", "--format", form, "-o", output]);
            assert!(message.starts_with(&format!("1: error: {output} is in ")), "{message}");
            assert!(!made.path("made.box/blobs/inner").exists());
        }
    }
}

//! Tests of `--annotations github`.

use std::process::Command;

use crate::checkout::{BOXFILE, Checkout, Ran};

/// A Boxfile with an error, whose line a workflow could read as a command.
const HOSTILE: &str = "box \"##[add-mask]x\"\nagent { image \"oci:images/agent\"; }\n";

/// Returns a command that a workflow runs in a directory of the repository.
fn in_workflow(checkout: &Checkout, args: &[&str]) -> Command {
    let mut command = checkout.boxbuild(args);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_WORKSPACE", checkout.root());
    command
}

/// Returns the lines that a workflow reads as commands.
fn commands(notes: &str) -> Vec<&str> {
    let is_command = |it: &&str| it.trim_start().starts_with("::") || it.contains("##[");
    notes.lines().filter(is_command).collect()
}

#[test]
fn an_error_is_shown_at_its_line_from_the_root_of_the_repository() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "vm cpus=1", "vm cpu=1");
    checkout.write("below/other", "");
    for (command, code) in [("check", 1), ("build", 1), ("lock", 1)] {
        let mut run = in_workflow(&checkout, &[command, "--annotations", "github"]);
        let ran = Ran::of(run.current_dir(checkout.path("below")));
        assert_eq!((ran.code, ran.result.as_str()), (code, ""), "{command}");
        assert!(ran.notes.contains("--> ../Boxfile:12:4"), "{}", ran.notes);
        let [annotation] = commands(&ran.notes)[..] else { panic!("{}", ran.notes) };
        insta::allow_duplicates! {
            insta::assert_snapshot!(annotation, @"::error title=boxfile-invalid,file=Boxfile,line=12,endLine=12,col=4,endColumn=7::`vm` has no property `cpu`%0Ahelp: did you mean `cpus`?");
        }
    }
}

#[test]
fn json_stays_json_and_warnings_are_annotations_too() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "vm cpus=1", "network \"shared\"\nvm cpus=1");
    let args = ["check", "--json", "--annotations=github"];
    let ran = Ran::of(&mut in_workflow(&checkout, &args));
    assert_eq!((ran.code, ran.json()["warnings"].as_array().unwrap().len()), (0, 1));
    insta::assert_snapshot!(ran.notes, @"::warning title=boxbuild,file=Boxfile,line=12,endLine=12,col=9,endColumn=17::a box gets the network of its host only with an option of `boxlaunch run`%0Ahelp: run the box with `boxlaunch run --network shared`; to reach some hosts on the internet, `filtered` needs no option");
    let quiet = Ran::of(in_workflow(&checkout, &args).arg("--quiet"));
    assert_eq!((quiet.code, quiet.notes.as_str()), (0, ""));
    let plain = Ran::of(&mut in_workflow(&checkout, &["check"]));
    assert!(plain.notes.starts_with("warning: ") && commands(&plain.notes).is_empty());
}

#[test]
fn no_text_of_a_boxfile_is_a_command() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", HOSTILE);
    let elsewhere = checkout.run(&["check"]);
    assert!(elsewhere.notes.contains("1 | box \"##[add-mask]x\""), "{}", elsewhere.notes);
    let ran = Ran::of(&mut in_workflow(&checkout, &["check"]));
    assert!(ran.notes.contains("1 | box \"# #[add-mask]x\""), "{}", ran.notes);
    assert_eq!(commands(&ran.notes), [""; 0]);
    // A file whose name is a command.
    let name = "::add-mask::x\n::add-mask::y";
    checkout.write("Boxfile", BOXFILE);
    let args = ["check", "--annotations", "github", "-f", name];
    let ran = Ran::of(&mut in_workflow(&checkout, &args));
    assert_eq!(ran.code, 1);
    let all = commands(&ran.notes);
    assert!(all.len() == 1 && all[0].starts_with("::error title="), "{all:?}");
    assert_eq!(checkout.run(&["check", "--annotations", "gitlab"]).code, 2);
}

#[test]
fn no_word_of_the_command_line_is_a_command() {
    let checkout = Checkout::new();
    for args in
        [&["build", "--push", "a\n::warning::x"][..], &["::warning::x"], &["ls", "--x##[y]"]]
    {
        let ran = Ran::of(&mut in_workflow(&checkout, args));
        assert_eq!((ran.code, commands(&ran.notes)), (2, Vec::new()), "{}", ran.notes);
        assert!(ran.notes.starts_with("error: "), "{}", ran.notes);
    }
}

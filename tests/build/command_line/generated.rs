//! Tests of the documents that `boxbuild` prints: help, schema, completions, manual.

use std::fs::File;

use super::COMMANDS;
use crate::checkout::{Checkout, Ran};

#[test]
fn every_command_has_help_with_examples() {
    let checkout = Checkout::new();
    let all = checkout.result(&["--help"]);
    for command in COMMANDS {
        assert!(all.contains(&format!("\n  {command} ")), "{command} in {all}");
        let help = checkout.result(&[command, "--help"]);
        let (_, examples) = help.split_once("Examples:\n").expect(command);
        assert!(examples.lines().all(|line| line.starts_with("  boxbuild ")), "{examples}");
        assert!(examples.contains(&format!("boxbuild {command}")), "{examples}");
    }
    let listed = all.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(listed.lines().count(), COMMANDS.len() + 1, "all of these, and `help`");
}

#[test]
fn the_schema_is_json() {
    let checkout = Checkout::new();
    let schema = checkout.result(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(checkout.result(&["schema", "--reference"]).contains("## "));
}

#[test]
fn completions_and_manuals_know_every_command() {
    let checkout = Checkout::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(checkout.result(&["completions", shell]).contains("BOXBUILD_COMPLETE"), "{shell}");
        let mut asked = checkout.boxbuild(&["--", "boxbuild", ""]);
        asked.env("BOXBUILD_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "1");
        let offered = Ran::of(&mut asked).result;
        assert!(COMMANDS.iter().all(|it| offered.contains(it)), "{shell}: {offered}");
    }
    assert_eq!(checkout.run(&["completions", "csh"]).code, 2);
    let page = checkout.result(&["man"]);
    assert!(page.contains(".TH boxbuild 1"), "{page}");
    assert!(COMMANDS.iter().all(|it| page.contains(&format!("boxbuild\\-{it}(1)"))), "{page}");
    checkout.result(&["man", "--output", "share/man1"]);
    for command in COMMANDS {
        let page = checkout.read(&format!("share/man1/boxbuild-{command}.1"));
        assert!(page.contains(&format!(".SH EXAMPLES\n.nf\nboxbuild {command}")), "{page}");
    }
}

#[test]
fn a_result_that_is_lost_is_a_failure() {
    let checkout = Checkout::new();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let commands = [&["schema"][..], &["man"], &["completions", "bash"], &["build"], &["--help"]];
    for args in commands {
        let output = checkout.boxbuild(args).stdout(full()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert!(
            errors.contains("error: cannot write to standard output: No space left"),
            "{errors}"
        );
    }
}

#[test]
fn a_wrong_command_line() {
    let checkout = Checkout::new();
    for args in [&[][..], &["bild"], &["build", "extra"], &["check", "--lockd"]] {
        let ran = checkout.run(args);
        assert_eq!((ran.code, ran.result.as_str()), (2, ""), "{args:?}");
        assert!(ran.notes.contains("Usage: boxbuild"), "{}", ran.notes);
    }
    let notes = checkout.run(&["run", "x.box"]).notes;
    assert!(notes.contains("`boxlaunch run BOX`"), "{notes}");
    let ran = checkout.run(&["--version"]);
    assert!(ran.result.starts_with("boxbuild "), "{}", ran.result);
}

//! Tests of a command's working directory, of the Boxfile that it finds, and of how much it prints.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::checkout::{Checkout, Ran};

/// Returns a `boxbuild` command in a directory of the checkout, which is created.
fn below(checkout: &Checkout, directory: &str, args: &[&str]) -> Command {
    let directory = checkout.path(directory);
    fs::create_dir_all(&directory).unwrap();
    let mut command = checkout.boxbuild(args);
    command.current_dir(directory);
    command
}

#[test]
fn a_directory_is_entered_first() {
    let checkout = Checkout::new();
    for args in [["-C", "..", "check"], ["check", "-C", ".."]] {
        let ran = Ran::of(&mut below(&checkout, "elsewhere", &args));
        assert_eq!((ran.code, ran.notes.as_str()), (0, "Boxfile: ok\n"));
    }
    let output = checkout.fails(&["-C", "nowhere", "check"]);
    assert!(output.starts_with("error: cannot change to nowhere: No such file"), "{output}");
    let ran = checkout.run(&["check", "--json", "-C", "nowhere"]);
    assert_eq!((ran.code, &ran.json()["errors"][0]["code"]), (1, &"io".into()));
}

#[test]
fn the_boxfile_of_a_directory_above_is_used_and_named() {
    let checkout = Checkout::new();
    let ran = Ran::of(&mut below(&checkout, "a/b", &["build"]));
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert!(ran.notes.starts_with("note: using ../../Boxfile\n"), "{}", ran.notes);
    assert!(checkout.path("Boxfile.lock").is_file(), "the lock is beside the Boxfile");
    assert!(checkout.path("a/b/test.box").is_dir(), "the box is where the command ran");
    assert_eq!(checkout.result(&["build", "--locked"]), ran.result);
    let quiet = Ran::of(&mut below(&checkout, "a/b", &["-q", "check"]));
    assert_eq!((quiet.code, quiet.notes.as_str()), (0, ""));
}

#[test]
fn a_boxfile_above_that_others_could_have_put_there_is_refused() {
    let checkout = Checkout::new();
    let root = fs::metadata(checkout.root()).unwrap().permissions();
    fs::set_permissions(checkout.root(), fs::Permissions::from_mode(0o1777)).unwrap();
    let refused = Ran::of(&mut below(&checkout, "a", &["check"]));
    let named = Ran::of(&mut below(&checkout, "a", &["check", "-f", "../Boxfile"]));
    let here = checkout.run(&["check"]);
    fs::set_permissions(checkout.root(), root).unwrap();
    insta::assert_snapshot!(refused.notes, @"
    error: ../Boxfile is not used unless it is named: everybody can write to ..
      = help: if you trust it, name it with `-f ../Boxfile`
    ");
    assert_eq!((refused.code, named.code, here.code), (1, 0, 0));
}

#[test]
fn the_home_is_the_last_directory_that_is_searched() {
    let checkout = Checkout::new();
    let mut command = below(&checkout, "home/project", &["check"]);
    let ran = Ran::of(command.env("HOME", checkout.path("home")));
    assert_eq!(ran.code, 1);
    assert!(ran.notes.starts_with("error: there is no Boxfile in this directory"), "{}", ran.notes);
}

#[test]
fn quiet_and_verbose() {
    let checkout = Checkout::new();
    let ran = checkout.run(&["build", "--quiet"]);
    assert_eq!((ran.code, ran.notes.as_str()), (0, ""));
    assert!(ran.result.starts_with("sha256:"), "{}", ran.result);
    checkout.image("agent", &crate::checkout::agent_with("another"));
    let notes = checkout.notes(&["update", "agent", "-v"]);
    for title in ["Boxfile: Boxfile\n", "store: ", "init: ", "kernel: ", "resolving images"] {
        assert!(notes.lines().any(|it| format!("{it}\n").starts_with(title)), "{title} in {notes}");
    }
    let notes = checkout.notes(&["build", "-v"]);
    for title in
        ["lock: Boxfile.lock", "reading images", "composing the root: ", "writing the rootfs: "]
    {
        assert!(notes.lines().any(|it| it.starts_with(title)), "{title} in {notes}");
    }
    assert_eq!(checkout.run(&["check", "-q", "-v"]).code, 2);
    let output = checkout.fails(&["check", "-q", "-f", "nofile"]);
    assert!(output.starts_with("error: cannot read"), "{output}");
}

#[test]
fn colours_are_for_those_who_ask() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", "box 1\n");
    let escapes = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = checkout.boxbuild(&[&["check"], args].concat());
        Ran::of(command.envs(variables.iter().copied())).notes.contains("\u{1b}[")
    };
    assert!(!escapes(&[], &[]), "in a pipe");
    assert!(escapes(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(escapes(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&["--color=never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!escapes(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert_eq!(checkout.run(&["check", "--color", "some"]).code, 2);
}

#[test]
fn whether_the_lock_would_change() {
    let checkout = Checkout::new();
    let check = || checkout.run(&["lock", "--check"]);
    insta::assert_snapshot!(check().notes, @"
    error: there is no Boxfile.lock
      = help: run `boxbuild lock`, and check the lock in
    ");
    assert!(!checkout.path("Boxfile.lock").exists());
    checkout.result(&["lock"]);
    assert_eq!((check().code, check().notes.as_str()), (0, "Boxfile.lock is up to date\n"));
    checkout.write("skills/greet/more", "changed");
    let before = checkout.read("Boxfile.lock");
    let ran = check();
    assert_eq!((ran.code, ran.result.as_str()), (3, ""));
    assert!(
        ran.notes.starts_with("error: Boxfile.lock is out of date\n  skill:greet: locked"),
        "{}",
        ran.notes
    );
    let data = checkout.run(&["lock", "--check", "--json"]);
    assert_eq!(
        (data.code, &data.json()["errors"][0]["entries"][0]["name"]),
        (3, &"skill:greet".into())
    );
    assert_eq!(checkout.read("Boxfile.lock"), before);
    checkout.write("Boxfile.lock", "no lock");
    assert_eq!(check().code, 3);
}

#[test]
fn nothing_is_fetched_for_local_images() {
    let checkout = Checkout::new();
    let ran = checkout.run(&["fetch", "--locked"]);
    assert_eq!((ran.code, ran.result.as_str()), (3, ""), "{}", ran.notes);
    let ran = checkout.run(&["fetch"]);
    assert_eq!((ran.code, ran.result.as_str()), (0, ""), "{}", ran.notes);
    insta::assert_snapshot!(ran.notes, @"
    wrote Boxfile.lock
    every layer is in the store, or in an image on this host
    ");
    let report = checkout.run(&["fetch", "--locked", "--json"]).json();
    assert_eq!((&report["layers"], &report["written"]), (&serde_json::json!([]), &false.into()));
    checkout.built(&["--locked", "--offline"]);
}

#[test]
fn an_empty_variable_is_ignored_and_no_variable_is_in_a_usage() {
    let checkout = Checkout::new();
    let mut check = checkout.boxbuild(&["check"]);
    let empty = ["BOXBUILD_INIT", "BOXBUILD_KERNEL", "BOXBUILD_REGISTRIES"].map(|it| (it, ""));
    assert_eq!(Ran::of(check.envs(empty)).notes, "Boxfile: ok\n");
    let mut wrong = checkout.boxbuild(&["check", "--locked"]);
    wrong.env("BOXBUILD_INIT", "init").env("BOXBUILD_KERNEL", "kernel");
    insta::assert_snapshot!(Ran::of(&mut wrong).notes, @"
    error: the following required arguments were not provided:
      --images

    Usage: boxbuild check --images --locked

    For more information, try '--help'.
    ");
}

#[test]
fn a_path_after_the_command_is_answered_with_how_a_boxfile_is_named() {
    let ran = Checkout::new().run(&["build", "."]);
    assert_eq!(ran.code, 2);
    assert!(ran.notes.contains("`-f PATH` names another"), "{}", ran.notes);
}

//! The options of every command: colours, and how much is printed.

use testkit::damage;
use testkit::test_box::config;

use crate::{Ended, Scene, boxlaunch, ended};

const RED: &str = "\u{1b}[1m\u{1b}[91merror\u{1b}[0m\u{1b}[1m: ";

#[test]
fn colours_are_for_those_who_ask() {
    let output = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = boxlaunch(&[&["inspect", "/no.box"], args].concat());
        ended({
            command.envs(variables.iter().copied());
            command
        })
        .stderr
    };
    let plain = "error: there is no /no.box\n  = help: name a box by its directory, such as \
                 NAME.box, or by its name: `boxlaunch images`\n";
    assert_eq!(output(&[], &[]), plain, "in a pipe");
    assert!(output(&["--color=always"], &[("NO_COLOR", "1")]).starts_with(RED));
    assert!(output(&[], &[("CLICOLOR_FORCE", "1")]).starts_with(RED));
    assert_eq!(output(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]), plain);
    assert_eq!(output(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    let help = ended(boxlaunch(&["--color=always", "--help"])).stdout;
    assert!(help.contains("\u{1b}["), "{help}");
}

#[test]
fn every_command_colours_its_errors() {
    let scene = Scene::new(&config());
    damage::flip(&scene.made, &scene.made.blob(box_contract::manifest::KERNEL_TYPE));
    let verified = scene.run(&["verify", "--color=always"]);
    assert!(verified.stderr.starts_with(RED), "{}", verified.stderr);
    assert!(!verified.stdout.contains('\u{1b}'), "the result has none: {}", verified.stdout);
    let mut config = config();
    config.plan.business = None;
    let run = Scene::new(&config).run_true(&["run", "--component", "business", "--color=always"]);
    assert!(run.stderr.starts_with(RED), "{}", run.stderr);
    let usage = ended(boxlaunch(&["run", "--color=always"]));
    assert!(usage.stderr.contains("\u{1b}["), "{}", usage.stderr);
}

#[test]
fn a_quiet_verification_prints_what_is_wrong() {
    let scene = Scene::new(&config());
    let silent = Ended { code: Some(0), stdout: String::new(), stderr: String::new() };
    assert_eq!(scene.run(&["verify", "-q"]), silent);
    let digest = scene.made.manifest().layers[0].digest;
    damage::flip(&scene.made, &scene.made.blob_path(&digest));
    let wrong = scene.run(&["-q", "verify"]);
    assert_eq!((wrong.code, wrong.stdout), (Some(5), format!("metadata DIFFERS  {digest}\n")));
    assert!(wrong.stderr.starts_with("error: "), "{}", wrong.stderr);
}

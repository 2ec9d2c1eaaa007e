//! Boxes from strangers: every command refuses a damaged one, and no text of a box controls the terminal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use testkit::damage;
use testkit::test_box::config;

use crate::{Scene, boxlaunch, ended};

const COMMANDS: [&str; 3] = ["inspect", "verify", "run"];

#[test]
fn every_command_refuses_every_damaged_box() {
    for damage in damage::ALL {
        let scene = Scene::new(&config());
        (damage.apply)(&scene.made);
        for command in COMMANDS {
            let ended = scene.run(&[command]);
            let what = format!("{command}: {}: {}", damage.name, ended.stderr);
            assert!(matches!(ended.code, Some(1 | 5)), "{what}");
            assert!(ended.stderr.contains(damage.says), "{what}");
            // If only a blob is missing or damaged, `verify` also prints the report about the other blobs.
            let is_report = command == "verify" && ended.stdout.starts_with("manifest ok");
            assert!(is_report || ended.stdout.is_empty(), "{what}: {}", ended.stdout);
            damage::assert_one_harmless_error(&ended.stderr, &what);
        }
    }
}

#[test]
fn a_box_may_be_at_any_path() {
    for name in [&b"a b.box"[..], b"new\nline.box", b"\xff\x1b[31m.box"] {
        let scene = Scene::new(&config());
        scene.trust_kvm();
        let path = scene.state.path().join(OsStr::from_bytes(name));
        symlink(scene.made.path(), &path).unwrap();
        let run = |command: &str| {
            let mut command = boxlaunch(&[command]);
            command.arg(&path).env("BOXLAUNCH_STATE", scene.state.path());
            ended(command)
        };
        for command in ["inspect", "verify"] {
            assert_eq!((run(command).code, run(command).stderr), (Some(0), String::new()));
        }
        let kernel = scene.made.blob(box_contract::manifest::KERNEL_TYPE);
        std::fs::write(kernel, "short").unwrap();
        for command in ["verify", "run"] {
            let ended = run(command);
            assert_eq!(ended.code, Some(5), "{}", ended.stderr);
            damage::assert_one_harmless_error(&ended.stderr, command);
        }
    }
}

#[test]
fn no_text_of_a_box_reaches_a_terminal_as_it_is() {
    for (place, forge) in damage::FORGED {
        let scene = Scene::new(&config());
        forge(&scene.made, &damage::hostile_text());
        for command in COMMANDS {
            let ended = scene.run(&[command]);
            let what = format!("{command}: {place}");
            assert!(matches!(ended.code, Some(1 | 5)), "{what}: {}", ended.stderr);
            damage::assert_one_harmless_error(&ended.stderr, &what);
        }
    }
}

#[test]
fn a_box_that_opens_is_shown_in_lines_of_ours_alone() {
    let lines = |name: &str| {
        let mut config = config();
        // The text is put into the kernel's version, because a box with an invalid name does not open.
        config.kernel_version = name.to_owned();
        // An argument must not contain a NUL byte, because the kernel cannot pass one on to a program.
        config.plan.agent.argv = vec![name.replace('\0', "")];
        let scene = Scene::new(&config);
        for args in [&["inspect"][..], &["inspect", "--json"], &["verify"], &["verify", "--json"]] {
            let ended = scene.run(args);
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
            let harmless = safe_text::shown_lines(&ended.stdout);
            assert_eq!(harmless, ended.stdout, "{args:?}");
        }
        let json: serde_json::Value =
            serde_json::from_str(&scene.run(&["inspect", "--json"]).stdout).unwrap();
        assert_eq!(json["kernel_version"], name, "as data, it is what it is");
        scene.run(&["inspect"]).stdout.lines().count()
    };
    assert_eq!(lines(&damage::hostile_text()), lines("plain"));
}

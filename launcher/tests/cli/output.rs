//! The output of boxlaunch if its reader pauses, stops reading or closes the pipe, or if the disk is full.

use std::fs::File;
use std::io::{PipeReader, Read, Write, pipe};
use std::process::{Child, Command, Stdio};

use box_contract::CapPlan;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Ended, Scene, boxlaunch, ended};
use testkit::test_box::config;

const FULL: &str = "cannot write to standard output: No space left on device";

/// Returns a box whose refusal is far longer than the capacity of a pipe.
fn wordy() -> Scene {
    let mut config = config();
    config.plan.caps = vec![CapPlan::Payments; 8000];
    Scene::new(&config)
}

/// Starts a run that prints a long error, and reads only its first six bytes.
fn stuck(scene: &Scene) -> (Child, PipeReader) {
    let (mut reader, writer) = pipe().unwrap();
    let mut command = scene.command(&["run"]);
    let child = command.stderr(writer).spawn().unwrap();
    // `command` still has a copy of the writing end, which would keep the pipe open.
    drop(command);
    let mut start = [0; 6];
    reader.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"error:");
    (child, reader)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

fn to_full(mut command: Command) -> Ended {
    command.stdout(File::options().write(true).open("/dev/full").unwrap());
    ended(command)
}

fn to_nobody(mut command: Command) -> Ended {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    command.stdout(Stdio::from(writer));
    ended(command)
}

#[test]
fn a_signal_ends_a_run_whose_output_is_not_read() {
    let scene = wordy();
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130), (Signal::SIGHUP, 129)] {
        let (mut child, _reader) = stuck(&scene);
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_reader_that_comes_back_gets_everything() {
    let (mut child, mut reader) = stuck(&wordy());
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().count(), 8002);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let scene = Scene::new(&config());
    let commands = [
        scene.command(&["inspect"]),
        scene.command(&["inspect", "--json"]),
        scene.command(&["verify"]),
        boxlaunch(&["--help"]),
        boxlaunch(&["--version"]),
        boxlaunch(&["run", "--help"]),
    ];
    for command in commands {
        let what = format!("{command:?}");
        let ended = to_full(command);
        assert_eq!(ended.code, Some(1), "{what}");
        assert!(ended.stderr.starts_with(&format!("error: {FULL}")), "{what}: {}", ended.stderr);
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let scene = Scene::new(&config());
    let silent = Ended { code: Some(0), stdout: String::new(), stderr: String::new() };
    for command in [scene.command(&["inspect"]), scene.command(&["verify"]), boxlaunch(&["--help"])]
    {
        let what = format!("{command:?}");
        assert_eq!(to_nobody(command), silent, "{what}");
    }
}

#[test]
fn a_difference_sets_the_exit_code_even_without_a_reader() {
    let scene = Scene::new(&config());
    let path = scene.made.blob(box_contract::manifest::INIT_TYPE);
    File::options().append(true).open(path).unwrap().write_all(b"!").unwrap();
    assert_eq!(to_nobody(scene.command(&["verify"])).code, Some(5));
}

#[test]
fn manuals_know_every_command() {
    let commands = ["run", "verify", "inspect", "completions", "man"];
    let page = ended(boxlaunch(&["man"]));
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(commands.iter().all(|it| page.stdout.contains(&format!("boxlaunch\\-{it}(1)"))));
    assert!(page.stdout.contains("BOXLAUNCH_STATE"), "{}", page.stdout);
}

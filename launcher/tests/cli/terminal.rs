//! `boxlaunch logs`: the output of a program in a box, on a terminal and in a pipe.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use box_contract::wire::{GuestMessage, Output, ProgramId, Stream};
use serde_json::json;
use tempfile::TempDir;

use crate::{boxlaunch, ended};

/// Sets the title and the clipboard, erases the screen, forges a line of boxlaunch, and sets a colour without resetting it.
const WRITTEN: &[u8] =
    b"\x1b]0;pwned\x07\x1b]52;c;eA==\x07\x1b[2J\x1b[H10%\rboxlaunch: verified\r\n\x1b[31mred\n\xc2\x9b2Jend\n";
const SHOWN: &str = "\u{fffd}]0;pwned\u{fffd}\u{fffd}]52;c;eA==\u{fffd}\u{fffd}[2J\u{fffd}[H10%\n\
                     boxlaunch: verified\n\u{1b}[31mred\u{1b}[0m\n\u{fffd}2Jend\n";

/// Returns a state directory with the record and the log of a box that ran out of memory and has ended.
fn written() -> TempDir {
    let state = tempfile::tempdir().unwrap();
    let directory = state.path().join("boxes/one");
    fs::create_dir_all(&directory).unwrap();
    fs::create_dir(state.path().join("boxes/.locks")).unwrap();
    let record = json!({
        "name": "one", "box": format!("sha256:{}", "0".repeat(64)), "directory": "/one.box",
        "components": ["agent"], "vm": { "cpus": 1, "memory-mib": 256 }, "state": "ended",
        "supervisor": 1, "runtime": "/none", "created_ms": 1, "ended_ms": 1, "remove": false,
        "oom_killed": ["agent"], "memory_limits": { "agent": 1_u64 << 26 },
    });
    fs::write(directory.join("record.json"), record.to_string()).unwrap();
    let mut entry = 1_u64.to_le_bytes().to_vec();
    let output = Output { id: ProgramId::AGENT, stream: Stream::Stdout, data: WRITTEN.to_vec() };
    GuestMessage::Output(output).write(&mut entry).unwrap();
    fs::write(directory.join("agent.log"), entry).unwrap();
    state
}

/// Runs `boxlaunch logs one` with both output streams on a terminal of script(1). Returns what the terminal receives.
fn on_a_terminal(state: &Path, options: &str) -> Vec<u8> {
    let program = env!("CARGO_BIN_EXE_boxlaunch");
    let mut script = Command::new("script");
    script.args(["-qec", &format!("stty -onlcr; '{program}' logs {options} one"), "/dev/null"]);
    script.env("BOXLAUNCH_STATE", state).stdin(Stdio::null());
    script.output().unwrap().stdout
}

#[test]
fn a_terminal_gets_text_and_colours_alone_unless_all_is_asked_for() {
    let state = written();
    let shown = String::from_utf8(on_a_terminal(state.path(), "")).unwrap();
    assert!(shown.starts_with(SHOWN), "{shown:?}");
    let raw = on_a_terminal(state.path(), "--raw");
    assert!(raw.starts_with(WRITTEN), "{raw:?}");
}

#[test]
fn a_pipe_gets_every_byte_and_a_lack_of_memory_is_named() {
    let state = written();
    let mut logs = boxlaunch(&["logs", "one"]);
    logs.env("BOXLAUNCH_STATE", state.path());
    let output = logs.output().unwrap();
    assert_eq!(output.stdout, WRITTEN);
    insta::assert_snapshot!(String::from_utf8(output.stderr).unwrap(), @r#"boxlaunch: out of memory: the kernel has ended a process of the agent component, which may take 64.0 MiB; `limits memory="128MiB"` in `agent` of its Boxfile gives it more, and --memory does not"#);
    let mut json = boxlaunch(&["logs", "--json", "one"]);
    json.env("BOXLAUNCH_STATE", state.path());
    let json = ended(json);
    assert!(json.stderr.is_empty() && !json.stdout.contains('\u{1b}'), "{json:?}");
}

//! `boxlaunch follow`: runs a program that ends with the process that started it, like QEMU in `boxlaunch run --emulated` and
//! `boxbuild budget`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::{boxlaunch, ended};

/// Waits until the process with the id `process` runs the program `runs`. For `None`, waits until the process is gone or a
/// zombie.
fn wait_until(process: &str, runs: Option<&str>) {
    let program = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let of = |key| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        let has_ended = of("State:").is_none_or(|it| it.starts_with('Z'));
        of("Name:").filter(|_| !has_ended).map(str::to_owned)
    };
    while program().as_deref() != runs {
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_program_ends_with_the_process_that_it_follows() {
    let own = env!("CARGO_BIN_EXE_boxlaunch");
    let script = format!("'{own}' follow $$ sleep 600 & echo $!; read never");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    wait_until(line.trim(), Some("sleep"));
    shell.kill().unwrap();
    shell.wait().unwrap();
    wait_until(line.trim(), None);
}

#[test]
fn only_the_process_that_started_it_is_followed() {
    let refused = ended(boxlaunch(&["follow", "1", "true"]));
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("follow the supervisor"), "{}", refused.stderr);
}

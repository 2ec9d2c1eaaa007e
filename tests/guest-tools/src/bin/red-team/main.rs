//! A hostile program in a component: it tries what no program there may succeed in, and says what came of it.
//!
//! `wait` does nothing, for ever. `probe` tries everything of [`probes::ALL`] and prints a line for each: its name, the layer
//! that is to refuse it, and `refused`, or what happened instead. `ipc make` makes objects of System V IPC and
//! POSIX message queues, and `ipc seek` looks for them. `burn`, `hoard` and `multiply` take processors, memory and
//! processes until they are stopped.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

mod attempts;
mod exhaust;
mod ipc;
mod probes;

use std::process::ExitCode;
use std::time::Duration;

/// Whether this is a component of a box. On any other machine its attempts might succeed.
fn is_in_a_box() -> bool {
    std::fs::read_to_string("/proc/1/comm").is_ok_and(|name| name.trim_end() == "box-holder")
}

fn main() -> ExitCode {
    if !is_in_a_box() {
        return ExitCode::from(2);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["wait"] => std::thread::sleep(Duration::MAX),
        ["probe"] => probes::ALL.iter().for_each(|probe| println!("{}", probe.line())),
        ["ipc", "make"] => ipc::make(),
        ["ipc", "seek"] => ipc::seek(),
        ["burn"] => exhaust::burn(),
        ["hoard"] => exhaust::hoard(),
        ["multiply"] => exhaust::multiply(),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

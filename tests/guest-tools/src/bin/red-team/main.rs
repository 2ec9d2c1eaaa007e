//! A hostile program in a component: it attempts what must fail there, and prints the outcomes.
//!
//! - `wait` sleeps forever. `serve` listens at the addresses that `leave` tries to reach, and then sleeps.
//! - `probe` makes all attempts of [`probes::ALL`]. It prints a line for each: the name, the layer that must refuse it, and
//!   `refused` or what happened instead.
//! - `leave` makes the attempts of [`fences`] to leave the policy for commands. `stay` does what the policy allows,
//!   `await PATH` waits for a file, and `nothing` ends at once.
//! - `ipc make` creates objects of System V IPC and POSIX message queues, and `ipc seek` looks for them.
//! - `list PATH…` lists directories as the component sees them.
//! - `twice PATH OTHER` appends to a file before and after another file exists.
//! - `burn`, `hoard` and `multiply` use up CPUs, memory and processes.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

mod attempts;
mod exhaust;
mod fences;
mod ipc;
mod probes;
mod tree;

use std::process::ExitCode;
use std::time::Duration;

/// Returns whether this program runs in a component of a box. Elsewhere the attempts could succeed and do damage.
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
        ["serve"] => fences::serve(),
        ["leave"] => fences::leave(),
        ["stay"] => fences::stay(),
        ["await", path] => fences::wait_for(path),
        ["twice", path, other] => fences::append_twice(path, other),
        ["nothing"] => {}
        ["ipc", "make"] => ipc::make(),
        ["ipc", "seek"] => ipc::seek(),
        ["list", ref directories @ ..] => directories.iter().for_each(|it| tree::list(it)),
        ["burn"] => exhaust::burn(),
        ["hoard"] => exhaust::hoard(),
        ["multiply"] => exhaust::multiply(),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

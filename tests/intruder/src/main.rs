//! A stand-in for the VMM: it attempts what a guest could do that has taken over the VMM.
//!
//! `intruder jailed BOX STATE` starts itself as the VMM of BOX once for each attempt, as `boxlaunch run` starts boxlaunch.
//! `intruder serving DIRECTORY BOX STATE` does the same with DIRECTORY as a writable share. `intruder free` makes the same
//! attempts without the jail, which shows that they can succeed. Each prints one line per attempt.
//!
//! The path of the program contains the attempt's name and target, because a VMM gets no arguments and no environment.
#![allow(unsafe_code, reason = "an intruder makes system calls that no safe wrapper covers")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for tests to read")]

mod attempts;
mod supervisor;

use std::io;
use std::process::ExitCode;

use attempts::Attempt;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // Listens during the attempts, one of which connects to this socket.
    let _listener = attempts::listen();
    match arguments[..] {
        ["vmm"] => in_the_jail(&program),
        ["connect", ref sockets @ ..] => {
            sockets.iter().for_each(|it| println!("{}", attempts::connect_as_is(it)));
            ExitCode::SUCCESS
        }
        ["one", program] => alone(program),
        ["jailed", bundle, state, ref targets @ ..] => {
            supervisor::run(bundle, state, None, targets)
        }
        ["serving", directory, bundle, state, ref targets @ ..] => {
            supervisor::run(bundle, state, Some(directory), targets)
        }
        ["free", ref targets @ ..] => supervisor::run_free(targets),
        _ => {
            eprintln!(
                "usage: intruder jailed BOX STATE [ATTEMPT=TARGET]… | serving DIRECTORY BOX STATE [ATTEMPT=TARGET]… | free [ATTEMPT=TARGET]… | connect SOCKET…"
            );
            ExitCode::from(2)
        }
    }
}

/// Makes the attempt that the path `program` encodes, without a jail.
fn alone(program: &str) -> ExitCode {
    let Some((attempt, target)) = Attempt::of_program(program) else { return ExitCode::from(2) };
    println!("{}", attempt.make(&target));
    ExitCode::SUCCESS
}

/// Enters the jail, and makes the attempt that the path `program` encodes.
fn in_the_jail(program: &str) -> ExitCode {
    let Some((attempt, target)) = Attempt::of_program(program) else { return ExitCode::from(2) };
    match vmm::prepare(io::stdin().lock()) {
        Ok(_) => {
            eprintln!("attempt: {}", attempt.make(&target));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("no jail: {error}");
            ExitCode::FAILURE
        }
    }
}

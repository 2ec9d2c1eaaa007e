//! A program in the place of the VMM: it does what a guest would do that has taken the VMM over.
//!
//! `intruder jailed BOX STATE` starts itself as the VMM of a box once for each attempt, as `boxlaunch run` starts
//! boxlaunch; `intruder serving DIRECTORY BOX STATE` gives it a directory to write to; `intruder free` makes the same attempts without a jail, which shows that they could succeed. Both print a
//! line for each. What an attempt is aimed at is in the path by which the program is started, since a VMM gets no
//! arguments and no environment.
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
    // For the time of the attempts.
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

/// Makes the attempt that a path is named after, without a jail.
fn alone(program: &str) -> ExitCode {
    let Some((attempt, target)) = Attempt::of_program(program) else { return ExitCode::from(2) };
    println!("{}", attempt.make(&target));
    ExitCode::SUCCESS
}

/// Lets itself be jailed, and makes the attempt that it is named after.
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

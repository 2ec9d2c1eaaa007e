//! A stand-in for the VMM that misbehaves towards its supervisor. It does what a guest could do that has taken over the VMM.
//! It needs neither the jail nor KVM.
//!
//! `rogue supervise PROGRAM BOX STATE` supervises a box whose VMM is PROGRAM, a symbolic link to this program. The link's
//! name selects the misbehaviour. The supervisor prints how the box ended, and its own peak memory.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for tests to read")]
#![allow(clippy::exit, reason = "one that is hung up on has nothing more to do")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how it fails")]

mod misbehaviour;
mod mutation;
mod peer;
mod supervisor;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [program, "vmm"] => misbehaviour::misbehave(Path::new(program)),
        [_, "supervise", program, bundle, state] => {
            supervisor::run([program, bundle, state].map(Path::new));
        }
        _ => {
            eprintln!("usage: rogue supervise PROGRAM BOX STATE");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

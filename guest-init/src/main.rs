//! The program `box-init`, PID 1 of a box's VM. Its code is in the library `box_init`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use box_init::time::Clock;

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::main(clock)
}

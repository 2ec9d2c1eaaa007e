//! PID 1 of a box's virtual machine; all of it is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use box_init::time::Clock;

fn main() -> ExitCode {
    let clock = Clock::start();
    box_init::main(clock)
}

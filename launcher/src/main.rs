//! `boxlaunch`: runs, verifies and inspects boxes.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

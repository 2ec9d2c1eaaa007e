//! Prints the generated part of `docs/security.md`, for `cargo xtask docs`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "that is what it is for")]

fn main() {
    print!("{}", box_init::isolation::section());
}

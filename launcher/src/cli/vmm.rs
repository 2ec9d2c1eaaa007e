//! The hidden subcommand `vmm`: becomes the virtual machine. Only the supervisor starts it.

use std::io;
use std::process::ExitCode;

/// Runs the machine that standard input describes. Returns only where that fails; the supervisor
/// puts what is printed here to its own error.
pub(crate) fn main() -> ExitCode {
    let error = boxlaunch::vmm::enter(io::stdin().lock());
    super::notice(&format!("boxlaunch: {error}\n"));
    ExitCode::FAILURE
}

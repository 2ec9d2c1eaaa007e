//! The Rust target of the programs that run in the guest.

use std::path::Path;
use std::process::Command;

use crate::{KitError, Result, program};

/// Static programs for linux on amd64.
pub const MUSL: &str = "x86_64-unknown-linux-musl";

/// Checks that the toolchain can build for [`MUSL`].
///
/// # Errors
/// It cannot; the error names the command that mends it.
pub fn musl_target() -> Result<()> {
    let mut rustc = Command::new("rustc");
    let text = program::run(rustc.args(["--print", "target-libdir", "--target", MUSL]))?;
    let folder = String::from_utf8_lossy(&text);
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    let remedy = format!("install it: rustup target add {MUSL}");
    Err(KitError::Missing { program: format!("rustc for {MUSL}"), remedy })
}

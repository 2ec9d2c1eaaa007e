//! Installs optional components of the Rust toolchain.

use std::path::Path;
use std::process::Command;

use super::Say;
use crate::{KitError, Result, program};

/// The Rust target of the programs that run in the guest: static programs for linux on amd64.
pub const MUSL: &str = "x86_64-unknown-linux-musl";

/// The Rust target of the tests' kernel, which runs without an operating system.
pub const BARE: &str = "x86_64-unknown-none";

/// Installs the target [`MUSL`] with rustup if it is missing.
///
/// # Errors
/// There is no rustup, it fails, or it does not manage the compiler in `PATH`.
pub fn musl_target(say: Say<'_>) -> Result<()> {
    target(MUSL, say)
}

/// Installs the target [`BARE`] with rustup if it is missing.
///
/// # Errors
/// The errors of [`musl_target`].
pub fn bare_target(say: Say<'_>) -> Result<()> {
    target(BARE, say)
}

fn target(name: &str, say: Say<'_>) -> Result<()> {
    let wanted = format!("the standard library for {name}");
    ensure(&wanted, &["target", "add", name], || has_target(name), say)
}

/// Installs `cargo fmt` and `cargo clippy` with rustup if they are missing.
///
/// # Errors
/// The errors of [`musl_target`].
pub fn rust_components(say: Say<'_>) -> Result<()> {
    let has_both = || Ok(answers("fmt") && answers("clippy"));
    ensure("cargo fmt or cargo clippy", &["component", "add", "rustfmt", "clippy"], has_both, say)
}

/// Runs rustup with `arguments` if `is_here` returns `false`. `wanted` describes the component in messages.
fn ensure(
    wanted: &str,
    arguments: &[&str],
    is_here: impl Fn() -> Result<bool>,
    say: Say<'_>,
) -> Result<()> {
    if is_here()? {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(arguments);
    let shown = program::shown(&rustup);
    let missing = |remedy| Err(KitError::Missing { program: wanted.to_owned(), remedy });
    if program::find("rustup").is_none() {
        return missing(format!(
            "there is no rustup here, which would install it ({shown}); install rustup \
             (https://rustup.rs), or add it to your toolchain by the means that it came by"
        ));
    }
    say(&format!("installing {wanted}: {shown}"));
    program::run(&mut rustup)?;
    if is_here()? {
        return Ok(());
    }
    missing(format!(
        "{shown} has not added it to the rustc in PATH, so rustup did not install that one"
    ))
}

fn has_target(name: &str) -> Result<bool> {
    let mut rustc = Command::new("rustc");
    let text = program::run(rustc.args(["--print", "target-libdir", "--target", name]))?;
    Ok(Path::new(String::from_utf8_lossy(&text).trim()).is_dir())
}

fn answers(subcommand: &str) -> bool {
    let output = program::finish(Command::new("cargo").args([subcommand, "--version"]));
    output.is_ok_and(|output| output.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rustup_did_not_add_is_still_missing() {
        let mut message = Vec::new();
        let mut say = |line: &str| message.push(line.to_owned());
        ensure("a part", &["--version"], || Ok(true), &mut say).unwrap();
        let error = ensure("a part", &["--version"], || Ok(false), &mut say).unwrap_err();
        if program::find("rustup").is_some() {
            assert_eq!(message, ["installing a part: rustup --version"]);
        }
        assert!(error.to_string().starts_with("a part is missing; "), "{error}");
        assert!(error.to_string().contains("rustup --version"), "{error}");
    }
}

//! `boxbuild verify`: verifies that a box is consistent and undamaged.

use box_contract::{ErrorCode, exit};
use box_inspect::entry::shown_bytes;
use box_inspect::verify::verify;
use cli_common::Problem;
use serde_json::json;

use super::failure::{Explain, Failure, chain};
use super::stored;
use super::terminal;
use cli_common::store::BoxArgument;

/// Verifies the content of a box against its digests and its list of files.
///
/// Hashes every blob that the manifest names, and compares every entry and all data of the rootfs with the list of files.
/// Does not check the builder's statements about the box's images and the kernel's version. To find out whether it is the box
/// that you want, compare its digest with the one that `build` printed. Exits with 5 if something differs or is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild verify hello.box\n  \
    boxbuild verify hello.box --json   each check and its result as JSON")]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let opened = stored::open(&args.subject).map_err(|failure| {
        let is_damaged = failure.has(ErrorCode::BoxDamaged);
        if is_damaged { failure.with_exit(exit::DIFFERENT) } else { failure }
    })?;
    let checks = verify(&opened);
    let wrong = checks.iter().filter_map(|it| it.error.as_ref());
    let errors: Vec<_> = wrong.map(|it| Problem::new(it.explain(), chain(it))).collect();
    if args.json {
        let report = json!({
            "box": opened.digest, "ok": errors.is_empty(), "checks": checks, "errors": errors,
        });
        terminal::json(&report.to_string());
    } else {
        terminal::pieces(checks.iter().map(|it| shown_bytes(it.to_string().as_bytes()) + "\n"));
        if !errors.is_empty() {
            terminal::error(cli_common::problem::text(&errors).trim_end());
        }
    }
    match errors.iter().map(|it| exit_code(it.code)).max() {
        Some(exit) if !terminal::lost() => Err(Failure::reported(exit)),
        _ => Ok(()),
    }
}

/// Returns the exit code for an error code, the same as `boxlaunch verify`.
fn exit_code(code: ErrorCode) -> u8 {
    if code == ErrorCode::BoxDamaged { exit::DIFFERENT } else { code.exit() }
}

//! The options of `boxlaunch up` as the user wrote them.

use std::env;
use std::ffi::OsString;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::cli::run::GivenOptions;

/// Returns the words of this command line that say what a box gets. The command line was parsed before, so it has no error.
pub(super) fn words() -> Vec<OsString> {
    let matches = Cli::command().try_get_matches_from(env::args_os()).ok();
    let of_up = matches.as_ref().and_then(|it| it.subcommand_matches("up"));
    of_up.map(GivenOptions::words).unwrap_or_default()
}

//! The subcommands.

pub(crate) mod box_init;
pub(crate) mod demo;
pub(crate) mod dependencies;
pub(crate) mod dist;
pub(crate) mod docs;
pub(crate) mod fuzz;
pub(crate) mod install;
pub(crate) mod kernel;
pub(crate) mod setup;
pub(crate) mod test;
pub(crate) mod vmhost;

use std::process::ExitCode;

/// The result of a subcommand: its exit code, or the error that stopped it.
pub(crate) type Outcome = testbed::Result<ExitCode>;

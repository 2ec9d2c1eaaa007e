//! The subcommands.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod docs;
pub(crate) mod fuzz;
pub(crate) mod setup;
pub(crate) mod test;
pub(crate) mod vmhost;

use std::process::ExitCode;

/// What a subcommand returns: how the process ends, or why it could not do its work.
pub(crate) type Outcome = testkit::Result<ExitCode>;

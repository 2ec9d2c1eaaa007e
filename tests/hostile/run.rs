//! Runs `hostile-probe`.

use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::program;

use crate::outcome::Report;

/// The path of `hostile-probe`.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_hostile-probe");

/// A directory with layouts for the probe.
pub(crate) struct Work(tempfile::TempDir);

impl Work {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("hostile-").tempdir().unwrap())
    }

    /// Returns the path for the layout `name`.
    pub(crate) fn layout(&self, name: &str) -> PathBuf {
        self.0.path().join("layouts").join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads all layouts with the probe.
    pub(crate) fn probe(&self) -> Report {
        let mut command = Command::new(PROBE);
        message(command.arg(self.path()).current_dir(self.path()))
    }
}

/// Runs the probe, or a command that wraps it, and parses the report. Fails if the probe panics.
pub(crate) fn message(command: &mut Command) -> Report {
    let output = program::run(command).unwrap();
    serde_json::from_slice(&output).unwrap()
}

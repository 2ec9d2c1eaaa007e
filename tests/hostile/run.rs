//! Running the probe.

use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::program;

use crate::outcome::Report;

/// The probe.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_hostile-probe");

/// A directory with layouts for the probe.
pub(crate) struct Work(tempfile::TempDir);

impl Work {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("hostile-").tempdir().unwrap())
    }

    /// Returns where a layout belongs.
    pub(crate) fn layout(&self, name: &str) -> PathBuf {
        self.0.path().join("layouts").join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Reads all layouts.
    pub(crate) fn probe(&self) -> Report {
        let mut command = Command::new(PROBE);
        message(command.arg(self.path()).current_dir(self.path()))
    }
}

/// Runs a command that ends as the probe does. One that panics fails the test.
pub(crate) fn message(command: &mut Command) -> Report {
    let output = program::run(command).unwrap();
    serde_json::from_slice(&output).unwrap()
}

//! Remembers that this machine's KVM cannot boot a box, so that nobody waits for it again.
//!
//! A `/dev/kvm` that opens may still be unable to run a stock kernel; only booting tells. The memory
//! holds for one boot of this machine and one guest kernel.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Result, Workspace, digest};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The state of this machine's KVM.
#[derive(Debug)]
pub(super) struct Probe {
    path: PathBuf,
    key: Value,
}

impl Probe {
    pub(super) fn new(workspace: &Workspace, kernel: &Path) -> Result<Self> {
        let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
        let key = json!({ "kernel": digest::of_file(kernel)?, "boot": boot.trim() });
        Ok(Self { path: workspace.target("demo/kvm-probe.json"), key })
    }

    /// Returns whether an attempt is worth its time.
    pub(super) fn is_worth_trying(&self) -> bool {
        let opens = fs::File::options().read(true).write(true).open("/dev/kvm").is_ok();
        let failed = fs::read(&self.path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        opens && failed.as_ref() != Some(&self.key)
    }

    /// Remembers that an attempt failed. Where that cannot be written, the next run tries again.
    pub(super) fn remember_failure(&self) {
        drop(fs::write(&self.path, self.key.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_remembered_for_the_same_kernel_only() {
        let kernel = Workspace::find().path("Cargo.toml");
        let path = Workspace::find().target("kvm-probe-of-a-test.json");
        let probe =
            Probe { path: path.clone(), ..Probe::new(&Workspace::find(), &kernel).unwrap() };
        let before = probe.is_worth_trying();
        probe.remember_failure();
        assert!(!probe.is_worth_trying());
        let other = Workspace::find().path("Cargo.lock");
        let other = Probe { path: path.clone(), ..Probe::new(&Workspace::find(), &other).unwrap() };
        assert_eq!(other.is_worth_trying(), before);
        fs::remove_file(path).unwrap();
    }
}

//! What this host offers to boxes.
//!
//! What matters is tried, not looked up: a guest is booted, Landlock is applied, namespaces are made.

mod attempt;
pub mod guest;
pub mod isolation;
pub mod kvm;
pub mod memory;
pub mod namespaces;
pub mod tools;

use std::ffi::OsStr;
use std::path::Path;

use isolation::{Cgroups, Landlock};
use kvm::KvmError;
use namespaces::Namespaces;
use tools::Tool;

/// The emulator that `boxlaunch run --emulated` needs.
pub const EMULATOR: &str = "qemu-system-x86_64";
/// The program that carries a box's network, in a later version.
pub const NETWORK: &str = "passt";

/// What was found out about this host.
#[derive(Debug)]
pub struct Facts {
    /// Whether its KVM runs a guest.
    pub kvm: Result<(), KvmError>,
    /// [`EMULATOR`], if it is installed.
    pub emulator: Option<Tool>,
    /// Its Landlock.
    pub landlock: Landlock,
    /// The control groups of this process.
    pub cgroups: Cgroups,
    /// Its user namespaces.
    pub namespaces: Namespaces,
    /// [`NETWORK`], if it is installed.
    pub network: Option<Tool>,
}

impl Facts {
    /// Finds out what this host offers. `program` is boxlaunch, which is started again for what needs a
    /// process of its own; `path` is the `PATH` in which programs are looked for.
    pub fn gather(program: &Path, path: &OsStr) -> Self {
        Self {
            kvm: kvm::try_guest(program, Path::new(kvm::DEVICE)),
            emulator: tools::find(EMULATOR, path),
            landlock: isolation::landlock(),
            cgroups: isolation::cgroups(),
            namespaces: namespaces::examine(program),
            network: tools::find(NETWORK, path),
        }
    }
}

//! Finds out what this host offers to boxes.
//!
//! Nothing is looked up that can be tried: a guest is booted, and a jail is put up.

pub mod guest;
pub mod isolation;
pub mod jail;
pub mod kvm;
pub mod kvm_error;
pub mod memory;
pub mod policy;
pub mod programs;

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use isolation::{Cgroups, Switch};
use kvm_error::KvmError;
use memory::Memory;
use nix::unistd::geteuid;
pub use programs::NETWORK;
use programs::Tool;
pub use virtual_host::{EMULATOR, is_supported};

use crate::jail::Report;
use crate::network::passt;

/// The things that it needs of a host, for people.
pub const NETWORK_NEEDS: &str = "a box with `network \"shared\"` needs a host with a default route of IPv4; passt there needs user namespaces, and for root \
     a user `nobody`";
/// The commands that install it, for people.
pub const INSTALL_NETWORK: &str =
    "`sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)";

/// The facts about this host.
#[derive(Debug)]
pub struct Facts {
    /// Whether its KVM runs a guest.
    pub kvm: Result<(), KvmError>,
    /// [`EMULATOR`], if it is installed.
    pub emulator: Option<Tool>,
    /// The jail that it gives, or why it was not tried.
    pub jail: Result<Report, String>,
    /// Whether this is root.
    pub is_root: bool,
    /// The control groups of this process.
    pub cgroups: Cgroups,
    /// The settings that forbid user namespaces to ordinary users.
    pub forbidden_by: Vec<Switch>,
    /// [`NETWORK`], if it is installed.
    pub network: Option<Tool>,
    /// Why it carries no network, where it is installed and was tried.
    pub network_failure: Option<String>,
}

impl Facts {
    /// Returns whether [`EMULATOR`] is installed in a version that can be a virtual host.
    pub fn emulates(&self) -> bool {
        let version = self.emulator.as_ref().and_then(|tool| tool.version.as_deref());
        version.is_some_and(is_supported)
    }

    /// Finds out what this host offers. `program` is boxlaunch, which is started again for what needs a
    /// process of its own; `path` is the `PATH` in which programs are looked for, and `base` is where the directories
    /// of runs are.
    pub fn gather(program: &Path, path: &OsStr, base: &Path) -> Self {
        let network = programs::find(NETWORK, path);
        let failure = |tool: &Tool| passt::try_passt(&tool.path).err();
        Self {
            network_failure: network.as_ref().and_then(failure).map(|it| it.to_string()),
            network,
            kvm: kvm::try_guest(program, Path::new(kvm::DEVICE)),
            emulator: programs::find(EMULATOR, path),
            is_root: geteuid().is_root(),
            cgroups: isolation::cgroups(),
            forbidden_by: isolation::forbidden(),
            // The last one: its signals stay blocked.
            jail: jail::try_jail(program, Path::new(kvm::DEVICE), base),
        }
    }
}

/// Makes sure that guests run here, by the memory in a state directory or else by running one. Returns
/// how long that took; nothing where it was remembered.
///
/// # Errors
/// The reason why none can be run. What is not known is no error: the box itself will show it.
pub fn ensure_kvm(program: &Path, state: &Path) -> Result<Duration, KvmError> {
    let device = Path::new(kvm::DEVICE);
    kvm::open(device)?;
    let memory = Memory::new(state, device);
    if let Some(known) = memory.recall() {
        return known.map(|()| Duration::ZERO);
    }
    let began = Instant::now();
    let tried = kvm::try_guest(program, device);
    memory.note(&tried);
    match tried {
        Ok(()) | Err(KvmError::Unknown(_)) => Ok(began.elapsed()),
        Err(error) => Err(error),
    }
}

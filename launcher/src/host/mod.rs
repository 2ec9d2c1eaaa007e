//! The capabilities that this host offers to boxes.
//!
//! If possible, a trial finds the facts: a guest is booted, and a process is confined.

mod elf;
pub mod error;
pub mod floor_probe;
pub mod guest;
pub mod jail;
pub mod kvm;
pub mod memory;
pub mod policy;
pub mod programs;
pub mod resources;
pub mod state_dir;

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use error::KvmError;
use memory::Memory;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::geteuid;
pub use programs::PASST;
use programs::Tool;
use virtual_host::HostKernel;
use virtual_host::programs::fetchers;
pub use virtual_host::{EMULATOR, OLDEST_EMULATOR, is_supported};

use vmm::jail::isolation::{self, Cgroups, Switch};
use vmm::jail::{Report, control_group};

/// The requirements of a shared network on the host, as a message to the user.
pub const NETWORK_NEEDS: &str = "a box with `network \"shared\"` needs a host with a default route of IPv4; passt there needs user namespaces, and for root \
     a user `nobody`";
/// The commands that install passt, as a message to the user.
pub const INSTALL_NETWORK: &str =
    "`sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)";

/// The kernel that [`EMULATOR`] boots: the kernel of the virtual host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EmulatedKernel {
    /// It was fetched before, and has this version.
    Here(String),
    /// The first run by emulation fetches it.
    ToBeFetched,
    /// It was not fetched, and cannot be: for example, the programs that fetch it are missing.
    Missing,
}

/// The facts about this host.
#[derive(Debug)]
pub struct Facts {
    /// Whether the host's KVM runs a guest.
    pub kvm: Result<(), KvmError>,
    /// [`EMULATOR`], if it is installed.
    pub emulator: Option<Tool>,
    /// The kernel that the emulator boots.
    pub emulated_kernel: EmulatedKernel,
    /// The jail that the host supports, or why the trial of the jail failed.
    pub jail: Result<Report, String>,
    /// Whether this process runs as root.
    pub is_root: bool,
    /// The control groups of this process.
    pub cgroups: Cgroups,
    /// Whether the supervisor of a box gets a separate control group, if the box has one.
    pub bounds_supervisor: bool,
    /// The settings that forbid user namespaces to ordinary users.
    pub forbidden_by: Vec<Switch>,
    /// Whether the host's kernel offers Landlock.
    pub has_landlock: bool,
    /// [`PASST`], if it is installed.
    pub network: Option<Tool>,
    /// Why passt cannot connect a box. `None` if passt is not installed, or if the trial found no reason.
    pub network_failure: Option<String>,
}

impl Facts {
    /// Returns whether [`EMULATOR`] is installed in a version that can be a virtual host, with a kernel to boot.
    pub fn emulates(&self) -> bool {
        let version = self.emulator.as_ref().and_then(|tool| tool.version.as_deref());
        version.is_some_and(is_supported) && self.emulated_kernel != EmulatedKernel::Missing
    }

    /// Collects the facts about this host. `program` is boxlaunch, which runs each trial in a separate process. `path`
    /// is the `PATH` to search for programs. `kernels` is the directory of the virtual host's kernels. The private
    /// directories of runs and trials are created in `base`. `why_no_network` tries [`PASST`] at a path, and returns
    /// why it fails.
    pub fn gather(
        program: &Path,
        path: &OsStr,
        kernels: Option<&Path>,
        base: &Path,
        why_no_network: impl Fn(&Path) -> Option<String>,
    ) -> Self {
        let network = programs::find(PASST, path);
        Self {
            network_failure: network.as_ref().and_then(|it| why_no_network(&it.path)),
            network,
            kvm: kvm::try_guest(program, Path::new(kvm::DEVICE)),
            emulator: programs::find(EMULATOR, path),
            emulated_kernel: emulated_kernel(kernels, path),
            is_root: geteuid().is_root(),
            cgroups: isolation::cgroups(),
            // Must precede the trial of the jail, which may move this process into another control group.
            bounds_supervisor: control_group::bounds_supervisor(),
            forbidden_by: isolation::forbidden(),
            has_landlock: isolation::has_landlock(),
            // Must be last, because the signals that this trial blocks stay blocked.
            jail: jail::try_jail(program, Path::new(kvm::DEVICE), base),
        }
    }
}

/// Finds the kernel of the virtual host. A kernel that another user could have changed is treated as not fetched,
/// because runs refuse it.
fn emulated_kernel(kernels: Option<&Path>, path: &OsStr) -> EmulatedKernel {
    let kept = kernels.and_then(|it| HostKernel::find(it).ok().flatten());
    let can_fetch = || fetchers().all(|name| programs::locate(name, path).is_some());
    match kept {
        Some(kernel) => EmulatedKernel::Here(kernel.version().to_owned()),
        None if kernels.is_some() && can_fetch() => EmulatedKernel::ToBeFetched,
        None => EmulatedKernel::Missing,
    }
}

/// Checks that guests run on this host: by the stored result in `state`, or else by running a guest. Returns how long
/// the guest took; zero if the stored result was used.
///
/// # Errors
/// The reason why no guest can be run. An unknown result is not an error, because the start of the box will show
/// whether guests run.
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

/// Raises this process's limit of open files to the hard limit.
pub fn raise_limit_of_files() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A failure is not fatal: fewer files can be open then.
        let _fewer = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

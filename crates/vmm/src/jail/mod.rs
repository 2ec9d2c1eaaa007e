//! The jail: every right that the VMM process gives up before it becomes a VM.
//!
//! A guest that breaks out of libkrun controls this process. So the process keeps only what libkrun needs, by these steps:
//!
//! 1. The supervisor starts it in a user and a PID namespace (`process`), and moves it into a control group
//!    (`control_group`) while it takes the next steps. The process has three pipes and the box's open files. Its
//!    environment is one variable.
//! 2. The process enters further namespaces, and a root directory with its open files, `/dev/kvm` and the directory of
//!    its sockets (`root`). From then on, it makes no links and special files where a program of the host could follow them (`links`).
//! 3. It sets resource limits, changes its user, and then drops all capabilities (`privileges`).
//! 4. Landlock restricts the process to the same files, in case the root directory fails to (`fence`).
//! 5. A filter of system calls (`filter`) with a checked-in list (`calls`) is installed last. libkrun then opens disks
//!    and starts threads under the filter.
//!
//! Some hosts lack some of these layers. The [`Report`] lists the missing ones, and [`Policy`] decides whether the VM
//! starts. A layer is never left out silently.

#[cfg(test)]
mod callers;
mod calls;
pub mod control_group;
mod fence;
mod filter;
pub mod isolation;
mod layer;
mod links;
mod privileges;
pub mod process;
mod root;
pub mod shares;
mod trace;

use std::fmt::Display;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{IntoRawFd as _, RawFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use host_fs::OsError;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};

pub(crate) use layer::missing;
pub use layer::{Layer, Missing, Policy, Report, Unshared};
pub use links::{NOWHERE, PERMIT};
pub use privileges::most_files;
pub use privileges::{Ids, Users};
use root::RootError;
pub use root::{DEVICE, fd_path};
use shares::{ServedShare, directory};

use crate::VmmError;
use crate::runtime_dir::VMM;

/// The namespaces that a process can enter without a new child, except the mount namespace.
const NAMESPACES: [(Layer, CloneFlags); 4] = [
    (Layer::IpcNamespace, CloneFlags::CLONE_NEWIPC),
    (Layer::NetworkNamespace, CloneFlags::CLONE_NEWNET),
    (Layer::UtsNamespace, CloneFlags::CLONE_NEWUTS),
    (Layer::CgroupNamespace, CloneFlags::CLONE_NEWCGROUP),
];

/// The supervisor's decisions on the jail.
#[derive(Debug, Serialize, Deserialize)]
pub struct Terms {
    /// The reaction to a missing layer.
    pub policy: Policy,
    /// The directory of the run.
    pub runtime: PathBuf,
    /// Whether root started the supervisor. The VMM process then enters a new user namespace only after the steps that
    /// need root's capabilities.
    pub is_root: bool,
    /// The user and group to change to. `None` if root did not start the supervisor, or if the change is impossible.
    pub ids: Option<Ids>,
    /// The directories of the host to be served.
    pub shares: Vec<ServedShare>,
    /// The layers that the supervisor could not set up.
    pub missing: Vec<Missing>,
}

/// The descriptors of the files that the process opens again in its jail, and whether it has a network socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files<'a> {
    /// The box's files, which are opened for reading.
    pub blobs: &'a [RawFd],
    /// The disks, which are opened for reading and writing.
    pub disks: &'a [RawFd],
    /// The size of the largest disk, in bytes.
    pub largest: u64,
    /// Whether the process has the socket of a network device.
    pub has_network: bool,
}

/// The features that only some VMs need.
#[derive(Debug, Clone, Copy, Default)]
struct Needs {
    /// Writable disks.
    disks: bool,
    /// Directories of the host.
    shares: bool,
    /// Writable directories of the host.
    writable_shares: bool,
    /// A network device.
    network: bool,
}

/// Applies Landlock and the filter to this process, as for a VM with these blobs and without disks, shares and network.
#[cfg(test)]
pub fn fenced(blobs: &[RawFd]) -> Result<(), String> {
    let files = Files { blobs, ..Files::default() };
    fence::restrict(Path::new("/dev/null"), files, &[], Path::new("/proc"))?;
    let filter = filter::Filter::new(false, Needs::default()).map_err(|error| error.to_string())?;
    filter.install().map_err(|error| error.to_string())
}

/// Returns why the shares cannot be served. `failed` is the error of [`root::enter`].
fn unshared(shares: &[ServedShare], failed: Option<&RootError>) -> Option<Unshared> {
    match failed? {
        RootError::Share(reason) => Some(reason.clone()),
        RootError::Box(reason) => Some(Unshared::Box(reason.clone())),
        RootError::System(_) if shares.is_empty() => None,
        RootError::System(error) => Some(Unshared::Host(error.to_string())),
    }
}

/// Opens a directory and returns its path in `/proc/self/fd`. The process can use this path after a change of its user.
/// The descriptor is never closed.
fn by_descriptor(path: &Path) -> Result<PathBuf, OsError> {
    let opened = directory(path).map_err(OsError::file("open", path))?;
    Ok(root::fd_path(opened.into_raw_fd()))
}

/// A jail that is being set up around this process.
#[derive(Debug)]
pub struct Jail {
    began: Instant,
    policy: Policy,
    report: Report,
    needs: Needs,
    /// The directory of the sockets, as seen by this process.
    pub sockets: PathBuf,
}

impl Jail {
    /// Sets up all layers around this process, except the filter of system calls. The process must have one thread.
    /// Afterwards, it can still open `files` again.
    ///
    /// # Errors
    /// If the process is left in a state in which no VM can start.
    pub fn enter(terms: Terms, files: Files<'_>) -> Result<Self, VmmError> {
        let report = Report { missing: terms.missing, ..Report::default() };
        let shares = terms.shares;
        let needs = Needs {
            disks: !files.disks.is_empty(),
            shares: !shares.is_empty(),
            writable_shares: shares.iter().any(|it| it.is_writable),
            network: files.has_network,
        };
        let (began, sockets) = (Instant::now(), PathBuf::new());
        let mut jail = Self { began, policy: terms.policy, report, needs, sockets };
        for (layer, flag) in NAMESPACES {
            jail.put(layer, unshare(flag));
        }
        // Read here, because `/proc/sys` is absent inside the jail.
        let most_files = most_files();
        // The filter allows calls that change a file's mode only if a share is writable.
        let fixed = if needs.writable_shares { files.blobs } else { &[] };
        let entered = root::enter(&terms.runtime, &shares, fixed);
        jail.report.unshared = unshared(&shares, entered.as_ref().err());
        let has_root = jail.put(Layer::MountNamespace, entered).is_some();
        jail.sockets = match has_root {
            true => root::SOCKETS.into(),
            false => by_descriptor(&terms.runtime.join(VMM))?,
        };
        jail.put(
            Layer::ResourceLimits,
            privileges::limit((!needs.writable_shares).then_some(files.largest), most_files),
        );
        if let Some(ids) = terms.ids {
            jail.put(Layer::UserId, ids.take());
        }
        if terms.is_root {
            // Root enters the user namespace only now, because the earlier steps needed root's capabilities.
            jail.put(Layer::UserNamespace, unshare(CloneFlags::CLONE_NEWUSER));
        }
        let is_confined = !jail.report.missing.iter().any(|it| it.layer == Layer::UserNamespace);
        jail.put(Layer::Capabilities, privileges::give_up(needs.writable_shares && is_confined));
        let shared = if has_root { &shares[..] } else { &[] };
        let fence = fence::restrict(Path::new(DEVICE), files, shared, &jail.sockets);
        jail.report.landlock_abi = jail.put(Layer::Landlock, fence);
        jail.report.ids = (geteuid().as_raw(), getegid().as_raw());
        Ok(jail)
    }

    /// Installs the filter of system calls, and reports the jail to the supervisor.
    ///
    /// # Errors
    /// If a required layer is missing, or the supervisor has ended.
    pub fn close(mut self, mut to: File) -> Result<(), VmmError> {
        let trace = self.policy == Policy::Trace;
        let filter = filter::Filter::new(trace, self.needs).map_err(|error| error.to_string());
        let installed = filter.and_then(|it| it.install().map_err(|error| error.to_string()));
        self.put(Layer::SystemCalls, installed);
        self.report.taken_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let report = serde_json::to_vec(&self.report);
        let report = report.map_err(OsError::system("report the jail"))?;
        to.write_all(&report).map_err(OsError::system("report the jail"))?;
        if let Some(reason) = self.report.unshared {
            return Err(reason.into());
        }
        if self.policy == Policy::Require && !self.report.missing.is_empty() {
            return Err(VmmError::Jail(self.report.missing));
        }
        Ok(())
    }

    /// Returns the value of `result`. If it is an error, records that `layer` is missing.
    fn put<T, E: Display>(&mut self, layer: Layer, result: Result<T, E>) -> Option<T> {
        match result {
            Ok(done) => Some(done),
            Err(reason) => {
                self.report.missing.push(Missing::new(layer, reason));
                None
            }
        }
    }
}

//! The jail: everything that is taken from the VMM process before it becomes a machine.
//!
//! A guest that breaks out of libkrun is this process. So it is left with what libkrun needs, in this
//! order:
//!
//! 1. The supervisor starts it in a user and a PID namespace (`process`), and puts it into a control
//!    group (`control_group`) while it does what follows. It has three pipes and
//!    the box's files open, and one variable of ours for an environment.
//! 2. It takes namespaces of its own, and a root directory with a view of its own open files,
//!    `/dev/kvm` and the directory of its sockets (`root`).
//! 3. It takes limits, gives up its user, and then all capabilities (`privileges`).
//! 4. Landlock keeps it to the same files where the root directory should fail to (`fence`).
//! 5. A filter of system calls (`filter`) with a checked-in list (`calls`) comes last: libkrun opens disks
//!    and starts threads with it in force.
//!
//! A host need not have all of these. What is missing is in the [`Report`], and
//! [`Policy`] decides whether the machine is started; a layer is never left out without a word.

#[cfg(test)]
mod callers;
mod calls;
pub mod control_group;
mod fence;
mod filter;
pub mod isolation;
mod layer;
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
pub use privileges::most_files;
pub use privileges::{Ids, Users};
use root::RootError;
pub use root::{DEVICE, fd_path};
use shares::{ServedShare, directory};

use crate::VmmError;
use crate::runtime_dir::VMM;

/// The namespaces that a process can enter by itself, but for that of mounts.
const NAMESPACES: [(Layer, CloneFlags); 4] = [
    (Layer::IpcNamespace, CloneFlags::CLONE_NEWIPC),
    (Layer::NetworkNamespace, CloneFlags::CLONE_NEWNET),
    (Layer::UtsNamespace, CloneFlags::CLONE_NEWUTS),
    (Layer::CgroupNamespace, CloneFlags::CLONE_NEWCGROUP),
];

/// The supervisor's decisions on the jail.
#[derive(Debug, Serialize, Deserialize)]
pub struct Terms {
    /// Which layers the box has to have.
    pub policy: Policy,
    /// The run's own directory.
    pub runtime: PathBuf,
    /// Whether root started the supervisor, and so the VMM process outside of any new user namespace.
    pub is_root: bool,
    /// The user and group to be then, where that is possible.
    pub ids: Option<Ids>,
    /// The directories of the host to be served.
    pub shares: Vec<ServedShare>,
    /// The layers that the supervisor could not put up.
    pub missing: Vec<Missing>,
}

/// The files of the process: those that it opens again in its jail, by their descriptors, and a socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct Files<'a> {
    /// Those of the box, to read.
    pub blobs: &'a [RawFd],
    /// Disks, to write.
    pub disks: &'a [RawFd],
    /// The size of the largest disk, in bytes.
    pub largest: u64,
    /// Whether it has the socket of a network device.
    pub has_network: bool,
}

/// The tasks of a machine that most do not have.
#[derive(Debug, Clone, Copy, Default)]
struct Needs {
    /// It writes to disks.
    disks: bool,
    /// It serves directories of the host.
    shares: bool,
    /// Some of them can be written.
    writable_shares: bool,
    /// It has a network device.
    network: bool,
}

/// Puts Landlock and the filter around this process, as around a machine that has blobs to open and nothing else.
#[cfg(test)]
pub fn fenced(blobs: &[RawFd]) -> Result<(), String> {
    let files = Files { blobs, ..Files::default() };
    fence::restrict(Path::new("/dev/null"), files, &[], Path::new("/proc"))?;
    let filter = filter::Filter::new(false, Needs::default()).map_err(|error| error.to_string())?;
    filter.install().map_err(|error| error.to_string())
}

/// Returns why directories cannot be served.
fn unshared(shares: &[ServedShare], failed: Option<&RootError>) -> Option<Unshared> {
    match failed? {
        RootError::Share(reason) => Some(reason.clone()),
        RootError::Box(reason) => Some(Unshared::Box(reason.clone())),
        RootError::System(_) if shares.is_empty() => None,
        RootError::System(error) => Some(Unshared::Host(error.to_string())),
    }
}

/// Returns a name of a directory by which this process reaches it, whoever it becomes, for as long as it runs.
fn by_descriptor(path: &Path) -> Result<PathBuf, OsError> {
    let opened = directory(path).map_err(OsError::file("open", path))?;
    Ok(root::fd_path(opened.into_raw_fd()))
}

/// A jail that is being put up around this process.
#[derive(Debug)]
pub struct Jail {
    began: Instant,
    policy: Policy,
    report: Report,
    needs: Needs,
    /// Where the sockets are, as this process sees them.
    pub sockets: PathBuf,
}

impl Jail {
    /// Puts up all layers but the last around this process, which has one thread, and of whose files some are to be
    /// opened again.
    ///
    /// # Errors
    /// When the process is left in a state in which no machine can start.
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
        // Afterwards it cannot be read.
        let most_files = most_files();
        // Only where directories can be written may it call what changes a mode.
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
            // It was not made before: capabilities were still needed.
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

    /// Filters the system calls, and tells the supervisor what holds.
    ///
    /// # Errors
    /// When a layer is missing that is required, or the supervisor is gone.
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

    /// Notes a layer that could not be put up.
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

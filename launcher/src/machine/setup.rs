//! The arguments of a start: the box, what the host provides to it, and the conditions of the start.

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use box_contract::wire::Secret;
use box_contract::{TaskPlan, Vm as Size};
use box_layout::OpenBox;
use vmm::jail::{Missing, Policy};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

use super::variables::GivenVariable;
use crate::mounts::files::FileCopy;
use crate::mounts::roots_disk::RootsDisk;
use crate::mounts::shares::HostShare;
use crate::mounts::sockets::SharedSocket;
use crate::mounts::volumes::Volume;
use crate::network::{Given, Published};
use crate::opened::receipt::Receipts;
use crate::opened::verify::Trust;
use crate::streams::log::Logs;
use crate::streams::output::Route;

/// The box, and the programs and directories of this host that run it.
#[derive(Debug)]
pub struct BoxToRun<'a> {
    /// The box.
    pub opened: &'a OpenBox,
    /// The size of the VM: the plan's, or the size that the command line sets.
    pub size: Size,
    /// The program that is started as the VMM, with the argument [`vmm::SUBCOMMAND`].
    pub program: &'a Path,
    /// The directories to search for passt, in the format of `PATH`, if the box shares the host's network.
    pub programs: &'a OsStr,
    /// The KVM device, whose group the VMM process joins.
    pub device: &'a Path,
    /// The receipts of earlier verifications ([`Receipts`]), with which unchanged blobs are not hashed again.
    pub receipts: &'a Receipts,
    /// Whether the receipts are used, or all blobs are hashed.
    pub trust: Trust,
    /// The run's private directory.
    pub runtime: RuntimeDir,
}

/// What the host provides to the box for this run. Without any of it, the box has only its files.
#[derive(Debug, Default)]
pub struct HostResources {
    /// The plan's scratch disks, in the plan's order.
    pub disks: Vec<File>,
    /// The volumes, in the order of the devices.
    pub volumes: Vec<Volume>,
    /// The variables that are set for this run, including each that the plan requires.
    pub variables: Vec<GivenVariable>,
    /// The disk for the components' roots. `None` if they are in memory.
    pub roots_disk: Option<RootsDisk>,
    /// The values of the plan's secrets, in the plan's order.
    pub secrets: Vec<Secret>,
    /// The directories of the host that components see, including the plan's.
    pub shares: Vec<HostShare>,
    /// The files of the host of which components get copies.
    pub files: Vec<FileCopy>,
    /// The sockets of the host to which components can connect.
    pub sockets: Vec<SharedSocket>,
    /// The task that replaces the plan's.
    pub task: Option<TaskPlan>,
    /// The network of the box.
    pub network: Given,
    /// The ports of components that clients on the host can connect to.
    pub published: Vec<Published>,
    /// The sockets of the other box's ports, if the box replaces another one. No client is accepted until
    /// the box replaces it (`Machine::open_ports`).
    pub handed: Option<Vec<TcpListener>>,
    /// The path for the agent's socket; by default, it is created in the private directory.
    pub agent_socket: Option<PathBuf>,
}

/// The conditions of the start, such as its time limits, its signals and its observers. The guest cannot see them.
#[derive(Debug)]
pub struct StartPolicy<'a> {
    /// The file for the beginning of the console.
    pub console: Option<File>,
    /// The log that keeps the agent's output.
    pub logs: Logs,
    /// The second destination of the agent's output, in addition to `logs`, until the agent is ready.
    pub agent_output: &'a mut Route,
    /// The signals that end the start early.
    pub signals: &'a StopSignals,
    /// When the program started, moved forward by the time for work that other starts of the box do not need: fetching
    /// the box, booting a test guest, and hashing blobs.
    pub started: Instant,
    /// How long the start may take before it fails with [`MachineError::Timeout`](super::MachineError::Timeout).
    pub startup_timeout: Duration,
    /// How long the start may take before [`Machine::start`](super::Machine::start) returns without a ready agent.
    pub enforced_total: Option<Duration>,
    /// Whether the start fails on a host on which the jail lacks a layer.
    pub jail: Policy,
    /// Observes the progress of the start.
    pub watch: &'a dyn Watch,
}

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The box's files are being verified. This takes seconds if large files must be hashed.
    Verifying,
    /// Files were hashed, which took this long.
    Hashed(Duration),
    /// The VMM process is confined, and its guest has not started. These layers of the jail are missing.
    Confined(&'a [Missing]),
    /// The VM was started. This much time has passed since [`StartPolicy::started`].
    Starting(Duration),
    /// The start has succeeded or failed.
    Ended,
}

/// Observes the progress of a start, to show it to the user.
pub trait Watch: std::fmt::Debug {
    /// Called at each step, and about once a second while the VM starts.
    fn see(&self, progress: Progress<'_>);
}

/// An observer that ignores all progress.
impl Watch for () {
    fn see(&self, _: Progress<'_>) {}
}

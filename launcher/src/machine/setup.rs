//! The arguments of a start, by their reasons: which box it is, what this host gives it, and how its start is held to terms.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use box_contract::wire::Secret;
use box_contract::{TaskPlan, Vm as Size};
use box_layout::OpenBox;
use vmm::jail::{Missing, Policy};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

use super::variables::GivenVariable;
use crate::mounts::shares::HostShare;
use crate::mounts::volumes::Volume;
use crate::network::{Given, Published};
use crate::opened::receipt::Receipts;
use crate::opened::verify::Trust;
use crate::streams::log::Logs;
use crate::streams::output::Route;

/// The box, and what of this host makes a machine of it. It is the same for each start of the box.
#[derive(Debug)]
pub struct BoxToRun<'a> {
    /// The box.
    pub opened: &'a OpenBox,
    /// The machine's size, which is the box's unless somebody asked for another.
    pub size: Size,
    /// The program that is started as the VMM, with the argument [`vmm::SUBCOMMAND`].
    pub program: &'a Path,
    /// The directories in which passt is looked for, as in a `PATH`, where the box shares the network of its host.
    pub programs: &'a OsStr,
    /// The device of KVM, whose group the VMM process is to be in.
    pub device: &'a Path,
    /// The receipts of earlier verifications.
    pub receipts: &'a Receipts,
    /// Whether they are used.
    pub trust: Trust,
    /// The run's private directory.
    pub runtime: RuntimeDir,
}

/// The things that the host gives the box for this run: all that reaches into it from outside. A box that is given none has
/// nothing but its own files.
#[derive(Debug, Default)]
pub struct HostGifts {
    /// The plan's scratch disks, in their order.
    pub disks: Vec<File>,
    /// Disks that stay, in the order of the devices.
    pub volumes: Vec<Volume>,
    /// The variables that were given for this run; each that the plan requires is among them.
    pub variables: Vec<GivenVariable>,
    /// The values of the plan's secrets, in their order.
    pub secrets: Vec<Secret>,
    /// The directories of the host that components see, those of the plan among them.
    pub shares: Vec<HostShare>,
    /// The task, instead of that of the plan.
    pub task: Option<TaskPlan>,
    /// The network that the box gets.
    pub network: Given,
    /// The ports of components that clients on the host can connect to.
    pub published: Vec<Published>,
    /// Where the agent's socket is made; by default in the private directory.
    pub agent_socket: Option<PathBuf>,
}

/// The terms of the start: how long it may take, what ends it, and who hears of it. The box knows nothing of them.
#[derive(Debug)]
pub struct StartPolicy<'a> {
    /// The file for the start of the console.
    pub console: Option<File>,
    /// Where the agent's output is kept.
    pub logs: Logs,
    /// Where else it goes until the agent is ready.
    pub agent_output: &'a mut Route,
    /// The signals that end the start early.
    pub signals: &'a StopSignals,
    /// When the program started, without what it did only this time. The hashing of blobs is no part of
    /// the start either: the clock is set forward by what it took.
    pub started: Instant,
    /// How long the start may take before it is an error.
    pub startup_timeout: Duration,
    /// How long the start may take before [`Machine::start`](super::Machine::start) returns without a ready agent.
    pub enforced_total: Option<Duration>,
    /// How to treat a host on which the jail lacks a layer.
    pub jail: Policy,
    /// Sees how far the start is.
    pub watch: &'a dyn Watch,
}

/// How far a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The box's files are verified now, which takes seconds where large ones have to be hashed.
    Verifying,
    /// They had to be hashed, which took this long.
    Hashed(Duration),
    /// The machine's process is confined, without these layers of the jail; its guest has not started.
    Confined(&'a [Missing]),
    /// The machine was started; this much of the start's time has passed.
    Starting(Duration),
    /// The start has ended, well or not.
    Ended,
}

/// Sees how far a start is, to show it to a person.
pub trait Watch: std::fmt::Debug {
    /// Is called at each step, and about once a second while the machine starts.
    fn see(&self, progress: Progress<'_>);
}

/// Nobody watches.
impl Watch for () {
    fn see(&self, _: Progress<'_>) {}
}

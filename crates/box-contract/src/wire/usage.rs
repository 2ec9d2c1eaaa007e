//! The resource usage of a box.

use serde::{Deserialize, Serialize};

use crate::ComponentName;

/// Requests a [`Usage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {}

/// The resource usage of a box, as its guest reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// The usage of each component that has not ended.
    pub components: Vec<ComponentUsage>,
}

/// The resource usage of a component, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentUsage {
    /// The component.
    pub component: ComponentName,
    /// The memory of the component's processes, of its writable layer if that is in memory, and of the kernel on its behalf, in
    /// bytes.
    pub memory_bytes: u64,
    /// The highest value of `memory_bytes` so far.
    pub memory_peak_bytes: u64,
    /// The limit of `memory_bytes`.
    pub memory_max_bytes: u64,
    /// The CPU time since the component's start, in microseconds.
    pub cpu_us: u64,
    /// The number of the component's processes and threads.
    pub pids: u64,
    /// The limit of `pids`.
    pub pids_max: u64,
    /// The used bytes of the disk of the box, which all components share. Without a disk: of the component's writable layer, as a
    /// part of `memory_bytes`.
    pub disk_bytes: u64,
    /// The capacity of the disk or the layer, in bytes.
    pub disk_max_bytes: u64,
    /// The number of processes that the kernel's out-of-memory killer has ended.
    pub oom_kills: u64,
}

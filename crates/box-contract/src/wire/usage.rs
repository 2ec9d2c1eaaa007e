//! The resources that a box uses.

use serde::{Deserialize, Serialize};

use crate::ComponentName;

/// Asks for a [`Usage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {}

/// The resources that a box uses, as its guest reports them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// For each component that still has a holder.
    pub components: Vec<ComponentUsage>,
}

/// The resources that a component uses, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentUsage {
    /// Which one.
    pub component: ComponentName,
    /// The bytes of memory of its processes, its scratch layer, and the kernel on its behalf.
    pub memory_bytes: u64,
    /// The highest value of that so far.
    pub memory_peak_bytes: u64,
    /// The limit.
    pub memory_max_bytes: u64,
    /// The time on a CPU since its start, in microseconds.
    pub cpu_us: u64,
    /// The number of its processes and threads.
    pub pids: u64,
    /// The limit.
    pub pids_max: u64,
    /// The bytes of its scratch layer, which are part of its memory.
    pub disk_bytes: u64,
    /// The size of the scratch layer.
    pub disk_max_bytes: u64,
    /// How many processes the kernel's out-of-memory killer has ended.
    pub oom_kills: u64,
}

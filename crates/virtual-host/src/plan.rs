//! The agreement between the host and the machine's init: the plan, and where things are.

use serde::{Deserialize, Serialize};

/// The directory of everything that is the machine's own.
pub(crate) const HOME: &str = "/vmhost";
/// The plan, a JSON document.
pub(crate) const PLAN: &str = "/vmhost/plan";
/// The kernel modules, named in the order in which they are loaded.
pub(crate) const MODULES: &str = "/vmhost/modules";
/// The directory in which commands leave files for the host.
pub(crate) const OUT: &str = "/out";
/// The name of a packed file on its disk; a packed directory is the disk's root.
pub(crate) const CONTENT: &str = "content";
/// The names of the results in the archive that the machine leaves.
pub(crate) const RESULT: &str = "result";

/// The subcommand of the init's program that becomes another program, which ends with the process that
/// started it: `PROGRAM follow PID COMMAND…`.
pub const FOLLOW: &str = "follow";

/// The work of the machine between its start and its end.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The disks after the one for the result, in their order.
    pub(crate) disks: Vec<Mount>,
    /// The commands, run one after the other.
    pub(crate) commands: Vec<Vec<String>>,
    /// Whether output is passed on while a command runs.
    pub(crate) live: bool,
}

/// Where a disk is mounted.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) path: String,
    /// Whether the disk holds one file, to be found at `path`.
    pub(crate) is_file: bool,
}

/// How a command ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Its exit status, or 128 and the number of the signal that ended it.
    pub(crate) status: i32,
    /// How long it ran, in nanoseconds of the machine's clock.
    pub(crate) taken_ns: u64,
}

/// The facts about the machine at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct End {
    /// The machine's age in seconds, as in the first field of `/proc/uptime`.
    pub(crate) uptime: String,
}

/// The member of the result that says how a command ended.
pub(crate) fn status_name(command: usize) -> String {
    format!("{RESULT}/{command}.json")
}

/// The streams of a command.
pub(crate) const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// The member of the result with what a command wrote to one of [`STREAMS`].
pub(crate) fn stream_name(command: usize, stream: &str) -> String {
    format!("{RESULT}/{command}.{stream}")
}

/// The member of the result with the [`End`]. It is the last one: an archive without it was cut off.
pub(crate) fn end_name() -> String {
    format!("{RESULT}/end.json")
}

//! The interface between the real host and the virtual host's init: the plan, and the paths.

use serde::{Deserialize, Serialize};

/// The directory of the virtual host's internal files.
pub(crate) const HOME: &str = "/vmhost";
/// The plan, a JSON document.
pub(crate) const PLAN: &str = "/vmhost/plan";
/// The directory of the kernel modules. The order of their names is the order of loading.
pub(crate) const MODULES: &str = "/vmhost/modules";
/// The directory in which commands leave files for the host.
pub(crate) const OUT: &str = "/out";
/// The name of a packed file on its disk. A packed directory is the disk's root directory.
pub(crate) const CONTENT: &str = "content";
/// The directory of the results in the archive.
pub(crate) const RESULT: &str = "result";

/// The subcommand of the init's program that executes COMMAND so that it ends when its parent, the process PID, ends:
/// `PROGRAM follow PID COMMAND…`.
pub const FOLLOW: &str = "follow";

/// The work of the virtual host in one run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// The disks in their order, without the disk for the result.
    pub(crate) disks: Vec<Mount>,
    /// The commands, run one after the other.
    pub(crate) commands: Vec<Vec<String>>,
    /// Whether output is forwarded while a command runs.
    pub(crate) live: bool,
}

/// The mount of a disk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub(crate) path: String,
    /// Whether the disk contains one file, which appears at `path`.
    pub(crate) is_file: bool,
}

/// The result of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// The exit status, or 128 plus the number of the signal that ended the command.
    pub(crate) status: i32,
    /// The run time in nanoseconds of virtual time.
    pub(crate) taken_ns: u64,
}

/// The state of the virtual host at its end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct End {
    /// The uptime in seconds, as in the first field of `/proc/uptime`.
    pub(crate) uptime: String,
}

/// Returns the name of the archive's member with the [`Status`] of the command with this number, from 0.
pub(crate) fn status_name(command: usize) -> String {
    format!("{RESULT}/{command}.json")
}

/// The streams of a command.
pub(crate) const STREAMS: [&str; 2] = ["stdout", "stderr"];

/// Returns the name of the archive's member with one of the [`STREAMS`] of a command.
pub(crate) fn stream_name(command: usize, stream: &str) -> String {
    format!("{RESULT}/{command}.{stream}")
}

/// Returns the name of the archive's last member, which has the [`End`]. An archive without it is truncated.
pub(crate) fn end_name() -> String {
    format!("{RESULT}/end.json")
}

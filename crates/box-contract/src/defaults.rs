//! The values that hold unless a Boxfile says otherwise, for all programs.

/// The port on which an agent listens: the vsock port of the A3S agents, and inside of the box a
/// TCP port of loopback.
pub const AGENT_PORT: u16 = 4088;

/// How much of a command's output is kept, in bytes: 10 MB.
pub const MAX_OUTPUT_BYTES: u64 = 10_000_000;

/// Where programs are looked for: `PATH` of a component whose image does not set it.
pub const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

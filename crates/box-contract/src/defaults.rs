//! Default values that all programs share. A Boxfile can override them.

/// The port on which an agent listens: the vsock port of the A3S agents, and a TCP port on loopback inside the box.
pub const AGENT_PORT: u16 = 4088;

/// The maximum number of bytes of a command's output that are kept: 10 MB.
pub const MAX_OUTPUT_BYTES: u64 = 10_000_000;

/// How long a command that the policy asks about waits for an answer, in seconds: two minutes.
pub const ASK_TIMEOUT_SECONDS: u32 = 120;

/// The default of `PATH` in a component whose image does not set it.
pub const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

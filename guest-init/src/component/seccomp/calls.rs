//! The columns of the table of system calls.

/// The filter's verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The filter allows the call, and the kernel decides on it.
    Allowed,
    /// The call fails with `EPERM`.
    Refused,
    /// The call fails with `ENOSYS`, as if the kernel did not have it. Programs then use an older call, or continue
    /// without one.
    Absent,
    /// Allowed for some socket families, otherwise `EAFNOSUPPORT`.
    ByFamily,
    /// Allowed with some flags, otherwise `EPERM`.
    ByCloneFlags,
    /// Allowed for some personalities, otherwise `EPERM`.
    ByPersonality,
    /// Allowed with most requests, otherwise `EPERM`.
    ByRequest,
}

/// The verdict of Docker's default profile, for comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Docker {
    Allows,
    Refuses,
    /// Docker checks the arguments.
    Restricts,
    /// Docker allows the call to containers with this capability.
    Needs(&'static str),
}

/// Calls with consecutive numbers and one verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The number of the first call.
    pub(crate) first: u32,
    /// The names, separated by spaces.
    pub(crate) names: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) docker: Docker,
    /// The reason for the verdict, or an empty string.
    pub(crate) reason: &'static str,
}

impl Row {
    /// Returns the number after the last call.
    pub(crate) const fn end(&self) -> u32 {
        let (names, mut at, mut end) = (self.names.as_bytes(), 0, self.first + 1);
        while at < names.len() {
            if names[at] == b' ' {
                end += 1;
            }
            at += 1;
        }
        end
    }
}

//! The columns of the table of system calls.

/// The answer of the filter to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The kernel decides.
    Allowed,
    /// `EPERM`.
    Refused,
    /// `ENOSYS`, as if the kernel had no such call: programs then do without, or take an older one.
    Absent,
    /// Allowed for some families of sockets, otherwise `EAFNOSUPPORT`.
    ByFamily,
    /// Allowed with some flags, otherwise `EPERM`.
    ByCloneFlags,
    /// Allowed for some personalities, otherwise `EPERM`.
    ByPersonality,
    /// Allowed with most requests, otherwise `EPERM`.
    ByRequest,
}

/// The answer of Docker's default profile, for comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Docker {
    Allows,
    Refuses,
    /// It looks at the arguments, too.
    Restricts,
    /// It allows the call to containers with this capability.
    Needs(&'static str),
}

/// Calls with consecutive numbers and one verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// The number of the first.
    pub(crate) first: u32,
    /// The names, with a space between.
    pub(crate) names: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) docker: Docker,
    /// Why, where there is something to say.
    pub(crate) reason: &'static str,
}

impl Row {
    /// Returns the number after the last.
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

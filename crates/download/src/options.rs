//! How the network is used.

use std::fmt;
use std::path::Path;

use box_digest::Digest;

use crate::retry::Policy;

/// How the network is used.
#[derive(Clone, Copy, Default)]
pub struct NetworkOptions<'a> {
    /// How patient downloads are.
    pub policy: Policy,
    /// The proxy for all requests but those to this machine, `http://…` or `https://…`. It may have
    /// a name and a password, which only the proxy sees.
    pub proxy: Option<&'a str>,
    /// A PEM file with the root certificates that are trusted, in the place of the system's.
    pub roots: Option<&'a Path>,
    /// Is called after each piece of a download: often, and from several threads.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl fmt::Debug for NetworkOptions<'_> {
    /// Leaves out the proxy's text, which may have a password, and the closure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, roots, .. } = self;
        let mut shown = f.debug_struct("NetworkOptions");
        shown.field("policy", policy).field("roots", roots).finish_non_exhaustive()
    }
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The expected content.
    pub digest: Digest,
    /// Bytes so far; fewer than before where a download had to start again.
    pub received: u64,
    /// All bytes, where they are known. As many are received only when the store has the file,
    /// verified.
    pub total: Option<u64>,
}

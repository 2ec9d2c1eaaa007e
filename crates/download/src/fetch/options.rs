//! How a file is fetched.

use std::fmt;
use std::path::Path;

use crate::download::Progress;
use crate::retry::Policy;
use crate::size::Size;

/// How a file is fetched.
#[derive(Clone, Copy)]
pub struct FetchOptions<'a> {
    /// Take files from the store only.
    pub offline: bool,
    /// The file's size.
    pub size: Size,
    /// How patient the download is.
    pub policy: Policy,
    /// The proxy for all requests but those to this machine, `http://…` or `https://…`. It may have
    /// a name and a password, which only the proxy sees.
    pub proxy: Option<&'a str>,
    /// A PEM file with the root certificates that are trusted, in the place of the system's.
    pub roots: Option<&'a Path>,
    /// Is called after each piece: often, so that a display need not change each time.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for FetchOptions<'_> {
    /// Returns options for a file of up to 2 GiB, without a proxy.
    fn default() -> Self {
        Self {
            offline: false,
            size: Size::AtMost(2 << 30),
            policy: Policy::default(),
            proxy: None,
            roots: None,
            progress: None,
        }
    }
}

impl fmt::Debug for FetchOptions<'_> {
    /// Leaves out the proxy's text, which may have a password, and the closure.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchOptions")
            .field("offline", &self.offline)
            .field("size", &self.size)
            .field("policy", &self.policy)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

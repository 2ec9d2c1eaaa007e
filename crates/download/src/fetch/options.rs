//! How a file is fetched.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::{FetchError, RemoteUrl};

/// How a file is fetched.
#[derive(Clone, Copy)]
pub struct FetchOptions<'a> {
    /// Take files from the store only.
    pub offline: bool,
    /// The file's size in bytes, where it is known.
    pub size: Option<u64>,
    /// The most bytes that a file may have.
    pub limit: u64,
    /// How long to wait for the connection, for the answer, and for each next byte of it.
    pub patience: Duration,
    /// How long to wait before the second try; before the third, twice as long.
    pub backoff: Duration,
    /// The proxy for all requests but those to this machine, `http://…` or `https://…`. It may have
    /// a name and a password, which only the proxy sees.
    pub proxy: Option<&'a str>,
    /// A PEM file with the root certificates that are trusted, in the place of the system's.
    pub roots: Option<&'a Path>,
    /// Is told after each piece how far a download is: often, so that whoever prints it does not
    /// print it each time.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// How far a download is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes so far; fewer than before where a download had to start again.
    pub received: u64,
    /// All bytes, where the server tells.
    pub total: Option<u64>,
}

impl Default for FetchOptions<'_> {
    /// Returns options for a file of up to 2 GiB from a server that may pause for 30 s, without a
    /// proxy.
    fn default() -> Self {
        Self {
            offline: false,
            size: None,
            limit: 2 << 30,
            patience: Duration::from_secs(30),
            backoff: Duration::from_secs(1),
            proxy: None,
            roots: None,
            progress: None,
        }
    }
}

impl FetchOptions<'_> {
    /// Refuses a file that is too large, or whose size is not the known one.
    pub(super) fn check_size(&self, url: &RemoteUrl, found: u64) -> Result<(), FetchError> {
        self.check_partial(url, found)?;
        match self.size {
            Some(expected) if expected != found => {
                Err(FetchError::WrongSize { url: url.clone(), expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Refuses the first bytes of a file where they are too many already.
    pub(super) fn check_partial(&self, url: &RemoteUrl, found: u64) -> Result<(), FetchError> {
        if found > self.limit {
            return Err(FetchError::TooLarge { url: url.clone(), limit: self.limit });
        }
        match self.size {
            Some(expected) if found > expected => {
                Err(FetchError::WrongSize { url: url.clone(), expected, found })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for FetchOptions<'_> {
    /// Leaves out the proxy's text, which may have a password, and what is told of the progress.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchOptions")
            .field("offline", &self.offline)
            .field("size", &self.size)
            .field("limit", &self.limit)
            .field("patience", &self.patience)
            .field("backoff", &self.backoff)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

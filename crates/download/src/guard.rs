//! The rules that keep secrets at home and wrong content out of the store.
//!
//! Each rule is asked for by name where it applies. In a test build one of them can be switched off,
//! to show that the tests notice; in every other build all of them hold, always.

/// One of the rules that a malicious server would like to be rid of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Credentials go to the server's own origin only, and never again after a redirect has left it.
    OwnOrigin,
    /// Tokens are fetched from the registry itself or from a server that is trusted for it.
    Realm,
    /// Tokens are not fetched over http.
    PlainRealm,
    /// No redirect leads from https to http.
    Downgrade,
    /// Content has the expected digest.
    Digest,
    /// Content has the expected size.
    Size,
    /// A document has at most as many bytes as its limit.
    Limit,
}

/// Which guards hold: all, except for one in some tests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guards {
    /// The one that is switched off.
    #[cfg(any(test, feature = "testing"))]
    pub without: Option<Guard>,
}

impl Guards {
    /// Returns whether a guard holds.
    #[cfg(not(any(test, feature = "testing")))]
    pub const fn hold(self, _: Guard) -> bool {
        true
    }

    /// Returns whether a guard holds.
    #[cfg(any(test, feature = "testing"))]
    pub fn hold(self, guard: Guard) -> bool {
        self.without != Some(guard)
    }
}

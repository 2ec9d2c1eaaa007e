//! What keeps secrets at home and lies out of the store.
//!
//! Each guard is asked for by name where it stands. In a test build one of them can be taken away,
//! to show that the tests notice; in every other build all of them hold, always.

/// One of the rules that an evil registry would like to be rid of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    /// Credentials go to the registry's own origin only, and never again after a redirect has left.
    OwnOrigin,
    /// Tokens are fetched from the registry itself or from a server that is trusted for it.
    Realm,
    /// Tokens are not fetched over http.
    PlainRealm,
    /// No redirect leads from https to http.
    Downgrade,
    /// Content has the digest that it is asked for by.
    Digest,
    /// Content has the size that is named with its digest.
    Size,
    /// A document has no more bytes than it may have.
    Limit,
    /// A manifest is of one kind.
    Kind,
}

/// Which guards hold.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Guards {
    /// The one that is taken away.
    #[cfg(test)]
    pub(super) without: Option<Guard>,
}

impl Guards {
    /// Whether a guard holds.
    #[cfg(not(test))]
    pub(super) const fn hold(self, _: Guard) -> bool {
        true
    }

    /// Whether a guard holds.
    #[cfg(test)]
    pub(super) fn hold(self, guard: Guard) -> bool {
        self.without != Some(guard)
    }
}

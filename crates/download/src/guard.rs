//! The named checks that keep secrets from other servers, and wrong content out of the store.

guards::guards! {
    #[cfg(any(test, feature = "testing"))]
    /// One of the rules that a malicious server would like to be rid of.
    pub enum Guard {
        /// Credentials go to the server's own origin only, and never again after a redirect has left it.
        OwnOrigin,
        /// Tokens are fetched from the registry itself or from a server that is trusted for it.
        Realm,
        /// Tokens are not fetched over http.
        PlainRealm,
        /// No redirect leads from https to http.
        Downgrade,
        /// No redirect leads to an address that is only known on the link, or to a cloud's metadata.
        LinkLocal,
        /// Content has the expected digest.
        Digest,
        /// Content has the expected size.
        Size,
        /// A document has at most as many bytes as its limit.
        Limit,
    }
}

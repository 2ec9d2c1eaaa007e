//! Verifies bundles.

use box_digest::Digest;

use crate::policy::Requirement;
use crate::{Kind, PublicKey, Statement, TrustError, bundle};

/// A statement about a box, and the trusted key that has signed it.
#[derive(Debug, Clone)]
pub struct Verified<'k> {
    /// The key.
    pub key: &'k PublicKey,
    /// The statement.
    pub statement: Statement,
    /// The digest of the bundle.
    pub bundle: Digest,
    /// The digest of the payload: the only bytes of a bundle that are signed. Anybody can make other bundles with the same payload,
    /// for example with white space at the end.
    pub payload: Digest,
}

/// The statements that fulfil a [`Requirement`].
#[derive(Debug, Clone)]
pub struct Accepted<'k> {
    /// The signature.
    pub signature: Verified<'k>,
    /// The provenance, if it is required.
    pub provenance: Option<Verified<'k>>,
}

/// Verifies that one of the keys `trusted` has signed a bundle, and that its statement is about the box `box_digest`.
///
/// The bundle's hint selects the key, and the key's own algorithm is used. The statement is read after its signature has been
/// verified.
///
/// # Errors
/// The bundle is malformed, signed by another key, changed, or about another box.
pub fn verify<'k>(
    bundle: &[u8],
    trusted: &'k [PublicKey],
    box_digest: &Digest,
) -> Result<Verified<'k>, TrustError> {
    let read = bundle::read(bundle)?;
    let key = trusted.iter().find(|key| key.hint() == read.hint);
    let key = key.ok_or_else(|| TrustError::OtherKey(safe_text::quote(&read.hint)))?;
    key.check(&read.message, &read.signature)?;
    let payload = &read.message[read.payload..];
    let statement = Statement::read(payload, box_digest)?;
    Ok(Verified { key, statement, bundle: Digest::of(bundle), payload: Digest::of(payload) })
}

/// What a bundle says about itself. Nothing of it is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The hint of the key: see [`PublicKey::hint`]. It may be any text.
    pub hint: String,
    /// The kind of the statement.
    pub kind: Kind,
}

/// Reads what a bundle says about itself, to show it. Use [`verify`] for every decision.
///
/// # Errors
/// The bundle or its statement is malformed.
pub fn claim(bundle: &[u8]) -> Result<Claim, TrustError> {
    let read = bundle::read(bundle)?;
    let kind = Statement::kind_of(&read.message[read.payload..])?;
    Ok(Claim { hint: read.hint, kind })
}

impl<'k> Requirement<'k> {
    /// Verifies that the bundles of a box have what the policy requires: a signature, and provenance if that is required. An
    /// SBOM or provenance alone does not approve a box.
    /// `bundles` are read until that is fulfilled. With [`refuse_older`](Self::refuse_older), all are read, and the signature is that of
    /// the latest release.
    ///
    /// # Errors
    /// [`TrustError::Missing`] if they do not.
    pub fn check<'b>(
        &self,
        bundles: impl IntoIterator<Item = &'b [u8]>,
        box_digest: &Digest,
    ) -> Result<Accepted<'k>, TrustError> {
        let (mut signature, mut provenance, mut faults) = (None, None, Vec::new());
        for bundle in bundles {
            match verify(bundle, self.keys, box_digest) {
                Ok(verified) if verified.statement.kind == Kind::Signature => {
                    signature = Some(self.better(signature, verified));
                }
                Ok(verified) if verified.statement.kind == Kind::Provenance => {
                    provenance = provenance.or(Some(verified));
                }
                Ok(_) => {}
                Err(fault) => faults.push(fault),
            }
            let may_stop = signature.is_some() && !self.refuse_older;
            if may_stop && (provenance.is_some() || !self.provenance) {
                break;
            }
        }
        let missing = |kind| TrustError::Missing { kind, faults: faults.clone() };
        let signature = signature.ok_or_else(|| missing(Kind::Signature))?;
        if self.provenance && provenance.is_none() {
            return Err(missing(Kind::Provenance));
        }
        Ok(Accepted { signature, provenance: provenance.filter(|_| self.provenance) })
    }

    /// Returns the one of two signatures that counts.
    fn better(&self, first: Option<Verified<'k>>, second: Verified<'k>) -> Verified<'k> {
        let is_later = |it: &Verified<'k>| second.statement.release() > it.statement.release();
        match first {
            Some(first) if !(self.refuse_older && is_later(&first)) => first,
            _ => second,
        }
    }
}

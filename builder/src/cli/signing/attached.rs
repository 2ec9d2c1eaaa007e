//! Describes the attachments of a box for `boxbuild inspect`.

use box_digest::Digest;
use box_trust::{BUNDLE_MEDIA_TYPE, claim};
use cli_common::store::BoxArgument;
use safe_text::{readable, shown};
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::stored::PROGRAM;

/// An attachment of a box. Its kind and its key are not verified.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Attached {
    digest: Digest,
    media_type: String,
    bytes: usize,
    /// The kind of its statement, if it is a bundle.
    kind: Option<String>,
    /// The hint of the key that a bundle names.
    key_hint: Option<String>,
}

impl Attached {
    /// Returns the line of the attachment.
    pub(crate) fn line(&self) -> String {
        let size = readable(self.bytes as u64);
        let text = match (&self.kind, &self.key_hint) {
            (Some(kind), Some(hint)) => {
                format!("attached    {kind} by the key {hint} ({size}), not verified")
            }
            _ => format!("attached    {} ({size})", self.media_type),
        };
        shown(&text)
    }
}

/// Returns the attachments that the store keeps for a box.
pub(crate) fn attached(argument: &BoxArgument, digest: &Digest) -> Result<Vec<Attached>, Failure> {
    let all = cli_common::store::attachments(&argument.store.stores(&PROGRAM), digest)?;
    let described = all.into_iter().map(|it| {
        let is_bundle = it.media_type == BUNDLE_MEDIA_TYPE;
        let claim = is_bundle.then(|| claim(&it.bytes).ok()).flatten();
        let (kind, key_hint) = claim.map(|it| (it.kind.name().to_owned(), it.hint)).unzip();
        let (digest, bytes) = (Digest::of(&it.bytes), it.bytes.len());
        Attached { digest, media_type: it.media_type, bytes, kind, key_hint }
    });
    Ok(described.collect())
}

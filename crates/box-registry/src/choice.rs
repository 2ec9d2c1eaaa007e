//! Chooses the attachments of a box that a store keeps, if there are more than it takes.
//!
//! Everybody who can write to a repository can add attachments, so the choice must not depend on how many there are, or on their
//! order. Signatures come before other documents, small ones before large ones, and of the same size the last of a list before
//! those before it. So many large documents do not keep a small one from being fetched.
//! What is no signature after all then gives way to one that is, and every other document to one that a trusted key has signed.
//! Of several bundles with what a trusted key has signed once, one is taken.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHED, MAX_ATTACHMENT, MAX_ATTACHMENTS};
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_trust::{BUNDLE_MEDIA_TYPE, PublicKey, claim, verify};

use crate::build_cache::CACHE_TYPE;
use crate::delta::DELTAS_TYPE;
use crate::form::IMAGE_CONFIG_TYPE;
use crate::referrer::MAX_REFERRER;

/// The maximum number of manifests that cannot be those of signatures, and are fetched to find attachments.
const MAX_OTHERS: usize = 4 * MAX_ATTACHMENTS;
/// The maximum size of all attachments that are fetched to choose from them, in bytes.
pub const MAX_FETCHED: u64 = 4 * MAX_ATTACHED;

/// What an attachment is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Worth {
    /// It has the type of a bundle, and is malformed.
    Malformed,
    /// It is no bundle.
    Other,
    /// It is a bundle with a statement. Nothing of it is verified.
    Bundle,
    /// It is a statement about the box, signed by a trusted key.
    Trusted,
}

impl Worth {
    /// Returns what an attachment is worth to somebody who trusts no key.
    pub(crate) fn of(attachment: &Attachment) -> Self {
        let Attachment { media_type, bytes, .. } = attachment;
        if media_type != BUNDLE_MEDIA_TYPE {
            Self::Other
        } else if claim(bytes).is_ok() {
            Self::Bundle
        } else {
            Self::Malformed
        }
    }
}

/// Returns the listed manifests that may be the manifests of attachments, in their order: all that may be those of signatures, and
/// the last ones of the others. Also returns how many others there are.
pub(crate) fn candidates(listed: &[Descriptor]) -> (Vec<&Descriptor>, usize) {
    let kind = |it: &Descriptor| it.artifact_type.clone();
    let may_be = |it: &&Descriptor| {
        let is_small = it.media_type == OCI_MANIFEST_TYPE && it.size <= MAX_REFERRER;
        is_small && !kind(it).is_some_and(|it| [CACHE_TYPE, DELTAS_TYPE].contains(&&*it))
    };
    // A registry that refuses artifacts has images, and lists them with the type of their config or without a type.
    let may_be_bundle = |it: &&Descriptor| {
        kind(it).is_none_or(|it| [BUNDLE_MEDIA_TYPE, IMAGE_CONFIG_TYPE].contains(&&*it))
    };
    let mut all: Vec<_> = listed.iter().filter(may_be).collect();
    let others = all.iter().filter(|it| !may_be_bundle(it)).count();
    let mut surplus = others.saturating_sub(MAX_OTHERS);
    let left_out = surplus;
    all.retain(|it| {
        let is_surplus = surplus > 0 && !may_be_bundle(it);
        surplus -= usize::from(is_surplus);
        !is_surplus
    });
    (all, left_out)
}

/// Returns each attachment once, in the order in which they are fetched, with its place in the list.
pub(crate) fn ranked(infos: Vec<AttachmentInfo>) -> Vec<(usize, AttachmentInfo)> {
    let mut ranked: Vec<_> = infos.into_iter().enumerate().rev().collect();
    // The last of the same attachments is the first of them, and stays.
    ranked.sort_by(|(_, one), (_, other)| one.identity().cmp(&other.identity()));
    ranked.dedup_by(|(_, one), (_, other)| one.identity() == other.identity());
    ranked.sort_by_key(|(at, it)| (it.media_type != BUNDLE_MEDIA_TYPE, it.size, Reverse(*at)));
    ranked
}

/// The attachments that were chosen from those that have been fetched.
#[derive(Debug)]
pub(crate) struct Choice<'k> {
    digest: Digest,
    trusted: &'k [PublicKey],
    /// The best first. Each has its place in the list.
    chosen: Vec<(Worth, usize, Attachment)>,
    /// What trusted keys have signed: the hint of the key, and the digest of the payload.
    signed: BTreeSet<(String, Digest)>,
    /// The size of all attachments that were asked for, in bytes.
    fetched: u64,
}

impl<'k> Choice<'k> {
    /// Starts the choice for the box `digest`. Nothing that the keys `trusted` have signed gives way to anything else.
    pub(crate) const fn new(digest: Digest, trusted: &'k [PublicKey]) -> Self {
        Self { digest, trusted, chosen: Vec::new(), signed: BTreeSet::new(), fetched: 0 }
    }

    /// Returns how many of the attachments `next` are fetched now: as many as a box may have, up to the size of one large one. 0 if
    /// none could be chosen any more, or too much was fetched.
    pub(crate) fn step(&self, next: &[(usize, AttachmentInfo)]) -> usize {
        let best = if self.trusted.is_empty() { Worth::Bundle } else { Worth::Trusted };
        let is_full = self.chosen.len() == MAX_ATTACHMENTS;
        if is_full && self.chosen.iter().all(|it| it.0 >= best) {
            return 0;
        }
        let (limit, mut bytes) = (MAX_ATTACHMENT.min(MAX_FETCHED - self.fetched), 0);
        let fits = |(_, it): &&(usize, AttachmentInfo)| {
            bytes += it.size;
            bytes <= limit
        };
        next.iter().take(MAX_ATTACHMENTS).take_while(fits).count()
    }

    /// Adds attachments that were fetched, each with its place in the list. `asked` are those that were asked for, also if the
    /// registry lacks them.
    pub(crate) fn add(
        &mut self,
        asked: &[(usize, AttachmentInfo)],
        fetched: impl IntoIterator<Item = (usize, Attachment)>,
    ) {
        self.fetched += asked.iter().map(|(_, it)| it.size).sum::<u64>();
        for (at, it) in fetched {
            let worth = self.worth(&it);
            self.chosen.extend(worth.map(|worth| (worth, at, it)));
        }
        // Among equals, those that were fetched first stay.
        self.chosen.sort_by_key(|it| Reverse(it.0));
        let mut sizes = Vec::new();
        self.chosen.retain(|(.., it)| {
            sizes.push(it.bytes.len() as u64);
            let fits = AttachmentInfo::check_sizes(sizes.iter().copied()).is_ok();
            if !fits {
                sizes.pop();
            }
            fits
        });
    }

    /// Returns what an attachment is worth, or `None` if it is a copy of one that a trusted key has signed. Only the payload of a
    /// bundle is signed, so anybody can make any number of different bundles from one.
    fn worth(&mut self, attachment: &Attachment) -> Option<Worth> {
        let is_bundle = attachment.media_type == BUNDLE_MEDIA_TYPE && !self.trusted.is_empty();
        let verified = is_bundle.then(|| verify(&attachment.bytes, self.trusted, &self.digest));
        match verified {
            Some(Ok(it)) => {
                self.signed.insert((it.key.hint(), it.payload)).then_some(Worth::Trusted)
            }
            _ => Some(Worth::of(attachment)),
        }
    }

    /// Returns the chosen attachments, in the order of the list.
    pub(crate) fn finish(mut self) -> Vec<Attachment> {
        self.chosen.sort_by_key(|it| it.1);
        self.chosen.into_iter().map(|it| it.2).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(media_type: &str, number: u64, size: u64) -> AttachmentInfo {
        let digest = Digest::of(&number.to_le_bytes());
        AttachmentInfo { digest, size, ..Attachment::new(media_type, Vec::new()).info() }
    }

    #[test]
    fn small_signatures_are_fetched_before_large_ones_wherever_they_are_listed() {
        let mut all = vec![info(BUNDLE_MEDIA_TYPE, 0, 2 << 20), info("text/plain", 1, 1)];
        all.extend((2..258).map(|it| info(BUNDLE_MEDIA_TYPE, it, 1 << 20)));
        all.insert(100, info(BUNDLE_MEDIA_TYPE, 300, 4096));
        let ranked = ranked(all);
        let sizes: Vec<_> = ranked.iter().map(|(_, it)| it.size).collect();
        assert_eq!((sizes[0], sizes[1], sizes[257], sizes[258]), (4096, 1 << 20, 2 << 20, 1));
        // Of the same size, the last of the list are the first.
        assert_eq!((ranked[0].0, ranked[1].0, ranked[2].0), (100, 258, 257));
        let choice = Choice::new(Digest::of(b"box"), &[]);
        assert!(choice.step(&ranked) > 1);
    }
}

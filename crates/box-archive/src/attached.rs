//! The attachments of boxes in a file: each is a manifest in the index whose `subject` is the manifest of a box.

use std::collections::BTreeMap;

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHED};
use box_contract::Descriptor;
use box_digest::Digest;
use box_registry::{EMPTY, Referrer, empty};

use crate::ArchiveError;

/// The attachments of the boxes that are written to a file.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// The manifests of the attachments, by their digests, each with the descriptor in the index.
    pub(crate) manifests: BTreeMap<Digest, (Descriptor, Vec<u8>)>,
    /// The blobs that the manifests name.
    pub(crate) content: BTreeMap<Digest, Vec<u8>>,
    /// The size of the attachments, in bytes, as a reader counts them: one that several boxes share counts for each.
    bytes: u64,
}

impl Attached {
    /// Adds the attachments of the box whose manifest is `subject`.
    pub(crate) fn add(
        &mut self,
        subject: &Descriptor,
        attachments: Vec<Attachment>,
    ) -> Result<(), ArchiveError> {
        for attachment in attachments {
            let info = attachment.info();
            let (descriptor, manifest) = Referrer::manifest(subject, &info);
            // The annotations are in the manifest.
            let listed = Descriptor { annotations: BTreeMap::new(), ..descriptor };
            let is_new = self.manifests.insert(listed.digest, (listed, manifest)).is_none();
            self.bytes += if is_new { info.size } else { 0 };
            self.content.insert(info.digest, attachment.bytes);
            self.content.insert(empty().digest, EMPTY.to_vec());
        }
        let bytes = self.bytes;
        if bytes <= MAX_ATTACHED { Ok(()) } else { Err(ArchiveError::Attachments { bytes }) }
    }

    /// Returns the descriptors in the index.
    pub(crate) fn listed(&self) -> impl Iterator<Item = Descriptor> {
        self.manifests.values().map(|(listed, _)| listed.clone())
    }
}

/// Returns the attachments of each of the boxes whose manifests are `subjects`. The error is the violated rule, as a clause, if a
/// box has too many, or if they are too large together. One that several boxes share counts for each, because each gets its bytes.
pub(crate) fn of_boxes(
    referrers: &[Referrer],
    subjects: impl Iterator<Item = Digest>,
) -> Result<Vec<Vec<AttachmentInfo>>, String> {
    let all: Vec<_> = subjects.map(|it| of_box(referrers, &it)).collect::<Result<_, _>>()?;
    check(all.iter().flatten().map(|it| it.size)).map(|()| all)
}

/// Returns the attachments of the box whose manifest is `subject`, each once.
fn of_box(referrers: &[Referrer], subject: &Digest) -> Result<Vec<AttachmentInfo>, String> {
    let mut found: Vec<AttachmentInfo> = Vec::new();
    for Referrer { info, .. } in referrers.iter().filter(|it| it.subject == *subject) {
        if found.iter().all(|it| it.identity() != info.identity()) {
            found.push(info.clone());
        }
    }
    AttachmentInfo::check_all(&found).map(|()| found)
}

/// Checks the sizes of the attachments of a file.
fn check(sizes: impl Iterator<Item = u64>) -> Result<(), String> {
    let bytes = sizes.fold(0, u64::saturating_add);
    if bytes > MAX_ATTACHED {
        return Err(format!(
            "its attachments have {bytes} bytes together, and at most {MAX_ATTACHED} are allowed"
        ));
    }
    Ok(())
}

/// Returns the digests and the sizes of all blobs that the manifests of attachments name. The error is the violated rule, as a
/// clause, if they are too large together.
pub(crate) fn blobs(referrers: &[Referrer]) -> Result<BTreeMap<Digest, u64>, String> {
    let mut blobs: BTreeMap<_, _> =
        referrers.iter().map(|it| (it.info.digest, it.info.size)).collect();
    check(blobs.values().copied())?;
    if !blobs.is_empty() {
        blobs.insert(empty().digest, empty().size);
    }
    Ok(blobs)
}

//! Sends and fetches the attachments of boxes, such as signatures.
//!
//! In a registry, an attachment is a manifest about the registry's manifest of the box. The registry is not trusted: an
//! attachment proves nothing before its signature is verified, and the signature must be about the box digest.

use std::collections::BTreeSet;

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHED, MAX_ATTACHMENTS, Store, StoreError};
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use download::http::InMemory;
use oci_registry::{Pusher, Reference, Registry, RegistryError, Repository};

use crate::build_cache::CACHE_TYPE;
use crate::error::BoxRegistryError;
use crate::origin::{Origin, Repo};
use crate::parallel;
use crate::push::Pushed;
use crate::referrer::{EMPTY, MAX_REFERRER, Referrer, empty};
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Memory;

/// The maximum number of manifests that are fetched to find the attachments of a box.
const MAX_CANDIDATES: usize = 4 * MAX_ATTACHMENTS;

/// The attachments of a push.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SentAttachments {
    /// The number of attachments that the store keeps for the box. The registry now has them.
    pub all: usize,
    /// The number of them that were sent.
    pub sent: usize,
    /// The number of sent bytes, including manifests.
    pub bytes: u64,
}

/// Fetches the attachments of a box in a registry. They are few and small, so that a policy can look at them before a blob of the
/// box is fetched.
///
/// Manifests about the box that are no attachments ([`Referrer::of`]) are left out, and manifests that the registry lists but
/// lacks. If there are more attachments than the store takes for one box, the last of the registry's list are returned.
///
/// # Errors
/// [`BoxRegistryError::Registry`], for example if the registry is down. A registry that cannot list referrers has no attachments
/// ([`Registry::referrers`]).
pub fn attachments(
    registry: &Registry,
    repository: &Repository,
    remote: &Remote,
) -> Result<Vec<Attachment>, BoxRegistryError> {
    let subject = remote.registry_digest;
    let listed = registry.referrers(repository, &subject, None)?;
    let candidates = candidates(&listed);
    let read = |it: &&Descriptor| match registry.manifest(repository, &Reference::Digest(it.digest))
    {
        Err(RegistryError::NotFound { .. }) => Ok(None),
        manifest => manifest.map(|it| Referrer::of(&it.bytes)),
    };
    let referrers = parallel::each(&candidates, registry.parallel(), read)?;
    let mine = referrers.into_iter().flatten().filter(|it| it.subject == subject);
    let infos = last(mine.map(|it| it.info).collect());
    let origin = Repo { registry, repository };
    parallel::each(&infos, registry.parallel(), |info| fetch(&origin, info))
}

/// Adds attachments to a box of the store, or to one that is pulled next. Returns how many are new.
///
/// The attachments with the digests `needed`, by which a policy has accepted the box, are always added. If the box then has too
/// many, the others of the list make room first: they can be fetched again. If the box already has as many attachments as the store
/// takes, the others are left out. So nobody who can only add attachments to a registry can keep the store from a signature.
///
/// # Errors
/// [`BoxRegistryError::Store`].
pub fn keep_attachments(
    store: &Store,
    digest: &Digest,
    attachments: &[Attachment],
    needed: &[Digest],
) -> Result<usize, BoxRegistryError> {
    let is_needed = |it: &&Attachment| needed.contains(&Digest::of(&it.bytes));
    let (first, others): (Vec<_>, Vec<_>) = attachments.iter().partition(is_needed);
    let spare = others.iter().map(|it| Digest::of(&it.bytes)).collect();
    let mut new = store.attach_needed(digest, &first, &spare)?;
    for attachment in others {
        match store.attach(digest, attachment) {
            Ok(is_new) => new += usize::from(is_new),
            Err(StoreError::Attachment { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(new)
}

/// Sends attachments about a manifest of a repository. What the registry has already is not sent again, whichever client has sent
/// it.
///
/// # Errors
/// [`BoxRegistryError::Registry`], for example if the registry does not have the manifest.
pub fn send_attachments(
    registry: &Registry,
    repository: &Repository,
    subject: &Digest,
    attachments: &[Attachment],
) -> Result<SentAttachments, BoxRegistryError> {
    let pusher = registry.pusher(repository)?;
    let subject = subject_of(&pusher, subject)?;
    let listed = pusher.referrers(&subject.digest)?;
    let known = known(&pusher, &listed, &subject, attachments)?;
    let new = attachments.iter().filter(|it| !known.contains(&Digest::of(&it.bytes)));
    let new: Vec<_> = new.collect();
    let mut bytes = 0;
    for it in &new {
        let layer = Descriptor::new(&*it.media_type, Digest::of(&it.bytes), it.bytes.len() as u64);
        bytes += send(&pusher, &layer, &it.bytes)?;
    }
    let infos: Vec<_> = new.iter().map(|it| it.info()).collect();
    bytes += match send_manifests(&pusher, &subject, &infos) {
        Err(BoxRegistryError::Registry(error)) if error.is_refused_kind() => {
            send_images(&pusher, &subject, &infos)?
        }
        sent => sent?,
    };
    Ok(SentAttachments { all: attachments.len(), sent: new.len(), bytes })
}

/// Sends the manifests of attachments whose bytes the registry has. Returns the number of sent bytes.
fn send_manifests(
    pusher: &Pusher,
    subject: &Descriptor,
    infos: &[AttachmentInfo],
) -> Result<u64, BoxRegistryError> {
    let config = if infos.is_empty() { 0 } else { send(pusher, &empty(), EMPTY)? };
    let manifests: Vec<_> = infos.iter().map(|it| Referrer::manifest(subject, it)).collect();
    pusher.put_referrers(&subject.digest, &manifests)?;
    Ok(manifests.iter().fold(config, |all, (it, _)| all + it.size))
}

/// Like [`send_manifests`], for a registry that refuses artifacts.
fn send_images(
    pusher: &Pusher,
    subject: &Descriptor,
    infos: &[AttachmentInfo],
) -> Result<u64, BoxRegistryError> {
    let (mut manifests, mut bytes) = (Vec::new(), 0);
    for info in infos {
        let (manifest, (config, config_bytes)) = Referrer::image(subject, info);
        bytes += send(pusher, &config, &config_bytes)? + manifest.0.size;
        manifests.push(manifest);
    }
    pusher.put_referrers(&subject.digest, &manifests)?;
    Ok(bytes)
}

/// Sends the attachments that the store keeps for a box that was pushed.
pub(crate) fn send_kept(
    registry: &Registry,
    repository: &Repository,
    store: &Store,
    pushed: Pushed,
) -> Result<Pushed, BoxRegistryError> {
    let infos = store.attachments(&pushed.digest)?;
    if infos.is_empty() {
        return Ok(pushed);
    }
    let kept = infos.iter().map(|it| store.read_attachment(it)).collect::<Result<Vec<_>, _>>()?;
    let attachments = send_attachments(registry, repository, &pushed.registry_digest, &kept)?;
    Ok(Pushed { attachments, ..pushed })
}

/// Returns the descriptor of a manifest in the registry.
fn subject_of(pusher: &Pusher, subject: &Digest) -> Result<Descriptor, BoxRegistryError> {
    let repository = pusher.repository();
    let found = pusher.manifest(&Reference::Digest(*subject))?.ok_or_else(|| {
        let what = format!("{} with the digest {subject}", repository.name());
        RegistryError::NotFound { what, host: repository.host().to_owned(), tag: None }
    })?;
    let media_type = found.media_type.unwrap_or(OCI_MANIFEST_TYPE);
    Ok(Descriptor::new(media_type, *subject, found.bytes.len() as u64))
}

/// Returns the digests of those attachments that the registry lists. Another client may have sent one with another manifest, so
/// listed manifests of the same type are read, unless the manifest of this crate is listed.
fn known(
    pusher: &Pusher,
    listed: &[Descriptor],
    subject: &Descriptor,
    attachments: &[Attachment],
) -> Result<BTreeSet<Digest>, BoxRegistryError> {
    let infos: Vec<_> = attachments.iter().map(Attachment::info).collect();
    let (mut known, mut types) = (BTreeSet::new(), BTreeSet::new());
    for info in &infos {
        let own = [Referrer::manifest(subject, info).0, Referrer::image(subject, info).0.0];
        if listed.iter().any(|it| own.iter().any(|own| own.digest == it.digest)) {
            known.insert(info.digest);
        } else {
            types.insert(&*info.media_type);
        }
    }
    let is_like =
        |it: &&Descriptor| it.artifact_type.as_deref().is_none_or(|it| types.contains(it));
    for candidate in candidates(listed).into_iter().filter(is_like) {
        if infos.iter().all(|it| known.contains(&it.digest)) {
            break;
        }
        let manifest = pusher.manifest(&Reference::Digest(candidate.digest))?;
        let referrer = manifest.and_then(|it| Referrer::of(&it.bytes));
        known.extend(referrer.filter(|it| it.subject == subject.digest).map(|it| it.info.digest));
    }
    Ok(known)
}

/// Returns the listed manifests that may be the manifests of attachments: the last ones of the list.
fn candidates(listed: &[Descriptor]) -> Vec<&Descriptor> {
    let may_be = |it: &&Descriptor| {
        let is_cache = it.artifact_type.as_deref() == Some(CACHE_TYPE);
        it.media_type == OCI_MANIFEST_TYPE && it.size <= MAX_REFERRER && !is_cache
    };
    let all: Vec<_> = listed.iter().filter(may_be).collect();
    let first = all.len().saturating_sub(MAX_CANDIDATES);
    all[first..].to_vec()
}

/// Returns the last attachments that are within the limits of a box together, each once, in their order.
fn last(infos: Vec<AttachmentInfo>) -> Vec<AttachmentInfo> {
    let (mut seen, mut bytes) = (BTreeSet::new(), 0);
    let mut last: Vec<_> = infos.into_iter().rev().filter(|it| seen.insert(it.digest)).collect();
    last.truncate(MAX_ATTACHMENTS);
    last.retain(|it| {
        let fits = bytes + it.size <= MAX_ATTACHED;
        bytes += if fits { it.size } else { 0 };
        fits
    });
    last.reverse();
    last
}

fn fetch(origin: &dyn Origin, info: &AttachmentInfo) -> Result<Attachment, BoxRegistryError> {
    let AttachmentInfo { media_type, annotations, digest, size } = info.clone();
    let blob = RemoteBlob::plain(Descriptor::new(&*media_type, digest, size));
    let memory = Memory::default();
    origin.fetch(&[(digest, size)], &|_| Ok(Some(blob.inflating(&memory, None))))?;
    let mut bytes = memory.take();
    bytes.shrink_to_fit();
    Ok(Attachment { media_type, annotations, bytes })
}

/// Sends a blob if the registry lacks it. Returns the number of sent bytes.
fn send(pusher: &Pusher, named: &Descriptor, bytes: &[u8]) -> Result<u64, BoxRegistryError> {
    if pusher.has_blob(&named.digest, named.size)? {
        return Ok(0);
    }
    pusher.upload(&named.digest, &InMemory(bytes.into()), None)?;
    Ok(named.size)
}

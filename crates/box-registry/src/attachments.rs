//! Sends and fetches the attachments of boxes, such as signatures.
//!
//! In a registry, an attachment is a manifest about the registry's manifest of the box. The registry is not trusted: an
//! attachment proves nothing before its signature is verified, and the signature must be about the box digest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use box_cache::{Attachment, AttachmentInfo, MAX_ATTACHED, MAX_ATTACHMENTS, Store, StoreError};
use box_contract::Descriptor;
use box_contract::manifest::OCI_MANIFEST_TYPE;
use box_digest::Digest;
use box_trust::{BUNDLE_MEDIA_TYPE, PublicKey};
use download::http::InMemory;
use oci_registry::{Pusher, Reference, Registry, RegistryError, Repository};
use safe_text::{counted, readable};

use crate::choice::{Choice, Worth, candidates, ranked};
use crate::error::BoxRegistryError;
use crate::origin::Repo;
use crate::parallel;
use crate::push::{Pushed, upload};
use crate::referrer::{EMPTY, Referrer, empty};
use crate::remote::{Remote, RemoteBlob};
use crate::sink::Memory;

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

/// The attachments of a box that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundAttachments {
    /// The attachments, within the limits of a store, in the order of the registry's list.
    pub all: Vec<Attachment>,
    /// The number of further ones, including entries of a list that is too long to be read.
    pub left_out: usize,
}

impl FoundAttachments {
    /// Returns the note for the user if attachments were left out.
    pub fn note(&self) -> Option<String> {
        let further = counted(self.left_out, "attachment", "attachments");
        let (most, size) = (MAX_ATTACHMENTS, readable(MAX_ATTACHED));
        (self.left_out > 0).then(|| {
            format!(
                "{further} of the box in the registry left out: at most {most} with {size} are taken, signatures first and each \
                 once, and none that is missing or damaged"
            )
        })
    }
}

/// Returns the note for the user if a store refuses attachments of a box, or has no room for them.
pub fn not_kept(left_out: usize) -> Option<String> {
    let further = counted(left_out, "attachment", "attachments");
    let size = readable(MAX_ATTACHED);
    (left_out > 0).then(|| {
        format!(
            "{further} not kept: the store takes at most {MAX_ATTACHMENTS} of a box with {size} together, only those within the limits of \
             one, and keeps those that it has"
        )
    })
}

/// The attachments that a store has got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptAttachments {
    /// The number of those that are new.
    pub new: usize,
    /// The number of those that the store refuses, or for which it has no room.
    pub left_out: usize,
}

/// Fetches the attachments of a box in a registry. They are few and small, so that a policy can look at them before a blob of the
/// box is fetched.
///
/// Manifests about the box that are no attachments ([`Referrer::of`]) are ignored, and manifests that the registry lists but
/// lacks. Attachments are left out if the registry lacks their bytes or has other ones, because whoever can write to the
/// repository can add them. If there are more attachments than a store takes for one box, those are left out that are worth the
/// least: what is no signature first, and what one of the keys `trusted` has signed last. All entries of the list count, and not
/// only the last ones.
///
/// # Errors
/// [`BoxRegistryError::Registry`], for example if the registry is down. A registry that cannot list referrers has no attachments
/// ([`Registry::referrers`]).
pub fn attachments(
    registry: &Registry,
    repository: &Repository,
    remote: &Remote,
    trusted: &[PublicKey],
) -> Result<FoundAttachments, BoxRegistryError> {
    let subject = remote.registry_digest;
    let listed = registry.referrers(repository, &subject, None)?;
    let (candidates, unread) = candidates(&listed.all);
    let read = |it: &&Descriptor| match registry.manifest(repository, &Reference::Digest(it.digest))
    {
        Err(RegistryError::NotFound { .. }) => Ok(None),
        manifest => manifest.map(|it| Referrer::of(&it.bytes)),
    };
    let referrers = parallel::each(&candidates, registry.parallel(), read)?;
    let mine = referrers.into_iter().flatten().filter(|it| it.subject == subject);
    let ranked = ranked(mine.map(|it| it.info).collect());
    let all = choose(&Repo { registry, repository }, &ranked, Choice::new(remote.digest, trusted))?;
    let left_out = ranked.len() - all.len() + unread + listed.left_out;
    Ok(FoundAttachments { all, left_out })
}

/// Fetches attachments, the first of the list first, until no other could be chosen.
fn choose(
    origin: &Repo<'_>,
    mut ranked: &[(usize, AttachmentInfo)],
    mut choice: Choice<'_>,
) -> Result<Vec<Attachment>, BoxRegistryError> {
    loop {
        let (next, others) = ranked.split_at(choice.step(ranked));
        if next.is_empty() {
            return Ok(choice.finish());
        }
        let fetch = |(at, info): &(usize, _)| match fetch(origin, info) {
            // Whoever can write to the repository can name any digest and any size.
            Err(BoxRegistryError::Registry(error)) if error.is_missing_or_other_content() => {
                Ok(None)
            }
            fetched => fetched.map(|it| Some((*at, it))),
        };
        let fetched = parallel::each(next, origin.registry.parallel(), fetch)?;
        choice.add(next, fetched.into_iter().flatten());
        ranked = others;
    }
}

/// Adds attachments to a box of the store, or to one that is pulled next.
///
/// The bundles with the digests `needed`, by which a policy has accepted the box, are always added. If the box then has too many
/// attachments, the others of the list make room first: they can be fetched again. If the box already has as many attachments as the
/// store takes, the others are left out, signatures last. So nobody who can only add attachments to a registry can keep the store
/// from a signature.
///
/// # Errors
/// [`BoxRegistryError::Store`].
pub fn keep_attachments(
    store: &Store,
    digest: &Digest,
    attachments: &[Attachment],
    needed: &[Digest],
) -> Result<KeptAttachments, BoxRegistryError> {
    let is_needed = |it: &&Attachment| {
        it.media_type == BUNDLE_MEDIA_TYPE && needed.contains(&Digest::of(&it.bytes))
    };
    let (first, mut others): (Vec<_>, Vec<_>) = attachments.iter().partition(is_needed);
    others.sort_by_cached_key(|it| Reverse(Worth::of(it)));
    let spare: Vec<_> = others.iter().map(|it| it.info()).collect();
    let new = store.attach_needed(digest, &first, &spare)?;
    let mut kept = KeptAttachments { new, left_out: 0 };
    for attachment in others {
        match store.attach(digest, attachment) {
            Ok(is_new) => kept.new += usize::from(is_new),
            Err(StoreError::Attachment { .. }) => kept.left_out += 1,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(kept)
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
    let listed = pusher.referrers(&subject.digest)?.all;
    let known = known(&pusher, &listed, &subject, attachments)?;
    let new: Vec<_> =
        attachments.iter().map(|it| (it, it.info())).filter(|it| !has(&known, &it.1)).collect();
    let mut bytes = 0;
    for (it, info) in &new {
        let layer = Descriptor::new(&*info.media_type, info.digest, info.size);
        bytes += send(&pusher, &layer, &it.bytes)?;
    }
    let infos: Vec<_> = new.into_iter().map(|it| it.1).collect();
    bytes += match send_manifests(&pusher, &subject, &infos) {
        Err(BoxRegistryError::Registry(error)) if error.is_refused_kind() => {
            send_images(&pusher, &subject, &infos)?
        }
        sent => sent?,
    };
    Ok(SentAttachments { all: attachments.len(), sent: infos.len(), bytes })
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

/// Returns the attachments that the registry lists, as far as they are looked for. Another client may have sent one with another
/// manifest, so listed manifests of the same type are read, unless the manifest of this crate is listed.
fn known(
    pusher: &Pusher,
    listed: &[Descriptor],
    subject: &Descriptor,
    attachments: &[Attachment],
) -> Result<Vec<AttachmentInfo>, BoxRegistryError> {
    let infos: Vec<_> = attachments.iter().map(Attachment::info).collect();
    let (mut known, mut types) = (Vec::<AttachmentInfo>::new(), BTreeSet::new());
    for info in &infos {
        let own = [Referrer::manifest(subject, info).0, Referrer::image(subject, info).0.0];
        if listed.iter().any(|it| own.iter().any(|own| own.digest == it.digest)) {
            known.push(info.clone());
        } else {
            types.insert(&*info.media_type);
        }
    }
    let is_like =
        |it: &&Descriptor| it.artifact_type.as_deref().is_none_or(|it| types.contains(it));
    for candidate in candidates(listed).0.into_iter().filter(is_like) {
        if infos.iter().all(|it| has(&known, it)) {
            break;
        }
        let manifest = pusher.manifest(&Reference::Digest(candidate.digest))?;
        let referrer = manifest.and_then(|it| Referrer::of(&it.bytes));
        known.extend(referrer.filter(|it| it.subject == subject.digest).map(|it| it.info));
    }
    Ok(known)
}

fn has(all: &[AttachmentInfo], info: &AttachmentInfo) -> bool {
    all.iter().any(|it| it.identity() == info.identity())
}

fn fetch(origin: &Repo<'_>, info: &AttachmentInfo) -> Result<Attachment, BoxRegistryError> {
    let AttachmentInfo { media_type, annotations, digest, size } = info.clone();
    let blob = RemoteBlob::plain(Descriptor::new(&*media_type, digest, size));
    let memory = Memory::default();
    let target = blob.inflating(&memory, None);
    origin.registry.fetch_quietly(origin.repository, (digest, size), &target)?;
    let mut bytes = memory.take();
    bytes.shrink_to_fit();
    Ok(Attachment { media_type, annotations, bytes })
}

/// Sends a blob if the registry lacks it. Returns the number of sent bytes.
fn send(pusher: &Pusher, named: &Descriptor, bytes: &[u8]) -> Result<u64, BoxRegistryError> {
    let sent = upload(pusher, (named.digest, named.size), &InMemory(bytes.into()), None)?;
    Ok(if sent.is_some() { named.size } else { 0 })
}

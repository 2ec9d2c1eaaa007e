//! The deltas that travel with a box, for hosts that have an older one.

use std::env;

use box_cache::Store;
use box_contract::RemoteName;
use box_delta::Made;
use box_find::places_in;
use box_inspect::delta::{Wanted, deltas};
use box_inspect::opened::{Documents, OpenBox, OpenError};
use box_registry::{Destination, Pushed, Remote, has_deltas, push_deltas};
use oci_registry::{Reference, Registry};
use safe_text::{counted, readable};

use super::failure::Failure;
use super::stages::Stages;
use super::terminal;
use super::transfer::repository_and_tag;

/// The deltas that were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SentDeltas {
    /// The number of deltas.
    pub(crate) count: usize,
    /// The number of bytes that were sent, including manifests.
    pub(crate) bytes: u64,
}

impl SentDeltas {
    /// Returns the line for the user, if deltas were sent.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { count, bytes } = *self;
        (count > 0)
            .then(|| format!("sent {}, {}", counted(count, "delta", "deltas"), readable(bytes)))
    }

    fn add(&mut self, other: Self) {
        *self = Self { count: self.count + other.count, bytes: self.bytes + other.bytes };
    }
}

/// Makes the deltas from the box `base` to the box with these documents, for a file in which blobs are not compressed.
pub(crate) fn of_files(base: &OpenBox, new: &Documents) -> Result<Vec<Made>, Failure> {
    let new = OpenBox::open(new.places.clone()).map_err(OpenError::from)?;
    let whole = |digest, sent| Wanted { digest, sent };
    let wanted: Vec<_> = new.manifest.blobs().iter().map(|it| whole(it.digest, it.size)).collect();
    Ok(deltas(base, &new, &wanted, &env::temp_dir())?)
}

/// A box that was pushed.
pub(crate) struct PushedBox<'a> {
    /// The box.
    pub(crate) opened: &'a OpenBox,
    /// The destination.
    pub(crate) to: &'a RemoteName,
    /// The result of the push.
    pub(crate) pushed: &'a Pushed,
    /// The registry.
    pub(crate) client: &'a Registry,
}

impl PushedBox<'_> {
    /// Adds the deltas from the boxes `since`, and from the box that the tag named before if the store has that one. Those that the
    /// registry has are not made again. If the box that the tag named before cannot be read, there are no deltas from it.
    pub(crate) fn add_deltas(
        &self,
        since: &[OpenBox],
        store: Option<&Store>,
        as_json: bool,
    ) -> Result<SentDeltas, Failure> {
        let stages = Stages::new(as_json);
        stages.begin("sending deltas");
        let mut all = SentDeltas::default();
        let before = self.before(since, store);
        for base in since {
            let sent = self.add(base)?;
            if sent.count == 0 && !as_json {
                terminal::note(&self.none_from(base));
            }
            all.add(sent);
        }
        if let Some(base) = before {
            match self.add(&base) {
                Ok(sent) => all.add(sent),
                Err(failure) => terminal::detail("deltas", format!("none: {}", failure.text())),
            }
        }
        stages.end();
        Ok(all)
    }

    /// Returns the note that no deltas from a box were sent.
    fn none_from(&self, base: &OpenBox) -> String {
        let digest = base.digest;
        if digest == self.pushed.digest {
            return format!("no deltas from {digest}: it is the box that was pushed");
        }
        format!(
            "no new deltas from {digest}: the registry has them, or none is smaller than half of its blob"
        )
    }

    /// Opens the box that the tag named before, if it is another one and the store has it.
    fn before(&self, since: &[OpenBox], store: Option<&Store>) -> Option<OpenBox> {
        let digest = self.pushed.before.filter(|it| *it != self.pushed.digest)?;
        let is_new = since.iter().all(|it| it.digest != digest);
        let store = store.filter(|store| is_new && store.has_box(&digest))?;
        OpenBox::open(places_in(store, &digest)).ok()
    }

    /// Makes and sends the deltas from a box.
    fn add(&self, base: &OpenBox) -> Result<SentDeltas, Failure> {
        let Self { opened, to, pushed, client } = *self;
        let (repository, tag) = repository_and_tag(to)?;
        let pair = (pushed, &base.digest);
        if base.digest == pushed.digest || has_deltas(client, &repository, pair)? {
            return Ok(SentDeltas::default());
        }
        let scratch = env::temp_dir();
        let registry_digest = Reference::Digest(pushed.registry_digest);
        let remote = Remote::read(client, &repository, &registry_digest)?;
        let wanted =
            |it: &box_registry::RemoteBlob| Wanted { digest: it.plain.digest, sent: it.size() };
        let wanted: Vec<_> = remote.blobs.iter().map(wanted).collect();
        let made = deltas(base, opened, &wanted, &scratch)?;
        if made.is_empty() {
            return Ok(SentDeltas::default());
        }
        let to = Destination {
            repository: &repository,
            tag: &tag,
            mount_from: None,
            reuse: true,
            scratch: &scratch,
        };
        let count = made.len();
        let bytes = push_deltas(client, &to, pair, made)?;
        Ok(SentDeltas { count, bytes })
    }
}

//! What differs between two locks: what `boxbuild update` shows, and why `--locked` fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Digest, Entry, Lock};

/// One entry that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'l> {
    /// Only the newer lock has it.
    Added(&'l Entry),
    /// Only the older lock has it.
    Removed(&'l Entry),
    /// Both have an entry of this name and platform, with different fields.
    Changed {
        /// The older lock's.
        old: &'l Entry,
        /// The newer lock's.
        new: &'l Entry,
        /// What differs, in the order of the fields; at least one.
        fields: Vec<Field>,
        /// The layers that the older lock does not have, lowest first. A layer that was only moved
        /// is in neither list, one that occurs once more than before is here once.
        layers_added: Vec<Digest>,
        /// The layers that the newer lock does not have, lowest first.
        layers_removed: Vec<Digest>,
    },
}

impl<'l> Change<'l> {
    /// Returns the entry that the change is about: the newer one where there are two.
    pub const fn entry(&self) -> &'l Entry {
        match self {
            Self::Added(entry) | Self::Removed(entry) | Self::Changed { new: entry, .. } => entry,
        }
    }

    fn between(old: Option<&'l Entry>, new: Option<&'l Entry>) -> Option<Self> {
        match (old, new) {
            (Some(old), Some(new)) => Self::of_fields(old, new),
            (Some(old), None) => Some(Self::Removed(old)),
            (None, new) => new.map(Self::Added),
        }
    }

    fn of_fields(old: &'l Entry, new: &'l Entry) -> Option<Self> {
        let differs = |field: &Field| match field {
            Field::Kind => old.kind != new.kind,
            Field::Source => old.source != new.source,
            Field::Digest => old.digest != new.digest,
            Field::Size => old.size != new.size,
            Field::Layers => old.layers != new.layers,
        };
        let fields: Vec<Field> = Field::ALL.into_iter().filter(differs).collect();
        let layers_added = surplus(&new.layers, &old.layers);
        let layers_removed = surplus(&old.layers, &new.layers);
        let change = Self::Changed { old, new, fields, layers_added, layers_removed };
        (old != new).then_some(change)
    }
}

/// A field of an [`Entry`] that two locks can disagree about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// [`Entry::kind`].
    Kind,
    /// [`Entry::source`].
    Source,
    /// [`Entry::digest`].
    Digest,
    /// [`Entry::size`].
    Size,
    /// [`Entry::layers`].
    Layers,
}

impl Field {
    /// Every field, in the order of the lock.
    pub const ALL: [Self; 5] = [Self::Kind, Self::Source, Self::Digest, Self::Size, Self::Layers];

    /// Returns the field's name in the lock.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Source => "source",
            Self::Digest => "digest",
            Self::Size => "size",
            Self::Layers => "layers",
        }
    }
}

/// Writes [`Field::as_str`].
impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// See [`Lock::changes`].
pub(super) fn changes<'l>(old: &'l Lock, new: &'l Lock) -> Vec<Change<'l>> {
    let keys: BTreeSet<_> = old.entries().chain(new.entries()).map(Entry::key).collect();
    let change =
        |(name, platform)| Change::between(old.get(name, platform), new.get(name, platform));
    keys.into_iter().filter_map(change).collect()
}

/// Returns the digests of one list that another lacks, each as often as it lacks it.
fn surplus(of: &[Digest], over: &[Digest]) -> Vec<Digest> {
    let mut covered: BTreeMap<Digest, usize> = BTreeMap::new();
    for digest in over {
        *covered.entry(*digest).or_default() += 1;
    }
    let lacking = |digest: &&Digest| match covered.get_mut(digest) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    of.iter().filter(lacking).copied().collect()
}

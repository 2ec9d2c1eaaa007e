//! What can be kept of a lock that does not parse as a whole.
//!
//! The text is read once for each side of its merge conflicts. In either, an entry is what its check
//! says, wherever it stands; of the head, only the lines with its two numbers count.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeTable;

use super::compare::title;
use super::found::{self, Found};
use super::parts::{self, Part};
use super::seal::seal;
use super::{Entry, FORMAT_VERSION, Lock, MAX_TEXT, conflict, nesting};
use crate::diagnostic::quote;
use crate::sink::Sink;

/// How many epochs are tried where the head names none.
const MOST_EPOCHS: u32 = 32;

/// What [`Lock::salvage`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// The intact entries. Nothing if the text is no lock at all: it has neither a `version` and an
    /// `epoch` at its head, nor an entry that fits its check. Who would replace the file by a lock
    /// would lose something else then.
    pub lock: Option<Lock>,
    /// What is lost, each as a message names it: "the entry `agent` for linux/amd64". Sorted, each
    /// once; without what the lock has in another form.
    pub dropped: Vec<String>,
}

/// See [`Lock::salvage`].
pub(super) fn salvage(text: &str) -> Salvaged {
    if text.len() > MAX_TEXT {
        return Salvaged::default();
    }
    let mut sides = Vec::from(conflict::sides(text));
    sides.dedup();
    let heads: Vec<&str> = sides.iter().map(|side| parts::cut(side).0.text).collect();
    let numbers = |name| heads.iter().filter_map(move |head| value(head, name)?.parse().ok());
    let versions: Vec<u32> = numbers("version").collect();
    let mut heap = Heap::default();
    sides.iter().for_each(|side| heap.read(side));
    // A merge of two epochs is one of two versions of boxbuild, of which the newer goes on.
    let named = numbers("epoch").max();
    let Some(epoch) = named.or_else(|| heap.epoch()) else { return Salvaged::default() };
    let lock = heap.lock(epoch, versions.iter().all(|version| *version == FORMAT_VERSION));
    let is_lock = !versions.is_empty() && named.is_some() || lock.entries().len() > 0;
    if !is_lock {
        return Salvaged::default();
    }
    let kept: BTreeSet<String> = lock.entries().map(title).collect();
    let dropped = heap.titles.into_iter().filter(|title| !kept.contains(title)).collect();
    Salvaged { lock: Some(lock), dropped }
}

/// What lies between the heads and the ends of the sides.
#[derive(Default)]
struct Heap {
    /// The entries that can be read, fit or not.
    readable: Vec<Found>,
    /// The names of all entries, in the words of messages.
    titles: BTreeSet<String>,
}

impl Heap {
    /// Adds the entries of a side.
    fn read(&mut self, side: &str) {
        for part in parts::cut(side).1 {
            let found = read(part);
            self.titles.insert(found.as_ref().map_or_else(|| guess(part), |it| title(&it.entry)));
            self.readable.extend(found);
        }
    }

    /// Returns the epoch that an entry fits its check in: by chance, none does.
    fn epoch(&self) -> Option<u32> {
        (0..MOST_EPOCHS).find(|epoch| self.readable.iter().any(|found| fits(*epoch, found)))
    }

    /// Makes a lock of the entries that fit, if its version is `known`, and that no other contradicts.
    fn lock(&self, epoch: u32, known: bool) -> Lock {
        let mut chosen: BTreeMap<_, Option<&Entry>> = BTreeMap::new();
        for found in self.readable.iter().filter(|found| known && fits(epoch, found)) {
            let entry = chosen.entry(found.entry.key()).or_insert(Some(&found.entry));
            *entry = entry.filter(|one| **one == found.entry);
        }
        let entries = chosen.into_values().flatten().cloned().collect();
        Lock { epoch, entries }
    }
}

fn fits(epoch: u32, found: &Found) -> bool {
    seal(epoch, &found.entry) == found.check.value
}

fn read(part: Part<'_>) -> Option<Found> {
    let shallow = nesting::excess(part.text).is_none();
    let fields = shallow.then(|| DeTable::parse(part.text).ok())??;
    let sink = Sink::default();
    found::read(fields.get_ref(), part, &sink)
}

/// Names an entry that cannot be read.
fn guess(part: Part<'_>) -> String {
    let text = |name| value(part.text, name).map(|value| value.trim_matches('"'));
    match (text("name"), text("platform").map(str::parse::<crate::Platform>)) {
        (None, _) => "an entry without a name".to_owned(),
        (Some(name), Some(Ok(platform))) => format!("the entry {} for {platform}", quote(name)),
        (Some(name), _) => format!("the entry {}", quote(name)),
    }
}

/// Returns what a line of a text says that begins with `name =`, whatever the other lines are.
fn value<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim_start_matches('\u{feff}').trim() == name)
            .then(|| value.split_once(" #").map_or(value, |(value, _)| value).trim())
    })
}

//! Decides what to remove from a scanned store, without changing it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use box_digest::Digest;

use super::scan::{BoxEntry, Label, RecordEntry, Scan};
use super::{Report, Reported, Rules, Why};
use crate::ActionKey;
use crate::label::Label as Text;

/// A time that is this much later than now is treated as the oldest possible time, because the clock was changed.
const LATER: Duration = Duration::from_secs(60 * 60);

/// What to remove, in this order.
#[derive(Debug)]
pub(super) struct Plan {
    /// Labels, each with the box that it means, or `None` if that box does not exist.
    pub(super) names: Vec<(Text, Option<Digest>)>,
    pub(super) boxes: Vec<Digest>,
    /// The boxes whose lists of attachments are removed.
    pub(super) attachments: Vec<Digest>,
    /// The names of files in `roots/`.
    pub(super) roots: Vec<String>,
    /// Records, which are removed with their data.
    pub(super) records: Vec<ActionKey>,
    /// The data of actions without a record.
    pub(super) data: Vec<ActionKey>,
    pub(super) blobs: Vec<Digest>,
    /// Whether the plan leaves no references.
    pub(super) empties: bool,
    /// The boxes that are removed because the rules request it, in this round or an earlier one.
    pub(super) demanded: BTreeSet<Digest>,
    pub(super) report: Report,
}

impl Plan {
    /// Returns whether there is nothing to remove.
    pub(super) fn is_empty(&self) -> bool {
        let Self { names, boxes, attachments, roots, records, data, blobs, .. } = self;
        let keys = records.is_empty() && data.is_empty() && attachments.is_empty();
        keys && names.is_empty() && boxes.is_empty() && roots.is_empty() && blobs.is_empty()
    }
}

/// A box or record, which refers to blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Record(ActionKey),
    Box(Digest),
}

/// Makes a plan. `gone` are the requested boxes that earlier rounds have removed. Returns `None` if there are blobs to remove but
/// no references at all.
pub(super) fn plan(scan: &Scan, rules: &Rules, gone: &BTreeSet<Digest>) -> Option<Plan> {
    let mut work = Work::new(scan, rules);
    work.demanded.extend(gone);
    work.remove_demanded();
    work.remove_useless();
    let has_records = scan.records.values().any(|it| it.refers.is_some());
    // A dangling name or root shows that the store once had a box.
    let has_names = !scan.boxes.is_empty() || !scan.dangling.is_empty() || !scan.gone.is_empty();
    if !has_records && !has_names && !scan.is_emptied && !work.blobs.is_empty() {
        return None;
    }
    work.remove_old();
    work.remove_above_cap();
    Some(work.finish())
}

struct Work<'s> {
    scan: &'s Scan,
    rules: &'s Rules,
    before: u64,
    /// The size of the content that is not removed yet, in bytes.
    size: u64,
    /// The number of references to each blob from the content that is not removed yet.
    counts: HashMap<Digest, usize>,
    /// When each record was last used, directly or through a record that refers to it.
    used: HashMap<ActionKey, SystemTime>,
    demanded: BTreeSet<Digest>,
    boxes: Vec<Digest>,
    attachments: Vec<Digest>,
    gone_boxes: HashSet<Digest>,
    records: BTreeSet<ActionKey>,
    names: BTreeSet<(Text, Option<Digest>)>,
    roots: Vec<String>,
    data: Vec<ActionKey>,
    blobs: BTreeSet<Digest>,
}

impl<'s> Work<'s> {
    fn new(scan: &'s Scan, rules: &'s Rules) -> Self {
        let mut counts = HashMap::new();
        let of_boxes = scan.boxes.values().flat_map(|it| it.blobs.iter());
        let of_records = scan.records.values().filter_map(|it| it.refers.as_ref());
        let of_orphans = scan.orphans.iter().flat_map(|it| &it.blobs);
        for blob in of_boxes.chain(of_records.flat_map(|it| &it.blobs)).chain(of_orphans) {
            *counts.entry(*blob).or_insert(0) += 1;
        }
        let sizes = scan.boxes.values().map(|it| it.size);
        let sizes = sizes.chain(scan.records.values().map(|it| it.size));
        let items = scan.blobs.values().chain(scan.data.values());
        let items = items.chain(scan.orphans.iter().map(|it| &it.item)).map(|it| it.size);
        let size = sizes.chain(items).sum();
        Self {
            scan,
            rules,
            before: size,
            size,
            counts,
            used: used(scan),
            demanded: BTreeSet::new(),
            boxes: Vec::new(),
            attachments: Vec::new(),
            gone_boxes: HashSet::new(),
            records: BTreeSet::new(),
            names: BTreeSet::new(),
            roots: Vec::new(),
            data: Vec::new(),
            blobs: BTreeSet::new(),
        }
    }

    /// Removes the requested boxes and labels, and the records of the builds that made a requested box, because these records
    /// would keep the box's blobs.
    fn remove_demanded(&mut self) {
        let scan = self.scan;
        scan.boxes.iter().for_each(|(digest, entry)| self.remove_asked(digest, entry));
        let made = |entry: &RecordEntry| {
            entry.refers.iter().any(|it| it.blobs.iter().any(|it| self.demanded.contains(it)))
        };
        let records: Vec<_> = scan.records.iter().filter(|(_, it)| made(it)).collect();
        records.into_iter().for_each(|(key, entry)| self.remove_record(*key, entry));
    }

    /// Removes the requested labels of a box. Also removes the box if it was requested or loses its last label, unless the rules
    /// forbid that ([`Rules::is_forced`]).
    fn remove_asked(&mut self, digest: &Digest, entry: &BoxEntry) {
        let Rules { names, boxes, is_forced, .. } = self.rules;
        let labels = entry.labels.iter().filter(|it| names.get(&it.text) == Some(digest));
        let labels: Vec<_> = labels.map(|it| (it.text.clone(), Some(*digest))).collect();
        let left = entry.labels.len() - labels.len();
        let is_last = !labels.is_empty() && left == 0;
        let is_asked =
            boxes.contains(digest) && (*is_forced || left == 0 || entry.labels.len() == 1);
        if is_last || is_asked {
            if entry.is_running && !is_forced {
                return;
            }
            self.demanded.insert(*digest);
            self.remove_box(digest);
        }
        self.names.extend(labels);
    }

    /// Removes useless content: blobs without references, unreadable records, data without records, and dangling names and roots.
    fn remove_useless(&mut self) {
        let Self { scan, rules, .. } = *self;
        let unused = scan.blobs.keys().filter(|blob| !self.counts.contains_key(blob));
        let unused: Vec<_> = unused.copied().collect();
        unused.iter().for_each(|blob| self.remove_blob(blob));
        self.remove_orphans();
        for (key, entry) in &scan.records {
            if entry.refers.is_none() && !self.is_covered(entry.used) {
                self.remove_record(*key, entry);
            }
        }
        for (key, item) in &scan.data {
            if !self.is_covered(item.changed) {
                self.size -= item.size;
                self.data.push(*key);
            }
        }
        let demanded = |it: &Label| rules.names.contains_key(&it.text);
        let dangling = scan.dangling.iter().filter(|it| demanded(it) || !self.is_recent(it.given));
        let dangling: Vec<_> = dangling.map(|it| (it.text.clone(), None)).collect();
        self.names.extend(dangling);
        // A young root is kept, because a build writes it before it creates the directory.
        let gone = scan.gone.iter().filter(|(_, changed)| !self.is_recent(*changed));
        let gone: Vec<_> = gone.map(|(name, _)| name.clone()).collect();
        self.roots.extend(gone);
    }

    /// Removes attachments of boxes that the store does not have. A young list is kept, because a pull writes it before the box.
    fn remove_orphans(&mut self) {
        let scan = self.scan;
        let old = scan.orphans.iter().filter(|it| !self.is_recent(it.item.changed));
        for orphan in old.collect::<Vec<_>>() {
            self.size -= orphan.item.size;
            self.attachments.push(orphan.digest);
            self.release(&orphan.blobs);
        }
    }

    fn remove_old(&mut self) {
        let Some(most) = self.rules.older_than else { return };
        let old = |(used, _): &(SystemTime, Id)| self.age(*used) > most;
        let old: Vec<_> = self.candidates().into_iter().filter(old).collect();
        old.into_iter().for_each(|(_, id)| self.remove(id));
    }

    fn remove_above_cap(&mut self) {
        let Some(cap) = self.rules.cap else { return };
        for (_, id) in self.candidates() {
            if self.size <= cap {
                break;
            }
            self.remove(id);
        }
    }

    /// Returns the boxes and records that may be removed, the least recently used first.
    fn candidates(&self) -> Vec<(SystemTime, Id)> {
        let boxes = self.scan.boxes.iter().filter(|(digest, entry)| {
            !self.gone_boxes.contains(*digest) && self.reason(entry).is_none()
        });
        let boxes = boxes.map(|(digest, entry)| (self.known(entry.used), Id::Box(*digest)));
        let records = self
            .used
            .iter()
            .filter(|(key, used)| !self.records.contains(*key) && !self.is_covered(**used));
        let records = records.map(|(key, used)| (self.known(*used), Id::Record(*key)));
        let mut all: Vec<_> = boxes.chain(records).collect();
        all.sort_unstable();
        all
    }

    fn remove(&mut self, id: Id) {
        match id {
            Id::Box(digest) => self.remove_box(&digest),
            Id::Record(key) => {
                let scan = self.scan;
                self.remove_record(key, &scan.records[&key]);
            }
        }
    }

    fn remove_box(&mut self, digest: &Digest) {
        let entry = &self.scan.boxes[digest];
        if !self.gone_boxes.insert(*digest) {
            return;
        }
        self.size -= entry.size;
        if entry.is_there {
            self.boxes.push(*digest);
        }
        if entry.has_attachments {
            self.attachments.push(*digest);
        }
        self.names.extend(entry.labels.iter().map(|it| (it.text.clone(), Some(*digest))));
        self.release_roots(entry);
        self.release(&entry.blobs);
    }

    /// Removes the notes of a box's thin directories, except a note that stands for a directory of another box, too.
    fn release_roots(&mut self, entry: &BoxEntry) {
        let left = self.scan.boxes.iter().filter(|(digest, _)| !self.gone_boxes.contains(*digest));
        let left: HashSet<_> =
            left.flat_map(|(_, it)| &it.directories).map(|it| it.root.as_str()).collect();
        let roots = entry.directories.iter().filter(|it| !left.contains(it.root.as_str()));
        self.roots.extend(roots.map(|it| it.root.clone()));
    }

    fn remove_record(&mut self, key: ActionKey, entry: &RecordEntry) {
        if self.records.insert(key) {
            self.size -= entry.size;
            entry.refers.iter().for_each(|it| self.release(&it.blobs));
        }
    }

    /// Drops one reference to each of `blobs`, and removes the blobs that have no reference left.
    fn release(&mut self, blobs: &[Digest]) {
        for blob in blobs {
            let Some(count) = self.counts.get_mut(blob) else { continue };
            *count -= 1;
            if *count == 0 {
                self.remove_blob(blob);
            }
        }
    }

    fn remove_blob(&mut self, blob: &Digest) {
        let Some(item) = self.scan.blobs.get(blob) else { return };
        if !self.is_used(blob) && self.blobs.insert(*blob) {
            self.size -= item.size;
        }
    }

    /// Returns whether a process that has the store open made or used a blob.
    fn is_used(&self, blob: &Digest) -> bool {
        let changed = self.scan.blobs.get(blob).map(|it| it.changed);
        self.scan.living.blobs.contains(blob) || changed.is_some_and(|it| self.is_covered(it))
    }

    /// Returns why a box is kept regardless of the size of the store.
    fn reason(&self, entry: &BoxEntry) -> Option<Why> {
        let reasons = [
            (entry.is_running, Why::Running),
            (entry.labels.iter().any(|it| it.is_tag), Why::Tagged),
            (!entry.directories.is_empty(), Why::Thin),
            (self.is_covered(entry.used), Why::Used),
            (self.is_young(entry.used), Why::Young),
            (entry.is_foreign, Why::Foreign),
        ];
        reasons.into_iter().find_map(|(holds, reason)| holds.then_some(reason))
    }

    fn is_covered(&self, time: SystemTime) -> bool {
        self.scan.living.covers(time, self.scan.now)
    }

    fn is_young(&self, time: SystemTime) -> bool {
        let young = self.rules.older_than.map_or(self.rules.young, |it| it.min(self.rules.young));
        self.age(time) < young
    }

    fn is_recent(&self, time: SystemTime) -> bool {
        self.is_covered(time) || self.is_young(time)
    }

    /// Returns `time`, limited to now, or the epoch if it is later than now by more than [`LATER`].
    fn known(&self, time: SystemTime) -> SystemTime {
        let now = self.scan.now;
        if time > now + LATER { SystemTime::UNIX_EPOCH } else { time.min(now) }
    }

    fn age(&self, time: SystemTime) -> Duration {
        self.scan.now.duration_since(self.known(time)).unwrap_or_default()
    }

    fn finish(mut self) -> Plan {
        let scan = self.scan;
        // A box that is removed loses all its names.
        let left = scan.boxes.iter().filter(|(digest, _)| !self.gone_boxes.contains(*digest));
        let kept: Vec<_> = left.map(|it| self.reported(it)).collect();
        let records = scan.records.iter().filter(|(key, _)| !self.records.contains(*key));
        let has_records = records.clone().any(|(_, entry)| entry.refers.is_some());
        let (kept_bytes, used_bytes) = self.kept_bytes();
        let removed = self.boxes.iter().map(|it| self.reported((it, &scan.boxes[it])));
        let removed: Vec<_> = removed.map(|it| Reported { reason: None, ..it }).collect();
        let report = Report {
            before: self.before,
            after: self.size,
            cap: self.rules.cap,
            removed,
            removed_names: self.names.iter().map(|(name, _)| name.text().to_owned()).collect(),
            removed_records: self.records.len(),
            removed_blobs: self.blobs.len(),
            kept_bytes,
            used_bytes,
            foreign: scan.foreign,
            kept,
        };
        let empties = report.kept.is_empty() && !has_records;
        self.roots.sort_unstable();
        Plan {
            names: self.names.into_iter().collect(),
            boxes: self.boxes,
            attachments: self.attachments,
            roots: self.roots,
            records: self.records.into_iter().collect(),
            data: self.data,
            blobs: self.blobs.into_iter().collect(),
            empties,
            demanded: self.demanded,
            report,
        }
    }

    fn reported(&self, (digest, entry): (&Digest, &BoxEntry)) -> Reported {
        let sizes = entry.blobs.iter().filter_map(|it| self.scan.blobs.get(it));
        let is_gone = self.gone_boxes.contains(digest);
        // The report lists the remaining names of a box that stays.
        let stays =
            |it: &&Label| is_gone || !self.names.contains(&(it.text.clone(), Some(*digest)));
        let names = entry.labels.iter().filter(stays).map(|it| it.text.text().to_owned());
        Reported {
            digest: *digest,
            names: names.collect(),
            directories: entry.directories.iter().map(|it| it.path.clone()).collect(),
            reason: self.reason(entry),
            bytes: sizes.map(|it| it.size).sum(),
        }
    }

    /// Returns the size of the content that is kept regardless of the limit, and the part of it that is kept only because a
    /// process has the store open ([`Why::Used`]).
    fn kept_bytes(&self) -> (u64, u64) {
        let (mut kept, mut used) = (HashSet::new(), HashSet::new());
        let mut bytes = (0, 0);
        let left = self.scan.boxes.iter().filter(|(it, _)| !self.gone_boxes.contains(*it));
        for entry in left.map(|(_, entry)| entry) {
            match self.reason(entry) {
                None => {}
                Some(Why::Used) => {
                    bytes.1 += entry.size;
                    used.extend(entry.blobs.iter().copied());
                }
                Some(_) => {
                    bytes.0 += entry.size;
                    kept.extend(entry.blobs.iter().copied());
                }
            }
        }
        let records = self.scan.records.iter().filter(|(key, _)| !self.records.contains(*key));
        for (key, entry) in records {
            if self.is_covered(self.used.get(key).copied().unwrap_or(entry.used)) {
                bytes.1 += entry.size;
                used.extend(entry.refers.iter().flat_map(|it| it.blobs.iter().copied()));
            }
        }
        used.extend(self.scan.blobs.keys().filter(|it| self.is_used(it)));
        let data = self.scan.data.values().filter(|it| self.is_covered(it.changed));
        bytes.1 += data.map(|it| it.size).sum::<u64>();
        let size = |blob: &Digest| self.scan.blobs.get(blob).map_or(0, |it| it.size);
        let of_kept: u64 = kept.iter().map(size).sum();
        let of_used: u64 = used.difference(&kept).map(size).sum();
        (bytes.0 + of_kept + bytes.1 + of_used, bytes.1 + of_used)
    }
}

/// Returns the time of the last use of each record. Each use of a record is also a use of the records to which it refers, because
/// they were needed to make it.
fn used(scan: &Scan) -> HashMap<ActionKey, SystemTime> {
    let sound = scan.records.iter().filter(|(_, entry)| entry.refers.is_some());
    let mut newest: Vec<_> = sound.map(|(key, entry)| (entry.used, *key)).collect();
    newest.sort_unstable();
    let mut used = HashMap::with_capacity(newest.len());
    let mut open = Vec::new();
    for (time, key) in newest.into_iter().rev() {
        open.push(key);
        while let Some(key) = open.pop() {
            let Some(entry) = scan.records.get(&key).filter(|_| !used.contains_key(&key)) else {
                continue;
            };
            let Some(refers) = &entry.refers else { continue };
            used.insert(key, time);
            open.extend(&refers.actions);
        }
    }
    used
}

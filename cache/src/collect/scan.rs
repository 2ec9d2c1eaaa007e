//! Reads the content of a store: the objects, their last use, and their references.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use box_digest::Digest;
use host_fs::read::{Links, open_regular, read_open};
use host_fs::trust::is_private;

use super::{BoxSize, Contents};
use crate::action::Record;
use crate::attachments;
use crate::boxes::{BUILT, INDEX, LAYOUT, MAX_RECORD_BYTES};
use crate::error::IoContext;
use crate::gate::FILES;
use crate::label::{Label as Text, Pulled, is_gone, path as path_of, read, read_name};
use crate::session::Living;
use crate::store::open_existing;
use crate::{ActionKey, StoreError};

/// The allocation unit of file systems in bytes.
const UNIT: u64 = 4096;
/// The size limit of a manifest in bytes.
const MAX_MANIFEST: u64 = 1 << 20;
/// The entries that this crate creates in a box's directory. `blobs` contains only an empty directory `sha256`.
const OF_BOX: [&str; 4] = [INDEX, LAYOUT, BUILT, "blobs"];

/// The size of a file and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) size: u64,
    pub(super) changed: SystemTime,
}

/// A label of a box: a name, or the reference under which the box was pulled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Label {
    pub(super) text: Text,
    /// Whether a person named, pulled or loaded the box. A name that a build gave does not keep the box.
    pub(super) is_tag: bool,
    /// When the label was given.
    pub(super) given: SystemTime,
}

#[derive(Debug, Clone)]
pub(super) struct BoxEntry {
    /// Whether the store has the directory of the box. If not, a thin directory still refers to the box.
    pub(super) is_there: bool,
    pub(super) used: SystemTime,
    pub(super) size: u64,
    /// The blobs to which the box refers, its manifest, and its attachments.
    pub(super) blobs: Arc<[Digest]>,
    pub(super) labels: Vec<Label>,
    pub(super) directories: Vec<Thin>,
    pub(super) is_running: bool,
    /// Whether the directory of the box contains foreign files.
    pub(super) is_foreign: bool,
    /// Whether the store has a list of attachments of the box.
    pub(super) has_attachments: bool,
}

/// A list of attachments of a box that the store does not have.
#[derive(Debug)]
pub(super) struct Orphan {
    pub(super) digest: Digest,
    pub(super) item: Item,
    pub(super) blobs: Vec<Digest>,
}

/// A thin directory, as the [module](super) defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Thin {
    /// The name of its file in `roots/`.
    pub(super) root: String,
    pub(super) path: PathBuf,
}

#[derive(Debug, Clone)]
pub(super) struct RecordEntry {
    pub(super) used: SystemTime,
    /// The size of the record and its data.
    pub(super) size: u64,
    /// The references of the record, or `None` if it is damaged or has an earlier format.
    pub(super) refers: Option<Arc<Refers>>,
}

/// The references of a record.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refers {
    pub(super) blobs: Vec<Digest>,
    pub(super) actions: Vec<ActionKey>,
}

/// The content of a store.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) now: SystemTime,
    pub(super) living: Living,
    pub(super) blobs: BTreeMap<Digest, Item>,
    pub(super) boxes: BTreeMap<Digest, BoxEntry>,
    pub(super) records: BTreeMap<ActionKey, RecordEntry>,
    /// The data of actions without a record.
    pub(super) data: BTreeMap<ActionKey, Item>,
    /// The labels of boxes that do not exist.
    pub(super) dangling: Vec<Label>,
    /// The files in `roots/` whose thin directory is gone or has no box any more, with the times of the files.
    pub(super) gone: Vec<(String, SystemTime)>,
    /// The lists of attachments whose box does not exist.
    pub(super) orphans: Vec<Orphan>,
    /// The number of foreign files and directories.
    pub(super) foreign: usize,
    /// Whether the last collection left no references.
    pub(super) is_emptied: bool,
}

/// The results of a scan, so that the next scan reads only the changes.
#[derive(Debug, Default)]
pub(super) struct Known {
    records: HashMap<ActionKey, (Stamp, Option<Arc<Refers>>)>,
    manifests: HashMap<Digest, Arc<[Digest]>>,
    thin: HashMap<String, (Stamp, Vec<(PathBuf, ThinBox)>)>,
}

/// The box of a thin directory: its digest, and the blobs to which it refers.
type ThinBox = (Digest, Arc<[Digest]>);
/// The inode of a file and the time of its last change.
type Stamp = (u64, i64, i64);

fn stamp(file: &Metadata) -> Stamp {
    (file.ino(), file.ctime(), file.ctime_nsec())
}

impl Scan {
    /// Reads the content of the store in `root`.
    pub(super) fn of(
        root: &Path,
        contents: &dyn Contents,
        known: &mut Known,
    ) -> Result<Self, StoreError> {
        let gate = fs::symlink_metadata(root.join(FILES[0]));
        let mut scan = Self {
            now: SystemTime::now(),
            living: Living::read(root)?,
            blobs: BTreeMap::new(),
            boxes: BTreeMap::new(),
            records: BTreeMap::new(),
            data: BTreeMap::new(),
            dangling: Vec::new(),
            gone: Vec::new(),
            orphans: Vec::new(),
            foreign: 0,
            is_emptied: gate.is_ok_and(|it| it.len() > 0),
        };
        for (name, file) in scan.files(&root.join("blobs"))? {
            let Some(blob) = Digest::from_hex(&name) else {
                scan.foreign += 1;
                continue;
            };
            scan.blobs.insert(blob, item(&file));
        }
        scan.read_records(root, known)?;
        scan.read_boxes(root, contents, known)?;
        scan.read_names(root)?;
        scan.read_pulled(root)?;
        scan.read_roots(root, contents, known)?;
        scan.read_attachments(root)?;
        Ok(scan)
    }

    fn read_records(&mut self, root: &Path, known: &mut Known) -> Result<(), StoreError> {
        let mut data: BTreeMap<_, _> = BTreeMap::new();
        for (name, file) in self.files(&root.join("data"))? {
            match Digest::from_hex(&name).map(ActionKey::from_digest) {
                Some(key) => drop(data.insert(key, item(&file))),
                None => self.foreign += 1,
            }
        }
        let directory = root.join("actions");
        for (name, file) in self.files(&directory)? {
            let Some(key) = Digest::from_hex(&name).map(ActionKey::from_digest) else {
                self.foreign += 1;
                continue;
            };
            let before = known.records.get(&key).filter(|(read, _)| *read == stamp(&file));
            let refers = match before {
                Some((_, refers)) => refers.clone(),
                None => read_record(&directory.join(name))?.map(Arc::new),
            };
            known.records.insert(key, (stamp(&file), refers.clone()));
            let Item { size, changed: used } = item(&file);
            let size = size + data.remove(&key).map_or(0, |data| data.size);
            self.records.insert(key, RecordEntry { used, size, refers });
        }
        self.data = data;
        Ok(())
    }

    fn read_boxes(
        &mut self,
        root: &Path,
        contents: &dyn Contents,
        known: &mut Known,
    ) -> Result<(), StoreError> {
        let directory = root.join("boxes");
        for (name, file) in entries(&directory)? {
            let digest = Digest::from_hex(&name).filter(|_| file.is_dir());
            let Some(digest) = digest else {
                // A name with a leading dot is the draft of a build. If the build was killed, the next build removes the draft.
                self.foreign += usize::from(!name.starts_with('.'));
                continue;
            };
            let path = directory.join(&name);
            let made = fs::symlink_metadata(path.join(INDEX)).and_then(|it| it.modified());
            let changed = file.modified().unwrap_or(self.now);
            let entry = BoxEntry {
                is_there: true,
                used: made.map_or(changed, |made| made.max(changed)),
                size: 4 * UNIT,
                blobs: blobs_of(&digest, root, contents, known)?,
                labels: Vec::new(),
                directories: Vec::new(),
                is_running: is_held(&path.join(INDEX)),
                is_foreign: has_foreign(&path)?,
                has_attachments: false,
            };
            self.foreign += usize::from(entry.is_foreign);
            self.boxes.insert(digest, entry);
        }
        Ok(())
    }

    fn read_names(&mut self, root: &Path) -> Result<(), StoreError> {
        let directory = root.join("names");
        for (name, file) in self.files(&directory)? {
            // A damaged name is counted as foreign, and its file stays. A build that gives the name repairs the file.
            let Ok(Some(named)) = read_name(&directory.join(&name)) else {
                self.foreign += 1;
                continue;
            };
            let (text, is_tag) = (Text::Name(name), named.owner.keeps());
            self.label(named.digest, Label { text, is_tag, given: item(&file).changed });
        }
        Ok(())
    }

    fn read_pulled(&mut self, root: &Path) -> Result<(), StoreError> {
        let directory = root.join("pulled");
        for (name, file) in self.files(&directory)? {
            let found = read(&directory.join(&name), Pulled::decode);
            // A damaged reference is counted as foreign, and its file stays. A pull repairs the file.
            let Some(Pulled { reference, digest, is_asked, .. }) =
                found.ok().flatten().filter(|it| it.file_name() == name)
            else {
                self.foreign += 1;
                continue;
            };
            let text = Text::Pulled(reference);
            self.label(digest, Label { text, is_tag: is_asked, given: item(&file).changed });
        }
        Ok(())
    }

    fn label(&mut self, digest: Digest, label: Label) {
        match self.boxes.get_mut(&digest) {
            Some(entry) => entry.label(label),
            None => self.dangling.push(label),
        }
    }

    fn read_roots(
        &mut self,
        root: &Path,
        contents: &dyn Contents,
        known: &mut Known,
    ) -> Result<(), StoreError> {
        let (directory, blobs) = (root.join("roots"), root.join("blobs"));
        for (name, file) in self.files(&directory)? {
            if Digest::from_hex(&name).is_none() {
                self.foreign += 1;
                continue;
            }
            let changed = item(&file).changed;
            let before = known.thin.get(&name).filter(|it| it.0 == stamp(&file)).cloned();
            let (_, found) = match before {
                Some(known) => known,
                None => {
                    let Some(path) = read_root(&directory.join(&name))? else {
                        self.gone.push((name, changed));
                        continue;
                    };
                    let places = contents.thin_in(&path).into_iter().filter(|it| !is_gone(it));
                    let thin = places.filter_map(|path| {
                        let (digest, blobs) = contents.thin(&path, &blobs)?;
                        Some((path, (digest, with(&digest, blobs))))
                    });
                    (stamp(&file), thin.collect())
                }
            };
            known.thin.insert(name.clone(), (stamp(&file), found.clone()));
            if found.is_empty() {
                self.gone.push((name.clone(), changed));
            }
            for (path, (digest, blobs)) in found {
                self.add_thin(digest, &blobs, Thin { root: name.clone(), path });
            }
        }
        Ok(())
    }

    fn add_thin(&mut self, digest: Digest, blobs: &Arc<[Digest]>, thin: Thin) {
        let entry = self.boxes.entry(digest).or_insert_with(|| BoxEntry {
            is_there: false,
            used: SystemTime::UNIX_EPOCH,
            size: 0,
            blobs: Arc::clone(blobs),
            labels: Vec::new(),
            directories: Vec::new(),
            is_running: false,
            is_foreign: false,
            has_attachments: false,
        });
        entry.directories.push(thin);
    }

    /// Adds the attachments of each box to its blobs.
    fn read_attachments(&mut self, root: &Path) -> Result<(), StoreError> {
        let directory = root.join(attachments::DIRECTORY);
        for (name, file) in self.files(&directory)? {
            let Some(digest) = Digest::from_hex(&name) else {
                self.foreign += 1;
                continue;
            };
            let item = item(&file);
            // A damaged list is useless, and is removed with its box.
            let blobs = read_record(&directory.join(name))?.map_or_else(Vec::new, |it| it.blobs);
            match self.boxes.get_mut(&digest) {
                Some(entry) => {
                    entry.size += item.size;
                    entry.has_attachments = true;
                    entry.blobs = with(&digest, [&*entry.blobs, &blobs].concat());
                }
                None => self.orphans.push(Orphan { digest, item, blobs }),
            }
        }
        Ok(())
    }

    /// Lists the files in a directory of the store. Other entries are counted as foreign.
    fn files(&mut self, directory: &Path) -> Result<Vec<(String, Metadata)>, StoreError> {
        let mut all = entries(directory)?;
        let before = all.len();
        all.retain(|(_, file)| file.is_file());
        self.foreign += before - all.len();
        Ok(all)
    }

    /// Returns the size of each box.
    pub(super) fn box_sizes(&self) -> BTreeMap<Digest, BoxSize> {
        let mut boxes: HashMap<Digest, usize> = HashMap::new();
        for blob in self.boxes.values().flat_map(|entry| entry.blobs.iter()) {
            *boxes.entry(*blob).or_default() += 1;
        }
        let size = |entry: &BoxEntry| {
            let mut size = BoxSize::default();
            for blob in &*entry.blobs {
                let bytes = self.blobs.get(blob).map_or(0, |it| it.size);
                let part = if boxes[blob] > 1 { &mut size.shared } else { &mut size.own };
                *part += bytes;
            }
            size
        };
        self.boxes.iter().map(|(digest, entry)| (*digest, size(entry))).collect()
    }
}

impl BoxEntry {
    fn label(&mut self, label: Label) {
        self.used = self.used.max(label.given);
        self.labels.push(label);
        self.labels.sort();
    }
}

fn item(file: &Metadata) -> Item {
    let changed = file.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    Item { size: in_units(file.len()), changed }
}

const fn in_units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT).saturating_mul(UNIT)
}

/// Returns the size of the files in a directory.
pub(super) fn size_of_directory(directory: &Path) -> Result<u64, StoreError> {
    let files = entries(directory)?.into_iter().filter(|(_, file)| file.is_file());
    Ok(files.map(|(_, file)| in_units(file.len())).sum())
}

/// Lists a directory. A missing directory has no entries. Entries that another process removes in the meantime are left out.
fn entries(directory: &Path) -> Result<Vec<(String, Metadata)>, StoreError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.context("read", directory)?,
    };
    let mut all = Vec::new();
    for entry in entries {
        let entry = entry.context("read", directory)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            found => all.push((name, found.context("examine", &entry.path())?)),
        }
    }
    Ok(all)
}

fn read_record(path: &Path) -> Result<Option<Refers>, StoreError> {
    let Some(file) = open_existing(path)? else { return Ok(None) };
    let record = Record::read(&file, path)?;
    Ok(record.map(|Record { blobs, actions, .. }| Refers { blobs, actions }))
}

/// Reads the path of a thin directory. Returns `None` if another user can change the file, or if it contains no absolute path.
fn read_root(path: &Path) -> Result<Option<PathBuf>, StoreError> {
    let Ok(file) = open_regular(path, Links::Refuse) else { return Ok(None) };
    if !is_private(&file).context("examine", path)? {
        return Ok(None);
    }
    let bytes = read_open(&file, MAX_RECORD_BYTES).ok();
    Ok(bytes.map(|it| path_of(&it)).filter(|it| it.is_absolute()))
}

/// Returns the blobs to which a box refers, and its manifest. If the manifest is missing or damaged, returns only the manifest's
/// digest, because such a box cannot be started.
fn blobs_of(
    digest: &Digest,
    root: &Path,
    contents: &dyn Contents,
    known: &mut Known,
) -> Result<Arc<[Digest]>, StoreError> {
    if let Some(blobs) = known.manifests.get(digest) {
        return Ok(Arc::clone(blobs));
    }
    let path = root.join("blobs").join(digest.hex());
    let Some(file) = open_existing(&path)? else { return Ok(Arc::new([*digest])) };
    let manifest = match read_open(&file, MAX_MANIFEST) {
        Ok(bytes) if Digest::of(&bytes) == *digest => bytes,
        _ => return Ok(Arc::new([*digest])),
    };
    let blobs = with(digest, contents.blobs(&manifest).unwrap_or_default());
    known.manifests.insert(*digest, Arc::clone(&blobs));
    Ok(blobs)
}

/// Returns the digests of a manifest and of its blobs, sorted and without duplicates.
fn with(digest: &Digest, mut blobs: Vec<Digest>) -> Arc<[Digest]> {
    blobs.push(*digest);
    blobs.sort_unstable();
    blobs.dedup();
    blobs.into()
}

/// Returns whether a process has marked the box as running; see [`crate::hold`].
fn is_held(index: &Path) -> bool {
    let file = open_existing(index).ok().flatten();
    file.is_some_and(|file| file.try_lock().is_err())
}

/// Returns whether a box's directory contains an entry that no build creates.
fn has_foreign(directory: &Path) -> Result<bool, StoreError> {
    for (name, file) in entries(directory)? {
        let is_own = OF_BOX.contains(&&*name) && file.is_dir() == (name == "blobs");
        if !is_own || file.is_symlink() {
            return Ok(true);
        }
    }
    let blobs = entries(&directory.join("blobs"))?;
    let is_own = |(name, file): &(String, Metadata)| name == "sha256" && file.is_dir();
    let is_empty = || Ok::<_, StoreError>(entries(&directory.join("blobs/sha256"))?.is_empty());
    Ok(!blobs.iter().all(is_own) || !is_empty()?)
}

//! Each rule of keeping, on stores on a disk.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use box_digest::Digest;
use proptest::prelude::*;

use super::*;
use crate::{ActionKey, Held, KeyHasher, Named, Owner, Pulled, Refers, Store, hold};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What a file takes that has fewer bytes than a unit.
const UNIT: u64 = 4096;
/// The size of a record, and of a box beside its blobs.
const RECORD: u64 = UNIT;
const BOX: u64 = 4 * UNIT;

/// A manifest of these tests is a list of digests, one a line, and a thin directory has the digest of its box in a file.
pub(super) struct Lines;

impl Contents for Lines {
    fn blobs(&self, manifest: &[u8]) -> Option<Vec<Digest>> {
        std::str::from_utf8(manifest).ok()?.lines().map(Digest::from_hex).collect()
    }

    fn thin(&self, directory: &Path, blobs: &Path) -> Option<(Digest, Vec<Digest>)> {
        let digest = Digest::from_hex(&fs::read_to_string(directory.join("box")).ok()?)?;
        let manifest = fs::read(blobs.join(digest.hex())).ok()?;
        Some((digest, self.blobs(&manifest)?))
    }
}

/// A store that nobody has open.
pub(super) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let place = Self { directory: tempfile::tempdir().unwrap() };
        drop(place.open());
        place
    }

    pub(super) fn root(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    fn open(&self) -> Store {
        Store::open(&self.root()).unwrap()
    }

    /// Makes a blob of so many units.
    fn blob(&self, name: &str, units: u64) -> Digest {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(usize::try_from(units * UNIT).unwrap(), b' ');
        self.open().put(&bytes).unwrap()
    }

    /// Makes a box of blobs.
    pub(super) fn make_box(&self, blobs: &[Digest]) -> Digest {
        let lines: Vec<_> = blobs.iter().map(Digest::hex).collect();
        let store = self.open();
        let digest = store.put(lines.join("\n").as_bytes()).unwrap();
        let directory = store.box_directory(&digest);
        fs::create_dir_all(directory.join("blobs/sha256")).unwrap();
        for name in ["oci-layout", "index.json"] {
            fs::write(directory.join(name), "{}").unwrap();
        }
        digest
    }

    pub(super) fn name(&self, name: &str, digest: Digest) {
        let owner = self.root().join("version");
        self.open().name_box(name, &Named { digest, owner: Owner::Boxfile(owner) }).unwrap();
    }

    fn record(&self, number: u32, blobs: &[Digest], actions: &[ActionKey]) -> ActionKey {
        let key = KeyHasher::new("test", number).finish();
        self.open().record_action(&key, b"value", &Refers { blobs, actions }).unwrap();
        key
    }

    /// Makes a record for each blob.
    pub(super) fn records(&self, blobs: &[Digest]) {
        let store = self.open();
        for (number, blob) in (1000..).zip(blobs) {
            let key = KeyHasher::new("test", number).finish();
            store.record_action(&key, b"value", &Refers::to(&[*blob])).unwrap();
        }
    }

    /// Makes a thin directory elsewhere.
    fn thin(&self, name: &str, digest: Digest) -> PathBuf {
        let path = self.directory.path().join(name);
        self.open().add_root(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("box"), digest.hex()).unwrap();
        path
    }

    /// Makes everything that is in the store now so much older.
    pub(super) fn age(&self, by: Duration) {
        for part in DIRECTORIES {
            for entry in fs::read_dir(self.root().join(part)).unwrap() {
                let path = entry.unwrap().path();
                let index = path.join("index.json");
                for path in [path, index].iter().filter(|it| it.exists() && !it.is_symlink()) {
                    let file = File::open(path).unwrap();
                    let changed = file.metadata().unwrap().modified().unwrap();
                    file.set_modified(changed - by).unwrap();
                }
            }
        }
    }

    pub(super) fn collector(&self) -> Collector {
        Collector::open(&self.root()).unwrap().unwrap()
    }

    fn collect(&self, rules: &Rules) -> Report {
        self.collector().collect(&Lines, rules).unwrap()
    }

    fn collect_to(&self, cap: u64) -> Report {
        self.collect(&Rules { cap: Some(cap), ..Rules::default() })
    }

    fn has(&self, blob: Digest) -> bool {
        self.root().join("blobs").join(blob.hex()).exists()
    }

    fn has_box(&self, digest: Digest) -> bool {
        self.root().join("boxes").join(digest.hex()).exists()
    }

    fn has_record(&self, key: ActionKey) -> bool {
        self.root().join("actions").join(key.hex()).exists()
    }

    fn names(&self) -> Vec<String> {
        list(&self.root().join("names"))
    }
}

fn list(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn why(report: &Report) -> Vec<Option<Why>> {
    report.kept.iter().map(|it| it.why).collect()
}

#[test]
fn the_least_recently_used_goes_first_and_no_more_than_has_to() {
    let place = Place::new();
    let shared = place.blob("shared", 10);
    let boxes: Vec<_> = (0..4)
        .map(|at| {
            let own = place.blob(&at.to_string(), 5);
            let made = place.make_box(&[shared, own]);
            place.name(&format!("box{at}"), made);
            place.age(DAY);
            made
        })
        .collect();
    // Each has 5 units of its own, one of its manifest and 4 beside.
    let size = 10 * UNIT + 4 * (6 * UNIT + BOX);
    assert_eq!(place.collector().size().unwrap(), size - 4 * BOX);
    drop(hold(&place.root(), &boxes[0]));
    place.age(DAY);
    let report = place.collect_to(size - 1);
    assert_eq!((report.before, report.after), (size, size - 10 * UNIT));
    let gone: Vec<_> = report.removed.iter().map(|it| it.digest).collect();
    assert_eq!(gone, [boxes[1]], "the first one was used since");
    assert_eq!(report.removed_names, ["box1"]);
    assert_eq!(place.names(), ["box0", "box2", "box3"]);
    let report = place.collect_to(0);
    assert_eq!((report.after, report.removed.len(), report.removed_blobs), (0, 3, 7));
    assert!(!report.is_over() && place.names().is_empty());
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
    assert_eq!(list(&place.root().join("boxes")), [""; 0]);
    assert_eq!(list(&place.root().join("tmp")), [""; 0]);
}

#[test]
fn a_store_that_is_small_enough_loses_only_what_nothing_refers_to() {
    let place = Place::new();
    let (used, unused) = (place.blob("used", 1), place.blob("unused", 1));
    let made = place.make_box(&[used]);
    place.age(30 * DAY);
    let report = place.collect_to(1 << 30);
    assert_eq!((report.removed_blobs, report.removed.len()), (1, 0));
    assert!(place.has(used) && place.has_box(made) && !place.has(unused));
}

#[test]
fn what_was_not_used_for_long_goes_if_that_is_asked_for() {
    let place = Place::new();
    let old = place.make_box(&[place.blob("old", 1)]);
    place.age(2 * DAY);
    let new = place.make_box(&[place.blob("new", 1)]);
    place.age(2 * HOUR);
    place.collect(&Rules { older_than: Some(DAY), ..Rules::default() });
    assert!(place.has_box(new) && !place.has_box(old));
    // Who names a shorter time than an hour means it.
    let young = place.make_box(&[place.blob("young", 1)]);
    place.collect(&Rules { older_than: Some(HOUR), ..Rules::default() });
    assert!(place.has_box(young) && !place.has_box(new));
    // What a session used would be kept for two seconds more: its clock is another one.
    place.age(Duration::from_secs(1));
    place.collect(&Rules { older_than: Some(Duration::ZERO), ..Rules::default() });
    assert!(!place.has_box(young));
}

#[test]
fn a_box_that_was_made_within_the_hour_is_kept() {
    let place = Place::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    let report = place.collect_to(0);
    assert_eq!(why(&report), [Some(Why::Young)]);
    assert!(report.is_over() && report.kept_bytes == report.after);
    place.age(2 * HOUR);
    place.name("young", made);
    assert_eq!(why(&place.collect_to(0)), [Some(Why::Young)], "a name is young, too");
    place.age(2 * HOUR);
    assert_eq!(why(&place.collect_to(0)), []);
}

#[test]
fn a_box_that_runs_is_kept_as_long_as_it_does() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    place.name("hello", made);
    let held: [Held; 2] = [(); 2].map(|()| hold(&place.root(), &made).unwrap());
    place.age(2 * DAY);
    assert_eq!(why(&place.collect_to(0)), [Some(Why::Running)]);
    let [one, other] = held;
    drop(one);
    assert_eq!(why(&place.collect_to(0)), [Some(Why::Running)]);
    assert!(place.has(blob) && place.names() == ["hello"]);
    drop(other);
    assert_eq!(place.collect_to(0).after, 0);
    assert!(hold(&place.root(), &made).is_none(), "it is gone");
}

#[test]
fn a_thin_directory_keeps_its_box_until_it_is_gone() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    let thin = place.thin("hello.box", made);
    place.age(2 * DAY);
    let report = place.collect_to(0);
    assert_eq!(
        (why(&report), &report.kept[0].directories),
        (vec![Some(Why::Thin)], &vec![thin.clone()])
    );
    // Also one whose box lost its own directory.
    fs::remove_dir_all(place.root().join("boxes").join(made.hex())).unwrap();
    assert_eq!(why(&place.collect_to(0)), [Some(Why::Thin)]);
    assert!(place.has(blob));
    fs::remove_dir_all(&thin).unwrap();
    assert_eq!(place.collect_to(0).after, 0);
    assert_eq!(list(&place.root().join("roots")), [""; 0]);
}

#[test]
fn a_build_may_note_a_directory_that_it_has_not_made_yet() {
    let place = Place::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    place.open().add_root(Path::new("/none/hello.box")).unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("roots")).len(), 1);
    place.age(2 * HOUR);
    // The next build notes it again.
    place.open().add_root(Path::new("/none/hello.box")).unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("roots")).len(), 1);
    assert!(!place.has_box(made));
}

#[test]
fn a_record_keeps_its_blobs_and_is_as_young_as_who_refers_to_it() {
    let place = Place::new();
    let [layer, made, other] = ["layer", "made", "other"].map(|it| place.blob(it, 3));
    let decoded = place.record(1, &[layer], &[]);
    place.open().data_writer().unwrap().commit(&decoded).unwrap();
    let built = place.record(2, &[made], &[decoded]);
    place.age(DAY);
    let between = place.record(3, &[other], &[]);
    place.age(DAY);
    // A build that takes its result from the store reads this record alone.
    place.open().action(&built).unwrap();
    place.age(DAY);
    let size = 3 * (3 * UNIT + RECORD);
    let report = place.collect_to(size - 1);
    assert_eq!((report.before, report.removed_records, report.removed_blobs), (size, 1, 1));
    assert!(!place.has(other) && !place.has_record(between));
    assert!(place.has(layer) && place.has(made) && place.has_record(decoded));
    assert_eq!(place.collect_to(0).after, 0);
    assert_eq!(list(&place.root().join("data")), [""; 0]);
}

#[test]
fn a_blob_stays_until_the_last_that_refers_to_it_goes() {
    let place = Place::new();
    let blob = place.blob("a", 3);
    let record = place.record(1, &[blob], &[]);
    place.age(DAY);
    let made = place.make_box(&[blob]);
    place.age(DAY);
    let report = place.collect_to(8 * UNIT);
    assert_eq!((report.removed_records, report.removed_blobs, report.after), (1, 0, 8 * UNIT));
    assert!(!place.has_record(record) && place.has(blob) && place.has_box(made));
}

#[test]
fn what_a_process_uses_that_has_the_store_open_is_kept() {
    let place = Place::new();
    let [found, old] = ["found", "old"].map(|it| place.blob(it, 1));
    let kept = place.record(1, &[place.blob("recorded", 1)], &[]);
    let gone = place.record(2, &[old], &[]);
    place.age(DAY);
    let store = place.open();
    assert!(store.size(&found).is_some() && store.action(&kept).unwrap().is_some());
    let new = store.put(b"new").unwrap();
    let mut data = store.data_writer().unwrap();
    std::io::Write::write_all(&mut data, b"data").unwrap();
    data.commit(&KeyHasher::new("test", 9).finish()).unwrap();
    let report = place.collect_to(0);
    assert_eq!((report.removed_records, report.removed_blobs), (1, 1));
    assert!(place.has(found) && place.has(new) && place.has_record(kept));
    assert!(!place.has_record(gone) && !place.has(old));
    assert_eq!((report.used_bytes, report.kept_bytes), (report.after, report.after));
    assert_eq!(store.action(&gone).unwrap(), None);
    drop(store);
    place.age(Duration::from_secs(5));
    assert_eq!(place.collect_to(0).after, 0);
}

#[test]
fn a_box_that_is_being_published_is_waited_for() {
    let place = Place::new();
    let [blob, old] = ["a", "old"].map(|it| place.blob(it, 1));
    place.record(1, &[old], &[]);
    place.age(DAY);
    let store = place.open();
    let publishing = store.publish(&[(blob, UNIT)]).unwrap();
    let collected = thread::scope(|scope| {
        let collecting = scope.spawn(|| place.collect_to(0));
        thread::sleep(Duration::from_millis(200));
        assert!(place.has(blob) && place.has(old), "nothing is removed meanwhile");
        // It may look for more while somebody waits.
        assert!(store.size(&blob).is_some() && store.size(&Digest::of(b"none")).is_none());
        drop(publishing);
        collecting.join().unwrap()
    });
    assert!(place.has(blob) && !place.has(old), "{collected:?}");
    let missing = store.publish(&[(blob, UNIT + 1)]).unwrap_err();
    assert!(StoreError::is_missing(&missing));
}

#[test]
fn a_store_without_anything_that_refers_to_its_blobs_is_left_alone() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    place.age(DAY);
    let collect = || place.collector().collect(&Lines, &Rules { cap: Some(0), ..Rules::default() });
    assert!(matches!(collect(), Err(StoreError::NoRoots(_))));
    assert!(place.has(blob));
    // Nor does a record of another version refer to any.
    let record = place.root().join("actions").join(Digest::of(b"key").hex());
    fs::write(&record, [Digest::of(b"v").as_bytes().as_slice(), b"v"].concat()).unwrap();
    place.age(DAY);
    assert!(matches!(collect(), Err(StoreError::NoRoots(_))));
    place.record(1, &[], &[]);
    place.age(DAY);
    collect().unwrap();
    assert!(!place.has(blob) && !record.exists());
    // The last collection left nothing: blobs of a build that was killed then are no sign of a fault.
    let blob = place.blob("a", 1);
    place.age(DAY);
    collect().unwrap();
    assert!(!place.has(blob));
}

#[test]
fn a_collection_that_was_killed_is_finished_by_the_next_one() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    place.make_box(&[blob]);
    place.age(DAY);
    // As far as it had come: the box is taken, its blobs are not, and nothing is freed.
    File::options().write(true).open(place.root().join("gate")).unwrap().set_len(1).unwrap();
    let taken = place.root().join("boxes");
    let [name] = &list(&taken)[..] else { panic!() };
    let gone = place.root().join("tmp").join(format!("gone-boxes-{name}"));
    fs::rename(taken.join(name), &gone).unwrap();
    fs::write(place.root().join("tmp/gone-blobs-00"), "bytes").unwrap();
    place.collect_to(0);
    assert_eq!(list(&place.root().join("tmp")), [""; 0]);
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
}

#[test]
fn a_long_collection_lets_others_in_between() {
    let place = Place::new();
    let blobs: Vec<_> = (0..400).map(|it| place.blob(&it.to_string(), 1)).collect();
    place.records(&blobs);
    let made = place.make_box(&blobs[..3]);
    place.name("hello", made);
    place.age(DAY);
    let collector = place.collector();
    let rules = Rules { cap: Some(0), ..Rules::default() };
    let report = collector.collect_in(&Lines, &rules, Duration::ZERO).unwrap();
    assert_eq!((report.removed_records, report.removed_blobs), (400, 401));
    assert_eq!((report.removed.len(), &report.removed_names[..]), (1, &["hello".to_owned()][..]));
    assert_eq!((report.before, report.after), (401 * UNIT + 400 * RECORD + BOX, 0));
    assert_eq!(list(&place.root().join("blobs")), [""; 0]);
}

#[test]
fn what_is_asked_for_goes_with_all_that_keeps_it() {
    let place = Place::new();
    let [shared, own] = ["shared", "own"].map(|it| place.blob(it, 1));
    let made = place.make_box(&[shared, own]);
    let decoded = place.record(1, &[shared], &[]);
    let built = place.record(2, &[made, own], &[decoded]);
    let thin = place.thin("hello.box", made);
    ["a", "b"].iter().for_each(|name| place.name(name, made));
    let held = hold(&place.root(), &made);
    place.age(Duration::from_secs(5));
    let named = |name: &str, means| {
        let names = [(Label::Name(name.to_owned()), means)].into();
        Rules { names, ..Rules::default() }
    };
    // Somebody gave the name to another box meanwhile.
    assert_eq!(place.collect(&named("a", shared)).removed_names, [""; 0]);
    let report = place.collect(&named("a", made));
    assert_eq!((report.removed_names, place.names()), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(report.kept[0].names, ["b"]);
    assert!(place.has_box(made) && place.has_record(built));
    // It began to run meanwhile.
    for rules in [named("b", made), Rules { boxes: [made].into(), ..Rules::default() }] {
        let report = place.collect(&rules);
        assert_eq!((why(&report), place.names()), (vec![Some(Why::Running)], vec!["b".to_owned()]));
    }
    let report = place.collect(&Rules { is_forced: true, ..named("b", made) });
    assert_eq!(report.removed[0].directories, [thin]);
    assert!(!place.has_box(made) && !place.has_record(built) && !place.has(own));
    assert!(place.has_record(decoded) && place.has(shared), "the next build uses it");
    assert!(place.names().is_empty() && list(&place.root().join("roots")).is_empty());
    drop(held);
}

#[test]
fn a_box_of_several_names_goes_as_a_whole_only_if_all_are_asked_for() {
    let place = Place::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    ["a", "b"].iter().for_each(|name| place.name(name, made));
    place.age(DAY);
    let by_digest = Rules { boxes: [made].into(), ..Rules::default() };
    place.collect(&by_digest);
    assert!(place.has_box(made) && place.names().len() == 2);
    let names = ["a", "b"].map(|it| (Label::Name(it.to_owned()), made)).into();
    let report = place.collect(&Rules { names, dry_run: true, ..Rules::default() });
    assert_eq!((report.removed.len(), report.removed_names.len()), (1, 2));
    place.collect(&Rules { is_forced: true, ..by_digest });
    assert!(!place.has_box(made) && place.names().is_empty());
}

#[test]
fn what_was_asked_for_once_does_not_go_again_when_it_comes_back() {
    let place = Place::new();
    let blobs: Vec<_> = (0..300).map(|at| place.blob(&at.to_string(), 1)).collect();
    let made = place.make_box(&blobs);
    for at in 0..200 {
        place.record(at, &[made, blobs[0]], &[]);
    }
    place.name("a", made);
    let names = [(Label::Name("a".to_owned()), made)].into();
    // In several rounds, as no time is left for one.
    let report =
        place.collector().collect_in(&Lines, &Rules { names, ..Rules::default() }, Duration::ZERO);
    let report = report.unwrap();
    assert_eq!((report.removed.len(), report.removed_records), (1, 200));
    assert_eq!(
        (list(&place.root().join("blobs")), list(&place.root().join("actions"))),
        (vec![], vec![])
    );
}

#[test]
fn what_a_person_tagged_pulled_or_loaded_is_kept() {
    let place = Place::new();
    let boxes =
        ["tagged", "loaded", "pulled", "built"].map(|it| place.make_box(&[place.blob(it, 1)]));
    let file = place.root().join("version");
    let owners = [Owner::Tagged(file.clone()), Owner::Archive, Owner::Boxfile(file)];
    for (owner, at) in owners.into_iter().zip([0, 1, 3]) {
        let digest = boxes[at];
        place.open().name_box(&format!("name{at}"), &Named { digest, owner }).unwrap();
    }
    let reference = "ghcr.io/acme/agent:v1".to_owned();
    let pulled = Pulled { reference, digest: boxes[2], registry_digest: boxes[0], is_asked: true };
    place.open().note_pulled(&pulled).unwrap();
    // A start that fetches it, too, takes nothing from that.
    place.open().note_pulled(&Pulled { is_asked: false, ..pulled.clone() }).unwrap();
    place.age(30 * DAY);
    let rules = Rules { older_than: Some(DAY), cap: Some(0), ..Rules::default() };
    let report = place.collect(&rules);
    assert_eq!(report.removed.iter().map(|it| it.digest).collect::<Vec<_>>(), [boxes[3]]);
    assert_eq!(why(&report), [Some(Why::Tagged); 3]);
    assert!(report.is_over());
    // What was pulled goes by its reference, and the box with it.
    let label = Label::Pulled(pulled.reference.clone());
    let names = [(label, boxes[2])].into();
    let report = place.collect(&Rules { names, ..Rules::default() });
    assert_eq!(report.removed_names, [pulled.reference]);
    assert!(list(&place.root().join("pulled")).is_empty());
    assert!(!place.has_box(boxes[2]) && place.has_box(boxes[0]) && place.has_box(boxes[1]));
}

#[test]
fn what_a_start_fetched_goes_by_age() {
    let place = Place::new();
    let digest = place.make_box(&[place.blob("a", 1)]);
    let reference = "ghcr.io/acme/agent:v1".to_owned();
    let pulled = Pulled { reference, digest, registry_digest: digest, is_asked: false };
    place.open().note_pulled(&pulled).unwrap();
    assert_eq!(place.open().pulled(&pulled.reference).unwrap(), Some(pulled.clone()));
    place.age(30 * DAY);
    assert_eq!(place.collect_to(0).removed_names, [pulled.reference]);
    assert!(!place.has_box(digest));
}

#[test]
fn a_dry_run_removes_nothing_and_says_what_would_go() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    place.age(DAY);
    let rules = Rules { cap: Some(0), dry_run: true, ..Rules::default() };
    let dry = place.collect(&rules);
    assert!(place.has(blob) && place.has_box(made));
    assert_eq!(dry, place.collect(&Rules { dry_run: false, ..rules }));
    assert!(!place.has(blob));
}

#[test]
fn what_is_not_the_stores_is_left_where_it_is() {
    let place = Place::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    let precious = place.directory.path().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    let hex = |number: u8| Digest::from_bytes([number; 32]).hex();
    for part in ["blobs", "actions", "data", "names", "roots", "boxes"] {
        let at = |name: &str| place.root().join(part).join(name);
        fs::create_dir(at("directory")).unwrap();
        fs::write(at("file.txt"), "x").unwrap();
        symlink(&precious, at(&hex(1))).unwrap();
        symlink(precious.join("file"), at(&hex(2))).unwrap();
    }
    fs::create_dir(place.root().join("blobs").join(hex(3))).unwrap();
    let foreign = place.make_box(&[place.blob("b", 1)]);
    symlink(&precious, place.root().join("boxes").join(foreign.hex()).join("link")).unwrap();
    place.age(DAY);
    let report = place.collect_to(0);
    assert_eq!(why(&report), [Some(Why::Foreign)]);
    assert_eq!(report.foreign, 6 * 4 + 1 + 1);
    assert!(!place.has_box(made) && place.has_box(foreign));
    assert_eq!(fs::read_to_string(precious.join("file")).unwrap(), "precious");
    for part in ["blobs", "actions", "data", "names", "roots", "boxes"] {
        let names = list(&place.root().join(part));
        for name in ["directory", "file.txt", &hex(1), &hex(2)] {
            assert!(names.iter().any(|it| it == name), "{part}/{name}");
        }
    }
}

#[test]
fn a_store_that_another_user_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    for part in ["", "blobs", "actions", "data", "names", "boxes", "roots", "tmp", "sessions"] {
        let path = place.root().join(part);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = Collector::open(&place.root()).unwrap_err();
        assert!(matches!(error, StoreError::Shared(_)), "{part}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::rename(place.root().join("data"), place.root().join("moved")).unwrap();
    symlink("moved", place.root().join("data")).unwrap();
    assert!(matches!(Collector::open(&place.root()), Err(StoreError::File(_))));
    assert!(Collector::open(&place.directory.path().join("none")).unwrap().is_none());
}

#[test]
fn a_box_whose_manifest_is_damaged_keeps_nothing_and_stops_nothing() {
    let place = Place::new();
    let blob = place.blob("a", 1);
    let made = place.make_box(&[blob]);
    let path = place.root().join("blobs").join(made.hex());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "damaged").unwrap();
    place.collect(&Rules::default());
    assert!(place.has_box(made));
    place.age(DAY);
    assert_eq!(place.collect_to(0).after, 0);
}

#[test]
fn a_name_of_a_box_that_is_gone_goes_when_it_is_old() {
    let place = Place::new();
    place.name("lost", Digest::of(b"none"));
    place.record(1, &[], &[]);
    place.collect(&Rules::default());
    assert_eq!(place.names(), ["lost"]);
    place.age(2 * HOUR);
    place.collect(&Rules::default());
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn a_time_in_the_future_is_no_use() {
    let place = Place::new();
    let made = place.make_box(&[place.blob("a", 1)]);
    let directory = File::open(place.root().join("boxes").join(made.hex())).unwrap();
    directory.set_modified(SystemTime::now() + 30 * DAY).unwrap();
    assert_eq!(why(&place.collect_to(0)), []);
}

#[test]
fn own_and_shared_bytes_of_a_box() {
    let place = Place::new();
    let [shared, own] = [place.blob("shared", 3), place.blob("own", 5)];
    let one = place.make_box(&[shared, own]);
    let other = place.make_box(&[shared]);
    let sizes = place.collector().box_sizes(&Lines).unwrap();
    assert_eq!(sizes[&one], BoxSize { own: 6 * UNIT, shared: 3 * UNIT });
    assert_eq!(sizes[&other], BoxSize { own: UNIT, shared: 3 * UNIT });
}

/// What a random store has, by the numbers of its blobs.
#[derive(Debug, Clone)]
struct Random {
    boxes: Vec<(Vec<u8>, u16, u8)>,
    records: Vec<(Vec<u8>, Vec<u8>, u16)>,
    unused: Vec<u8>,
    cap: u64,
    older_than: Option<u16>,
}

fn random() -> impl Strategy<Value = Random> {
    let blobs = || prop::collection::vec(0..12_u8, 0..5);
    let made = (blobs(), 0..200_u16, 0..8_u8);
    let record = (blobs(), prop::collection::vec(0..6_u8, 0..3), 0..200_u16);
    let boxes = prop::collection::vec(made, 0..6);
    let records = prop::collection::vec(record, 0..6);
    (boxes, records, blobs(), 0..150_u64, prop::option::of(0..200_u16)).prop_map(
        |(boxes, records, unused, cap, older_than)| Random {
            boxes,
            records,
            unused,
            cap: cap * UNIT,
            older_than,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_goes_that_is_kept_and_the_cap_holds(random in random()) {
        let place = Place::new();
        let blob = |number: &u8| place.blob(&format!("blob {number}"), u64::from(*number) + 1);
        let _unused: Vec<_> = random.unused.iter().map(blob).collect();
        let set = |path: &Path, hours: u16| {
            let time = SystemTime::now() - u32::from(hours) * (HOUR / 4) - HOUR / 8;
            File::open(path).unwrap().set_modified(time).unwrap();
        };
        // (box, what keeps it)
        let mut kept = Vec::new();
        let mut held = Vec::new();
        for (at, (blobs, hours, kind)) in random.boxes.iter().enumerate() {
            let mut blobs: Vec<_> = blobs.iter().map(blob).collect();
            blobs.push(place.blob(&format!("own {at}"), 1));
            let made = place.make_box(&blobs);
            if *kind % 2 == 1 {
                place.name(&format!("name{at}"), made);
                set(&place.root().join("names").join(format!("name{at}")), *hours);
            }
            if *kind == 2 {
                place.thin(&format!("thin{at}"), made);
            }
            if *kind == 4 {
                held.push(hold(&place.root(), &made).unwrap());
            }
            let directory = place.root().join("boxes").join(made.hex());
            set(&directory.join("index.json"), *hours);
            set(&directory, *hours);
            let young = random.older_than.map_or(4, |it| it.min(4));
            if [2, 4].contains(kind) || *hours < young {
                kept.push((made, blobs));
            }
        }
        let key = |number: usize| KeyHasher::new("test", u32::try_from(number).unwrap()).finish();
        for (at, (blobs, actions, hours)) in random.records.iter().enumerate() {
            let blobs: Vec<_> = blobs.iter().map(blob).collect();
            let actions: Vec<_> = actions.iter().map(|it| key(usize::from(*it))).collect();
            place.record(u32::try_from(at).unwrap(), &blobs, &actions);
            set(&place.root().join("actions").join(key(at).hex()), *hours);
        }
        for entry in fs::read_dir(place.root().join("blobs")).unwrap() {
            set(&entry.unwrap().path(), 300);
        }
        let rules = Rules {
            cap: Some(random.cap),
            older_than: random.older_than.map(|it| u32::from(it) * (HOUR / 4)),
            ..Rules::default()
        };
        let collected = place.collector().collect(&Lines, &rules);
        let Ok(report) = collected else {
            prop_assert!(random.boxes.is_empty() && random.records.is_empty());
            return Ok(());
        };
        for (made, blobs) in &kept {
            prop_assert!(place.has_box(*made) && place.has(*made));
            prop_assert!(blobs.iter().all(|it| place.has(*it)));
        }
        // Whatever is left has all that it refers to.
        let scan = place.collector().scan(&Lines, &mut Known::default()).unwrap();
        for entry in scan.boxes.values() {
            prop_assert!(entry.blobs.iter().all(|it| scan.blobs.contains_key(it)));
        }
        for refers in scan.records.values().filter_map(|it| it.refers.as_ref()) {
            prop_assert!(refers.blobs.iter().all(|it| scan.blobs.contains_key(it)));
        }
        prop_assert!(scan.dangling.is_empty());
        let again = place.collect(&rules);
        prop_assert_eq!(again.before, report.after);
        // What was young only because of a record that went is old now.
        let refers = random.records.iter().any(|(_, actions, _)| !actions.is_empty());
        if random.older_than.is_none() || !refers {
            prop_assert_eq!(again.before, again.after);
            prop_assert!(again.removed.is_empty() && again.removed_records == 0 && again.removed_blobs == 0);
        }
        prop_assert!(report.after <= random.cap || report.after == report.kept_bytes, "{report:?}");
        drop(held);
    }
}

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use box_cache::collect::Contents as _;
use box_prune::BoxContents;
use testkit::test_box::{TestBox, config};

use super::*;
use crate::boxes::RecordError;

const SIZE: u64 = 16 << 20;
/// Where the tests write to a disk: behind the structures of its file system.
const AT: u64 = 12 << 20;

/// A state directory, and a box whose runs are recorded in it.
struct Fixture {
    state: tempfile::TempDir,
    made: TestBox,
    signals: StopSignals,
}

impl Fixture {
    fn new() -> Self {
        let (state, made) = (tempfile::tempdir().unwrap(), TestBox::new(&config()));
        Self { state, made, signals: StopSignals::block().unwrap() }
    }

    fn boxes(&self) -> Boxes {
        Boxes::new(self.state.path())
    }

    fn snapshots(&self) -> Snapshots {
        Snapshots::new(self.state.path())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.state.path().join(SNAPSHOTS).join(name)
    }

    /// Begins a run of a box without a disk.
    fn begin(&self, name: &str) -> Entry {
        let opened = crate::opened::open(self.made.path()).unwrap();
        let record = Record::new(&opened, opened.plan().vm, &self.state.path().join("none"));
        let record = Record { project: Some("/work/page".into()), ..record };
        self.boxes().create(Some(name), record).unwrap()
    }

    /// Makes a box that has ended, and has written `text` to its disk.
    fn ended(&self, name: &str, text: &[u8]) {
        let mut entry = self.begin(name);
        entry.keep_documents(self.made.path()).unwrap();
        let disk = RootsDisk::keep(entry.directory(), SIZE).unwrap();
        disk.file.write_all_at(text, AT).unwrap();
        entry.update(|record| record.disk_bytes = Some(SIZE)).unwrap();
        entry.end(Some(0), None).unwrap();
    }

    fn create(&self, of: &str, name: Option<&str>) -> Result<Snapshot, SnapshotError> {
        let (boxes, of) = (self.boxes(), self.boxes().find(of).unwrap());
        self.snapshots().create((&boxes, &of), name, &self.signals)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            self.snapshots().all().unwrap().0.into_iter().map(|it| it.name).collect();
        names.sort();
        names
    }
}

fn text(disk: &Path) -> Vec<u8> {
    let mut text = vec![0; 4];
    File::open(disk).unwrap().read_exact_at(&mut text, AT).unwrap();
    text
}

#[test]
fn a_snapshot_is_a_copy_with_the_box_and_the_project_for_this_user() {
    let made = Fixture::new();
    made.ended("page", b"one!");
    let snapshot = made.create("page", None).unwrap();
    let record = made.boxes().find("page").unwrap();
    assert_eq!((snapshot.name.as_str(), snapshot.of.as_str()), ("page-1", "page"));
    assert_eq!((&snapshot.project, snapshot.digest), (&record.project, record.digest));
    assert_eq!((snapshot.size_bytes, text(&snapshot.disk)), (SIZE, b"one!".to_vec()));
    assert!(snapshot.allocated_bytes < SIZE / 2, "it is sparse: {snapshot:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&snapshot.disk), mode(&made.path("page-1"))), (0o600, 0o700));
    assert_eq!(mode(&made.path("")), 0o700);
    // The box goes on without a change of the snapshot, and the snapshot outlives it.
    made.boxes().remove("page").unwrap();
    made.ended("page", b"two!");
    assert_eq!(text(&made.snapshots().find("page-1").unwrap().disk), b"one!");
    assert_eq!(text(&made.create("page", None).unwrap().disk), b"two!");
    assert_eq!(made.names(), ["page-1", "page-2"]);
}

#[test]
fn numbers_continue_and_names_are_taken_once() {
    let made = Fixture::new();
    made.ended("page", b"page");
    made.ended("page-1", b"more");
    for (name, expected) in
        [(Some("page-9"), "page-9"), (None, "page-10"), (Some("before"), "before")]
    {
        assert_eq!(made.create("page", name).unwrap().name, expected);
    }
    assert_eq!(made.create("page-1", None).unwrap().name, "page-1-1");
    assert_eq!(made.create("page", None).unwrap().name, "page-11");
    assert!(matches!(made.create("page", Some("before")), Err(SnapshotError::Exists(_))));
    for name in ["", ".", "..", ".lock", "a/b", "a b"] {
        assert!(matches!(made.create("page", Some(name)), Err(SnapshotError::BadName(_))));
        assert!(matches!(made.snapshots().find(name), Err(SnapshotError::Missing(_))));
        assert!(matches!(made.snapshots().remove(name), Err(SnapshotError::Missing(_))));
    }
    let long = "a".repeat(MAX_NAME);
    made.ended(&long, b"long");
    assert!(is_entry_name(&made.create(&long, None).unwrap().name));
    assert_eq!(made.create(&long, None).unwrap().name, "a".repeat(MAX_NAME - MAX_NUMBER) + "-2");
}

#[test]
fn only_a_box_that_has_ended_and_has_a_disk_is_copied() {
    let made = Fixture::new();
    let entry = made.begin("page");
    drop(RootsDisk::keep(entry.directory(), SIZE).unwrap());
    let error = made.create("page", None).unwrap_err();
    assert!(matches!(error, SnapshotError::Running { is_environment: true, .. }), "{error}");
    entry.end(Some(0), None).unwrap();
    // The VMM process of the last run may still have the disk.
    let last = RootsDisk::open(&made.boxes().directory.join("page")).unwrap();
    let error = made.create("page", None).unwrap_err().to_string();
    assert!(error.ends_with("the VM of the box's last run still uses it"), "{error}");
    drop(last);
    made.boxes().remove_disk("page").unwrap();
    assert!(matches!(made.create("page", None), Err(SnapshotError::NoDisk(_))));
    assert!(!made.path("").exists() || made.names().is_empty());
}

#[test]
fn what_a_killed_command_has_left_is_never_a_snapshot_and_is_removed() {
    let made = Fixture::new();
    made.ended("page", b"page");
    made.create("page", Some("old")).unwrap();
    let draft = DirectoryDraft::beside(&made.path("new"), 0o700).unwrap();
    fs::write(draft.path().join(DISK), "half").unwrap();
    made.snapshots().sweep();
    assert!(draft.path().exists(), "another command fills it");
    let path = draft.path().to_owned();
    // As a killed process: nothing removes the draft, and the kernel releases its lock.
    let left = made.path(".boxbuild-0123456789abcdef");
    fs::create_dir(&left).unwrap();
    fs::write(left.join(DISK), "half").unwrap();
    drop(draft);
    assert!(!path.exists(), "an error removes it");
    assert_eq!(made.names(), ["old"]);
    made.snapshots().sweep();
    assert!(!left.exists());
    // The removal of a snapshot that was killed is finished.
    fs::remove_file(made.path("old/disk")).unwrap();
    assert!(matches!(made.snapshots().find("old"), Err(SnapshotError::Missing(_))));
    assert_eq!(made.names(), [""; 0]);
    made.create("page", Some("old")).unwrap();
}

#[test]
fn a_damaged_snapshot_is_not_used_and_can_be_removed() {
    let made = Fixture::new();
    made.ended("page", b"page");
    let damages = [("record.json", "its record is malformed"), ("disk", "its disk has 16777217 ")];
    for (file, expected) in damages {
        made.create("page", Some("old")).unwrap();
        let file = File::options().append(true).open(made.path("old").join(file)).unwrap();
        io::Write::write_all(&mut &file, b"x").unwrap();
        let (found, unreadable) = made.snapshots().all().unwrap();
        assert!(found.is_empty() && unreadable.len() == 1, "{found:?}");
        match made.snapshots().find("old").unwrap_err() {
            SnapshotError::Damaged { reason, .. } => assert!(reason.starts_with(expected)),
            other => panic!("{other}"),
        }
        made.snapshots().remove("old").unwrap();
        assert!(!made.path("old").exists());
    }
}

#[test]
fn a_box_begins_with_a_snapshot_and_returns_to_it() {
    let made = Fixture::new();
    made.ended("page", b"one!");
    let snapshot = made.create("page", None).unwrap();
    // The disk of another box, which does not exist yet.
    let mut fork = made.begin("fork");
    fork.begin_with(&snapshot, &made.signals).unwrap();
    assert_eq!(fork.record.disk_bytes, Some(SIZE));
    let disk = RootsDisk::keep(fork.directory(), SIZE * 2).unwrap();
    assert_eq!(disk.size_bytes(), SIZE);
    disk.file.write_all_at(b"fork", AT).unwrap();
    assert_eq!(text(&snapshot.disk), b"one!");
    drop(disk);
    // The disk of a box that has written more since.
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    fork.begin_with(&snapshot, &made.signals).unwrap();
    let path = fork.directory().join(DISK);
    assert_eq!((text(&path), mode(&path)), (b"one!".to_vec(), 0o600));
    // Without the snapshot, the disk stays as it is.
    fs::write(&path, "still here").unwrap();
    made.snapshots().remove("page-1").unwrap();
    assert!(fork.begin_with(&snapshot, &made.signals).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"still here");
    let names: Vec<_> = fs::read_dir(fork.directory()).unwrap().collect();
    assert_eq!(names.len(), 2, "a disk and a record, and no draft: {names:?}");
}

#[test]
fn a_snapshot_is_for_its_box_alone() {
    let made = Fixture::new();
    made.ended("page", b"page");
    let snapshot = made.create("page", None).unwrap();
    snapshot.check_box(snapshot.digest).unwrap();
    let other = Digest::of(b"other");
    let error = snapshot.check_box(other).unwrap_err().to_string();
    let expected = format!(
        "the snapshot page-1 is of the box {}, and this start is of the box {other}",
        snapshot.digest
    );
    assert_eq!(error, expected);
}

#[test]
fn the_store_keeps_the_box_of_a_snapshot() {
    let made = Fixture::new();
    made.ended("page", b"page");
    let snapshot = made.create("page", None).unwrap();
    made.boxes().remove("page").unwrap();
    assert!(matches!(made.boxes().find("page"), Err(RecordError::NoBox(_))));
    let blobs = made.made.path().join("blobs/sha256");
    let kept = || {
        let places = BoxContents.thin_in(&made.state.path().join(SNAPSHOTS));
        let kept = places.iter().filter_map(|it| BoxContents.thin(it, &blobs));
        kept.map(|(digest, _)| digest).collect::<Vec<_>>()
    };
    assert_eq!(kept(), [snapshot.digest]);
    let store = made.state.path().join("store");
    made.snapshots().note_in(&snapshot, &store).unwrap();
    assert_eq!(fs::read_dir(store.join("roots")).unwrap().count(), 1);
    made.snapshots().remove("page-1").unwrap();
    assert_eq!(kept(), []);
    // A box that came from no store needs none.
    let (other, none) = (Snapshot { name: "other".to_owned(), ..snapshot }, store.join("none"));
    made.snapshots().note_in(&other, &none).unwrap();
    assert!(!none.exists());
}

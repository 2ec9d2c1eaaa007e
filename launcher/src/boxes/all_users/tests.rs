use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use nix::sys::stat::Mode;
use nix::unistd::{getuid, mkfifo};
use testkit::test_box::{TestBox, config};

use super::*;
use crate::boxes::{Boxes, Entry};

/// A state directory of this user, with a box that runs.
struct Fixture {
    state: tempfile::TempDir,
    made: TestBox,
    entry: Entry,
}

impl Fixture {
    fn new() -> Self {
        let (state, made) = (tempfile::tempdir().unwrap(), TestBox::new(&config()));
        let entry = Boxes::new(state.path()).create(Some("one"), record(&made)).unwrap();
        Self { state, made, entry }
    }

    fn record(&self, name: &str) -> PathBuf {
        self.state.path().join("boxes").join(name).join("record.json")
    }

    /// Returns the boxes of the state directory that are found now, and why others are left out.
    fn found(&self) -> (Vec<Record>, Vec<LeftOut>) {
        let mut all = self.look();
        let boxes = all.running().into_iter().map(|it| it.record).collect();
        (boxes, all.left_out().map(|it| it.1).collect())
    }

    fn look(&self) -> AllUsers {
        let mut all = AllUsers::look().unwrap();
        // Other tests of this process have boxes, too.
        all.states.retain(|(_, state), _| state == self.state.path());
        all
    }
}

fn record(made: &TestBox) -> Record {
    let opened = crate::opened::open(made.path()).unwrap();
    Record::new(&opened, opened.plan().vm, Path::new("/none"))
}

#[test]
fn a_box_is_found_by_its_locked_lock_and_nothing_else_is_changed() {
    let made = Fixture::new();
    let mut all = made.look();
    let [found] = &all.running()[..] else { panic!() };
    assert_eq!((found.uid, found.state.as_path()), (getuid().as_raw(), made.state.path()));
    assert_eq!(found.record, made.entry.record);
    assert_eq!(all.left_out().count(), 0);
    // An open file that is not locked is no box, even with a record.
    let lock = made.state.path().join("boxes/.locks/two");
    let _open = File::create(&lock).unwrap();
    fs::create_dir(made.record("two").parent().unwrap()).unwrap();
    fs::copy(made.record("one"), made.record("two")).unwrap();
    assert_eq!(made.found(), (vec![made.entry.record.clone()], vec![]));
    // A locked one that is no longer at its path is none either.
    fs::remove_file(made.state.path().join("boxes/.locks/one")).unwrap();
    File::create(made.state.path().join("boxes/.locks/one")).unwrap();
    assert_eq!(made.found(), (vec![], vec![]));
}

#[test]
fn a_hostile_record_is_left_out_at_once() {
    let made = Fixture::new();
    let path = made.record("one");
    let text = fs::read_to_string(&path).unwrap();
    let outside = made.state.path().join("outside.json");
    fs::write(&outside, &text).unwrap();
    let attacks: [(&str, &dyn Fn(), LeftOut); 6] = [
        ("link", &|| symlink(&outside, &path).unwrap(), LeftOut::NotRegular),
        ("pipe", &|| mkfifo(&path, Mode::S_IRWXU).unwrap(), LeftOut::NotRegular),
        ("directory", &|| fs::create_dir(&path).unwrap(), LeftOut::NotRegular),
        ("10 GB", &|| File::create(&path).unwrap().set_len(10 << 30).unwrap(), LeftOut::TooLong),
        ("damage", &|| fs::write(&path, &text[1..]).unwrap(), LeftOut::Malformed),
        (
            "another box",
            &|| fs::write(&path, text.replace("\"one\"", "\"two\"")).unwrap(),
            LeftOut::Malformed,
        ),
    ];
    for (what, attack, reason) in attacks {
        fs::remove_file(&path).unwrap();
        attack();
        let began = Instant::now();
        assert_eq!(made.found(), (vec![], vec![reason]), "{what}");
        assert!(began.elapsed() < Duration::from_secs(5), "{what}");
        if path.is_dir() {
            fs::remove_dir(&path).unwrap();
            fs::write(&path, &text).unwrap();
        }
    }
    // A link before the last component is refused, too.
    let directory = path.parent().unwrap();
    fs::remove_dir_all(directory).unwrap();
    fs::create_dir(made.state.path().join("elsewhere")).unwrap();
    fs::write(made.state.path().join("elsewhere/record.json"), &text).unwrap();
    symlink(made.state.path().join("elsewhere"), directory).unwrap();
    assert_eq!(made.found(), (vec![], vec![LeftOut::NotRegular]));
}

#[test]
fn a_file_of_another_user_is_refused() {
    let made = Fixture::new();
    let mut all = AllUsers::default();
    let other = getuid().as_raw() + 1;
    assert!(all.record(other, made.state.path(), "one", None).is_none());
    assert_eq!(all.left_out().collect::<Vec<_>>(), [(other, LeftOut::OtherOwner, 1)]);
    assert!(names(&made.state.path().join("boxes"), other).is_empty());
}

#[test]
fn a_user_takes_no_more_than_his_share() {
    let made = Fixture::new();
    let lock = |name: String| Lock { pid: 1, uid: 7, state: made.state.path().into(), name };
    let mut all = AllUsers::default();
    (0..=MAX_BOXES).for_each(|it| all.add(lock(format!("box-{it}"))));
    assert_eq!(all.left_out().collect::<Vec<_>>(), [(7, LeftOut::TooMany, 1)]);
    let mut all = made.look();
    let own = getuid().as_raw();
    all.taken.insert(own, Taken { files: 0, bytes: MAX_BYTES });
    assert_eq!(all.running(), []);
    assert_eq!(all.left_out().collect::<Vec<_>>(), [(own, LeftOut::TooMany, 1)]);
    let mut all = AllUsers::default();
    all.add(Lock { pid: 1, uid: 7, state: "/a\u{1b}[2J".into(), name: "one".to_owned() });
    assert_eq!(all.left_out().collect::<Vec<_>>(), [(7, LeftOut::OddPath, 1)]);
}

#[test]
fn all_records_of_a_state_are_read_with_the_starts() {
    let made = Fixture::new();
    let boxes = Boxes::new(made.state.path());
    boxes.create(Some("ended"), record(&made.made)).unwrap().end(Some(3), None).unwrap();
    // A supervisor that was killed leaves a record that says that the box runs.
    let killed = boxes.create(Some("killed"), record(&made.made)).unwrap();
    drop(killed);
    let before = fs::read(made.record("killed")).unwrap();
    let [state] = &made.look().all()[..] else { panic!() };
    let mut states: Vec<_> =
        state.records.iter().map(|it| (it.name.as_str(), it.state, it.error.is_some())).collect();
    states.sort_by_key(|it| it.0);
    let expected = [
        ("ended", State::Ended, false),
        ("killed", State::Ended, true),
        ("one", State::Starting, false),
    ];
    assert_eq!((states, state.starts), (expected.to_vec(), 3));
    assert_eq!(fs::read(made.record("killed")).unwrap(), before, "nothing is written");
}

#[test]
fn starts_outlive_records_and_a_damaged_number_counts_from_0() {
    let made = Fixture::new();
    let boxes = Boxes::new(made.state.path());
    boxes.create(Some("two"), record(&made.made)).unwrap().end(None, None).unwrap();
    boxes.remove("two").unwrap();
    assert_eq!(boxes.starts(), 2);
    for damaged in ["", "-1\n", "many", "18446744073709551616"] {
        fs::write(made.state.path().join("boxes/.starts"), damaged).unwrap();
        assert_eq!(boxes.starts(), 0, "{damaged:?}");
    }
    boxes.create(Some("three"), record(&made.made)).unwrap();
    assert_eq!(boxes.starts(), 1);
    fs::write(made.state.path().join("boxes/.starts"), u64::MAX.to_string()).unwrap();
    boxes.create(Some("four"), record(&made.made)).unwrap();
    assert_eq!(boxes.starts(), u64::MAX);
}

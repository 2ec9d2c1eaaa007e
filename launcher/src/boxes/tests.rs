use std::os::unix::fs::PermissionsExt as _;

use box_cache::collect::Contents as _;
use box_contract::wire::{Follow, Output, ProgramId, Stream};
use box_prune::BoxContents;
use egress_proxy::{Decision, Verdict};
use testkit::test_box::{TestBox, config};

use super::*;
use crate::client::{Client, ClientError};
use crate::network::decisions::kept;
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

/// A state directory, and a box whose runs are recorded in it.
struct Fixture {
    state: tempfile::TempDir,
    made: TestBox,
}

impl Fixture {
    fn new() -> Self {
        Self { state: tempfile::tempdir().unwrap(), made: TestBox::new(&config()) }
    }

    fn boxes(&self) -> Boxes {
        Boxes::new(self.state.path())
    }

    fn record(&self) -> Record {
        let opened = crate::opened::open(self.made.path()).unwrap();
        Record::new(&opened, opened.plan().vm, &self.state.path().join("none"))
    }

    fn create(&self, name: &str) -> Result<Entry, RecordError> {
        self.boxes().create(Some(name), self.record())
    }
}

fn output(text: &[u8]) -> Output {
    Output { id: ProgramId::AGENT, stream: Stream::Stdout, data: text.to_vec() }
}

#[test]
fn a_name_is_for_one_box_until_its_record_is_removed() {
    let made = Fixture::new();
    let entry = made.create("one").unwrap();
    assert!(matches!(made.create("one"), Err(RecordError::NameTaken(_))));
    assert_eq!(made.boxes().find("one").unwrap().state, State::Starting);
    assert!(matches!(made.boxes().remove("one"), Err(RecordError::StillRunning(_))));
    entry.end(Some(3), None).unwrap();
    let ended = made.boxes().find("one").unwrap();
    assert_eq!((ended.state, ended.status, ended.error), (State::Ended, Some(3), None));
    assert!(matches!(made.create("one"), Err(RecordError::NameTaken(_))));
    made.boxes().remove("one").unwrap();
    assert!(matches!(made.boxes().find("one"), Err(RecordError::NoBox(_))));
    made.create("one").unwrap();
}

#[test]
fn names_are_safe_in_paths() {
    let made = Fixture::new();
    for bad in ["", ".", "..", ".lock", "-a", "a/b", "a b", "ä", &"a".repeat(64)] {
        assert!(matches!(made.create(bad), Err(RecordError::BadName(_))), "{bad}");
        assert!(matches!(made.boxes().find(bad), Err(RecordError::NoBox(_))), "{bad}");
    }
    for good in ["a", "7", "My_box-1.2", &"a".repeat(63)] {
        made.create(good).unwrap();
    }
}

#[test]
fn a_box_without_a_name_gets_its_own_with_an_ending() {
    let made = Fixture::new();
    let names = [(), ()].map(|()| {
        let entry = made.boxes().create(None, made.record()).unwrap();
        entry.record.name
    });
    assert_ne!(names[0], names[1]);
    assert!(names.iter().all(|name| name.starts_with("test-") && name.len() == 9), "{names:?}");
    let odd = Record { name: "/etc".to_owned(), ..made.record() };
    assert!(made.boxes().create(None, odd).unwrap().record.name.starts_with("box-"));
}

#[test]
fn what_a_killed_supervisor_left_is_swept() {
    let made = Fixture::new();
    let runtime = runtime_dir::RuntimeDir::create(made.state.path()).unwrap();
    let record = Record { runtime: runtime.path().to_owned(), ..made.record() };
    let entry = made.boxes().create(Some("killed"), record).unwrap();
    let gone = Record { remove: true, ..made.record() };
    let removed = made.boxes().create(Some("removed"), gone).unwrap();
    assert_eq!(made.boxes().all().unwrap().len(), 2);
    let path = runtime.path().to_owned();
    std::mem::forget(runtime);
    // The kernel releases the locks of a process that ends.
    drop((entry, removed));
    let left = made.boxes().all().unwrap();
    assert_eq!(left.len(), 1);
    let reason = left[0].error.as_deref();
    assert_eq!((left[0].state, reason), (State::Ended, Some("its supervisor was killed")));
    assert!(!path.exists());
}

#[test]
fn only_a_directory_of_a_run_is_swept() {
    let made = Fixture::new();
    let precious = made.state.path().join("boxlaunch-precious");
    fs::create_dir(&precious).unwrap();
    let record = Record { runtime: precious.clone(), ..made.record() };
    drop(made.boxes().create(Some("odd"), record).unwrap());
    assert_eq!(made.boxes().find("odd").unwrap().state, State::Ended);
    assert!(precious.exists());
}

#[test]
fn the_oldest_records_of_too_many_go() {
    let made = Fixture::new();
    let running = made.create("running").unwrap();
    for number in 0..MAX_ENDED + 3 {
        made.create(&format!("b{number}")).unwrap().end(Some(0), None).unwrap();
    }
    made.create("last").unwrap().end(Some(0), None).unwrap();
    let names: Vec<_> = made.boxes().all().unwrap().into_iter().map(|it| it.name).collect();
    assert!(names.len() <= MAX_ENDED + 2, "{}", names.len());
    let has = |name: &str| names.iter().any(|it| it == name);
    assert!(has("running") && has("last") && has("b102") && !has("b0"), "{names:?}");
    drop(running);
}

#[test]
fn a_directory_that_others_can_change_is_not_used() {
    let made = Fixture::new();
    made.create("one").unwrap();
    let directory = made.state.path().join(NAME);
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(made.create("two").unwrap_err().to_string().contains("another user can change it"));
}

#[test]
fn a_log_has_everything_with_its_stream_also_while_it_is_written() {
    let made = Fixture::new();
    let mut log = made.create("one").unwrap().logs(None).unwrap();
    let mut reader = made.boxes().log("one", ComponentName::Agent);
    assert_eq!(reader.next_entry().unwrap(), None);
    let now = Instant::now();
    log.write(&output(b"a\xff\n"), now);
    log.write(&Output { stream: Stream::Stderr, ..output(b"b") }, now);
    let first = reader.next_entry().unwrap().unwrap();
    assert_eq!((first.stream, first.data.as_slice()), (Stream::Stdout, &b"a\xff\n"[..]));
    assert!(first.time_ms > 1_700_000_000_000);
    assert_eq!(reader.next_entry().unwrap().unwrap().stream, Stream::Stderr);
    assert_eq!(reader.next_entry().unwrap(), None);
    log.write(&output(b"c"), now);
    assert_eq!(reader.next_entry().unwrap().unwrap().data, b"c");
    let mut other = made.boxes().log("one", ComponentName::Business);
    assert_eq!(other.next_entry().unwrap(), None, "not made yet");
    log.write(&Output { id: ProgramId::BUSINESS, ..output(b"d") }, now);
    assert_eq!(other.next_entry().unwrap().unwrap().data, b"d");
    assert_eq!(reader.next_entry().unwrap(), None);
}

#[test]
fn a_log_is_bounded_and_a_reader_misses_nothing_of_what_is_kept() {
    let made = Fixture::new();
    let entry = made.create("one").unwrap();
    let (mut log, mut follower) =
        (entry.logs(None).unwrap(), made.boxes().log("one", ComponentName::Agent));
    let piece = vec![b'x'; box_contract::wire::MAX_OUTPUT];
    let count = 3 * usize::try_from(crate::streams::log::MAX_FILE).unwrap() / piece.len();
    let (mut followed, start) = (0, Instant::now());
    for number in 0..count {
        // Each write is a tenth of a second later, so that the rate limit permits all of them.
        let now = start + Duration::from_millis(100) * u32::try_from(number).unwrap();
        log.write(&output(&piece), now);
        followed += std::iter::from_fn(|| follower.next_entry().unwrap()).count();
    }
    assert_eq!(followed, count);
    let mut late = made.boxes().log("one", ComponentName::Agent);
    let kept = std::iter::from_fn(|| late.next_entry().unwrap()).count();
    assert!((count / 3..count).contains(&kept), "{kept} of {count}");
    let size: u64 = fs::read_dir(made.boxes().directory.join("one"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(size < 2 * crate::streams::log::MAX_FILE + 100_000, "{size}");
}

#[test]
fn half_a_record_blocks_nobody_and_goes() {
    let made = Fixture::new();
    let entry = made.create("half").unwrap();
    let directory = made.boxes().directory.join("half");
    fs::write(directory.join(RECORD), b"").unwrap();
    drop(entry);
    let removed = made.boxes().directory.join("removed");
    fs::create_dir(&removed).unwrap();
    fs::write(removed.join("agent.log"), b"").unwrap();
    let begun = made.boxes().lock_of("begun");
    fs::write(&begun, b"").unwrap();
    let other = made.create("removed").unwrap();
    assert_eq!(made.boxes().all().unwrap().len(), 1);
    assert!(!directory.exists() && !begun.exists() && !removed.join("agent.log").exists());
    other.end(None, None).unwrap();
    assert_eq!(names(&made.state.path().join(NAME).join(LOCKS)).unwrap(), [""; 0]);
}

#[test]
fn the_end_that_a_supervisor_has_noted_stays() {
    let made = Fixture::new();
    let entry = made.create("one").unwrap();
    let lock = made.boxes().lock_of("one");
    entry.end(Some(7), None).unwrap();
    assert!(!lock.exists());
    // The state after the supervisor was killed before it removed its lock.
    fs::write(&lock, b"").unwrap();
    let record = made.boxes().find("one").unwrap();
    assert_eq!((record.status, record.error), (Some(7), None));
    assert!(!lock.exists());
}

#[test]
fn another_process_at_a_boxs_socket_is_not_its_supervisor() {
    let made = Fixture::new();
    let runtime = RuntimeDir::create(made.state.path()).unwrap();
    let socket = runtime.path().join(crate::supervisor::SOCKET);
    let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
    let signals = StopSignals::block().unwrap();
    let record = Record { runtime: runtime.path().to_owned(), ..made.record() };
    let connect = |record: &Record| Client::connect(record, Follow::Nothing, &signals).map(drop);
    assert!(connect(&record).is_ok());
    let other = Record { supervisor: 1, ..record };
    assert!(matches!(connect(&other), Err(ClientError::NotRunning(_))));
}

#[test]
fn of_a_flood_of_denials_some_are_kept_and_of_connections_all() {
    let made = Fixture::new();
    let entry = made.create("one").unwrap();
    let (take, mut denied) = kept(entry.logs(None).unwrap().network());
    let text = r#"{"component":"agent","way":"dns","host":"h","verdict":"denied","reason":"r","sent":0,"received":0,"milliseconds":0}"#;
    let denial: Decision = serde_json::from_str(text).unwrap();
    let connection = Decision { verdict: Verdict::Allowed, ..denial.clone() };
    for _ in 0..1000 {
        take(denial.clone());
    }
    for _ in 0..1000 {
        take(connection.clone());
    }
    let mut log = made.boxes().network_log("one");
    let read = std::iter::from_fn(|| log.next_decision().unwrap());
    let (allowed, denials): (Vec<_>, Vec<_>) =
        read.map(|(_, it)| it).partition(|it| it.verdict == Verdict::Allowed);
    assert_eq!(allowed.len(), 1000);
    assert!((100..1000).contains(&denials.len()), "{}", denials.len());
    assert_eq!(denied.try_recv().unwrap(), denial);
}

/// Returns the entries of the agent's log of the box `one`.
fn logged(boxes: &Boxes) -> Vec<Logged> {
    let mut log = boxes.log("one", ComponentName::Agent);
    std::iter::from_fn(|| log.next_entry().unwrap()).collect()
}

#[test]
fn a_log_that_grows_too_fast_says_what_it_lacks_and_has_the_end() {
    let made = Fixture::new();
    let mut log = made.create("one").unwrap().logs(None).unwrap();
    let (start, piece) = (Instant::now(), vec![b'x'; box_contract::wire::MAX_OUTPUT]);
    let written = |boxes: &Boxes| logged(boxes).iter().map(|it| it.data.len()).sum::<usize>();
    // 64 MiB at once, as `yes` would write. The log keeps only as much as fits into its files.
    for _ in 0..(64 << 20) / piece.len() {
        log.write(&output(&piece), start);
    }
    log.write(&output(b"last words\n"), start);
    assert!(written(&made.boxes()) <= usize::try_from(2 * crate::streams::log::MAX_FILE).unwrap());
    assert!(!logged(&made.boxes()).iter().any(|it| it.data == b"last words\n"), "no room yet");
    let due = log.due().unwrap();
    assert_eq!(due, start + Duration::from_secs(1));
    log.write_due(due);
    assert_eq!(log.due(), None);
    let entries = logged(&made.boxes());
    assert_eq!(entries.last().unwrap().data, b"last words\n");
    let notes = entries.iter().filter(|it| it.stream == Stream::Stderr);
    let notes: Vec<_> = notes.map(|it| str::from_utf8(&it.data).unwrap()).collect();
    let [note] = notes.as_slice() else { panic!("{notes:?}") };
    assert!(note.starts_with("\n[boxlaunch: 55.") && note.ends_with(" in a second]\n"), "{note}");
    // The last entries are written even if they exceed the rate limit.
    (0..20).for_each(|_| log.write(&output(&piece), due));
    log.write(&output(b"bye"), due);
    drop(log);
    assert_eq!(logged(&made.boxes()).last().unwrap().data, b"bye");
}

#[test]
fn what_a_guest_changes_is_written_once_in_a_second_and_in_the_end() {
    let made = Fixture::new();
    let mut entry = made.create("one").unwrap();
    let status = || made.boxes().find("one").unwrap().business_status;
    let start = Instant::now() + Duration::from_secs(2);
    entry.note(|record| record.business_status = Some(1), start);
    assert_eq!((status(), entry.due()), (Some(1), None));
    for number in 2..100 {
        let now = start + Duration::from_millis(number);
        entry.note(|record| record.business_status = u8::try_from(number).ok(), now);
    }
    assert_eq!(status(), Some(1));
    let due = entry.due().unwrap();
    assert_eq!(due, start + Duration::from_secs(1));
    entry.write_due(due - Duration::from_millis(1));
    assert_eq!(status(), Some(1));
    entry.write_due(due);
    assert_eq!((status(), entry.due()), (Some(99), None));
    entry.note(|record| record.business_status = Some(7), due);
    entry.end(None, None).unwrap();
    assert_eq!(status(), Some(7));
}

#[test]
fn two_boxes_that_run_exchange_their_names_with_their_logs_and_locks() {
    let made = Fixture::new();
    let boxes = made.boxes();
    let mut watch = RecordWatch::new(boxes.clone(), 0).unwrap().0;
    let old = Record { created_ms: 1, ..made.record() };
    let mut old = boxes.create(Some("one"), old).unwrap();
    let new = Record { created_ms: 2, ..made.record() };
    let mut new = boxes.create(Some("one-2f0a"), new).unwrap();
    let (mut old_log, mut new_log) = (old.logs(None).unwrap(), new.logs(None).unwrap());
    watch.look(true).unwrap();

    old.exchange("one-2f0a").unwrap();
    old_log.move_to(old.directory());
    assert_eq!(boxes.find("one").unwrap().created_ms, 2, "before its supervisor knows");
    let updated = Updated { time_ms: 5, from: new.record.digest, previous: None };
    new.record.updated = Some(updated.clone());
    new.renamed("one").unwrap();
    new_log.move_to(new.directory());
    old_log.write(&output(b"of the old one"), Instant::now());
    new_log.write(&output(b"of the new one"), Instant::now());
    assert_eq!(logged(&boxes)[0].data, b"of the new one");
    let record = boxes.find("one").unwrap();
    assert_eq!((record.created_ms, record.updated), (2, Some(updated)));

    let events = watch.look(true).unwrap();
    let seen: Vec<_> = events.iter().map(|it| (it.event, it.name.as_str())).collect();
    assert_eq!(seen, [(EventKind::Updated, "one")], "no end, and no second start");
    assert_eq!(events[0].from, Some(record.digest));
    assert!(matches!(boxes.remove("one"), Err(RecordError::StillRunning(_))));
    old.end(None, None).unwrap();
    assert_eq!(boxes.find("one-2f0a").unwrap().state, State::Ended);
    assert_eq!(boxes.find("one").unwrap().state, State::Starting, "it has its own lock");
    new.end(None, None).unwrap();
    boxes.remove("one").unwrap();
    boxes.remove("one-2f0a").unwrap();
}

#[test]
fn names_stay_if_the_other_box_is_gone() {
    let made = Fixture::new();
    let mut entry = made.create("one").unwrap();
    entry.exchange("none").unwrap_err();
    assert!(matches!(entry.exchange("../one"), Err(RecordError::BadName(_))));
    assert_eq!(entry.record.name, "one");
    entry.end(None, None).unwrap();
    assert_eq!(made.boxes().find("one").unwrap().state, State::Ended);
}

#[test]
fn a_box_that_has_ended_is_set_aside_and_one_that_runs_is_not() {
    let made = Fixture::new();
    let boxes = made.boxes();
    assert_eq!(boxes.set_aside("one").unwrap(), None);
    let entry = made.create("one").unwrap();
    let mut log = entry.logs(None).unwrap();
    log.write(&output(b"kept"), Instant::now());
    assert!(matches!(boxes.set_aside("one"), Err(RecordError::StillRunning(_))));
    entry.end(Some(3), None).unwrap();
    let other = boxes.set_aside("one").unwrap().unwrap();
    assert!(other.starts_with("one-"), "{other}");
    assert_eq!(boxes.find(&other).unwrap().status, Some(3));
    assert!(boxes.log(&other, ComponentName::Agent).next_entry().unwrap().is_some());
    made.create("one").unwrap();
}

#[test]
fn a_box_is_updated_by_one_command_at_a_time() {
    let made = Fixture::new();
    let boxes = made.boxes();
    assert!(matches!(boxes.updating("one"), Err(RecordError::NoBox(_))));
    let _entry = made.create("one").unwrap();
    let updating = boxes.updating("one").unwrap();
    let error = boxes.updating("one").unwrap_err().to_string();
    assert_eq!(error, "another command is updating the box one");
    drop(updating);
    boxes.updating("one").unwrap();
    assert_eq!(boxes.all().unwrap().len(), 1);
}

#[test]
fn a_box_whose_answer_was_lost_knows_whether_it_has_the_name() {
    let made = Fixture::new();
    let boxes = made.boxes();
    let mut old = made.create("one").unwrap();
    let mut new = made.create("one-2f0a").unwrap();
    old.exchange("one-2f0a").unwrap();
    assert!(new.settle_name("one").unwrap(), "the exchange has happened");
    new.renamed("one").unwrap();
    old.end(None, None).unwrap();
    new.end(Some(3), None).unwrap();
    assert_eq!(boxes.find("one").unwrap().status, Some(3));
}

#[test]
fn a_box_that_has_given_up_gets_no_name_any_more() {
    let made = Fixture::new();
    let boxes = made.boxes();
    let mut old = made.create("one").unwrap();
    let mut new = made.create("one-2f0a").unwrap();
    assert!(!new.settle_name("one").unwrap());
    old.exchange("one-2f0a").unwrap_err();
    new.end(None, Some("no answer".to_owned())).unwrap();
    assert_eq!(boxes.find("one-2f0a").unwrap().error.as_deref(), Some("no answer"));
    assert_eq!(boxes.find("one").unwrap().state, State::Starting, "the old one goes on");
    assert!(matches!(boxes.remove("one"), Err(RecordError::StillRunning(_))));
    old.end(Some(7), None).unwrap();
    assert_eq!(boxes.find("one").unwrap().status, Some(7));
}

#[test]
fn a_box_that_is_started_again_keeps_its_name_and_the_log_of_its_last_run() {
    let made = Fixture::new();
    let boxes = made.boxes();
    let mut entry = made.create("one").unwrap();
    let mut watch = RecordWatch::new(boxes.clone(), 0).unwrap().0;
    entry.update(|record| record.ready_ms = Some(1)).unwrap();
    watch.look(true).unwrap();
    for count in 1..=2 {
        let mut log = entry.logs(None).unwrap();
        log.write(&output(format!("run {count}").as_bytes()), Instant::now());
        drop(log);
        let reason = "its agent ended with status 3".to_owned();
        entry.rest(Some(3), Restarted { count, in_row: count, time_ms: 2, reason });
    }
    let record = boxes.find("one").unwrap();
    assert_eq!((record.state, record.ready_ms, record.status), (State::Starting, None, Some(3)));
    assert!(matches!(made.create("one"), Err(RecordError::NameTaken(_))));
    let mut log = entry.logs(None).unwrap();
    log.write(&output(b"run 3"), Instant::now());
    let texts: Vec<_> = logged(&boxes).into_iter().map(|it| it.data).collect();
    assert_eq!(texts, [b"run 2", b"run 3"]);
    entry.update(|record| record.ready_ms = Some(3)).unwrap();
    let events = watch.look(true).unwrap();
    let seen: Vec<_> = events.iter().map(|it| (it.event, it.status)).collect();
    assert_eq!(seen, [(EventKind::Restart, Some(3)), (EventKind::Ready, None)]);
}

#[test]
fn a_start_over_its_budget_leaves_its_name() {
    let made = Fixture::new();
    let mut entry = made.create("one").unwrap();
    entry.update(|record| record.ready_ms = Some(1)).unwrap();
    entry.update(|record| record.exceed_budget("it took too long".to_owned())).unwrap();
    assert!(matches!(made.create("one"), Err(RecordError::NameTaken(_))), "it still runs");
    entry.end(Some(143), None).unwrap();
    let record = made.boxes().find("one").unwrap();
    assert_eq!(record.error.as_deref(), Some("it took too long"), "until the next start");
    made.create("one").unwrap().end(Some(0), None).unwrap();
    assert!(
        matches!(made.create("one"), Err(RecordError::NameTaken(_))),
        "its start has not failed"
    );
}

#[test]
fn a_disk_stays_when_its_record_is_lost_and_goes_with_the_box() {
    let made = Fixture::new();
    let entry = made.create("kept").unwrap();
    let directory = entry.directory().to_owned();
    drop(crate::mounts::roots_disk::RootsDisk::keep(&directory, 16 << 20).unwrap());
    // The supervisor is killed, and the host crashes before the record is on its disk.
    drop(entry);
    fs::write(directory.join(RECORD), "").unwrap();
    assert!(made.boxes().all().unwrap().is_empty());
    assert!(directory.join("disk").exists());
    assert!(matches!(made.create("kept"), Err(RecordError::NameTaken(_))));
    assert!(matches!(
        made.boxes().resume("kept", made.record(), false),
        Err(RecordError::NoBox(_))
    ));
    made.boxes().remove("kept").unwrap();
    assert!(!directory.exists());
    assert!(matches!(made.boxes().remove("kept"), Err(RecordError::NoBox(_))));
}

#[test]
fn a_box_that_starts_again_keeps_its_ports_and_its_disk_even_if_the_start_fails() {
    let made = Fixture::new();
    let mut entry = made.create("web").unwrap();
    let published = "8080:80".parse().unwrap();
    drop(crate::mounts::roots_disk::RootsDisk::keep(entry.directory(), 16 << 20).unwrap());
    entry
        .update(|record| {
            record.published = vec![published];
            record.disk_bytes = Some(16 << 20);
        })
        .unwrap();
    assert!(matches!(
        made.boxes().resume("web", made.record(), false),
        Err(RecordError::StillRunning(_))
    ));
    entry.end(Some(0), None).unwrap();
    for _ in 0..2 {
        let again = made.boxes().resume("web", made.record(), false).unwrap();
        assert_eq!((again.record.published.len(), again.record.disk_bytes), (1, Some(16 << 20)));
        let directory = again.directory().to_owned();
        again.fail(None, "the port is taken".to_owned(), true).unwrap();
        assert!(directory.join("disk").exists());
        assert!(matches!(made.create("web"), Err(RecordError::NameTaken(_))));
    }
}

#[test]
fn a_first_start_that_fails_keeps_neither_a_name_nor_a_disk() {
    let made = Fixture::new();
    let entry = made.create("new").unwrap();
    let directory = entry.directory().to_owned();
    drop(crate::mounts::roots_disk::RootsDisk::keep(&directory, 16 << 20).unwrap());
    entry.fail(None, "no kernel".to_owned(), false).unwrap();
    assert!(!directory.join("disk").exists());
    assert_eq!(made.boxes().find("new").unwrap().error.as_deref(), Some("no kernel"));
    made.create("new").unwrap();
}

#[test]
fn the_store_keeps_the_box_of_a_record_until_the_record_is_removed() {
    let scene = Fixture::new();
    let entry = scene.create("hello").unwrap();
    let digest = entry.record.digest;
    // Twice, because a box that is started again has them already.
    entry.keep_documents(scene.made.path()).unwrap();
    entry.keep_documents(scene.made.path()).unwrap();
    entry.end(Some(0), None).unwrap();
    let blobs = scene.made.path().join("blobs/sha256");
    let kept = || {
        let places = BoxContents.thin_in(&scene.state.path().join("boxes"));
        let kept = places.iter().filter_map(|it| BoxContents.thin(it, &blobs));
        kept.map(|(digest, _)| digest).collect::<Vec<_>>()
    };
    assert_eq!(kept(), [digest]);
    let store = scene.state.path().join("store");
    scene.boxes().note_in(&store).unwrap();
    assert_eq!(fs::read_dir(store.join("roots")).unwrap().count(), 1);
    scene.boxes().remove("hello").unwrap();
    assert_eq!(kept(), []);
}

#[test]
fn the_record_of_a_box_that_is_continued_was_not_removed() {
    let made = Fixture::new();
    let entry = made.create("work").unwrap();
    let mut watch = RecordWatch::new(made.boxes(), 0).unwrap().0;
    let again = |entry: Entry| {
        entry.end(Some(0), None).unwrap();
        // Runs are told apart by the times of their starts.
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut kinds = || watch.look(true).unwrap().iter().map(|it| it.event).collect::<Vec<_>>();
    again(entry);
    let entry = made.boxes().resume("work", made.record(), false).unwrap();
    assert!(entry.record.continues);
    assert_eq!(kinds(), [EventKind::End, EventKind::Start]);
    again(entry);
    made.boxes().remove("work").unwrap();
    let _entry = made.create("work").unwrap();
    assert_eq!(kinds(), [EventKind::End, EventKind::Remove, EventKind::Start]);
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_removed() {
    let made = Fixture::new();
    for name in ["good", "bad"] {
        made.boxes().create(Some(name), made.record()).unwrap().end(Some(0), None).unwrap();
    }
    assert_eq!(made.boxes().unreadable().unwrap(), [""; 0]);
    let directory = made.boxes().directory;
    std::fs::write(directory.join("bad").join(RECORD), "{").unwrap();
    std::fs::create_dir(directory.join("new")).unwrap();
    assert_eq!(made.boxes().unreadable().unwrap(), ["bad"]);
    made.boxes().remove("bad").unwrap();
    assert_eq!(made.boxes().unreadable().unwrap(), [""; 0]);
    assert!(matches!(made.boxes().remove("none"), Err(RecordError::NoBox(_))));
}

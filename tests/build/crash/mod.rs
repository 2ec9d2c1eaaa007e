//! Tests that a killed build leaves only complete objects, and that the next build succeeds.

mod disk;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

use box_cache::StoredBoxes;
use box_digest::Digest;
use box_layout::{Documents, Places};

use crate::checkout::{BOXFILE, Checkout, files};
use crate::segments;
use crate::traced::{build, calls, everything, injected, leftovers};
use disk::Disk;

/// The system calls that rename and that flush.
const STEPS: [&str; 6] = ["rename", "renameat", "renameat2", "fsync", "fdatasync", "syncfs"];

/// The number of builds that must be killed before their end.
const HITS: u32 = 40;

#[test]
fn a_killed_build_leaves_no_half_object() {
    killed_at_many_moments([Checkout::new(), Checkout::new()], &["actions"], HITS);
}

/// Each build writes its segments, because the results of earlier builds are removed.
#[test]
fn a_killed_build_leaves_whole_segments_or_none() {
    let checkouts = [segments::checkout(), segments::checkout()];
    killed_at_many_moments(checkouts, &["actions", "blobs", "data", "boxes", "names"], kills());
}

/// Returns how many builds to kill before their end: 50, or `BOXBUILD_KILLS` for a soak.
pub(crate) fn kills() -> u32 {
    std::env::var("BOXBUILD_KILLS").map_or(50, |it| it.parse().unwrap())
}

/// Kills builds at moments spread over their length until `least` were killed before their end. Then builds to the end and
/// compares the box. Removes the store's directories `removed` before each build that is killed.
fn killed_at_many_moments([whole, checkout]: [Checkout; 2], removed: &[&str], least: u32) {
    let started = Instant::now();
    let expected = whole.built(&[])["box"].clone();
    let length = started.elapsed();
    let (mut hits, mut rounds) = (0, 0u32);
    while hits < least {
        for directory in removed {
            fs::remove_dir_all(checkout.path("store").join(directory)).ok();
        }
        let mut command = checkout.command();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // This build may be shorter than the measured one. Then it ends before the kill.
        sleep(length.mul_f64(f64::from(rounds % 40) / 40.0));
        child.kill().unwrap();
        hits += u32::from(child.wait().unwrap().signal() == Some(9));
        check_store(&checkout);
        rounds += 1;
        assert!(rounds < 20 * least, "{hits} of {rounds} kills came before the end");
    }
    assert_eq!(checkout.built(&[])["box"], expected);
    assert!(files(&checkout.path("test.box")) == files(&whole.path("test.box")));
    assert_eq!(files(&checkout.path("store/locks")), [], "locks of killed builds");
}

/// Checks that every blob in the store matches its digest, and that every box in it can be read.
pub(crate) fn check_store(checkout: &Checkout) {
    let blobs = checkout.path("store/blobs");
    if !blobs.exists() {
        return;
    }
    for (name, bytes) in files(&blobs) {
        assert_eq!(Digest::of(&bytes).hex(), name.to_str().unwrap());
    }
    for known in StoredBoxes::open(&checkout.path("store")).unwrap().all().unwrap() {
        let places =
            Places::new(checkout.path("store/boxes").join(known.digest.hex()), Some(&blobs));
        assert_eq!(Documents::read(places).unwrap().digest, known.digest);
    }
}

#[test]
fn a_kill_at_a_step_leaves_the_old_box_or_the_new_one() {
    assert!(kill_at_steps(&changed(), 4) > 5);
}

#[test]
#[ignore = "kills very many builds"]
fn a_kill_at_any_step_leaves_the_old_box_or_the_new_one() {
    assert!(kill_at_steps(&changed().whole(), 1) > 20);
}

#[test]
fn a_kill_at_a_step_from_an_empty_store_leaves_no_box_or_the_new_one() {
    assert!(kill_at_steps(&Checkout::new().whole(), 8) > 8);
}

#[test]
#[ignore = "kills very many builds"]
fn a_kill_at_any_step_from_an_empty_store_leaves_no_box_or_the_new_one() {
    assert!(kill_at_steps(&Checkout::new(), 1) > 60);
}

/// Returns a checkout whose Boxfile has changed since its box was built.
fn changed() -> Checkout {
    let checkout = Checkout::new();
    checkout.built(&[]);
    checkout.write("Boxfile", BOXFILE.replace("cpus=1", "cpus=2"));
    checkout
}

/// Runs a build from the same state for every `every`-th call of each system call in [`STEPS`], and kills the build at that
/// call. Returns the number of kills.
fn kill_at_steps(checkout: &Checkout, every: usize) -> usize {
    let state = State::of(checkout);
    let steps = calls_of_a_build(checkout);
    let after = state.outcome(checkout);
    assert!(state.before != after, "the build changes something");
    let mut kills = 0;
    for (name, count) in steps {
        for n in (1..=count).step_by(every) {
            state.restore(checkout);
            let kill = format!("{name}:signal=SIGKILL:when={n}");
            let killed = injected(checkout, &kill).output().unwrap();
            assert_eq!(killed.status.signal(), Some(9), "{kill} was not reached");
            check_store(checkout);
            let found = Outcome::of(checkout);
            assert!(
                found.bundle == state.before.bundle || found.bundle == after.bundle,
                "half a box at {kill}"
            );
            assert!(found.lock == state.before.lock || found.lock == after.lock, "{kill}");
            assert!(found.name == state.before.name || found.name == after.name, "{kill}");
            checkout.built(&[]);
            assert!(Outcome::of(checkout) == after, "another box after {kill}");
            assert_eq!(leftovers(checkout.root()), Vec::<PathBuf>::new(), "{kill}");
            kills += 1;
        }
    }
    println!("{kills} kills");
    kills
}

/// Counts how often a build calls each of [`STEPS`].
///
/// Asserts that only one thread makes each system call: `strace` counts per thread, so a kill at one thread's n-th call would
/// hide the n-th call of another.
fn calls_of_a_build(checkout: &Checkout) -> BTreeMap<String, usize> {
    let mut callers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for call in calls(&build(checkout), &STEPS) {
        callers.entry(call.name).or_default().push(call.thread);
    }
    // A separate thread flushes a large blob while it is written, and does nothing else.
    if let Some(flushes) = callers.get("fdatasync") {
        assert_ne!(flushes[0], callers["fsync"][0], "the flusher has a thread of its own");
    }
    for (name, threads) in &callers {
        assert!(threads.iter().all(|it| *it == threads[0]), "{name} is called by {threads:?}");
    }
    assert!(callers.contains_key("renameat2"), "{callers:?}");
    callers.into_iter().map(|(name, threads)| (name, threads.len())).collect()
}

/// The files of a box's directory, or `None` without one.
type Bundle = Option<Vec<(PathBuf, Vec<u8>)>>;

/// The outputs of a build beside the store.
#[derive(PartialEq)]
struct Outcome {
    bundle: Bundle,
    lock: Option<Vec<u8>>,
    /// The content of the store's file for the box's name.
    name: Option<Vec<u8>>,
}

impl Outcome {
    fn of(checkout: &Checkout) -> Self {
        let directory = checkout.path("test.box");
        let bundle = directory.exists().then(|| files(&directory));
        let read = |path: &str| fs::read(checkout.path(path)).ok();
        Self { bundle, lock: read("Boxfile.lock"), name: read("store/names/test") }
    }
}

/// A copy of a checkout before a build.
struct State {
    copy: tempfile::TempDir,
    before: Outcome,
}

impl State {
    fn of(checkout: &Checkout) -> Self {
        let copy = tempfile::tempdir().unwrap();
        copy_all(checkout.root(), copy.path());
        Self { copy, before: Outcome::of(checkout) }
    }

    /// Restores the checkout from the copy.
    fn restore(&self, checkout: &Checkout) {
        for entry in fs::read_dir(checkout.root()).unwrap() {
            let path = entry.unwrap().path();
            fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).unwrap();
        }
        copy_all(self.copy.path(), checkout.root());
    }

    /// Returns the outputs of a build that is not killed.
    fn outcome(&self, checkout: &Checkout) -> Outcome {
        self.restore(checkout);
        checkout.built(&[]);
        Outcome::of(checkout)
    }
}

/// Copies a directory's content, and preserves the times.
fn copy_all(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn everything_is_on_the_disk_before_it_has_a_name() {
    let checkout = Checkout::new();
    for boxfile in [BOXFILE.to_owned(), BOXFILE.replace("cpus=1", "cpus=2")] {
        checkout.write("Boxfile", boxfile);
        assert_durable(&checkout, &build(&checkout), "test.box");
    }
    for (form, name) in [("erofs", "image"), ("tar", "tar"), ("dir", "root"), ("oci", "layout")] {
        let mut args = vec!["export", "test.box", "--format", form, "--output", name];
        args.extend(["--component", "agent"].iter().filter(|_| form != "erofs"));
        assert_durable(&checkout, &checkout.boxbuild(&args), name);
    }
}

/// Asserts that a command loses nothing in a power failure. As a control, asserts that it would lose `output` without its
/// flushes.
fn assert_durable(checkout: &Checkout, command: &Command, output: &str) {
    let before = everything(checkout.root());
    let calls = calls(command, &[disk::NAMES, disk::WRITES, &STEPS].concat());
    assert_eq!(Disk::after(&before, &calls, checkout.root()), [""; 0]);
    let unflushed = calls.into_iter().filter(|call| !call.name.contains("sync"));
    let lost = Disk::after(&before, &unflushed.collect::<Vec<_>>(), checkout.root());
    let output = checkout.path(output);
    assert!(lost.iter().any(|it| it.contains(output.to_str().unwrap())), "{lost:?}");
}

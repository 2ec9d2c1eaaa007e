//! Tests of a supervisor whose VMM is hostile. Whatever the VMM sends, writes or omits, the supervisor does not crash, its
//! memory and files stay within their limits, and it ends when a user stops the box.
//!
//! `Fails if` names a fault in the supervisor with which the test was seen to fail.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use box_contract::wire::Follow;
use box_contract::{BoxConfig, ComponentName, TaskPlan, VerifyPlan};
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::Client;
use boxlaunch::streams::output::Route;
use boxlaunch::supervisor::SOCKET;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;
use testkit::test_box::{TestBox, config};
use vmm::signals::StopSignals;

/// The limit of a supervisor's peak memory, in KiB.
const MEMORY: u64 = 64 << 10;
/// The harness's grace of 1 s plus the time to power off, with a wide margin.
const WITHIN_GRACE: Duration = Duration::from_secs(20);
/// The timeout of a run that ends by itself.
const PATIENCE: Duration = Duration::from_secs(240);

/// A running supervisor.
struct Supervised {
    process: Child,
    state: TempDir,
    _made: TestBox,
}

/// A supervisor that has ended.
struct Ended {
    /// The supervisor's line on the box's end: `ended`, or `failed: …`.
    how: String,
    state: TempDir,
}

impl Supervised {
    fn start(misbehaviour: &str) -> Self {
        Self::start_of(&config(), misbehaviour)
    }

    /// Supervises the box of `config`.
    fn start_of(config: &BoxConfig, misbehaviour: &str) -> Self {
        let (made, state) = (TestBox::new(config), tempfile::tempdir().unwrap());
        let program = state.path().join(misbehaviour);
        symlink(env!("CARGO_BIN_EXE_rogue"), &program).unwrap();
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_rogue"), "supervise"]);
        command.args([&program, made.path(), state.path()]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self { process: command.spawn().unwrap(), state, _made: made }
    }

    /// Waits until the box runs, and returns its record.
    fn running(&self) -> Record {
        self.record(State::Running)
    }

    fn record(&self, state: State) -> Record {
        let (boxes, until) = (Boxes::new(self.state.path()), Instant::now() + WITHIN_GRACE);
        loop {
            match boxes.find("rogue") {
                Ok(record) if record.state == state => return record,
                found => assert!(Instant::now() < until, "{found:?}"),
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn interrupt(&self) {
        let pid = i32::try_from(self.process.id()).unwrap();
        kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
    }

    /// Waits for the supervisor's end, and checks its exit status, its peak memory, and the sizes of its files.
    fn end_within(self, patience: Duration) -> Ended {
        let Self { mut process, state, _made } = self;
        let until = Instant::now() + patience;
        while process.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                process.kill().unwrap();
                panic!("it still runs after {patience:?}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        let Output { status, stdout, stderr } = process.wait_with_output().unwrap();
        let (stdout, stderr) =
            (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "it has crashed: {status}\n{stderr}");
        let (how, peak) = stdout.trim().rsplit_once("\npeak ").unwrap();
        assert!(peak.parse::<u64>().unwrap() < MEMORY, "{how}: {peak} KiB");
        bounded(state.path());
        Ended { how: how.to_owned(), state }
    }
}

impl Ended {
    fn status(&self) -> Option<u8> {
        Boxes::new(self.state.path()).find("rogue").unwrap().status
    }

    fn console(&self) -> String {
        fs::read_to_string(self.state.path().join("console.txt")).unwrap()
    }
}

/// Checks the sizes of all files in the supervisor's state directory: console, logs and record.
fn bounded(directory: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let data = entry.metadata().unwrap();
        if data.is_dir() {
            bounded(&entry.path());
        } else {
            assert!(data.len() <= (4 << 20) + (64 << 10), "{entry:?} has {} bytes", data.len());
        }
    }
}

/// Runs all misbehaviours concurrently.
fn beside<T: Send + 'static>(
    names: &[&'static str],
    run: impl Fn(&'static str) -> T + Send + Copy + 'static,
) -> Vec<T> {
    let threads: Vec<JoinHandle<T>> =
        names.iter().copied().map(|name| thread::spawn(move || run(name))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Fails if the supervisor handles pending messages before it checks for a signal, or reads the log before the control
/// channel.
#[test]
fn ctrl_c_ends_a_machine_that_ignores_everything() {
    beside(&["silent", "deaf", "output-99", "events-99", "lines-99", "line-99"], |name| {
        let run = Supervised::start(name);
        match name {
            "silent" => drop(run.record(State::Starting)),
            _ => drop(run.running()),
        }
        run.interrupt();
        let ended = run.end_within(WITHIN_GRACE);
        assert_ne!(ended.status(), Some(42), "{name}: {}", ended.how);
    });
}

#[test]
fn a_client_stops_a_machine_that_ignores_everything() {
    beside(&["deaf", "output-99", "events-99", "lines-99", "line-99"], |name| {
        let run = Supervised::start(name);
        let record = run.running();
        let signals = StopSignals::block().unwrap();
        let mut client = Client::connect(&record, Follow::Nothing, &signals).unwrap();
        client.give_up_after(WITHIN_GRACE);
        client.ask_to_stop(Duration::from_secs(1));
        client.wait_for_end(&mut Route::Nowhere).unwrap();
        assert_ne!(run.end_within(WITHIN_GRACE).status(), Some(42), "{name}");
    });
}

/// Fails if `Clients` has no limit, or obeys a client that it has refused.
#[test]
fn one_client_too_many_is_told_so() {
    let run = Supervised::start("deaf");
    let record = run.running();
    let socket = record.runtime.join(SOCKET);
    let all: Vec<_> = (0..512).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let signals = StopSignals::block().unwrap();
    let ask_to_stop = || {
        let mut client = Client::connect(&record, Follow::Nothing, &signals).unwrap();
        client.give_up_after(WITHIN_GRACE);
        client.ask_to_stop(Duration::ZERO);
        client.wait_for_end(&mut Route::Nowhere).map_err(|error| error.to_string())
    };
    assert_eq!(
        ask_to_stop(),
        Err("the box's supervisor cannot serve another client: it has 512 clients".to_owned())
    );
    assert_eq!(run.running().state, State::Running);
    drop(all);
    while ask_to_stop().is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    assert_ne!(run.end_within(WITHIN_GRACE).status(), Some(42));
}

/// Fails if `Events` takes the end of the VMM's log for the VMM's end, and waits for the process.
#[test]
fn a_machine_that_closes_its_log_and_lives_on_is_killed() {
    let ends = beside(&["hidden", "hidden_early"], |name| {
        let ended = Supervised::start(name).end_within(WITHIN_GRACE);
        (ended.how.clone(), ended.status())
    });
    let how = "failed: the VMM process closed its log and did not end, so it was killed";
    assert_eq!(ends, [(how.to_owned(), None), (how.to_owned(), None)]);
}

#[test]
fn ctrl_c_does_not_wait_for_a_machine_that_has_closed_its_log() {
    let run = Supervised::start("hidden");
    run.running();
    thread::sleep(Duration::from_millis(400));
    run.interrupt();
    run.end_within(WITHIN_GRACE);
}

#[test]
fn mutated_frames_are_read_and_harmless() {
    assert_harmless("mutated-10000");
}

#[test]
#[ignore = "tries very many inputs"]
fn a_million_mutated_frames_are_read_and_harmless() {
    assert_harmless("mutated-100000");
}

fn assert_harmless(misbehaviour: &str) {
    let ended = Supervised::start(misbehaviour).end_within(PATIENCE);
    assert_eq!((ended.how.as_str(), ended.status()), ("ended", Some(42)));
}

#[test]
fn a_malformed_frame_ends_the_run_and_nothing_else() {
    for seed in 0..100 {
        let run = Supervised::start(&format!("malformed-{seed}"));
        let how = run.end_within(PATIENCE).how;
        assert!(how == "ended" || how.starts_with("failed: "), "{seed}: {how}");
    }
}

/// Fails if `Frames` trusts the length field of a frame.
#[test]
fn a_frame_of_four_gibibytes_is_refused() {
    let how = Supervised::start("length").end_within(PATIENCE).how;
    assert_eq!(how, "failed: the control channel was misused: a frame of 4294967295 bytes");
}

/// Fails if `Nonce::matches` compares only the lengths.
#[test]
fn only_the_nonce_proves_that_init_is_there() {
    let message = beside(&["greeting-wrong", "greeting-late", "greeting-again"], |name| {
        Supervised::start(name).end_within(PATIENCE).how
    });
    let misused = |what: &str| format!("failed: the control channel was misused: it got {what}");
    let expected = [
        "a greeting without this boot's nonce",
        "a message before the greeting",
        "a second greeting",
    ];
    assert_eq!(message, expected.map(misused));
}

/// SIGINT interrupts a start that waits for the second half of a greeting.
#[test]
fn half_a_greeting_is_waited_for_like_none() {
    let run = Supervised::start("greeting-half");
    run.record(State::Starting);
    run.interrupt();
    assert_eq!(run.end_within(WITHIN_GRACE).how, "failed: stopped by SIGINT");
}

/// Fails if the supervisor keeps the listener after the first connection.
#[test]
fn a_second_connection_finds_nobody() {
    let ended = Supervised::start("twice").end_within(PATIENCE);
    assert_eq!((ended.how.as_str(), ended.status()), ("ended", Some(42)));
    assert_eq!(ended.console(), "accepted 0 more\n");
}

/// Returns the config of a box whose task is verified.
fn verified() -> BoxConfig {
    let mut config = config();
    let task = TaskPlan::read(r#"{"id":"t-1","type":"x","description":"Do it"}"#).unwrap();
    let (argv, component) = (vec!["/check".to_owned()], ComponentName::Business);
    let verify = Some(VerifyPlan { argv, component, timeout_seconds: 60 });
    config.plan.task = Some(TaskPlan { verify, ..task });
    config.plan.business.as_mut().unwrap().workdir = "/work".into();
    config
}

/// Fails if `Task::verify` accepts a step at any time, or any output. The agent has ended with success in all cases.
#[test]
fn a_verification_has_two_steps_in_their_order() {
    let names = [
        "verification-whole",
        "verification-early",
        "verification-twice",
        "verification-again",
        "verification-long",
    ];
    let ends = beside(&names, |name| {
        let ended = Supervised::start_of(&verified(), name).end_within(PATIENCE);
        let record = Boxes::new(ended.state.path()).find("rogue").unwrap();
        (ended.how.clone(), record.task.unwrap().status.name())
    });
    let misused =
        |what: &str| (format!("failed: the control channel was misused: {what}"), "failed");
    let expected = [
        ("ended".to_owned(), "completed"),
        misused("a verification at the wrong time"),
        misused("a verification at the wrong time"),
        misused("a verification has ended twice"),
        misused("the output of a verification is too long"),
    ];
    assert_eq!(ends, expected);
}

#[test]
fn only_a_task_is_verified() {
    let how = Supervised::start("verification-begun").end_within(PATIENCE).how;
    assert_eq!(how, "failed: the control channel was misused: a verification without a task");
}

/// Fails if the console or the logs have no limit.
#[test]
fn no_flood_fills_memory_or_disk() {
    assert_floods_fill_nothing(2);
}

#[test]
#[ignore = "sends very much"]
fn no_flood_of_ten_seconds_fills_memory_or_disk() {
    assert_floods_fill_nothing(10);
}

/// Floods output, end messages, console lines, one endless console line, questions, and error texts for `seconds` each.
fn assert_floods_fill_nothing(seconds: u32) {
    let ends = beside(&["output", "events", "lines", "line", "questions"], move |name| {
        let ended = Supervised::start(&format!("{name}-{seconds}")).end_within(PATIENCE);
        (ended.how.clone(), ended.status())
    });
    for end in ends {
        assert_eq!(end, ("ended".to_owned(), Some(42)));
    }
    let how = Supervised::start(&format!("words-{seconds}")).end_within(PATIENCE).how;
    assert!(how.starts_with("failed: the guest failed to ssss"), "{how}");
}

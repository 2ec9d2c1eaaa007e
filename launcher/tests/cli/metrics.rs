//! `boxlaunch metrics`, read by the Prometheus project's own parser.

use std::collections::BTreeSet;

use boxlaunch::boxes::{Boxes, Entry, Record, State};
use testbed::Workspace;
use testbed::prerequisites::{Sample, prometheus_parser};
use testkit::test_box::{TestBox, config};

use crate::{Ended, in_state, record};

/// A state directory with a box that has ended, and two that run, whose supervisor is this process.
pub(crate) struct Host {
    pub(crate) state: tempfile::TempDir,
    _running: [Entry; 2],
}

impl Host {
    pub(crate) fn new() -> Self {
        let (state, made) = (tempfile::tempdir().unwrap(), TestBox::new(&config()));
        let boxes = Boxes::new(state.path());
        let create = |name| boxes.create(Some(name), record(&made)).unwrap();
        create("ended").end(None, None).unwrap();
        create("removed").end(None, None).unwrap();
        boxes.remove("removed").unwrap();
        let running = ["one", "two"].map(|name| {
            let mut entry = create(name);
            let run = |it: &mut Record| {
                (it.state, it.vmm, it.denied) = (State::Running, Some(std::process::id()), 2);
            };
            entry.update(run).unwrap();
            entry
        });
        Self { state, _running: running }
    }

    /// Runs `boxlaunch WORDS`.
    pub(crate) fn run(&self, words: &str) -> Ended {
        in_state(&self.state, &words.split(' ').collect::<Vec<_>>())
    }

    /// Returns the samples of this state directory in the output of `boxlaunch WORDS`.
    fn samples(&self, words: &str) -> Vec<Sample> {
        let output = self.run(words);
        assert_eq!(output.code, Some(0), "{output:?}");
        let file = self.state.path().join("metrics.prom");
        std::fs::write(&file, output.stdout).unwrap();
        let parser = prometheus_parser(&Workspace::find(), &mut |_| {}).unwrap();
        let mut samples = parser.parse(&file).unwrap();
        let directory = self.state.path().to_str().unwrap();
        samples.retain(|it| it.labels["state_directory"] == directory);
        samples
    }
}

fn values(samples: &[Sample], name: &str) -> Vec<f64> {
    samples.iter().filter(|it| it.name == name).map(|it| it.value).collect()
}

#[test]
fn prometheus_reads_each_series_with_its_type_and_once() {
    let host = Host::new();
    for words in ["metrics", "metrics --all-users"] {
        let samples = host.samples(words);
        for it in &samples {
            let kind = if it.name.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(it.kind, kind, "{it:?}");
        }
        let series: BTreeSet<_> = samples.iter().map(|it| (&it.name, &it.labels)).collect();
        assert_eq!(series.len(), samples.len(), "{words}: {samples:?}");
        // Starting, running, ended and failed boxes.
        assert_eq!(values(&samples, "boxlaunch_boxes"), [0.0, 2.0, 1.0, 0.0], "{words}");
        assert_eq!(values(&samples, "boxlaunch_starts_total"), [4.0], "{words}");
        let denied = values(&samples, "boxlaunch_box_denied_connections_total");
        assert_eq!(denied, [2.0, 2.0], "{words}");
        let started = values(&samples, "boxlaunch_box_start_time_seconds");
        let age = boxlaunch::boxes::since_epoch() as f64 / 1e3 - started[0];
        assert!((0.0..600.0).contains(&age), "{age}");
    }
}

/// Of a record that says that a process is the VM of a box, only its own directory's user is to be believed.
#[test]
fn a_process_that_is_no_child_of_the_supervisor_is_not_measured_for_others() {
    let host = Host::new();
    let measured = |words: &str| values(&host.samples(words), "boxlaunch_box_memory_bytes").len();
    assert_eq!(measured("metrics"), 2);
    assert_eq!(measured("metrics --all-users"), 0);
}

#[test]
fn boxes_of_all_users_are_listed_with_their_user_and_place() {
    let host = Host::new();
    let output = host.run("ps --all-users --json");
    let all: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let directory = host.state.path().to_str().unwrap();
    let of_test = all["boxes"].as_array().unwrap().iter();
    let of_test: Vec<_> = of_test.filter(|it| it["state_directory"] == directory).collect();
    let mut names: Vec<_> = of_test.iter().map(|it| it["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["one", "two"]);
    let uid = nix::unistd::getuid();
    let user = nix::unistd::User::from_uid(uid).unwrap().map_or(uid.to_string(), |it| it.name);
    assert!(of_test.iter().all(|it| it["uid"] == uid.as_raw() && it["user"] == user.as_str()));
    let is_told = output.stderr.contains("only the boxes of this user are shown; root sees");
    assert_eq!(is_told, !uid.is_root(), "{}", output.stderr);
    let table = host.run("ps --all-users").stdout;
    assert!(table.starts_with("USER "), "{table}");
}

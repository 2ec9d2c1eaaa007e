//! Tests of concurrent pulls into one store.

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use test_server::registry::Rules;
use testkit::TestBox;
use testkit::test_box::{config, segment};

use crate::host::{Host, check, compare, report, wait_until};
use crate::kinds::leftovers;

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Returns how often each layer was fetched.
fn counts(host: &Host) -> Vec<usize> {
    let fetched = host.fetched();
    let count = |digest: &String| fetched.iter().filter(|it| *it == digest).count();
    host.layers().iter().map(|(_, sent)| count(sent)).collect()
}

#[test]
fn each_blob_is_fetched_once() {
    let host = Host::with_box(Rules::default());
    host.registry.with(|held| held.slow = Duration::from_millis(300));
    let pulls: Vec<_> = (0..5).map(|_| start(host.pull("store"))).collect();
    for pull in pulls {
        report(&pull.wait_with_output().unwrap());
    }
    compare(&host.files, &host.path("store"));
    assert_eq!(counts(&host), vec![1; host.layers().len()]);
    assert!(leftovers(&host, "store").is_empty());
}

/// Pulls boxes with the same blobs in opposite orders, with several threads in each process.
#[test]
fn boxes_on_one_base_do_not_wait_for_each_other_in_a_circle() {
    let segments: Vec<_> = (1..=12).map(|number| segment(number, 1)).collect();
    let host = Host::of(Rules::default(), segments.clone());
    host.pushed();
    let first = host.layers();
    let other = TestBox::with_segments(&config(), segments.into_iter().rev().collect());
    let reference = host.reference().replace(":v1", ":v2");
    let push = |args: &[&str]| report(&host.command("none", args).output().unwrap());
    push(&["push", other.path().to_str().unwrap(), &reference, "--json"]);
    host.registry.with(|held| held.slow = Duration::from_millis(100));
    let started = Instant::now();
    let pull = |at: usize| {
        let other = host.command("store", &["pull", &reference, "--json"]);
        start(if at.is_multiple_of(2) { host.pull("store") } else { other })
    };
    for pull in (0..6).map(pull).collect::<Vec<_>>() {
        report(&pull.wait_with_output().unwrap());
    }
    assert!(started.elapsed() < Duration::from_secs(60));
    compare(&host.files, &host.path("store"));
    compare(&other, &host.path("store"));
    assert_eq!(counts(&host), vec![1; first.len()]);
}

#[test]
fn a_pull_that_was_killed_hinders_no_other() {
    let host = Host::with_box(Rules::default());
    host.registry.with(|held| (held.slow, held.slow_from) = (Duration::from_secs(3600), 2000));
    let layers = host.layers();
    let asked = || host.fetched().iter().filter(|it| layers.iter().any(|at| at.1 == **it)).count();
    let mut first = start(host.pull("store"));
    wait_until("the first pull fetches", || asked() == layers.len());
    let second = start(host.pull("store"));
    let before = host.registry.lines().len();
    wait_until("the second pull looks", || host.registry.lines().len() > before + 1);
    // The second pull waits for the blob that the first pull fetches.
    sleep(Duration::from_millis(500));
    assert_eq!(counts(&host), vec![1; layers.len()]);
    host.registry.with(|held| held.slow = Duration::ZERO);
    first.kill().unwrap();
    first.wait().unwrap();
    report(&second.wait_with_output().unwrap());
    compare(&host.files, &host.path("store"));
    check(&host.path("store"));
    assert_eq!(counts(&host).iter().sum::<usize>(), layers.len() + 1, "the one that was lost");
}

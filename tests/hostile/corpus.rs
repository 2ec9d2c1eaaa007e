//! Tests the corpus of hostile layers, each as one layer and split into two. strace records all file names in the probe's
//! system calls, and a canary directory shows changes outside the store.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use box_digest::Digest;
use testbed::program;
use testbed::promises::{HOSTILE_CASES, HOSTILE_MEMORY};
use testkit::hostile::{Expected, MARKER, corpus};

use crate::layout::Layout;
use crate::outcome::Outcome;
use crate::run::{PROBE, Work, message};
use crate::syscalls::{everything, named, watched};

/// A case of the corpus, written as one layer or as two.
struct Run {
    name: String,
    expected: Expected,
    layers: Vec<Digest>,
}

/// Writes the layouts of all runs. The probe reads them in the returned order.
fn prepare(work: &Work) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, case) in corpus().into_iter().enumerate() {
        let one = Layout::new(&work.layout(&format!("{number:04}-1")));
        let layers = one.of_archives(&[case.one_layer()], true);
        runs.push(Run {
            name: format!("{}, one layer", case.name),
            expected: case.one.clone(),
            layers,
        });
        let two = Layout::new(&work.layout(&format!("{number:04}-2")));
        let layers = two.of_archives(&case.two_layers(), false);
        runs.push(Run { name: format!("{}, two layers", case.name), expected: case.two, layers });
    }
    runs
}

/// Makes the directory `canary`, which has the files that the cases try to reach at several levels. Returns the innermost
/// directory, in which the probe runs.
fn canary(work: &Work) -> PathBuf {
    let root = work.path().join("canary");
    let inside = root.join("a/b/c");
    for directory in [root.clone(), root.join("a"), root.join("a/b"), inside.clone()] {
        fs::create_dir_all(directory.join("evil-etc")).unwrap();
        fs::create_dir_all(directory.join("evil-tmp")).unwrap();
        fs::write(directory.join("evil-etc/evil-passwd"), "host").unwrap();
        fs::write(directory.join("evil-canary"), "host").unwrap();
        symlink("evil-canary", directory.join("evil-link")).unwrap();
    }
    inside
}

fn check(run: &Run, outcome: &Outcome) -> Option<String> {
    let lines = run.expected.lines();
    let right = match (&run.expected, &outcome.tree) {
        (Expected::Refused(start), None) => {
            let blamed = run.layers.iter().any(|layer| layer.to_string() == outcome.layer);
            let named = outcome.text.contains(&outcome.layer) && is_located(outcome);
            outcome.kind.starts_with(start) && blamed && named
        }
        (_, tree) => lines.is_some() && lines == *tree,
    };
    let clean = outcome.left == 0;
    (!right || !clean).then(|| format!("{}: {:?}\n{outcome:#?}", run.name, run.expected))
}

/// Returns whether an error has the entry and its offset in the archive. The offset may be missing if the entry does not fit
/// into the tree, and the entry if the archive has no valid header at the error.
fn is_located(outcome: &Outcome) -> bool {
    let starts = |kinds: &[&str]| kinds.iter().any(|kind| outcome.kind.starts_with(kind));
    match &outcome.entry {
        Some((_, Some(_))) => true,
        Some((_, None)) => starts(&["its directory cannot be reached", "it is a hard link to"]),
        None => starts(&[
            "there is no tar header",
            "it cannot be read",
            "its end of archive is malformed",
        ]),
    }
}

/// Returns whether the probe may use a file name: its own program, its layouts and stores, or a file of the system.
fn is_allowed(name: &str, work: &Path) -> bool {
    let own = [work.join("layouts"), work.join("stores")];
    let system = ["/lib/", "/usr/lib/", "/lib64/", "/etc/ld.so.", "/proc/self/", "/sys/fs/cgroup"];
    name.is_empty()
        || name == PROBE
        || is_draft(name)
        // The probe flushes its own directory, so that a new store in it survives a crash, and examines who can change those above.
        || work.starts_with(name)
        || name == "/proc/sys/kernel/overflowuid"
        || own.iter().any(|directory| Path::new(name).starts_with(directory))
        || system.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns whether `name` is a draft of the store, such as `.boxbuild-0123456789abcdef`, relative to a directory's handle.
/// The digits do not depend on the layer.
fn is_draft(name: &str) -> bool {
    let digits = name.strip_prefix(".boxbuild-").unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[test]
fn no_layer_reaches_the_host_and_each_ends_as_it_must() {
    let work = Work::new();
    let runs = prepare(&work);
    assert_eq!(runs.len(), 2 * corpus().len(), "each case runs as one layer and as two");
    HOSTILE_CASES.check(corpus().len() as f64);
    let inside = canary(&work);
    let before = everything(&work.path().join("canary"));
    let log = work.path().join("log");
    let report = message(watched(PROBE, &log).arg(work.path()).current_dir(inside));
    assert_eq!(everything(&work.path().join("canary")), before, "the canary is not what it was");

    let named = named(&log);
    let allowed = |name: &&String| is_allowed(name, work.path()) && !name.contains(MARKER);
    let foreign: Vec<_> = named.iter().filter(|name| !allowed(name)).collect();
    assert!(foreign.is_empty(), "it named files that are none of its own: {foreign:#?}");
    assert!(named.len() > 1000, "the watch has seen nothing: {named:?}");

    assert_eq!(report.outcomes.len(), runs.len());
    let wrong: Vec<_> =
        runs.iter().zip(&report.outcomes).filter_map(|(run, it)| check(run, it)).collect();
    assert!(wrong.is_empty(), "{} of the runs:\n{}", wrong.len(), wrong.join("\n"));
    let refused = report.outcomes.iter().filter(|outcome| outcome.tree.is_none()).count();
    println!("{} runs, {refused} refused, peak {} KiB", runs.len(), report.peak);
    HOSTILE_MEMORY.check(report.peak as f64 / 1024.0);
}

#[test]
fn the_watch_sees_what_a_program_does_that_extracts() {
    let work = Work::new();
    let inside = canary(&work);
    let (log, archive) = (work.path().join("log"), work.path().join("archive"));
    let case = corpus().into_iter().find(|case| case.name == "paths/here").unwrap();
    fs::write(&archive, case.one_layer()).unwrap();
    let before = everything(&inside);
    let mut tar = watched("tar", &log);
    program::run(tar.arg("-xf").arg(&archive).current_dir(&inside)).unwrap();
    assert!(named(&log).iter().any(|name| name.contains(MARKER)));
    assert_ne!(everything(&inside), before);
}

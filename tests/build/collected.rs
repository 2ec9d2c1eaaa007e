//! Tests that the store does not grow without limit: of `boxbuild gc`, alone, beside builds and killed, and of the check of the
//! store's size after a build.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use box_layout::{OpenBox, Places};

use crate::checkout::{BOXFILE, Checkout, Ran, WHOLE};
use crate::crash::{check_store, kills};

/// The arguments of a collection that removes all files that nothing keeps, whatever their age.
const ALL: [&str; 5] = ["gc", "--max-size", "0", "--older-than", "0s"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Sets the modification times of all files in the store back by one day.
fn age(checkout: &Checkout) {
    for part in ["blobs", "actions", "data", "boxes", "names", "roots"] {
        for entry in fs::read_dir(checkout.path("store").join(part)).unwrap() {
            let path = entry.unwrap().path();
            for path in [path.join("index.json"), path].iter().filter(|it| it.exists()) {
                let file = File::open(path).unwrap();
                let changed = file.metadata().unwrap().modified().unwrap();
                file.set_modified(changed - DAY).unwrap();
            }
        }
    }
}

fn collected(checkout: &Checkout, args: &[&str]) -> serde_json::Value {
    let ran = Ran::of(checkout.boxbuild(args).arg("--json"));
    assert_eq!(ran.code, 0, "{}{}", ran.notes, ran.result);
    ran.json()
}

fn blobs(checkout: &Checkout) -> usize {
    fs::read_dir(checkout.path("store/blobs")).unwrap().count()
}

#[test]
fn what_a_project_has_is_kept_and_the_rest_can_be_built_again() {
    let checkout = Checkout::new();
    let first = checkout.built(&[]);
    let kept = collected(&checkout, &ALL);
    assert_eq!(kept["kept"][0]["why"], "directory", "{kept}");
    assert_eq!(kept["removed"], serde_json::json!([]));
    assert_ne!(kept["removed_records"], 0);
    let places = || Places::new(checkout.path("test.box"), Some(&checkout.path("store/blobs")));
    OpenBox::open(places()).unwrap().boot_blobs().for_each(|it| it.verify().unwrap());
    fs::remove_dir_all(checkout.path("test.box")).unwrap();
    let young = collected(&checkout, &ALL[..3]);
    assert_eq!(young["kept"][0]["why"], "young", "{young}");
    age(&checkout);
    let dry = collected(&checkout, &["gc", "--max-size", "0", "--dry-run"]);
    assert_eq!((&dry["removed"][0]["names"][0], &dry["after_bytes"]), (&"test".into(), &0.into()));
    let blobs_before = blobs(&checkout);
    let report = checkout.result(&ALL[..3]);
    assert!(report.starts_with("removed test\n"), "{report}");
    assert!(blobs_before > 5 && blobs(&checkout) == 0);
    let again = checkout.built(&[]);
    assert_eq!((&again["cached"], &again["box"]), (&false.into(), &first["box"]));
}

#[test]
fn a_build_keeps_the_store_below_its_size_and_says_if_that_cannot_be() {
    let checkout = Checkout::new();
    let build = |max: &str, variable: u32| {
        let boxfile = BOXFILE.replace("agent {", &format!("agent {{\n    env N=\"{variable}\""));
        checkout.write("Boxfile", boxfile);
        Ran::of(checkout.command().env("BOXBUILD_STORE_MAX", max))
    };
    let first = build("none", 1);
    assert_eq!(first.code, 0, "{}", first.notes);
    age(&checkout);
    let before = blobs(&checkout);
    let second = build("0", 2);
    assert_eq!(second.code, 0, "{}", second.notes);
    assert!(second.notes.contains("freed "), "{}", second.notes);
    assert!(second.notes.contains("while commands use the store"), "{}", second.notes);
    // The collection has removed the files that only the first build used, and kept those of the second build.
    assert!(blobs(&checkout) < before + 4, "{before}");
    let places = Places::new(checkout.path("test.box"), Some(&checkout.path("store/blobs")));
    OpenBox::open(places).unwrap().boot_blobs().for_each(|it| it.verify().unwrap());
    // A build that adds nothing to the store does not check its size.
    let third = build("0", 2);
    assert!(!third.notes.contains("freed ") && !third.notes.contains("warning"), "{}", third.notes);
    let wrong = build("much", 3);
    assert_eq!(wrong.code, 2);
    assert!(wrong.notes.contains("BOXBUILD_STORE_MAX is \"much\""), "{}", wrong.notes);
}

#[test]
fn a_build_from_the_store_keeps_what_the_next_change_needs() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    age(&checkout);
    checkout.built(&[]);
    fs::remove_dir_all(checkout.path("test.box")).unwrap();
    let report = collected(&checkout, &["gc", "--max-size", "none", "--older-than", "12h"]);
    // The second build took the box from the store, and so did not read the decoded layers. The collection must keep them all
    // the same.
    for name in ["agent", "business"] {
        fs::remove_dir_all(checkout.path(&format!("images/{name}/blobs"))).unwrap();
    }
    assert_eq!(report["removed"], serde_json::json!([]), "{report}");
    let data = fs::read_dir(checkout.path("store/data")).unwrap().count();
    assert!(data > 0, "the layers are there");
}

#[test]
fn blobs_without_anything_that_refers_to_them_are_no_reason_to_remove_them() {
    let checkout = Checkout::new();
    checkout.built(WHOLE);
    for part in ["actions", "boxes", "names", "roots"] {
        fs::rename(checkout.path("store").join(part), checkout.path(part)).unwrap();
    }
    let before = blobs(&checkout);
    let errors = checkout.fails(&ALL);
    assert!(errors.contains("nothing that refers to any of them"), "{errors}");
    assert_eq!(blobs(&checkout), before);
    let none = checkout.boxbuild(&["gc", "--store", "none", "--json"]).output().unwrap();
    assert!(none.status.success() && !checkout.path("none").exists());
}

#[test]
fn a_killed_collection_leaves_whole_boxes_and_the_next_one_goes_on() {
    let checkout = Checkout::new();
    let make = || {
        for number in 0..4 {
            let boxfile = BOXFILE.replace("agent {", &format!("agent {{\n    env N=\"{number}\""));
            checkout.write("Boxfile", boxfile);
            checkout.built(&["--output", "out.box"]);
        }
        age(&checkout);
    };
    make();
    let copy = checkout.path("copy");
    let copied = |from: &Path, to: &Path| {
        fs::remove_dir_all(to).ok();
        let done = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(done.success());
    };
    copied(&checkout.path("store"), &copy);
    let started = Instant::now();
    checkout.result(&ALL);
    let length = started.elapsed();
    assert_eq!(blobs(&checkout), 0);
    let (mut hits, mut rounds) = (0, 0_u32);
    while hits < kills() {
        copied(&copy, &checkout.path("store"));
        let mut command = checkout.boxbuild(&ALL);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(length.mul_f64(f64::from(rounds % 60) / 60.0));
        child.kill().unwrap();
        hits += u32::from(child.wait().unwrap().signal() == Some(9));
        rounds += 1;
        check_whole(&checkout);
        // The next collection removes everything, wherever the killed one stopped.
        checkout.result(&ALL);
        for part in ["blobs", "actions", "data", "boxes", "names", "tmp"] {
            let left = fs::read_dir(checkout.path("store").join(part)).unwrap().count();
            assert_eq!(left, 0, "{part}");
        }
        assert!(rounds < 40 * kills(), "{hits} of {rounds} kills came before the end");
    }
    make();
}

/// Checks that every blob matches its digest, that every box has all its blobs, and that every name refers to a box.
fn check_whole(checkout: &Checkout) {
    check_store(checkout);
    let blobs = checkout.path("store/blobs");
    for entry in fs::read_dir(checkout.path("store/boxes")).unwrap() {
        let opened = OpenBox::open(Places::new(entry.unwrap().path(), Some(&blobs))).unwrap();
        assert!(opened.files().iter().all(|(_, now)| now.is_file()));
    }
    for name in fs::read_dir(checkout.path("store/names")).unwrap() {
        let text = fs::read_to_string(name.unwrap().path()).unwrap();
        let hex = text.lines().next().unwrap().strip_prefix("sha256:").unwrap();
        assert!(checkout.path("store/boxes").join(hex).is_dir());
    }
}

/// Returns the number of builders, of collectors, and of builds per builder: 3, 2 and 4. For a soak: 16, 3 and
/// `BOXBUILD_ROUNDS`.
fn amounts() -> (u32, u32, u32) {
    let rounds = std::env::var("BOXBUILD_ROUNDS").ok().map(|it| it.parse().unwrap());
    rounds.map_or((3, 2, 4), |rounds| (16, 3, rounds))
}

#[test]
fn no_build_is_broken_by_collections_beside_it() {
    let (builders, collectors, rounds) = amounts();
    let shared = tempfile::tempdir().unwrap();
    let (running, collections) = (AtomicU32::new(builders), AtomicU32::new(0));
    let started = SystemTime::now();
    thread::scope(|scope| {
        for builder in 0..builders {
            let (shared, running) = (shared.path(), &running);
            scope.spawn(move || {
                let _done = Done(running);
                build_often(builder, rounds, shared);
            });
        }
        for _ in 0..collectors {
            scope.spawn(|| {
                let checkout = Checkout::new();
                symlink(shared.path(), checkout.path("store")).unwrap();
                while running.load(Ordering::Relaxed) > 0 {
                    let ran = Ran::of(&mut checkout.boxbuild(&ALL));
                    assert_eq!(ran.code, 0, "{}", ran.notes);
                    collections.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (collections, time) = (collections.into_inner(), started.elapsed().unwrap());
    println!("{} builds, {collections} collections, {time:?}", builders * rounds);
    assert!(collections >= collectors, "they do not wait for builds that follow each other");
}

/// Decrements the counter when dropped, so also when a build panics.
struct Done<'a>(&'a AtomicU32);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Builds a box `rounds` times. It changes after every second build, and each third build is the same for all builders.
fn build_often(builder: u32, rounds: u32, shared: &Path) {
    let checkout = Checkout::new();
    symlink(shared, checkout.path("store")).unwrap();
    let name = format!("b{builder}");
    for round in 0..rounds {
        let number = if round % 3 == 2 { 7 } else { builder * 1000 + round / 2 };
        let boxfile = BOXFILE.replace("agent {", &format!("agent {{\n    env N=\"{number}\""));
        // The box has the builder's name. A name that a user sets would keep the box from being collected.
        checkout.write("Boxfile", boxfile.replace("box \"test\"", &format!("box {name:?}")));
        if round % 4 == 3 {
            // Removes the output, so that only the following build keeps the box.
            fs::remove_dir_all(checkout.path(&format!("{name}.box"))).unwrap();
        }
        checkout.built(&[]);
        let directory = checkout.path(&format!("{name}.box"));
        let opened = OpenBox::open(Places::new(directory, Some(&shared.join("blobs")))).unwrap();
        opened.boot_blobs().for_each(|it| it.verify().unwrap());
        assert!(opened.files().iter().all(|(_, now)| now.is_file()));
    }
}

/// Measures the check of the store's size with ten thousand other blobs.
#[test]
#[ignore = "measures"]
fn the_look_at_the_size_is_cheap() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    let times = |max: &str, changes: bool| {
        let mut times: Vec<_> = (0..31)
            .map(|number| {
                if changes {
                    let env = format!("agent {{\n    env N=\"{max}{number}\"");
                    checkout.write("Boxfile", BOXFILE.replace("agent {", &env));
                }
                let started = Instant::now();
                let ran = Ran::of(checkout.command().env("BOXBUILD_STORE_MAX", max));
                assert_eq!(ran.code, 0, "{}", ran.notes);
                started.elapsed()
            })
            .collect();
        times.sort();
        times[15]
    };
    let show = |what: &str| {
        for changes in [false, true] {
            let [none, some] = ["none", "100G"].map(|max| times(max, changes));
            let ratio = some.as_secs_f64() / none.as_secs_f64();
            println!("{what}, changes {changes}: {none:?} without, {some:?} with: {ratio:.3}");
        }
    };
    show("small store");
    for number in 0..10_000_u32 {
        let bytes = number.to_le_bytes();
        let name = box_digest::Digest::of(&bytes).hex();
        fs::write(checkout.path("store/blobs").join(&name), bytes).unwrap();
        fs::write(checkout.path("store/actions").join(&name), bytes).unwrap();
    }
    show("10,000 blobs and records");
}

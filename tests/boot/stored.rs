//! Boxes of the store: started by name and by digest, also from the directory of their project, and with one file of a common
//! layer for all of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, hello_checkout, tools};

/// A box of two, which differ in a variable.
const BOXES: [&str; 2] = ["hello", "other"];

/// Builds a box into the store, as a user does in the directory of the project; returns its digest.
fn build(project: &Path, store: &Path, name: &str) -> String {
    let boxfile = fs::read_to_string(project.join("Boxfile")).unwrap();
    let named = boxfile.replace("box \"hello\"", &format!("box \"{name}\"")) + "\n";
    let file = project.join(format!("{name}.Boxfile"));
    fs::write(&file, named).unwrap();
    let mut build = tools().programs.box_build(&tools().programs.box_init, &tools().kernel);
    build.args(["--quiet", "--store"]).arg(store).arg("--file").arg(file).current_dir(project);
    let built = build.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    String::from_utf8(built.stdout).unwrap().trim().to_owned()
}

/// Starts boxes of a store that is on a disk of its own; `/tmp/project` is what the project has after the builds.
static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let (dir, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = dir.path().join("store");
    fs::write(project.path().join("Boxfile"), hello_checkout(project.path())).unwrap();
    let [digest, _] = BOXES.map(|name| build(project.path(), &store, name));
    let within = |script: &str| {
        format!(
            "export BOXBUILD_STORE=/store; cd /tmp/project; {}",
            script.replace("DIGEST", &digest)
        )
    };
    let copy =
        "mkdir /tmp/project; cp -r /project/*.box /project/Boxfile /tmp/project; ls /tmp/project";
    let mut scenario = Scenario::default().script(20, "project", copy);
    for (name, script) in [
        ("images", "boxlaunch images -q"),
        ("name", "boxlaunch run hello -v .:/w:rw -- sh -c 'ls /w; touch /w/made'; ls made"),
        ("digest", "boxlaunch run -q DIGEST -- echo ran"),
        ("path", "boxlaunch run -q hello.box -- echo ran"),
        (
            "pinned",
            "boxlaunch run -q hello@DIGEST -- echo ran; boxlaunch run -q other@DIGEST -- echo ran",
        ),
        ("refused", "boxlaunch run hello.box -v .:/w:rw -- ls /w"),
        ("to the store", "boxlaunch run hello -v /store:/w:rw -- ls /w"),
        ("absent", "boxlaunch run project -- echo; cd /tmp; boxlaunch run project -- echo"),
        ("no store", "BOXBUILD_STORE=/tmp/none boxlaunch run hello.box"),
        ("alone", ALONE),
        ("both", BOTH),
    ] {
        scenario = scenario.script(30, &name.replace(' ', "-"), &within(script));
    }
    let host = tools().host.clone().disk(&store, "/store").disk(project.path(), "/project");
    scenario.start(&host)
});

/// The first start of the second box, whose layers the first one has read; then how many KiB the host had read from disks before
/// it, and after.
const ALONE: &str = "kib() { awk '$1 == \"pgpgin\" { print $2 }' /proc/vmstat; }; before=$(kib); \
    boxlaunch run -q other -- echo ran; echo $before $(kib)";

/// Both boxes run; prints the inode of each file of the store that a machine has open, and in how many machines.
const BOTH: &str = "boxlaunch run -q --detach --name a hello; boxlaunch run -q --detach --name b other; \
    for process in /proc/[0-9]*; do ls -Li $process/fd/* 2>/dev/null | awk -v p=$process '{ print $1 }' | sort -u; done \
    | sort | uniq -c >/tmp/open; ls -i /store/blobs | while read inode blob; do \
    grep -q \"^ *[2-9] $inode$\" /tmp/open && wc -c </store/blobs/$blob; done; boxlaunch stop a b";

#[test]
fn a_box_is_started_by_its_name_its_digest_and_its_directory() {
    assert_eq!(STEPS["images"].stdout, "hello\nother\n", "{:?}", STEPS["images"]);
    for name in ["digest", "path"] {
        assert_eq!(STEPS[name].stdout, "ran\n", "{:?}", STEPS[name]);
    }
    let pinned = &STEPS["pinned"];
    assert_eq!(pinned.stdout, "ran\n", "{pinned:?}");
    assert!(pinned.stderr.contains("was asked for"), "{pinned:?}");
}

#[test]
fn a_project_can_be_written_to_by_the_box_that_was_built_in_it() {
    let named = &STEPS["name"];
    assert_eq!(named.stdout, "Boxfile\nhello.box\nother.box\nmade\n", "{named:?}");
    let refused = &STEPS["refused"];
    assert!(refused.stderr.contains("start the box by its name in the store"), "{refused:?}");
    let store = &STEPS["to-the-store"];
    assert!(store.stderr.contains("what boxbuild itself keeps"), "{store:?}");
}

#[test]
fn what_is_not_found_is_named() {
    let text = |name: &str| STEPS[name].stderr.clone();
    insta::assert_snapshot!(text("absent"), @"
    error: no box has the name project in the store /store
      = help: `boxlaunch images` lists the names; a directory is written ./project
    error: no box has the name project in the store /store
      = help: if you mean the directory project that is here: ./project
    ");
    let missing = text("no-store");
    assert!(
        missing.contains("is neither in hello.box nor in the store (/tmp/none/blobs)"),
        "{missing}"
    );
    assert!(missing.contains("boxbuild build"), "{missing}");
}

#[test]
fn two_boxes_of_one_base_have_its_file_open_and_read_it_once() {
    let alone = &STEPS["alone"];
    let counts: Vec<u64> =
        alone.stdout.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [before, after] = counts[..] else { panic!("{alone:?}") };
    // The metadata and the documents of the second box are its own.
    let read = (after - before) << 10;
    assert!(before > 3 << 10 && read < 3 << 20, "{alone:?}");
    let both = &STEPS["both"];
    let shared: u64 = both.stdout.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum();
    assert!(shared > 1 << 20, "{both:?}");
}

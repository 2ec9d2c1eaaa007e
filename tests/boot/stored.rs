//! Boxes of the store start by name and by digest, also in the directory of their project. Boxes with the same base share its
//! files in the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, hello_checkout, tools};

/// The names of two boxes, which differ only in their name.
const BOXES: [&str; 2] = ["hello", "other"];

/// Builds a box into the store, in the directory of the project, and returns the box digest.
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

/// Starts boxes of the store, which is a separate disk at `/store`. `/tmp/project` is a copy of the project after the builds.
static STEPS: LazyLock<BTreeMap<String, Step>> = LazyLock::new(|| {
    let (dir, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = dir.path().join("store");
    fs::write(project.path().join("Boxfile"), hello_checkout(project.path())).unwrap();
    let [digest, other] = BOXES.map(|name| build(project.path(), &store, name));
    save(&store, &BOXES[..1], &project.path().join("hello.tar"));
    save(&store, &BOXES, &project.path().join("both.tar"));
    let size = |name: &str| fs::metadata(project.path().join(name)).unwrap().len();
    let (one, both) = (size("hello.tar"), size("both.tar"));
    println!("hello.tar has {one} bytes, and with a second box on its base {both}");
    // Therefore a file of three boxes with this base is at most 1.1 times the size of a file of one. The base is small, so the
    // metadata of each box are a large share of its size.
    assert!((both - one) * 20 <= one, "{one} {both}");
    let within = |script: &str| {
        format!(
            "export BOXBUILD_STORE=/store; cd /tmp/project; {}",
            script.replace("DIGEST", &digest).replace("OTHER", &other)
        )
    };
    let copy =
        "mkdir /tmp/project; cp -r /project/*.box /project/Boxfile /tmp/project; ls /tmp/project";
    let mut scenario = Scenario::default().script(20, "project", copy);
    for (name, script) in [
        ("images", "boxlaunch images -q"),
        ("name", "boxlaunch run hello -v .:/w:rw -- sh -c 'ls /w; touch /w/made'; ls made"),
        ("alone", ALONE),
        ("file", FILE),
        ("one of two", ONE_OF_TWO),
        ("extracted", EXTRACTED),
        ("piped", PIPED),
        ("both", BOTH),
        ("collected", COLLECTED),
    ] {
        scenario = scenario.script(30, &name.replace(' ', "-"), &within(script));
    }
    let host = tools().host.clone().disk(&store, "/store").disk(project.path(), "/project");
    scenario.start(&host)
});

/// Writes the boxes `names` of the store to the file `to`.
fn save(store: &Path, names: &[&str], to: &Path) {
    let mut save = Command::new(&tools().programs.boxbuild);
    save.args(["save", "--quiet", "--store"]).arg(store).args(names).arg("--output").arg(to);
    let saved = save.output().unwrap();
    assert!(saved.status.success(), "{}", String::from_utf8_lossy(&saved.stderr));
}

/// Starts the box of a file on a host with an empty store, which loads the box, without a name. A second run, which may not have its
/// memory, does not load it again.
const FILE: &str = "export BOXBUILD_STORE=/tmp/a; boxlaunch run /project/hello.tar -- echo ran; \
    boxlaunch run /project/hello.tar --max-memory 1 -- echo ran; boxlaunch images --all -q";
/// Starts one of the two boxes of a file. Its digest has to follow the path.
const ONE_OF_TWO: &str = "export BOXBUILD_STORE=/tmp/b; boxlaunch run /project/both.tar -- echo ran; \
    boxlaunch run -q /project/both.tar@DIGEST -- echo ran; boxlaunch images --all -q";
/// Starts a box from the directory into which tar has extracted its file, without a store.
const EXTRACTED: &str = "unset BOXBUILD_STORE HOME; mkdir /tmp/c; tar x -C /tmp/c -f /project/hello.tar; \
    export BOXLAUNCH_STATE=/tmp/state; cd /tmp; boxlaunch run -q ./c -- echo ran";
/// Loads two boxes through a pipe, and starts one by its name.
const PIPED: &str = "boxlaunch save hello other -o - | boxlaunch load -q --store /tmp/d -; \
    export BOXBUILD_STORE=/tmp/d; boxlaunch images -q; boxlaunch run -q other -- echo ran";

/// Starts the second box for the first time, by its digest. The first box, which has the same layers, has run before. Prints how many
/// KiB the host had read from its disks before this start and after it.
const ALONE: &str = "kib() { awk '$1 == \"pgpgin\" { print $2 }' /proc/vmstat; }; before=$(kib); \
    boxlaunch run -q OTHER -- echo ran; echo $before $(kib)";

/// Runs both boxes, one by its directory in the project. Prints the size of each blob of the store that at least two processes have
/// open.
const BOTH: &str = "boxlaunch run -q --detach --name a hello.box; boxlaunch run -q --detach --name b other; \
    for process in /proc/[0-9]*; do ls -Li $process/fd/* 2>/dev/null | awk -v p=$process '{ print $1 }' | sort -u; done \
    | sort | uniq -c >/tmp/open; ls -i /store/blobs | while read inode blob; do \
    grep -q \"^ *[2-9] $inode$\" /tmp/open && wc -c </store/blobs/$blob; done; boxlaunch stop a b";

/// Prunes a writable copy of the store while a box runs, after its end, and after its removal. Everything that is neither in use nor
/// needed by `start` is removed, however new.
const COLLECTED: &str = "boxlaunch rm -q a b >/dev/null; cp -a /store /tmp/store; export BOXBUILD_STORE=/tmp/store; \
    all() { boxlaunch prune --max-size 0 --older-than 0s; }; \
    boxlaunch run -q --detach --name c hello@DIGEST; boxlaunch rmi hello; all; boxlaunch images -aq; \
    boxlaunch exec c -- echo ran; boxlaunch run -q hello -- echo again; boxlaunch stop c; \
    ls /tmp/store/blobs | wc -l; all; boxlaunch start c; boxlaunch rm -f c; all; boxlaunch images -aq; ls /tmp/store/blobs | wc -l";

fn a_box_that_runs_survives_every_collection_and_goes_with_the_next_one() {
    let collected = &STEPS["collected"];
    assert!(collected.stderr.contains("hello runs as c"), "{collected:?}");
    let lines: Vec<_> = collected.stdout.lines().collect();
    let at = |line: &str| {
        lines.iter().position(|it| *it == line).unwrap_or_else(|| panic!("{line}: {collected:?}"))
    };
    let count = |line: usize| lines[line].trim().parse::<u32>().unwrap();
    let runs = at("kept hello: it runs");
    assert!(lines[..runs].iter().any(|it| it.starts_with("removed other")), "{collected:?}");
    assert!(at("hello") > runs && at("ran") > at("hello") && at("again") > at("ran"));
    // The blobs of `hello` survive for its second start. It needs them as long as it has a record. The last prune removes them.
    let stopped = at("again") + 2;
    assert!(lines[stopped - 1] == "c" && count(stopped) > 4, "{collected:?}");
    assert!(lines[stopped + 1].ends_with("/boxes/c/box needs it"), "{collected:?}");
    let removed = lines.iter().position(|it| it.starts_with("removed hello"));
    assert!(removed.is_some_and(|it| it > stopped + 1), "{collected:?}");
    assert_eq!(count(lines.len() - 1), 0, "{collected:?}");
}

fn a_project_can_be_written_to_by_the_box_that_was_built_in_it() {
    assert_eq!(STEPS["images"].stdout, "hello\nother\n", "{:?}", STEPS["images"]);
    let named = &STEPS["name"];
    assert_eq!(named.stdout, "Boxfile\nhello.box\nother.box\nmade\n", "{named:?}");
}

fn a_box_in_a_file_starts_on_a_host_that_has_nothing_of_it() {
    let file = &STEPS["file"];
    let lines: Vec<_> = file.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[0] == "ran", "{file:?}");
    assert!(lines[1].starts_with("sha256:"), "{file:?}");
    assert_eq!(file.stderr.matches("loading ").count(), 1, "{file:?}");
    assert!(file.stderr.contains("is more than the maximum of 1 MiB"), "{file:?}");
    let one = &STEPS["one-of-two"];
    assert_eq!(one.stdout, format!("ran\n{}\n", lines[1]), "{one:?}");
    assert!(one.stderr.contains("/project/both.tar has 2 boxes: "), "{one:?}");
    assert_eq!(STEPS["extracted"].stdout, "ran\n", "{:?}", STEPS["extracted"]);
    let piped = &STEPS["piped"];
    assert!(piped.stdout.ends_with("hello\nother\nran\n"), "{piped:?}");
}

fn two_boxes_of_one_base_have_its_file_open_and_read_it_once() {
    let alone = &STEPS["alone"];
    assert!(alone.stdout.starts_with("ran\n"), "{alone:?}");
    let counts: Vec<u64> =
        alone.stdout.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [before, after] = counts[..] else { panic!("{alone:?}") };
    // Only the metadata and the documents of the second box are read from the disk: they are not shared.
    let read = (after - before) << 10;
    assert!(before > 3 << 10 && read < 3 << 20, "{alone:?}");
    let both = &STEPS["both"];
    assert!(both.stdout.starts_with("a\nb\n"), "{both:?}");
    let shared: u64 = both.stdout.lines().filter_map(|line| line.trim().parse::<u64>().ok()).sum();
    assert!(shared > 1 << 20, "{both:?}");
}

tests![
    a_box_that_runs_survives_every_collection_and_goes_with_the_next_one,
    a_project_can_be_written_to_by_the_box_that_was_built_in_it,
    a_box_in_a_file_starts_on_a_host_that_has_nothing_of_it,
    two_boxes_of_one_base_have_its_file_open_and_read_it_once
];

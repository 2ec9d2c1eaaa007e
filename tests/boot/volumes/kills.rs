//! A VM can be killed at any moment: after the journal is replayed, its volume is undamaged, and contains every file that was
//! flushed before.
//!
//! The host's page cache is the same whether a VM is stopped or killed at a moment. So one run is stopped a hundred times,
//! and the disk is copied each time. e2fsck checks each copy, and `keeper`, the program that has written the files, checks
//! the files in it. In the end, this run and a second one are really killed, and the guest's kernel replays the journal at the
//! next mount.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::scenario::{Scenario, Step, bake, sleeping, tools};

/// The number of moments at which the VM is stopped.
const MOMENTS: usize = 100;
/// The size of the volume, in bytes.
const SIZE: u64 = 8 << 20;
const BLOCK: usize = 4096;

/// Runs three boxes with the same volume. `first` writes files to `/v/a`; its VM is stopped 100 times, then killed. `second`
/// checks these files and writes others to `/v/b`; its supervisor is killed. `third` checks the files of both.
const KILLS: &str = r#"
boxlaunch volume create kept --size 8MiB >/dev/null; disk=/root/.local/state/boxbuild/volumes/kept/disk
run() { boxlaunch run -q --name $1 --volume kept:/v -i /kept -- sh -c "$2"; }
of() { boxlaunch inspect --json $1 | sed "s/.*\"$2\":\([0-9]*\),\".*/\1/"; }
run first 'exec /keeper write /v/a' </dev/null >/tmp/a 2>/tmp/errors & pid=$!
until [ -s /tmp/a ]; do usleep 10000; done
keeper sample $(of first vmm) $disk /tmp/a /out/moments 100 || echo cannot look
kill -9 $(of first vmm); wait $pid; cp /tmp/a /out/said
run second 'cat >/v/a-said; /keeper check /v/a </v/a-said; sync; exec /keeper write /v/b' </tmp/a >/tmp/b & pid=$!
until [ "$(wc -l </tmp/b)" -gt 40 ]; do usleep 10000; done
kill -9 $(of second supervisor); wait $pid; head -n 1 /tmp/b; sed -i 1d /tmp/b
run third '/keeper check /v/b; /keeper check /v/a </v/a-said' </tmp/b
cat /tmp/errors >&2
"#;

/// The files that a scenario leaves in `/out`, by their path below it.
type Files = BTreeMap<PathBuf, Vec<u8>>;

static SCENE: LazyLock<(BTreeMap<String, Step>, Files)> = LazyLock::new(|| {
    let tools = tools();
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("kept.box"));
    let images = dir.path().join("images");
    testbed::hello::write_images(&tools.programs.hello_agent, &images).unwrap();
    fs::copy(&tools.programs.keeper, dir.path().join("keeper")).unwrap();
    let keeper = "business {\n    file \"keeper\" to=\"/keeper\" mode=\"0755\"\n";
    fs::write(&boxfile, sleeping("kept").replace("business {\n", keeper)).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let host = tools.host.clone().file(&bundle, "/kept");
    let host = host.file(&tools.programs.keeper, "/bin/keeper");
    Scenario::default().script(120, "kills", KILLS).start_for_files(&host)
});

/// Runs a program, and returns its exit code and its output, with standard error after standard output.
fn run(command: &mut Command) -> (Option<i32>, String) {
    // On Debian, e2fsprogs is in directories that only root's PATH has.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    command.env("PATH", path).env("LC_ALL", "C");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let message = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), message)
}

/// Replays the journal of a disk image, checks the file system, and returns whether the journal had anything to replay.
fn check(image: &Path) -> bool {
    let (_, replayed) = run(Command::new("e2fsck").args(["-y", "-E", "journal_only"]).arg(image));
    let (code, message) = run(Command::new("e2fsck").arg("-fn").arg(image));
    let is_plain = |line: &str| {
        ["Pass ", "e2fsck "].iter().any(|it| line.starts_with(it)) || line.contains(" blocks")
    };
    // The superblock's totals of free blocks and inodes may be wrong. The kernel does not journal them: it writes them at an
    // unmount, and computes them itself at a mount.
    let is_sum = |line: &str| {
        ["Free blocks count wrong (", "Free inodes count wrong ("]
            .iter()
            .any(|it| line.starts_with(it))
            || ["Fix? no", ""].contains(&line)
            || line.ends_with("WARNING: Filesystem still has errors **********")
    };
    let is_whole = message.lines().all(|line| is_plain(line) || is_sum(line));
    assert!([Some(0), Some(4)].contains(&code) && is_whole, "{replayed}\n{message}");
    replayed.contains("recovering journal")
}

/// Checks that `image` contains the newest of the files whose numbers are the lines of `named`. `scratch` is a directory for
/// extracted files.
fn check_files(image: &Path, named: &str, scratch: &Path) {
    let files = scratch.join("files");
    drop(fs::remove_dir_all(&files));
    fs::create_dir(&files).unwrap();
    let dump = format!("rdump /a {}", files.display());
    run(Command::new("debugfs").args(["-R", &dump]).arg(image));
    let report = scratch.join("report");
    fs::write(&report, named).unwrap();
    let mut check = Command::new(&tools().programs.keeper);
    check.arg("check").arg(files.join("a")).stdin(Stdio::from(File::open(report).unwrap()));
    let (code, message) = run(&mut check);
    assert_eq!(code, Some(0), "{message}");
}

/// Checks the 100 copies of the disk. Fails if the file system has no journal, or if libkrun reports a flush as done before the
/// write is done.
fn no_moment_loses_what_was_flushed() {
    let (steps, files) = &*SCENE;
    let message = String::from_utf8(files[Path::new("said")].clone()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (disk, copy) = (dir.path().join("disk"), dir.path().join("copy"));
    let image = File::create(&disk).unwrap();
    image.set_len(SIZE).unwrap();
    let (mut replayed, mut named_before, mut differ) = (0, 0, 0);
    for moment in 0..MOMENTS {
        let name = format!("moments/{moment:03}");
        let noted = files.get(Path::new(&name)).unwrap_or_else(|| panic!("{name}: {steps:?}"));
        let (lines, blocks) = noted.split_at(4);
        let lines = usize::try_from(u32::from_le_bytes(lines.try_into().unwrap())).unwrap();
        for block in blocks.chunks(4 + BLOCK) {
            let (at, bytes) = block.split_at(4);
            let at = u64::from(u32::from_le_bytes(at.try_into().unwrap()));
            image.write_all_at(bytes, at * BLOCK as u64).unwrap();
        }
        fs::copy(&disk, &copy).unwrap();
        replayed += u32::from(check(&copy));
        let named: String =
            message.lines().take(lines).map(|line| line.to_owned() + "\n").collect();
        check_files(&copy, &named, dir.path());
        differ += u32::from(!blocks.is_empty());
        assert!(lines >= named_before);
        named_before = lines;
    }
    println!("{differ} moments differ, {replayed} had something to replay, {named_before} files");
    assert!(
        differ > 90 && replayed > 90 && named_before > 150,
        "{differ} {replayed} {named_before}"
    );
}

fn a_box_after_a_kill_finds_what_was_flushed() {
    let kills = &SCENE.0["kills"];
    let there = "32 files are there\n";
    assert_eq!((kills.status, kills.stdout.as_str()), (0, &*there.repeat(3)), "{kills:?}");
}

tests![no_moment_loses_what_was_flushed, a_box_after_a_kill_finds_what_was_flushed];

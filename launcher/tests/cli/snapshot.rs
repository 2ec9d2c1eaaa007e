//! `boxlaunch snapshot`, `up --from` and the box of `config.toml`, as far as they need no VM.

use std::fs;
use std::path::Path;

use boxlaunch::boxes::{Boxes, Entry};
use boxlaunch::mounts::roots_disk::RootsDisk;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::test_box::{TestBox, config};

use crate::{Ended, boxlaunch, ended, record};

/// The size of the disk of the box `work`.
const SIZE: u64 = 16 << 20;

/// A state directory with the boxes `work`, which has a disk, `memory`, which has none, and `busy`, which runs. The directories
/// `project` and `config` are in `home`.
struct Host {
    state: TempDir,
    home: TempDir,
    made: TestBox,
    _busy: Entry,
}

impl Host {
    fn new() -> Self {
        let (state, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path().join("project")).unwrap();
        fs::create_dir_all(home.path().join("config/boxlaunch")).unwrap();
        let made = TestBox::new(&config());
        let create = |name| Boxes::new(state.path()).create(Some(name), record(&made)).unwrap();
        let mut work = create("work");
        drop(RootsDisk::keep(work.directory(), SIZE).unwrap());
        work.update(|record| record.disk_bytes = Some(SIZE)).unwrap();
        work.end(Some(0), None).unwrap();
        create("memory").end(Some(0), None).unwrap();
        let busy = create("busy");
        Self { state, home, made, _busy: busy }
    }

    fn run(&self, args: &[&str]) -> Ended {
        let mut command = boxlaunch(args);
        command.env("BOXLAUNCH_STATE", self.state.path());
        command.env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.current_dir(self.home.path());
        ended(command)
    }

    /// Returns the words, the exit code and the output of a command.
    fn output(&self, words: &str) -> String {
        let Ended { code, stdout, stderr } = self.run(&words.split(' ').collect::<Vec<_>>());
        format!("{words} -> {}\n{stdout}{stderr}", code.unwrap())
    }

    fn report(&self, words: &str) -> Value {
        let Ended { stdout, stderr, .. } = self.run(&words.split(' ').collect::<Vec<_>>());
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"))
    }

    fn configure(&self, text: &str) {
        fs::write(self.home.path().join("config/boxlaunch/config.toml"), text).unwrap();
    }
}

#[test]
fn snapshots_are_made_listed_and_removed() {
    let host = Host::new();
    let steps = [
        "snapshot ls",
        "snapshot create work",
        "snapshot create work before",
        "snapshot create work before",
        "snapshot create work a/b",
        "snapshot create memory",
        "snapshot create busy",
        "snapshot create none",
        "-q snapshot ls",
        "snapshot rm none before",
        "-q snapshot list",
    ];
    insta::assert_snapshot!(steps.map(|step| host.output(step)).concat(), @r#"
    snapshot ls -> 0
    NAME   OF   PROJECT   BOX   ON DISK   CREATED
    snapshot create work -> 0
    work-1
    snapshot create work before -> 0
    before
    snapshot create work before -> 1
    error: there is a snapshot before already
      = help: choose another name, or remove it: `boxlaunch snapshot rm`
    snapshot create work a/b -> 2
    error: "a/b" cannot be the name of a snapshot
      = help: use letters, digits, `_`, `.` and `-`, at most 63, the first one a letter or a digit
    snapshot create memory -> 2
    error: memory has no disk
      = help: a box of `up` or `run --detach` gets one at its start, unless it has `--disk none`; `reset` removes it
    snapshot create busy -> 1
    error: busy is running, and a running box may write to its disk
      = help: stop it first: `boxlaunch stop busy`
    snapshot create none -> 1
    error: no started box has the name none
      = help: `boxlaunch ps -a` lists the started boxes
    -q snapshot ls -> 0
    before
    work-1
    snapshot rm none before -> 1
    before
    error: there is no snapshot "none"
      = help: `boxlaunch snapshot ls` lists all snapshots
    -q snapshot list -> 0
    work-1
    "#);
}

#[test]
fn a_report_has_the_box_and_the_sizes() {
    let host = Host::new();
    let made = host.report("snapshot create work --json")["snapshots"][0].clone();
    let digest = boxlaunch::opened::open(host.made.path()).unwrap().digest;
    assert_eq!((&made["name"], &made["of"]), (&json!("work-1"), &json!("work")));
    assert_eq!((&made["box"], &made["project"]), (&json!(digest), &Value::Null));
    assert_eq!(made["size_bytes"], SIZE);
    assert!(made["allocated_bytes"].as_u64().unwrap() < SIZE, "{made}");
    assert!(Path::new(made["disk"].as_str().unwrap()).is_file());
    assert_eq!(host.report("snapshot ls --json"), json!({ "snapshots": [made] }));
    let removed = host.report("snapshot rm work-1 none --json");
    assert_eq!(removed["names"], json!(["work-1"]));
    assert_eq!(removed["errors"][0]["code"], "snapshot-not-found");
}

#[test]
fn an_environment_begins_only_with_a_snapshot_of_its_box() {
    let host = Host::new();
    host.output("snapshot create work");
    let none = host.output("up --from none project");
    assert!(none.contains("-> 1\nerror: there is no snapshot \"none\""), "{none}");
    let disk = host.output("up --from work-1 --disk 1GiB project");
    assert!(disk.contains("-> 2\n") && disk.contains("cannot be used with"), "{disk}");
    let mut other = config();
    other.plan.vm.cpus += 1;
    let other = TestBox::new(&other);
    let [of, started] = [&host.made, &other].map(|it| {
        let opened = boxlaunch::opened::open(it.path()).unwrap();
        opened.digest.to_string()
    });
    let Ended { code, stderr, .. } =
        host.run(&["up", "--from", "work-1", "--box", other.path().to_str().unwrap(), "project"]);
    assert_eq!(code, Some(1), "{stderr}");
    let expected = format!(
        "error: the snapshot work-1 is of the box {of}, and this start is of the box {started}\n  \
         = help: start the box of the snapshot: `boxlaunch up --box {of} --from work-1`\n"
    );
    assert_eq!(stderr, expected);
    assert_eq!(host.output("-q ps -a").lines().count(), 4, "nothing was started");
}

#[test]
fn a_project_without_a_boxfile_gets_the_box_of_the_configuration() {
    let host = Host::new();
    host.output("snapshot create work");
    let home = host.home.path().canonicalize().unwrap();
    let shown = |words: &str| {
        let text = host.output(words).replace(home.to_str().unwrap(), "HOME");
        text.replace(host.home.path().to_str().unwrap(), "HOME")
    };
    insta::assert_snapshot!(shown("up project"), @r#"
    up project -> 2
    error: HOME/project has no Boxfile
      = help: name a box: `boxlaunch up --box BOX`; or write a Boxfile: `boxbuild init IMAGE`, or `boxbuild init --agent NAME` for an agent such as claude-code; or set the box of all such projects: `box = "BOX"` in HOME/config/boxlaunch/config.toml
    "#);
    let of_snapshot = shown("up --from work-1 project");
    assert!(of_snapshot.contains("`boxlaunch up --box sha256:"), "{of_snapshot}");
    assert!(of_snapshot.contains(" --from work-1`; or write"), "{of_snapshot}");
    host.configure("# mine\nbox = \"python\"\n");
    let missing = shown("up project");
    assert!(missing.contains("no box has the name python"), "{missing}");
    // Of the command line, the configuration is not even read.
    host.configure("# mine\nboxes = 1\n");
    let named = shown("up --box ruby project");
    assert!(named.contains("no box has the name ruby"), "{named}");
    let malformed = shown("up project");
    assert!(malformed.contains("unknown field `boxes`"), "{malformed}");
    assert!(malformed.contains("--> HOME/config/boxlaunch/config.toml:2:1"), "{malformed}");
    let report = host.report("up --json project");
    assert_eq!(report["errors"][0]["code"], "config-invalid");
}

//! Real programs that need many features of the kernel, with the lean kernel. This start takes longest.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use testbed::debian::{DebianImages, WorkloadImage};

use crate::left::Project;
use crate::scenario::{Scenario, Step, bake, tools};

/// Programs: the name, a script, and the end of the script's output.
const PROGRAMS: [(&str, &str, &str); 9] = [
    ("cpus", "nproc", "2\n"),
    // Four threads on two CPUs, with vector instructions.
    (
        "numpy",
        "OPENBLAS_NUM_THREADS=1 python3 -c 'import numpy, threading
def work(): out.append(int(numpy.ones((200, 200)).dot(numpy.ones((200, 200))).sum()))
out = []
threads = [threading.Thread(target=work) for _ in range(4)]
[it.start() for it in threads]; [it.join() for it in threads]
print(out)'",
        "[8000000, 8000000, 8000000, 8000000]\n",
    ),
    // Processes with shared semaphores and shared memory.
    (
        "processes",
        "python3 -c 'import multiprocessing as m
def work(lock, sum):
    for _ in range(100):
        with lock: sum.value += 1
lock, sum = m.Lock(), m.Value(\"i\", 0)
all = [m.Process(target=work, args=(lock, sum)) for _ in range(3)]
[it.start() for it in all]; [it.join() for it in all]
print(sum.value)'",
        "300\n",
    ),
    (
        "node",
        "node -e 'const { Worker } = require(\"worker_threads\"); const fs = require(\"fs\");
fs.watch(\"/tmp\", () => {}).close();
new Worker(\"require(`worker_threads`).parentPort.postMessage(6 * 7)\", { eval: true })
  .on(\"message\", it => console.log(it))'",
        "42\n",
    ),
    (
        "git",
        "cd $(mktemp -d) && git init -q . && seq 2000 >file && git add file \
         && git -c user.name=a -c user.email=a@b commit -qm one && git gc -q && git fsck --strict && git log --oneline | wc -l",
        "1\n",
    ),
    (
        "sqlite",
        "sqlite3 $(mktemp -d)/db 'pragma journal_mode=wal; create table t(a); \
         with recursive n(x) as (select 1 union all select x+1 from n where x<2000) insert into t select x from n; \
         pragma wal_checkpoint(truncate); select sum(a) from t; pragma integrity_check'",
        "2001000\nok\n",
    ),
    // If another call interrupts an `execve`, `strace` writes two lines, of which only the first has `execve(`.
    ("strace", "strace -f -o /tmp/trace sh -c 'true | cat' && grep -c 'execve(' /tmp/trace", "2\n"),
    (
        "apt",
        "apt-get check -q 2>&1 | tail -n 1; apt-get install --simulate -q git | tail -n 1",
        "0 upgraded, 0 newly installed, 0 to remove and 0 not upgraded.\n",
    ),
    (
        "kernel",
        "uname -r | grep -o 'boxbuild$'; zcat /proc/config.gz | grep -c '^CONFIG_SECURITY_LANDLOCK=y'",
        "boxbuild\n1\n",
    ),
];

/// Programs that work in a writable share, in the same form as [`PROGRAMS`].
const IN_A_SHARE: [(&str, &str, &str); 4] = [
    (
        "share-git",
        "git init -q /w/project && cd /w/project && seq 2000 >file && git add file \
         && git -c user.name=a -c user.email=a@b commit -qm one && git gc -q && git fsck --strict \
         && git status --porcelain | wc -l",
        "0\n",
    ),
    (
        "share-npm",
        "export HOME=/tmp; mkdir /w/lib /w/app && cd /w/lib && npm init -y >/dev/null && echo 'module.exports = 42' >index.js \
         && cd ../app && npm init -y >/dev/null && npm install --offline --no-audit ../lib >/dev/null \
         && node -p 'require(\"lib\")'",
        "42\n",
    ),
    (
        "share-venv",
        // Installing pip into the venv would take four minutes of CPU time. tests/boot/clients tests pip.
        "python3 -m venv --without-pip /w/venv && /w/venv/bin/python -c 'import sys; print(sys.prefix)'",
        "/w/venv\n",
    ),
    (
        "share-sqlite",
        "sqlite3 /w/db 'pragma journal_mode=wal; create table t(a); insert into t values (42); \
         pragma wal_checkpoint(truncate); select a from t; pragma integrity_check'",
        "42\nok\n",
    ),
];

/// One start of the virtual host with a box of real programs.
pub(crate) struct Busy {
    pub(crate) project: Project,
    pub(crate) steps: BTreeMap<String, Step>,
    /// The files that the steps have left.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

pub(crate) static BUSY: LazyLock<Busy> = LazyLock::new(|| {
    let tools = tools();
    let mut say = |line: &str| println!("{line}");
    let agent = DebianImages::make(&tools.workspace, &mut say).unwrap().agent;
    let business = WorkloadImage::make(&tools.workspace, &mut say).unwrap().0;
    let dir = tempfile::tempdir().unwrap();
    let (boxfile, bundle) = (dir.path().join("Boxfile"), dir.path().join("workload.box"));
    let text = format!(
        "box \"workload\"\nagent {{\n    image \"oci:{}\"\n    health \"http\" path=\"/health\"\n}}\n\
         business {{\n    image \"oci:{}\"\n    limits memory=\"512MiB\"\n}}\n\
         vm cpus=2 memory=\"1280MiB\"\nbudget total=\"60s\"\n",
        agent.display(),
        business.display()
    );
    fs::write(&boxfile, text).unwrap();
    bake(&boxfile, &tools.programs.box_init, &bundle);
    let programs = PROGRAMS.iter().chain(&IN_A_SHARE);
    let scripts: Vec<_> = programs.map(|(name, script, _)| (*name, *script)).collect();
    let project = Project::make();
    // left.rs attacks the host with a hostile kernel.
    let scenario = Scenario::default()
        .anew()
        .step_within(100, "verify", "boxlaunch verify /workload")
        .step("share", "mkdir /tmp/w && chown 1000:1000 /tmp/w")
        // In one box, because each start of a box of this size takes half a minute of real time.
        .run_all(600, "all", "run --json -v /tmp/w:/w:rw /workload", &scripts)
        .script(20, "owners", "stat -c %u /tmp/w/* /tmp/w/*/* | sort -u; ls /tmp/w; rm -r /tmp/w");
    let host = tools.host.clone().memory(3072).disk(&bundle, "/workload");
    let (steps, files) = Project::steps(scenario).start_for_files(&project.on(host));
    Busy { project, steps, files }
});

fn programs_that_need_much_of_a_kernel_run() {
    let steps = &BUSY.steps;
    assert_printed(&steps["all"], &PROGRAMS);
    assert_printed(&steps["all"], &IN_A_SHARE);
    assert_eq!(steps["owners"].stdout, "1000\napp\ndb\nlib\nproject\nvenv\n");
}

fn assert_printed(step: &Step, programs: &[(&str, &str, &str)]) {
    assert_eq!(step.status, 0, "{step:?}");
    let parts = step.parts();
    for (name, _, expected) in programs {
        let part = &parts[*name];
        println!("{name}: {}", part.stdout.trim_end());
        assert!(part.status == 0 && part.stdout.ends_with(expected), "{name}: {part:?}");
    }
}

tests![programs_that_need_much_of_a_kernel_run];

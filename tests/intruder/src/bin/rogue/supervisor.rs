//! The supervisor, as `boxlaunch run --detach` has it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use box_contract::LogsPlan;
use boxlaunch::boxes::{Boxes, Entry, Record};
use boxlaunch::machine::{BoxToRun, HostResources, RunFailure, StartPolicy};
use boxlaunch::opened::receipt::Receipts;
use boxlaunch::opened::verify::Trust;
use boxlaunch::streams::output::Route;
use boxlaunch::supervisor::{Started, Terms};
use vmm::jail::Policy;
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

/// How long a box may take to start, and its programs to end.
const STARTUP: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(1);
/// All that a Boxfile can ask for, so that a guest can fill it.
const LOGS: LogsPlan = LogsPlan { stdout: true, stderr: true, events: true, atif: true };

/// Starts the box with a program as its VMM, and serves it to its end.
pub(crate) fn run([program, bundle, state]: [&Path; 3]) {
    let signals = StopSignals::block().unwrap();
    let end = match start(program, bundle, state, &signals) {
        Ok((started, entry)) => {
            let terms = Terms { ends_with_agent: true, grace: GRACE, result: None };
            started.serve_here(entry, terms, &signals).map(drop)
        }
        Err(failure) => Err(failure),
    };
    match end {
        Ok(()) => println!("ended"),
        Err(failure) => println!("failed: {failure}"),
    }
    println!("peak {}", peak());
}

fn start(
    program: &Path,
    bundle: &Path,
    state: &Path,
    signals: &StopSignals,
) -> Result<(Started, Entry), RunFailure> {
    let opened = boxlaunch::opened::open(bundle)?;
    let runtime = RuntimeDir::create(state)?;
    let record = Record::new(&opened, opened.plan().vm, runtime.path());
    let mut entry = Boxes::new(state).create(Some("rogue"), record).unwrap();
    let receipts = Receipts::new(state);
    let boxed = BoxToRun {
        opened: &opened,
        size: opened.plan().vm,
        program,
        programs: OsStr::new(""),
        // Nothing is run on it.
        device: Path::new("/dev/null"),
        receipts: &receipts,
        trust: Trust::Receipts,
        runtime,
    };
    let policy = StartPolicy {
        console: Some(File::create(state.join("console.txt")).unwrap()),
        logs: entry.logs(Some(LOGS))?,
        agent_output: &mut Route::Nowhere,
        signals,
        started: Instant::now(),
        startup_timeout: STARTUP,
        enforced_total: None,
        jail: Policy::BestEffort,
        watch: &(),
    };
    let started = Started::new(boxed, HostResources::default(), policy)?;
    entry.update(|record| record.start(&started.machine))?;
    Ok((started, entry))
}

/// Returns the most memory that this process had, in KiB (proc(5), `VmHWM`).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

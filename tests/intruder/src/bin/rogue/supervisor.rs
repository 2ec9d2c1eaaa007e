//! Runs the same supervisor as `boxlaunch run --detach`.

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

/// The timeout for the box's start, and the grace for its programs' end.
const STARTUP: Duration = Duration::from_secs(60);
const GRACE: Duration = Duration::from_secs(1);
/// All logs that a Boxfile can declare, so that a hostile guest can try to fill each.
const LOGS: LogsPlan = LogsPlan { stdout: true, stderr: true, events: true, atif: true };

/// Starts the box with `program` as its VMM, and supervises the box until it ends.
pub(crate) fn run([program, bundle, state]: [&Path; 3]) {
    let signals = StopSignals::block().unwrap();
    let end = match start(program, bundle, state, &signals) {
        Ok((started, entry)) => {
            let terms = Terms {
                ends_with_agent: true,
                grace: GRACE,
                result: None,
                given: Vec::new(),
                restart: None,
                health_interval: GRACE,
                idle: None,
                waits_for_answers: true,
            };
            started.serve_here(entry, terms, &signals).served.map(drop)
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
        // The stand-in for the VMM does not use KVM.
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

/// Returns this process's peak resident memory in KiB (`VmHWM` in proc(5)).
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

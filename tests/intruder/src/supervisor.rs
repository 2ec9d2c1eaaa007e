//! Supervises the attempts. Each has its own VMM, which makes the attempt and ends before a VM starts.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use box_contract::{Access, Scope};
use boxlaunch::boxes::{Boxes, Record};
use boxlaunch::host::kvm::DEVICE;
use boxlaunch::machine::{BoxToRun, HostResources, MachineError, RunFailure, StartPolicy};
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::opened::receipt::Receipts;
use boxlaunch::opened::verify::Trust;
use boxlaunch::streams::output::Route;
use boxlaunch::supervisor::Started;
use vmm::jail::Policy;
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

use crate::attempts::{ALL, Attempt};

/// The directory of the symbolic links to this program.
const PROGRAMS: &str = "/tmp/intruder";

/// The box whose VM is started, and the directory of its record.
struct Machine<'a> {
    bundle: &'a str,
    state: &'a Path,
    signals: &'a StopSignals,
    /// A writable share of the box.
    share: Option<HostShare>,
}

/// Makes all attempts in the jail of the box `bundle`, which has the writable directory `share` if it is given.
pub(crate) fn run(bundle: &str, state: &str, share: Option<&str>, targets: &[&str]) -> ExitCode {
    let signals = StopSignals::block().expect("signals are blocked");
    let shared = |path| HostShare::new(Path::new(path), "/shared", Access::ReadWrite, Scope::Agent);
    let share = share.map(|path| shared(path).expect("it can be shared"));
    let machine = Machine { bundle, state: Path::new(state), signals: &signals, share };
    for attempt in ALL {
        let target = target(attempt, targets);
        println!("{} {}", attempt.name, jailed(*attempt, &target, &machine));
    }
    ExitCode::SUCCESS
}

/// Makes all attempts without a jail.
pub(crate) fn run_free(targets: &[&str]) -> ExitCode {
    for attempt in ALL {
        let program = Attempt::program(*attempt, Path::new(PROGRAMS), &target(attempt, targets));
        let end = std::process::Command::new("/bin/intruder")
            .args(["one", &program.to_string_lossy()])
            .stdin(Stdio::piped())
            .output();
        let end = end.expect("it starts");
        let words = String::from_utf8_lossy(&end.stdout).trim().to_owned();
        // An attempt that succeeds in execv(2) replaces this program, so only the status is left to report.
        println!(
            "{} {}",
            attempt.name,
            if words.is_empty() { end.status.to_string() } else { words }
        );
    }
    ExitCode::SUCCESS
}

/// Returns the attempt's target, which is in the argument `NAME=TARGET`. Without it, the target is empty.
fn target(attempt: &Attempt, targets: &[&str]) -> String {
    let named = |text: &&str| Some(text.strip_prefix(attempt.name)?.strip_prefix('=')?.to_owned());
    targets.iter().find_map(named).unwrap_or_default()
}

/// Starts a VMM that makes the attempt in the jail, and returns the outcome.
fn jailed(attempt: Attempt, target: &str, machine: &Machine<'_>) -> String {
    let program = attempt.program(Path::new(PROGRAMS), target);
    fs::create_dir_all(program.parent().expect("it is in a directory")).expect("it is made");
    fs::remove_file(&program).ok();
    symlink("/proc/self/exe", &program).expect("the link is made");
    match start(&program, machine) {
        Ok(_) => "a machine has started".to_owned(),
        Err(RunFailure { error: MachineError::VmmEnded { status, .. }, last_output }) => {
            let mut lines = last_output.iter().flat_map(|it| it.text.lines());
            let line = lines.rfind(|line| line.contains("attempt: "));
            line.map_or_else(|| status.to_string(), |it| it.trim().replace("attempt: ", ""))
        }
        Err(failure) => failure.error.to_string(),
    }
}

fn start(program: &Path, machine: &Machine<'_>) -> Result<Started, RunFailure> {
    let Machine { bundle, state, signals, ref share } = *machine;
    let opened = boxlaunch::opened::open(Path::new(bundle))?;
    let runtime = RuntimeDir::create(Path::new("/tmp"))?;
    let record = Record::new(&opened, opened.plan().vm, runtime.path());
    let entry = Boxes::new(state).create(None, Record { remove: true, ..record });
    let entry = entry.expect("it is recorded");
    let receipts = Receipts::new(state);
    let boxed = BoxToRun {
        opened: &opened,
        size: opened.plan().vm,
        program,
        programs: OsStr::new(""),
        device: Path::new(DEVICE),
        receipts: &receipts,
        trust: Trust::Receipts,
        runtime,
    };
    let policy = StartPolicy {
        console: None,
        logs: entry.logs(None)?,
        agent_output: &mut Route::Nowhere,
        signals,
        started: Instant::now(),
        startup_timeout: Duration::from_secs(5),
        enforced_total: None,
        jail: Policy::Require,
        watch: &(),
    };
    let gifts =
        HostResources { shares: share.iter().cloned().collect(), ..HostResources::default() };
    Started::new(boxed, gifts, policy)
}

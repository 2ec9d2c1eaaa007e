//! The supervisor of the attempts: one machine, which never starts, for each.

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

/// Where the links to this program lie.
const PROGRAMS: &str = "/tmp/intruder";

/// The machine that is started, and where what is known of it is kept.
struct Machine<'a> {
    bundle: &'a str,
    state: &'a Path,
    signals: &'a StopSignals,
    /// A directory that it serves.
    share: Option<HostShare>,
}

/// Makes all attempts from within the jail of a box; with a directory, that of a machine to which it is given to write.
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

/// Makes all attempts as they are.
pub(crate) fn run_free(targets: &[&str]) -> ExitCode {
    for attempt in ALL {
        let program = Attempt::program(*attempt, Path::new(PROGRAMS), &target(attempt, targets));
        let end = std::process::Command::new("/bin/intruder")
            .args(["one", &program.to_string_lossy()])
            .stdin(Stdio::piped())
            .output();
        let end = end.expect("it starts");
        let words = String::from_utf8_lossy(&end.stdout).trim().to_owned();
        // Of a program that was executed instead, there is nothing but its status.
        println!(
            "{} {}",
            attempt.name,
            if words.is_empty() { end.status.to_string() } else { words }
        );
    }
    ExitCode::SUCCESS
}

/// Returns what the attempt is aimed at: `NAME=TARGET` among the arguments.
fn target(attempt: &Attempt, targets: &[&str]) -> String {
    let named = |text: &&str| Some(text.strip_prefix(attempt.name)?.strip_prefix('=')?.to_owned());
    targets.iter().find_map(named).unwrap_or_default()
}

/// Starts a machine whose VMM makes the attempt, and describes how that ended.
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

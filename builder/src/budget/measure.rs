//! Starts a box several times in one start of the virtual host.

use std::path::Path;
use std::time::Duration;

use box_contract::{ErrorCode, NetworkMode, Phase, Phases};
use box_digest::Digest;
use box_layout::OpenBox;
use serde::Deserialize;
use virtual_host::programs::{SHOWN, tail};
use virtual_host::{Ended, VirtualHost};

use super::{MeasureError, Measurement, Result};

/// The path of the box in the virtual host.
const BOX: &str = "/box";
/// The virtual time in seconds within which an agent must be ready. Twice the box's budget is used if it is longer.
/// With an agent that is never ready, a start takes all of this time.
const STARTUP_TIMEOUT: u64 = 30;
/// The real time that the virtual host gets for each start of a box, in addition to its boot.
const TIME_OF_A_START: Duration = Duration::from_secs(60);

/// The fields of `boxlaunch run`'s report that are used here.
#[derive(Deserialize)]
struct Report {
    #[serde(rename = "box")]
    digest: Digest,
    phases_ms: Phases,
}

/// The result of `boxlaunch floor`.
#[derive(Deserialize)]
struct Floor {
    ready_ms: f64,
}

/// The JSON that boxlaunch prints if it fails.
#[derive(Deserialize)]
struct Refusal {
    errors: Vec<Refused>,
}

#[derive(Deserialize)]
struct Refused {
    code: Option<String>,
    message: String,
    help: Option<String>,
}

/// Measures `runs` starts of a box after one start that is not measured, and then the floor of its kernel, all in one
/// start of the virtual host. `env` are variables for the box, each as `NAME=VALUE`.
///
/// # Errors
/// The box shares the network of its host, the virtual host does not start, or a start of the box fails. The error of a
/// failed start has boxlaunch's message. A start that exceeds the budget is not an error.
pub fn measure(
    host: VirtualHost,
    opened: &OpenBox,
    runs: u16,
    env: &[String],
) -> Result<Measurement> {
    let plan = opened.plan();
    if plan.network.mode == NetworkMode::Shared {
        return Err(MeasureError::Network);
    }
    let host = host.for_guest(plan.vm.memory_mib).disk_of(opened.files(), BOX);
    let host = host.time_limit(VirtualHost::MAX_TIME + TIME_OF_A_START * u32::from(runs));
    let machine = host.machine()?;
    let commands = commands(opened, runs, env);
    let run = host.run_each(&commands)?;
    let mut ended = commands.iter().map(|it| it.join(" ")).zip(&run.ended);
    let starts = ended.by_ref().take(usize::from(runs) + 1);
    let mut runs: Vec<_> =
        starts.map(|(it, end)| phases(&it, end, opened.digest)).collect::<Result<_>>()?;
    runs.drain(..1.min(runs.len()));
    let floor: Floor = ended.next().map_or_else(|| nothing("floor"), |(it, end)| read(&it, end))?;
    if runs.is_empty() {
        return nothing("run");
    }
    let (name, budget) = (plan.name.clone(), plan.budget);
    let cpus = plan.vm.cpus;
    let floor_ms = floor.ready_ms;
    Ok(Measurement { digest: opened.digest, name, cpus, budget, floor_ms, runs, machine })
}

/// Returns the commands that start the box, one more than `runs`, and after them the command that measures the floor.
/// The first VM in a virtual host takes longer, because the host's kernel then sets up state that later VMs reuse.
fn commands(opened: &OpenBox, runs: u16, env: &[String]) -> Vec<Vec<String>> {
    let vm = &opened.plan().vm;
    let kernel = box_layout::blob_path(Path::new(BOX), &opened.kernel.descriptor.digest);
    let (kernel, cpus, memory) =
        (kernel.display().to_string(), vm.cpus.to_string(), vm.memory_mib.to_string());
    let floor = ["boxlaunch", "floor", &kernel, &cpus, &memory];
    let total = opened.plan().budget.limit(Phase::Total).unwrap_or_default();
    let timeout = STARTUP_TIMEOUT.max(total.div_ceil(1000) * 2).to_string();
    let start = [
        "boxlaunch",
        "run",
        "--nested",
        "--json",
        "--budget",
        "report",
        "--until-ready",
        // The virtual host has no network, and rules for its loopback would be meaningless.
        "--network",
        "none",
        "--startup-timeout",
        &timeout,
        BOX,
    ];
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let given = env.iter().map(|it| format!("--env={it}"));
    let start = owned(&start).into_iter().chain(given).collect();
    let starts = std::iter::repeat_n(start, usize::from(runs) + 1);
    starts.chain([owned(&floor)]).collect()
}

/// Returns the phases of one start of the box.
fn phases(command: &str, ended: &Ended, digest: Digest) -> Result<Phases> {
    let report: Report = read(command, ended)?;
    if report.digest == digest {
        return Ok(report.phases_ms);
    }
    let reason = "the box was changed while it was measured".to_owned();
    Err(MeasureError::Malformed { command: command.to_owned(), reason })
}

/// Reads the JSON object that a command printed.
fn read<'e, T: Deserialize<'e>>(command: &str, ended: &'e Ended) -> Result<T> {
    if ended.status != 0 {
        return Err(refusal(command, ended));
    }
    serde_json::from_slice(&ended.stdout).map_err(|error| MeasureError::Malformed {
        command: command.to_owned(),
        reason: error.to_string(),
    })
}

fn nothing<T>(command: &str) -> Result<T> {
    let (command, reason) = (format!("boxlaunch {command}"), "it was not run".to_owned());
    Err(MeasureError::Malformed { command, reason })
}

/// Returns the error of a failed command, with boxlaunch's message if it printed one.
fn refusal(command: &str, ended: &Ended) -> MeasureError {
    let printed = serde_json::from_slice::<Refusal>(&ended.stdout).ok();
    if let Some(first) = printed.and_then(|it| it.errors.into_iter().next()) {
        let code = first.code.as_deref().and_then(code_named);
        let Refused { message, help, .. } = first;
        let names_options = help.as_ref().is_some_and(|it| it.contains(" --"));
        return MeasureError::Refused { message, help, names_options, code };
    }
    let stderr = tail(&ended.stderr, SHOWN).trim_end().to_owned();
    MeasureError::Failed { command: command.to_owned(), status: ended.status, stderr }
}

fn code_named(name: &str) -> Option<ErrorCode> {
    ErrorCode::ALL.iter().find(|(_, it, _)| *it == name).map(|(code, ..)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: i32, stdout: &str, stderr: &str) -> Ended {
        Ended { status, stdout: stdout.into(), stderr: stderr.into(), ..Ended::default() }
    }

    #[test]
    fn a_refused_box_has_the_words_of_boxlaunch() {
        let printed = r#"{"errors":[{"code":"box-unsupported","severity":"error",
            "message":"the box declares secrets","help":"remove them","labels":[]}]}"#;
        let error = read::<Report>("boxlaunch run", &ended(1, printed, "")).err().unwrap();
        assert_eq!(
            error.to_string(),
            "the box does not start on the virtual host: the box declares secrets"
        );
        let MeasureError::Refused { code, help, .. } = error else { panic!("{error}") };
        assert_eq!(code, Some(ErrorCode::BoxUnsupported));
        assert_eq!(help.as_deref(), Some("remove them"));
    }

    #[test]
    fn a_failure_without_words_shows_its_status_and_standard_error() {
        let error = read::<Report>("boxlaunch run", &ended(134, "", "aborted\n")).err().unwrap();
        assert_eq!(
            error.to_string(),
            "boxlaunch run failed on the virtual host with status 134:\naborted"
        );
    }

    #[test]
    fn the_report_of_another_box_is_no_measurement() {
        let digest = Digest::from_bytes([1; 32]);
        let printed = format!(
            r#"{{"box":"{digest}","phases_ms":
            {{"vmm":1.5,"kernel":2.0,"init":3.0,"ready":4.0,"total":10.5}}}}"#
        );
        let start = ended(0, &printed, "");
        assert_eq!(phases("run", &start, digest).unwrap().total, 10.5);
        let error = phases("run", &start, Digest::from_bytes([2; 32])).unwrap_err();
        assert!(error.to_string().contains("was changed"), "{error}");
        let error = phases("run", &ended(0, "ready", ""), digest).unwrap_err();
        assert!(error.to_string().starts_with("run printed no measurement"), "{error}");
    }

    #[test]
    fn the_floor_has_the_cpus_and_the_memory_of_the_box() {
        let directory = testkit::test_box::TestBox::new(&testkit::test_box::config());
        let opened = OpenBox::open(directory.path()).unwrap();
        let commands = commands(&opened, 2, &[]);
        let kernel = opened.kernel.descriptor.digest.hex();
        let floor = format!("boxlaunch floor /box/blobs/sha256/{kernel} 1 256");
        assert_eq!(commands[3].join(" "), floor);
        assert_eq!(commands.len(), 4, "a start that does not count, and two");
        assert_eq!(commands[0].last().map(String::as_str), Some("/box"));
    }
}

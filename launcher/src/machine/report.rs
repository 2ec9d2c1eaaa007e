//! The report of a run: the budget as a table, and the whole run as one JSON object.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use box_contract::wire::{Exited, Refused};
use box_contract::{BoxConfig, Budget, ComponentName, ComponentPlan, Health, Phase, Phases};
use box_digest::Digest;
use safe_text::secrets::mask_words;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::clock::milliseconds;
use crate::boxes::{Boxes, CommandSandbox, DeniedAccess, DeniedKind, Record, since_epoch};
use crate::opened::verify::{Verification, Verified};
use crate::streams::output::{Captured, Route};
use vmm::jail::Report;

/// Renders the limit, the duration and the excess of each phase as a table. If blobs were hashed, the first row has the
/// time for that, which has no limit.
pub fn budget_table(budget: &Budget, facts: &RunFacts) -> String {
    let taken = &facts.phases;
    let over = budget.overruns(taken);
    let mut table = format!("{:<8}{:>10}{:>14}\n", "phase", "allowed", "taken");
    if let Some(ms) = facts.verify_ms() {
        let took = format!("{ms:.2} ms");
        table += &format!("{:<8}{:>10}{took:>14}   before the start\n", "verify", "-");
    }
    for phase in Phase::ALL {
        let allowed = budget.limit(phase).map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
        let took = match phase {
            Phase::Ready if !facts.is_ready => "not reached".to_owned(),
            _ if !facts.knows(phase) => "unknown".to_owned(),
            _ => format!("{:.2} ms", taken.of(phase)),
        };
        let excess = over.iter().find(|excess| excess.phase == phase);
        let verdict = excess.map_or_else(String::new, |excess| {
            format!("   over by {:.2} ms", excess.taken_ms - excess.limit_ms as f64)
        });
        table += &format!("{:<8}{allowed:>10}{took:>14}{verdict}\n", phase.name());
    }
    table
}

/// What is known about a run so far.
#[derive(Debug, Clone)]
pub struct RunFacts {
    /// How the box's blobs were verified.
    pub verification: Verification,
    /// How long each phase of the start took; only `total` if the agent was never ready.
    pub phases: Phases,
    /// The jail of the VMM process. Empty if the process ended before it reported the jail.
    pub jail: Report,
    /// Whether the agent was ready before the enforced total had passed.
    pub is_ready: bool,
    /// Why the health check had not passed when the start reached its limit, if the guest reported it; safe for a
    /// terminal.
    pub unready: Option<String>,
    /// The agent's exit status, once it has ended.
    pub agent_status: Option<u8>,
}

impl RunFacts {
    /// Returns the facts of a VM that is confined and whose agent is not ready yet.
    pub fn new(verification: Verification, jail: Report) -> Self {
        let phases = Phases::default();
        let (unready, agent_status) = (None, None);
        Self { verification, phases, jail, is_ready: false, unready, agent_status }
    }

    /// Returns whether the duration of a phase is known. The guest reports the durations when the agent is ready.
    fn knows(&self, phase: Phase) -> bool {
        self.is_ready || phase == Phase::Total
    }

    /// Returns how long the hashing of the blobs took, in milliseconds; `None` if no blob was hashed.
    fn verify_ms(&self) -> Option<f64> {
        let Verification { verified, hashing } = self.verification;
        (verified == Verified::Hashed).then(|| milliseconds(hashing))
    }

    /// Returns the duration of each phase, `null` if it is unknown.
    fn phases_ms(&self) -> Value {
        let of = |phase| self.knows(phase).then(|| self.phases.of(phase));
        Phase::ALL.into_iter().map(|phase| (phase.name().to_owned(), json!(of(phase)))).collect()
    }
}

/// Formats a duration: for example, `120 ms` below one second, and `1.3 s` above.
pub fn shown_duration(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        return format!("{} ms", duration.as_millis());
    }
    format!("{:.1} s", duration.as_secs_f64())
}

/// The words of a command in a report. If one of them is not UTF-8, all of them are also there with all their bytes.
#[derive(Debug)]
struct Words(Vec<OsString>);

impl Serialize for Words {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_text = self.0.iter().all(|it| it.to_str().is_some());
        let argv = self.0.iter().map(|it| it.to_string_lossy()).collect();
        let bytes = self.0.iter().filter(|_| !is_text);
        let argv_base64 = bytes.map(|it| BASE64_STANDARD.encode(it.as_bytes())).collect();
        ReportedWords { argv, argv_base64 }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct ReportedWords<'a> {
    argv: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    argv_base64: Vec<String>,
}

/// A command that was run, and its end.
#[derive(Debug, Serialize)]
pub struct CommandReport {
    component: ComponentName,
    #[serde(flatten)]
    argv: Words,
    status: u8,
    oom_killed: bool,
    disk_full: bool,
    timed_out: bool,
    duration_ms: f64,
    #[serde(flatten)]
    output: Captured,
    /// How the policy of the box applied to the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<CommandSandbox>,
    #[serde(skip)]
    exit: Exited,
    #[serde(skip)]
    refusal: Option<Refused>,
    #[serde(skip)]
    taken: Duration,
}

impl CommandReport {
    /// Returns the report of a command that has ended. It contains the output that `output` has captured.
    pub fn new(
        component: ComponentName,
        argv: Vec<OsString>,
        exit: Exited,
        taken: Duration,
        output: &Route,
    ) -> Self {
        let Exited { status, oom_killed, disk_full, timed_out, .. } = exit;
        let duration_ms = milliseconds(taken);
        let output = output.captured();
        Self {
            component,
            argv: Words(argv),
            status,
            oom_killed,
            disk_full,
            timed_out,
            duration_ms,
            output,
            sandbox: None,
            exit,
            refusal: None,
            taken,
        }
    }

    /// Adds why the policy has not let the command start.
    #[must_use]
    pub fn refused(self, refusal: Option<Refused>) -> Self {
        Self { refusal, ..self }
    }

    /// Adds how the policy of the box applied to the command.
    #[must_use]
    pub fn under(self, boxes: &Boxes, record: &Record) -> Self {
        let argv = self.argv.0.join(OsStr::new(" "));
        let (component, exit) = (self.component, self.exit);
        let taken_ms = u64::try_from(self.taken.as_millis()).unwrap_or(u64::MAX);
        let since_ms = since_epoch().saturating_sub(taken_ms.saturating_add(1));
        let ended = (exit, self.refusal.clone());
        let command = (component, &*argv.to_string_lossy());
        let sandbox = CommandSandbox::of_exit((boxes, record), command, ended, since_ms);
        Self { sandbox, ..self }
    }

    /// Returns the connections that were denied while the command ran.
    pub fn denied_connections(&self) -> impl Iterator<Item = &DeniedAccess> {
        let denied = self.sandbox.iter().flat_map(|it| &it.denied);
        denied.filter(|it| it.kind == DeniedKind::Network)
    }

    /// Returns whether the command failed and the kernel killed a process of its component for lack of memory.
    pub const fn lacked_memory(&self) -> bool {
        self.exit.lacked_memory()
    }

    /// Returns whether the command failed and the file system of its component's root is full.
    pub const fn found_disk_full(&self) -> bool {
        self.disk_full
    }

    /// Returns the component in which the command ran.
    pub const fn component(&self) -> ComponentName {
        self.component
    }

    /// Returns the exit code for a run with this command: see [`Exited::code`].
    pub const fn code(&self) -> u8 {
        self.exit.code()
    }
}

/// Returns the object that `boxlaunch run --json` prints for a run. The caller adds the command and the errors.
/// `agent_socket` is the socket through which clients reached the agent's port.
pub fn run_report(
    digest: Digest,
    config: &BoxConfig,
    facts: &RunFacts,
    agent_output: &Route,
    agent_socket: Option<&Path>,
) -> Value {
    let plan = &config.plan;
    let excess = plan.budget.overruns(&facts.phases);
    let mut agent = json!(agent_output.captured());
    agent["status"] = json!(facts.agent_status);
    json!({
        "box": digest,
        "tree": config.tree,
        "verified": facts.verification.verified,
        "verify_ms": facts.verify_ms(),
        "phases_ms": facts.phases_ms(),
        "budget": plan.budget,
        "within_budget": facts.is_ready && excess.is_empty(),
        "excess": excess,
        "agent": with_plan(agent, &plan.agent),
        "business": plan.business.as_ref().map(|plan| with_plan(json!({}), plan)),
        "command": null,
        "jail": {"missing": facts.jail.missing, "landlock_abi": facts.jail.landlock_abi},
        "agent_socket": agent_socket.map(|path| path.display().to_string()),
    })
}

/// Adds the plan's fields for a component to an object. Secrets in its commands are masked.
fn with_plan(mut component: Value, plan: &ComponentPlan) -> Value {
    component["hostname"] = json!(plan.hostname);
    let (mut argv, mut health) = (plan.argv.clone(), plan.health.clone());
    mask_words(&mut argv);
    if let Some(Health::Exec { argv }) = &mut health {
        mask_words(argv);
    }
    component["argv"] = json!(argv);
    component["port"] = json!(plan.port);
    component["health"] = json!(health);
    component
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;
    use box_contract::wire::{ProgramId, Stream};
    use testkit::test_box::config;

    const TAKEN: Phases =
        Phases { vmm: 119.0, jail: 1.5, kernel: 320.25, init: 40.0, ready: 19.25, total: 500.0 };

    const RECEIPT: Verification =
        Verification { verified: Verified::Receipt, hashing: Duration::ZERO };

    fn facts(verification: Verification, phases: Phases) -> RunFacts {
        RunFacts { phases, is_ready: true, ..RunFacts::new(verification, Report::default()) }
    }

    #[test]
    fn the_table_names_limits_times_and_overruns() {
        let budget =
            Budget { kernel: Some(300), init: Some(40), total: Some(1000), ..Budget::default() };
        assert_eq!(
            budget_table(&budget, &facts(RECEIPT, TAKEN)),
            "phase      allowed         taken\n\
             vmm              -     119.00 ms\n\
             jail             -       1.50 ms\n\
             kernel      300 ms     320.25 ms   over by 20.25 ms\n\
             init         40 ms      40.00 ms\n\
             ready            -      19.25 ms\n\
             total      1000 ms     500.00 ms\n"
        );
    }

    #[test]
    fn a_start_that_was_stopped_shows_the_phase_that_was_not_reached() {
        let budget = Budget { total: Some(1000), ..Budget::default() };
        let hashing = Duration::from_millis(1345);
        let verification = Verification { verified: Verified::Hashed, hashing };
        let taken = crate::machine::clock::unready(Duration::from_micros(1_000_250));
        let facts = RunFacts { is_ready: false, ..facts(verification, taken) };
        assert_eq!(
            budget_table(&budget, &facts),
            "phase      allowed         taken\n\
             verify           -    1345.00 ms   before the start\n\
             vmm              -       unknown\n\
             jail             -       unknown\n\
             kernel           -       unknown\n\
             init             -       unknown\n\
             ready            -   not reached\n\
             total      1000 ms    1000.25 ms   over by 0.25 ms\n"
        );
        let mut config = config();
        // An agent that is not ready is not within any budget.
        config.plan.budget.total = None;
        let report =
            run_report(Digest::from_bytes([1; 32]), &config, &facts, &Route::Nowhere, None);
        let phases = json!({"vmm": null, "jail": null, "kernel": null, "init": null, "ready": null, "total": 1000.25});
        assert_eq!(report["phases_ms"], phases);
        assert_eq!(report["within_budget"], false);
        assert_eq!(report["verify_ms"], 1345.0);
    }

    #[test]
    fn durations_have_the_unit_that_people_use() {
        assert_eq!(shown_duration(Duration::from_micros(120_900)), "120 ms");
        assert_eq!(shown_duration(Duration::from_millis(1345)), "1.3 s");
    }

    #[test]
    fn the_report_has_the_promised_fields() {
        let mut config = config();
        config.plan.budget.total = Some(499);
        config.plan.agent.argv.push("--token=hunter2".to_owned());
        let mut output = Route::Capture(Captured::default());
        output.write(Stream::Stdout, b"hi\xff").unwrap();
        let exit = Exited {
            id: ProgramId::COMMAND,
            status: 3,
            oom_killed: true,
            disk_full: false,
            timed_out: false,
            fenced: None,
        };
        let argv = [&b"sh"[..], b"\xFF"].map(|it| OsString::from_vec(it.to_vec()));
        let (argv, taken) = (argv.to_vec(), Duration::from_micros(1500));
        let command = CommandReport::new(ComponentName::Business, argv, exit, taken, &output);
        assert!(command.code() == 3 && command.lacked_memory());
        let (digest, socket) = (Digest::from_bytes([1; 32]), Path::new("/run/a.sock"));
        let facts = facts(RECEIPT, TAKEN);
        let mut report = run_report(digest, &config, &facts, &output, Some(socket));
        report["command"] = json!(command);
        let expected = serde_json::json!({
            "box": format!("sha256:{}", "01".repeat(32)),
            "tree": format!("blake3:{}", "00".repeat(32)),
            "verified": "receipt",
            "verify_ms": null,
            "phases_ms":
                {"vmm": 119.0, "jail": 1.5, "kernel": 320.25, "init": 40.0, "ready": 19.25, "total": 500.0},
            "budget": {"total": 499},
            "within_budget": false,
            "excess": [{"phase": "total", "limit_ms": 499, "taken_ms": 500.0}],
            "agent": {
                "hostname": "agent-host", "argv": ["/agent", "--token=****"], "port": 4088,
                "health": {"kind": "tcp", "port": 4088}, "status": null,
                "stdout": "hi\u{fffd}", "stdout_base64": "aGn/", "stderr": "", "truncated": false,
            },
            "business": {"hostname": "agent-host", "argv": ["/agent"], "port": null, "health": null},
            "command": {
                "component": "business", "argv": ["sh", "\u{fffd}"], "argv_base64": ["c2g=", "/w=="],
                "status": 3, "oom_killed": true, "disk_full": false,
                "timed_out": false, "duration_ms": 1.5,
                "stdout": "hi\u{fffd}", "stdout_base64": "aGn/", "stderr": "", "truncated": false,
            },
            "jail": {"missing": [], "landlock_abi": null},
            "agent_socket": "/run/a.sock",
        });
        assert_eq!(report, expected);
    }
}

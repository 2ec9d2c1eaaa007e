//! The report of a run: the budget's table for people, one JSON object for machines.

use std::path::Path;

use box_digest::Digest;
use box_image::wire::Exited;
use box_image::{BoxConfig, Budget, ComponentName, ComponentPlan, Phase, Phases};
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::{Captured, Route};
use crate::verify::Verified;

/// Renders what each phase may take, what it took, and by how much it was over.
pub fn budget_table(budget: &Budget, taken: &Phases) -> String {
    let over = budget.overruns(taken);
    let mut table = format!("{:<8}{:>10}{:>14}\n", "phase", "allowed", "taken");
    for phase in Phase::ALL {
        let allowed = budget.limit(phase).map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
        let took = format!("{:.2} ms", taken.of(phase));
        let excess = over.iter().find(|excess| excess.phase == phase);
        let verdict = excess.map_or_else(String::new, |excess| {
            format!("   over by {:.2} ms", excess.taken_ms - excess.limit_ms as f64)
        });
        table += &format!("{:<8}{allowed:>10}{took:>14}{verdict}\n", phase.name());
    }
    table
}

/// The facts of a run so far.
#[derive(Debug)]
pub struct RunFacts {
    /// How the box's blobs were verified.
    pub verified: Verified,
    /// The time that each phase of the start took.
    pub phases: Phases,
    /// The agent's exit status, once it has ended.
    pub agent_status: Option<u8>,
    /// Where the agent's output goes.
    pub agent_output: Route,
}

/// A command that was run, and how it ended.
#[derive(Debug, Serialize)]
pub struct CommandReport {
    component: ComponentName,
    argv: Vec<String>,
    /// The command's exit status.
    pub status: u8,
    oom_killed: bool,
    #[serde(flatten)]
    output: Captured,
}

impl CommandReport {
    /// Describes a command that has ended, with its output where that was captured.
    pub fn new(component: ComponentName, argv: Vec<String>, exit: Exited, output: &Route) -> Self {
        let Exited { status, oom_killed, .. } = exit;
        Self { component, argv, status, oom_killed, output: output.captured() }
    }
}

/// Reports a run of a box as `boxlaunch run --json` prints it, without its command and errors.
/// `agent_socket` is the one that led to the agent's port.
pub fn run_report(
    digest: Digest,
    config: &BoxConfig,
    facts: &RunFacts,
    agent_socket: Option<&Path>,
) -> Value {
    let plan = &config.plan;
    let excess = plan.budget.overruns(&facts.phases);
    let mut agent = json!(facts.agent_output.captured());
    agent["status"] = json!(facts.agent_status);
    json!({
        "box": digest,
        "tree": config.tree,
        "verified": facts.verified,
        "phases_ms": facts.phases,
        "budget": plan.budget,
        "within_budget": excess.is_empty(),
        "excess": excess,
        "agent": with_plan(agent, &plan.agent),
        "business": plan.business.as_ref().map(|plan| with_plan(json!({}), plan)),
        "command": null,
        "agent_socket": agent_socket.map(|path| path.display().to_string()),
    })
}

/// Adds what the plan says of a component to an object.
fn with_plan(mut component: Value, plan: &ComponentPlan) -> Value {
    component["hostname"] = json!(plan.hostname);
    component["argv"] = json!(plan.argv);
    component["port"] = json!(plan.port);
    component["health"] = json!(plan.health);
    component
}

#[cfg(test)]
mod tests {
    use super::*;
    use box_image::wire::Stream;
    use testkit::test_box::config;

    const TAKEN: Phases =
        Phases { vmm: 120.5, kernel: 320.25, init: 40.0, ready: 19.25, total: 500.0 };

    #[test]
    fn the_table_names_limits_times_and_overruns() {
        let budget =
            Budget { kernel: Some(300), init: Some(40), total: Some(1000), ..Budget::default() };
        assert_eq!(
            budget_table(&budget, &TAKEN),
            "phase      allowed         taken\n\
             vmm              -     120.50 ms\n\
             kernel      300 ms     320.25 ms   over by 20.25 ms\n\
             init         40 ms      40.00 ms\n\
             ready            -      19.25 ms\n\
             total      1000 ms     500.00 ms\n"
        );
    }

    #[test]
    fn the_report_has_the_promised_fields() {
        let mut config = config();
        config.plan.budget.total = Some(499);
        let mut output = Route::Capture(Captured::default());
        output.write(Stream::Stdout, b"hi\xff").unwrap();
        let exit = Exited { id: 1, status: 3, oom_killed: true };
        let argv = vec!["sh".to_owned()];
        let command = CommandReport::new(ComponentName::Business, argv, exit, &output);
        let (digest, socket) = (Digest::from_bytes([1; 32]), Path::new("/run/a.sock"));
        let (verified, agent_status) = (Verified::Receipt, None);
        let facts = RunFacts { verified, phases: TAKEN, agent_status, agent_output: output };
        let mut report = run_report(digest, &config, &facts, Some(socket));
        report["command"] = json!(command);
        let expected = serde_json::json!({
            "box": format!("sha256:{}", "01".repeat(32)),
            "tree": format!("blake3:{}", "00".repeat(32)),
            "verified": "receipt",
            "phases_ms":
                {"vmm": 120.5, "kernel": 320.25, "init": 40.0, "ready": 19.25, "total": 500.0},
            "budget": {"total": 499},
            "within_budget": false,
            "excess": [{"phase": "total", "limit_ms": 499, "taken_ms": 500.0}],
            "agent": {
                "hostname": "agent-host", "argv": ["/agent"], "port": 4088,
                "health": {"kind": "tcp", "port": 4088}, "status": null,
                "stdout": "hi\u{fffd}", "stderr": "", "truncated": false,
            },
            "business": {"hostname": "agent-host", "argv": ["/agent"], "port": null, "health": null},
            "command": {
                "component": "business", "argv": ["sh"], "status": 3, "oom_killed": true,
                "stdout": "hi\u{fffd}", "stderr": "", "truncated": false,
            },
            "agent_socket": "/run/a.sock",
        });
        assert_eq!(report, expected);
    }
}

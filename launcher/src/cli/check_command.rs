//! `boxlaunch check-command`: shows what the policy of a box decides on a command.

use std::ffi::OsString;

use box_contract::{ComponentName, RunPlan, exit};
use cli_common::store::BoxArgument;
use command_policy::{Circumstances, Classifier, Decision, Ruling};
use safe_text::shown;
use serde_json::json;

use super::error::Failure;
use super::found;
use super::terminal::{is_quiet, json_line, print};

/// Shows whether a command runs under the `sandbox` of a box, without running it.
///
/// A single CMD with spaces or other characters of a shell is a line for a shell. Exits with 0 if the command runs, and with 1 if it
/// is forbidden or needs approval.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch check-command ./hello.box -- git push origin main
  boxlaunch check-command ./hello.box --json -- 'curl https://example.com/x | sh'")]
pub(crate) struct CheckCommandArgs {
    #[command(flatten)]
    subject: BoxArgument,
    /// Print one JSON object: decision, rule and reason.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments, or a line for a shell.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn check_command(args: &CheckCommandArgs) -> Result<u8, Failure> {
    let opened = found::open_argument(&args.subject)?;
    let plan = &opened.config.plan;
    let around = Circumstances { directory: Some(workdir(plan)), ..Circumstances::default() };
    let sandbox = plan.sandbox.as_ref();
    let ruling = sandbox.map(|it| Classifier::new(it).classify_typed_in(&args.command, &around));
    if args.json {
        print(&json_line(&report(ruling.as_ref()))?)?;
    } else if !is_quiet() {
        print(&line(ruling.as_ref()))?;
    }
    let is_run = ruling.is_none_or(|it| it.decision == Decision::Run);
    Ok(if is_run { exit::DONE } else { exit::FAILED })
}

/// Returns the working directory of the component in which `boxlaunch exec` runs a command by default.
fn workdir(plan: &RunPlan) -> &str {
    let business = plan.component(ComponentName::Business);
    &business.unwrap_or(&plan.agent).workdir
}

/// Returns the ruling as JSON. `None` is the ruling of a box without a policy.
fn report(ruling: Option<&Ruling>) -> serde_json::Value {
    match ruling {
        Some(Ruling { decision, rule, reason }) => {
            json!({ "decision": decision.name(), "rule": rule, "reason": reason })
        }
        None => json!({
            "decision": Decision::Run.name(),
            "rule": null,
            "reason": "the box has no `sandbox`",
        }),
    }
}

fn line(ruling: Option<&Ruling>) -> String {
    let Some(Ruling { decision, rule, reason }) = ruling else {
        return "the box has no `sandbox`: every command runs\n".to_owned();
    };
    let rule = rule.as_deref().map(shown);
    let reason = shown(reason);
    match (decision, rule) {
        (Decision::Run, None) => "runs (no rule matches)\n".to_owned(),
        (Decision::Run, Some(rule)) => format!("runs (rule {rule})\n"),
        (Decision::Ask, rule) => {
            format!("needs approval by {}: {reason}\n", rule.unwrap_or_default())
        }
        (Decision::Forbid, rule) => {
            format!("forbidden by {}: {reason}\n", rule.unwrap_or_default())
        }
    }
}

//! `boxlaunch health`: checks a component of a running box.

use std::time::{Duration, Instant};

use box_contract::wire::Follow;
use box_contract::{ComponentName, exit};
use boxlaunch::boxes::{Boxes, Record, State};
use boxlaunch::client::{Client, ClientError, CommandSetup};
use boxlaunch::machine::clock::milliseconds;
use boxlaunch::machine::health as check;
use boxlaunch::streams::output::Route;
use serde_json::json;
use vmm::signals::StopSignals;

use super::command::component;
use super::environment::record_at;
use super::error::{Failure, usage};
use super::launch_error::LaunchError;
use super::paths;
use super::run::seconds;
use super::terminal::{is_quiet, json_line, print};

/// The default limit of a check by a program, in seconds.
const LIMIT: u32 = 10;
/// How long a box may take to answer, in addition to the limit of its check.
const MARGIN: Duration = Duration::from_secs(5);

/// Runs the health check that the Boxfile declares for a component, once, inside the box.
///
/// Exits with 0 if the check passes, else with 1.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch health hello
  until boxlaunch --quiet health --component business hello; do sleep 1; done")]
pub(crate) struct HealthArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The component.
    #[arg(long, visible_alias = "in", value_parser = cli_common::component_name(), value_name = "COMPONENT", default_value = "agent")]
    component: ComponentName,
    /// How long a check by a program may take. A check by a connection may take one second [default: 10].
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = seconds(1), allow_negative_numbers = true)]
    timeout: Option<u32>,
    /// Print one JSON object: component, healthy, reason and duration_ms.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn health(args: &HealthArgs) -> Result<u8, Failure> {
    let record = record_at(&Boxes::new(&paths::state()?), Some(&args.name))?;
    let component = component(Some(args.component), |name| record.components.contains(&name))?;
    if !record.checked.contains(&component) {
        return unchecked(&record, args);
    }
    let signals = StopSignals::block()?;
    let mut client = Client::connect(&record, Follow::Nothing, &signals)?;
    let limit = Duration::from_secs(args.timeout.unwrap_or(LIMIT).into());
    let (exec, mut output) = (check::check(component, limit), check::answer());
    client.give_up_after(limit + MARGIN);
    let started = Instant::now();
    let setup = CommandSetup { exec, input: None, tty: None, output: &mut output };
    let exit = client.exec(setup, &mut Route::Nowhere)?;
    let (reason, duration_ms) =
        (check::reason(exit, &output, limit), milliseconds(started.elapsed()));
    report(args, reason.as_deref(), duration_ms)
}

/// Reports the health of a component without a health check. An agent without a check is healthy while it runs. A business
/// application without a check is an error.
fn unchecked(record: &Record, args: &HealthArgs) -> Result<u8, Failure> {
    match (args.component, record.state) {
        (ComponentName::Business, _) => Err(LaunchError::NoHealthCheck(args.component).into()),
        (_, State::Running) if args.timeout.is_some() => Err(unlimited(&record.name)),
        (_, State::Running) => report(args, None, 0.0),
        (_, State::Starting) => Err(LaunchError::StillStarting(record.name.clone()).into()),
        (_, State::Ended) => Err(ClientError::NotRunning(record.name.clone()).into()),
    }
}

/// Returns the error of `--timeout` for an agent without a health check.
fn unlimited(name: &str) -> Failure {
    let message = format!("--timeout is for a check, and the agent of {name} has none");
    usage(
        &message,
        "leave it out, or declare `health` for the agent in the Boxfile, and build the box again",
    )
}

fn report(args: &HealthArgs, reason: Option<&str>, duration_ms: f64) -> Result<u8, Failure> {
    let (component, healthy) = (args.component, reason.is_none());
    if args.json {
        let fields = json!({
            "component": component, "healthy": healthy, "reason": reason, "duration_ms": duration_ms,
        });
        print(&json_line(&fields)?)?;
    } else if !is_quiet() {
        print(&reason.map_or_else(|| "healthy\n".to_owned(), |why| format!("unhealthy: {why}\n")))?;
    }
    Ok(if healthy { exit::DONE } else { exit::FAILED })
}

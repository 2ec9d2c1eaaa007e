//! Tasks: `boxlaunch run --task` and `boxlaunch task`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use box_contract::task::TaskError;
use box_contract::{ErrorCode, RunPlan, TaskPlan, TaskStatus, TaskVerification, exit};
use boxlaunch::boxes::task::{EndedTask, Task, check_result_place};
use boxlaunch::boxes::{Boxes, RecordError};
use boxlaunch::machine::report::shown_duration;
use host_fs::named::FileSlot;
use host_fs::read::{ReadError, read_open};
use safe_text::{shown, shown_lines};
use serde_json::json;

use super::environment::record_at;
use super::error::Failure;
use super::explain::explain;
use super::run::RunArgs;
use super::terminal::{foreign, json_line, notice, pass_on, print};
use super::{given_file, paths};

/// Shows the status and the result of a box's task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  boxlaunch task fixer
  boxlaunch task fixer --result | jq .summary
  boxlaunch task fixer --json | jq -r .status")]
pub(crate) struct TaskArgs {
    /// The box's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// Print only the result that the agent has left.
    #[arg(long, conflicts_with = "json")]
    result: bool,
    /// Print the result unchanged, also to a terminal. By default, a terminal gets text and colours, but no other control
    /// sequences.
    #[arg(long, requires = "result")]
    raw: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn task(args: &TaskArgs) -> Result<u8, Failure> {
    let boxes = Boxes::new(&paths::state()?);
    let record = record_at(&boxes, Some(&args.name))?;
    let Some(task) = record.task else {
        let help =
            "declare a `task` in the Boxfile, or give one to a run: `boxlaunch run --task FILE`";
        let message = format!("the box {} has no task", record.name);
        return Err(Failure::new((ErrorCode::NotDeclared, help), message));
    };
    if args.json {
        print(&json_line(&task)?)?;
    } else if args.result {
        if task.status.is_open() {
            notice("boxlaunch: the task is not done yet\n");
        }
        let result = boxes.result(&record.name)?;
        pass_on(&mut foreign(io::stdout(), args.raw), &result)?;
    } else {
        print(&text(&task))?;
    }
    Ok(exit::DONE)
}

/// Returns a task as text.
fn text(task: &Task) -> String {
    let verdict = match &task.status {
        TaskStatus::Failed { error, .. } => format!("failed: {}", shown(error)),
        status => status.name().to_owned(),
    };
    let verification = task.verification.as_ref().map(verification).unwrap_or_default();
    format!(
        "{} ({}): {}\n{verdict}\n{verification}",
        shown(&task.id),
        shown(&task.kind),
        shown(&task.description)
    )
}

/// Returns a verification as text: the command, and after its end, how long it took and the end of its output.
fn verification(verification: &TaskVerification) -> String {
    let mut text = format!("verification: {}", shown(&verification.command()));
    if let Some(end) = &verification.end {
        text += &format!(", {}", shown_duration(Duration::from_millis(end.duration_ms)));
        let output = end.output.trim_end();
        if !output.is_empty() {
            text += &format!("\n{}", shown_lines(output));
        }
    }
    text + "\n"
}

/// The size limit of a task's file, in bytes. The normalised task has a lower limit.
const MAX_FILE: u64 = 1 << 20;

const TASK_HELP: &str = "a task is a JSON object with `id`, `type` and `description`, and if need be `input`, `tags` and \
                         `timeout_seconds`";
const SIZE_HELP: &str = "give the box larger inputs as a directory: `--share`, see docs/files.md";

/// Reads the task of a run.
///
/// # Errors
/// The file cannot be read, or contains no valid task.
pub(super) fn given(args: &RunArgs) -> Result<Option<TaskPlan>, Failure> {
    let Some(path) = &args.task else { return Ok(None) };
    let wrong = |help: &'static str, reason: &str| {
        let message = format!("{}: {reason}", shown(&path.display().to_string()));
        Failure::new((ErrorCode::Usage, help), message)
    };
    let unread = |error| given_file::unread("the task", path, &error);
    let file = given_file::open(path, unread)?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err(unread(ReadError::NotRegular.into()));
    }
    let bytes = read_open(&file, MAX_FILE).map_err(|error| unread(error.into()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong(TASK_HELP, "it is not UTF-8"))?;
    TaskPlan::read(&text).map(Some).map_err(|error| {
        let help = if matches!(error, TaskError::TooLong(_)) { SIZE_HELP } else { TASK_HELP };
        wrong(help, &error.to_string())
    })
}

/// Returns the file for the result, after a check that it can be written.
///
/// # Errors
/// The path is `-` or not a regular file, the box has no task, or the directory cannot be written to.
pub(super) fn result_place(
    args: &RunArgs,
    plan: &RunPlan,
) -> Result<Option<Arc<FileSlot>>, Failure> {
    let Some(path) = &args.result else { return Ok(None) };
    if path.as_os_str() == "-" {
        let help = "name a file; `boxlaunch task NAME --result` prints the result later";
        return Err(Failure::new((ErrorCode::Usage, help), "--result cannot be `-`"));
    }
    if args.task.is_none() && plan.task.is_none() {
        let help = "give it one: `--task FILE`, or `task` in the Boxfile";
        return Err(Failure::new((ErrorCode::Usage, help), "--result: the box has no task"));
    }
    let place = given_file::place(path, "write")?;
    check_result_place(&place).map_err(|error| match error {
        RecordError::ResultPlace(_) => {
            let message = shown(&format!("--result {error}"));
            Failure::new(explain(&error.into()), message)
        }
        error => error.into(),
    })?;
    Ok(Some(Arc::new(place)))
}

/// Returns the exit code of a run whose agent has ended with `status`, and why its task has failed. A failed task changes a
/// status of 0 to 1.
pub(super) fn verdict(status: u8, ended: Option<&EndedTask>) -> (u8, Option<&str>) {
    let failure = ended.and_then(|it| match &it.task.status {
        TaskStatus::Failed { error, .. } => Some(error.as_str()),
        TaskStatus::Completed { .. } => None,
        TaskStatus::Pending | TaskStatus::Running { .. } | TaskStatus::Verifying { .. } => None,
    });
    let code = if failure.is_some() && status == 0 { exit::FAILED } else { status };
    (code, failure)
}

/// Returns the field `task` of a run's report.
pub(super) fn report(ended: &EndedTask) -> serde_json::Value {
    let mut report = json!(ended.task);
    report["result"] = serde_json::from_slice(&ended.result).unwrap_or_default();
    report
}

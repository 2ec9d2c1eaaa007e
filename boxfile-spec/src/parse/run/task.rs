//! `task "ID" …`: the task of a run.

use box_contract::plan::{can_be_kept, reserved_place};
use box_contract::rules::is_inside;
use box_contract::task::TaskError;
use box_contract::{ComponentName, TaskPlan, VerifyPlan};

use super::check_business;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, read_fields};
use crate::{Boxfile, schema};
use diagnostics::{Diagnostic, Sink};
use safe_text::quote;

/// Reads the task.
pub(in crate::parse) fn read(top: &Children<'_>) -> Option<TaskPlan> {
    let mut reader = Reader::new(top.one(&schema::TASK)?, &schema::TASK, top.sink());
    let task = task(&mut reader, top);
    reader.finish_block(&reader.children());
    let task = task?;
    let refused = |error: TaskError| {
        let refused = DECLARATION_ERRORS.about("task", &error.to_string(), reader.span());
        match error {
            TaskError::TooLong(_) => {
                refused.with_help("give the box larger inputs as a directory: declare a `share`")
            }
            _ => refused,
        }
    };
    reader.check(task.checked().map_err(refused))
}

fn task(reader: &mut Reader<'_>, top: &Children<'_>) -> Option<TaskPlan> {
    let children = reader.children();
    let verified = |it: &mut Reader<'_>| verify(it, top);
    let verify = || Some(Reader::sole(&children, &schema::VERIFY, verified));
    let tags = || Some(Reader::sole(&children, &schema::TAGS, Reader::rest).unwrap_or_default());
    let seconds = |ms: u64| ms.div_ceil(1000);
    read_fields!(reader => TaskPlan {
        id = reader.first(), kind: "type", description, input,
        timeout_seconds = Some(reader.optional("timeout").map(seconds)), tags = tags(),
        verify = verify()
    })
}

/// Reads the verification. Without `component`, its command runs in the business component, or in the agent if the box has
/// only that.
fn verify(reader: &mut Reader<'_>, top: &Children<'_>) -> Option<VerifyPlan> {
    let argv: Option<Vec<String>> = reader.all();
    let declared: Option<ComponentName> = reader.optional("component");
    let ms: Option<u64> = reader.value("timeout");
    check_business(reader, top, declared == Some(ComponentName::Business));
    let has_business = top.may_have(&schema::BUSINESS);
    let default = if has_business { ComponentName::Business } else { ComponentName::Agent };
    let component = declared.unwrap_or(default);
    Some(VerifyPlan { argv: argv?, component, timeout_seconds: ms?.div_ceil(1000) })
}

/// Reports a working directory of the Boxfile that the verification of the task cannot take over from the agent. An image's own
/// working directory is checked when the box is built.
pub(in crate::parse) fn check_workdir(boxfile: &Boxfile, sink: &Sink) {
    let Some(verify) = boxfile.task.as_ref().and_then(|it| it.verify.as_ref()) else { return };
    let component = boxfile.component(verify.component);
    let Some(workdir) = component.and_then(|it| it.workdir.as_ref()) else { return };
    let path = workdir.value.trim_end_matches('/');
    let shares = boxfile.shares.iter().map(|it| (it.value.plan.scope, &it.value.plan.guest));
    let volumes = boxfile.volumes.iter().map(|it| (it.value.scope, &it.value.guest));
    let disks = boxfile.scratch.iter().map(|it| (it.value.scope, &it.value.guest));
    let mut mounts = shares.chain(volumes).chain(disks);
    // A mount has its own files.
    let is_on_mount =
        mounts.any(|(scope, guest)| scope.includes(verify.component) && is_inside(path, guest));
    if is_on_mount || (can_be_kept(path) && reserved_place(path).is_none()) {
        return;
    }
    let message =
        format!("`verify` cannot take over the working directory {}", quote(&workdir.value));
    let error = Diagnostic::new(message, workdir.span, "a directory of the system");
    sink.report(error.with_help(
        "choose another `workdir`, such as \"/work\", or declare a `share` or a `volume` at it",
    ));
}

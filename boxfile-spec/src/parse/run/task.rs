//! `task "ID" …`: the task of a run.

use box_contract::TaskPlan;
use box_contract::task::TaskError;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, read_fields};
use crate::schema;

/// Reads the task.
pub(in crate::parse) fn read(top: &Children<'_>) -> Option<TaskPlan> {
    let mut reader = Reader::new(top.one(&schema::TASK)?, &schema::TASK, top.sink());
    let task = task(&mut reader);
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

fn task(reader: &mut Reader<'_>) -> Option<TaskPlan> {
    let children = reader.children();
    let tags = || Some(Reader::sole(&children, &schema::TAGS, Reader::rest).unwrap_or_default());
    let seconds = |ms: u64| ms.div_ceil(1000);
    read_fields!(reader => TaskPlan {
        id = reader.first(), kind: "type", description, input,
        timeout_seconds = Some(reader.optional("timeout").map(seconds)), tags = tags()
    })
}

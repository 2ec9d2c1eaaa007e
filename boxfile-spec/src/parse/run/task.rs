//! `task "ID" …`: what a run is to do.

use box_contract::TaskPlan;
use box_contract::task::TaskError;

use crate::parse::reader::Reader;
use crate::syntax::tree::{Node, Value};
use crate::{schema, value};
use diagnostics::Diagnostic;
use diagnostics::Sink;

/// Reads the task.
pub(in crate::parse) fn read(node: &Node, sink: &Sink) -> Option<TaskPlan> {
    let mut reader = Reader::new(node, &schema::TASK, sink);
    let id = reader.read_arg(value::spanned_text);
    let kind = reader.read_prop("type", value::spanned_text);
    let description = reader.read_prop("description", value::owned_text);
    let input = reader.read_optional("input", json);
    let timeout = reader.read_optional("timeout", value::some_duration);
    let children = reader.children();
    let tags = Reader::sole(&children, &schema::TAGS, |it| {
        it.read_args(|value, name| value::filled_text(value, name).map(str::to_owned))
    });
    reader.finish_block(&children);
    let task = TaskPlan {
        id: id?.value,
        kind: kind?.value,
        description: description?,
        input,
        tags: tags.unwrap_or_default(),
        timeout_seconds: timeout.map(|ms| ms.div_ceil(1000)),
    };
    let refused = |error: TaskError| {
        let message = format!("the task cannot be given: {error}");
        Diagnostic::new(message, node.name.span, "this task").with_help(match error {
            TaskError::TooLong(_) => "give the box larger inputs as a directory: declare a `share`",
            _ => "write some text without zero bytes",
        })
    };
    sink.check(task.checked().map_err(refused))
}

/// Reads a text that is JSON.
fn json(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = value::text(value, name)?;
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        let message = format!("`{name}` is not JSON: {error}");
        return Err(Diagnostic::new(message, value.span, "not JSON").with_help(
            "write a JSON value as one string, for instance \"{\\\"files\\\": [\\\"a.rs\\\"]}\"",
        ));
    }
    Ok(text.to_owned())
}

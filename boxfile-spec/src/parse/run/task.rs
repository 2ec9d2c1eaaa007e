//! `task "ID" …`: what a run is to do.

use box_image::TaskPlan;

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::{Node, Value};
use crate::{Diagnostic, schema, value};

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
    let mut tags = tags.unwrap_or_default();
    tags.sort_unstable();
    reader.finish_block(&children);
    Some(TaskPlan {
        id: id?.value,
        kind: kind?.value,
        description: description?,
        input,
        tags,
        timeout_seconds: timeout.map(|ms| ms.div_ceil(1000)),
    })
}

/// Reads a text that is JSON, and returns it in its shortest form.
fn json(value: &Value, name: &str) -> Result<String, Diagnostic> {
    let text = value::text(value, name)?;
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        let message = format!("`{name}` is not JSON: {error}");
        return Err(Diagnostic::new(message, value.span, "not JSON").with_help(
            "write a JSON value as one string, for instance \"{\\\"files\\\": [\\\"a.rs\\\"]}\"",
        ));
    }
    Ok(shortest(text))
}

/// Removes the white space around the tokens of a JSON text. The order of its keys and the digits
/// of its numbers stay, which parsing and writing would not promise.
fn shortest(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    json.chars()
        .filter(|c| {
            let keep = inside || !matches!(c, ' ' | '\t' | '\n' | '\r');
            if *c == '"' && !escaped {
                inside = !inside;
            }
            escaped = inside && *c == '\\' && !escaped;
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_its_white_space_and_nothing_else() {
        let text = "\t{ \"b \\\" \\\\\" : [ 1.50,\r\n12345678901234567890123 ] , \"a\": null }\n";
        let short = "{\"b \\\" \\\\\":[1.50,12345678901234567890123],\"a\":null}";
        assert_eq!(shortest(text), short);
        assert_eq!(shortest(short), short);
    }
}

//! The programmer's tools as shell commands, for an agent that has only the tool `shell`.

use serde_json::{Value, json};

/// The name of the tool. Its argument `command` is a list of words, and its result is a JSON object.
pub(crate) const TOOL: &str = "shell";

const READ: &str = r#"cat "$0""#;
const WRITE: &str = r#"printf %s "$1" >"$0""#;
/// Runs the project's tests in the example's box, in the image of the business component.
const RUN_TESTS: &str = r#"/a3s/bin/box-exec -w "$PWD" node test.js"#;

/// Returns the arguments of `shell` that are equivalent to a tool call.
pub(crate) fn from_tool(tool: &str, arguments: &Value) -> Value {
    let (path, content) = (&arguments["path"], &arguments["content"]);
    let command = match tool {
        "read_file" => json!(["sh", "-c", READ, path]),
        "write_file" => json!(["sh", "-c", WRITE, path, content]),
        _ => json!(["sh", "-c", RUN_TESTS]),
    };
    json!({ "command": command })
}

/// Returns the tool call that is equivalent to a command: the tool and its arguments.
pub(crate) fn to_tool(arguments: &Value) -> (&'static str, Value) {
    let word = |at: usize| &arguments["command"][at];
    match word(2).as_str() {
        Some(READ) => ("read_file", json!({ "path": word(3) })),
        Some(WRITE) => ("write_file", json!({ "path": word(3), "content": word(4) })),
        _ => ("run_tests", json!({})),
    }
}

/// Converts the result of `shell` to the result of a tool.
pub(crate) fn to_result(tool: &str, answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let output = answer["output"].as_str().unwrap_or_default();
    match (tool, answer["metadata"]["exit_code"].as_i64()) {
        ("run_tests", Some(status)) => format!("exit status {status}\n{output}"),
        (_, Some(0)) => output.to_owned(),
        _ => format!("error: {output}"),
    }
}

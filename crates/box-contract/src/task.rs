//! The task of a run: the files of `/task` in the agent's root, and the verdict on it.
//!
//! ```text
//! /task/spec.json     what is to be done: id, type, description, input
//! /task/meta.json     version, created_at, tags, timeout_seconds
//! /task/status        how far it is: a TaskStatus
//! /task/result.json   empty, for the agent to write: any JSON
//! ```
//!
//! The agent can write to the result alone. Times are in seconds since 1970. The files and their fields are those of
//! OANIX's `TaskFs`.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plan::TaskPlan;
use crate::wire::Exited;

/// Where the agent finds its task.
pub const TASK_PATH: &str = "/task";
/// The file there with what is to be done.
pub const SPEC: &str = "spec.json";
/// The file with what is known of that.
pub const META: &str = "meta.json";
/// The file with how far it is.
pub const STATUS: &str = "status";
/// The file for what has come of it.
pub const RESULT: &str = "result.json";
/// The greatest size of a result, in bytes.
pub const MAX_RESULT: usize = 1 << 20;
/// The most bytes of one that init sends: enough to see that it is too long.
pub const MAX_SENT_RESULT: usize = MAX_RESULT + 1;
/// The greatest size of a task, in bytes, as a message has it with all else that is in that: as JSON, in which the input is a
/// string.
pub const MAX_TASK: usize = 48 << 10;
/// The version of these files.
const VERSION: u32 = 1;

/// Text that is no task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It is something other than a JSON object.
    #[error("it is no JSON object")]
    NoObject,
    /// It is not JSON, or lacks a field or has another.
    #[error("it is no task: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A field that has to say something is empty; holds its name.
    #[error("its `{0}` is empty")]
    Empty(&'static str),
    /// A text has a zero byte; holds the field's name.
    #[error("its `{0}` has a zero byte")]
    ZeroByte(&'static str),
    /// The input is not JSON; holds why.
    #[error("its `input` is not JSON: {0}")]
    Input(serde_json::Error),
    /// It is longer than [`MAX_TASK`].
    #[error(
        "it has {0} bytes, quotation marks and backslashes of `input` counted twice, and at most {MAX_TASK} are allowed"
    )]
    TooLong(usize),
    /// The time limit is zero.
    #[error("its `timeout_seconds` is 0; leave it out for no limit")]
    NoTime,
}

/// A task as a file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskFile<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    description: String,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    timeout_seconds: Option<u64>,
}

impl TaskPlan {
    /// Reads the task of a file: the fields of [`SPEC`], and `tags` and `timeout_seconds`.
    ///
    /// # Errors
    /// [`TaskError`].
    pub fn read(text: &str) -> Result<Self, TaskError> {
        // What reads the fields would take a list of their values, too.
        if !text.trim_start().starts_with('{') {
            return Err(TaskError::NoObject);
        }
        let file: TaskFile<'_> = serde_json::from_str(text)?;
        let TaskFile { id, kind, description, input, tags, timeout_seconds } = file;
        let input = input.map(|it| it.get().to_owned());
        Self { id, kind, description, input, tags, timeout_seconds }.checked()
    }

    /// Returns the task in its one form: the tags in order, each once, and the input without white space around its tokens.
    ///
    /// # Errors
    /// Those of [`TaskError`] that are not about a file.
    pub fn checked(mut self) -> Result<Self, TaskError> {
        self.tags.sort_unstable();
        self.tags.dedup();
        self.input = self.input.as_deref().map(shortest);
        let texts = [("id", &self.id), ("type", &self.kind), ("description", &self.description)];
        let texts = texts.into_iter().chain(self.tags.iter().map(|it| ("tags", it)));
        for (name, text) in texts {
            if text.trim().is_empty() {
                return Err(TaskError::Empty(name));
            }
            if text.contains('\0') {
                return Err(TaskError::ZeroByte(name));
            }
        }
        // Init writes it as it is into the midst of more JSON.
        let input = self.input.as_deref().map(serde_json::from_str::<IgnoredAny>);
        input.transpose().map_err(TaskError::Input)?;
        if self.timeout_seconds == Some(0) {
            return Err(TaskError::NoTime);
        }
        let size = serde_json::to_vec(&self)?.len();
        if size > MAX_TASK { Err(TaskError::TooLong(size)) } else { Ok(self) }
    }

    /// Returns what [`SPEC`] has. The input is as the plan has it: it was found to be JSON when the box was built.
    pub fn spec_json(&self) -> String {
        let Self { id, kind, description, input, tags: _, timeout_seconds: _ } = self;
        let [id, kind, description] = [id, kind, description].map(|it| quoted(it));
        let input = input.as_deref().unwrap_or("null");
        format!("{{\"id\":{id},\"type\":{kind},\"description\":{description},\"input\":{input}}}\n")
    }

    /// Returns what [`META`] has of a task that was given at this time.
    pub fn meta_json(&self, created_at: u64) -> String {
        let tags: Vec<_> = self.tags.iter().map(|it| quoted(it)).collect();
        let tags = tags.join(",");
        let limit = self.timeout_seconds.map_or("null".to_owned(), |it| it.to_string());
        format!(
            "{{\"version\":{VERSION},\"created_at\":{created_at},\"tags\":[{tags}],\"timeout_seconds\":{limit}}}\n"
        )
    }
}

/// Returns a text as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum TaskStatus {
    /// The agent's program is not executed yet; of the status that the host has, the box is not ready.
    Pending,
    /// The agent works on it.
    Running {
        /// When its program was executed; of the status that the host has, when the box was ready.
        started_at: u64,
    },
    /// The agent has ended with the status 0 and, if anything, JSON in the result.
    Completed {
        /// When it has ended.
        finished_at: u64,
    },
    /// It has come to another end.
    Failed {
        /// When it has.
        finished_at: u64,
        /// Why, for people.
        error: String,
    },
}

impl TaskStatus {
    /// Judges a task by how its agent has ended and what it has left as the result.
    pub fn of_end(exited: Exited, result: &[u8], finished_at: u64) -> Self {
        match why_failed(exited, result) {
            None => Self::Completed { finished_at },
            Some(error) => Self::Failed { finished_at, error },
        }
    }

    /// Returns the word for it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running { .. } => "running",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns what [`STATUS`] has.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Removes the white space around the tokens of a JSON text. The order of its keys and the digits of its numbers stay,
/// which parsing and writing would not promise.
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

fn why_failed(exited: Exited, result: &[u8]) -> Option<String> {
    let Exited { status, oom_killed, timed_out, id: _ } = exited;
    if timed_out {
        return Some("its time was up".to_owned());
    }
    if status != 0 {
        let memory = if oom_killed { "; its memory was used up" } else { "" };
        return Some(format!("the agent ended with the status {status}{memory}"));
    }
    if result.len() > MAX_RESULT {
        return Some(format!("its result is longer than {MAX_RESULT} bytes"));
    }
    // As a whole: what is skipped may have escapes and depths that nobody reads.
    let error = serde_json::from_slice::<Value>(result).err().filter(|_| !result.is_empty());
    error.map(|error| format!("its result is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ProgramId;

    const FILE: &str = r#"{"id": "t-1", "type": "code", "description": "Split it", "input": {"b": 1.50, "a": [1]},
        "tags": ["z", "a", "z"], "timeout_seconds": 60}"#;

    #[test]
    fn a_task_becomes_the_files_that_the_agent_reads() {
        let task = TaskPlan::read(FILE).unwrap();
        let spec =
            r#"{"id":"t-1","type":"code","description":"Split it","input":{"b":1.50,"a":[1]}}"#;
        assert_eq!(task.spec_json().trim_end(), spec);
        let meta = r#"{"version":1,"created_at":7,"tags":["a","z"],"timeout_seconds":60}"#;
        assert_eq!(task.meta_json(7).trim_end(), meta);
        let bare = TaskPlan::read(r#"{"id":"t","type":"x","description":"y"}"#).unwrap();
        let spec = r#"{"id":"t","type":"x","description":"y","input":null}"#;
        assert_eq!(bare.spec_json().trim_end(), spec);
    }

    #[test]
    fn json_loses_its_white_space_and_nothing_else() {
        let text = "\t{ \"b \\\" \\\\\" : [ 1.50,\r\n12345678901234567890123 ] , \"a\": null }\n";
        let short = "{\"b \\\" \\\\\":[1.50,12345678901234567890123],\"a\":null}";
        assert_eq!(shortest(text), short);
        assert_eq!(shortest(short), short);
    }

    #[test]
    fn text_that_is_no_task_is_refused() {
        for (text, reason) in [
            ("", "no JSON object"),
            ("null", "no JSON object"),
            (r#"["t","x","y"]"#, "no JSON object"),
            ("{", "EOF"),
            (r#"{"id":"t","type":"x"}"#, "missing field `description`"),
            (r#"{"id":" ","type":"x","description":"y"}"#, "`id` is empty"),
            (r#"{"id":"t","type":"x","description":"y","timeout":5}"#, "unknown field `timeout`"),
            (r#"{"id":"t","type":"x","description":"y","timeout_seconds":0}"#, "is 0"),
            (r#"{"id":"t","type":"x","description":"y","tags":[""]}"#, "`tags` is empty"),
            (r#"{"id":"t","type":"x\u0000","description":"y"}"#, "`type` has a zero byte"),
        ] {
            let error = TaskPlan::read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_task_fits_a_message_whatever_its_input_is() {
        let of = |count: usize| {
            let input = vec!["\"\""; count].join(",");
            TaskPlan::read(&format!(
                r#"{{"id":"t","type":"x","description":"y","input":[{input}]}}"#
            ))
        };
        assert!(of(MAX_TASK / 5 - 20).is_ok());
        let error = of(MAX_TASK / 5).unwrap_err();
        assert!(matches!(error, TaskError::TooLong(MAX_TASK..)), "{error}");
    }

    #[test]
    fn the_page_has_these_bounds() {
        let page = include_str!("../../../docs/tasks.md");
        let (result, task) = (MAX_RESULT >> 20, MAX_TASK >> 10);
        assert!(page.contains(&format!("as JSON of at most {result} MiB")));
        assert!(page.contains(&format!("It may have up to {task} KiB")));
    }

    #[test]
    fn the_verdict_is_that_of_the_agents_end_and_of_its_result() {
        let exit = |status, timed_out, oom_killed| Exited {
            id: ProgramId::AGENT,
            status,
            oom_killed,
            timed_out,
        };
        let of = |exited, result: &[u8]| TaskStatus::of_end(exited, result, 9);
        for result in [b"".as_slice(), b" {\"ok\": true}\n"] {
            let completed = TaskStatus::Completed { finished_at: 9 };
            assert_eq!(of(exit(0, false, false), result), completed);
        }
        let long = vec![b'1'; MAX_RESULT + 1];
        for (exited, result, reason) in [
            (exit(137, true, true), b"1".as_slice(), "its time was up"),
            (exit(3, false, false), b"1", "the agent ended with the status 3"),
            (exit(137, false, true), b"", "the status 137; its memory was used up"),
            (exit(0, false, false), b"{", "its result is not JSON: EOF"),
            (exit(0, false, false), b"1 2", "trailing characters"),
            (exit(0, false, false), b"\xff", "its result is not JSON"),
            (exit(0, false, false), b"\"\xff\"", "its result is not JSON"),
            (exit(0, false, false), br#""\ud800""#, "its result is not JSON"),
            (exit(0, false, false), b"1e999", "its result is not JSON"),
            (exit(0, false, false), &[b'['; 200], "its result is not JSON"),
            (exit(0, false, false), &long, "longer than 1048576 bytes"),
        ] {
            let TaskStatus::Failed { error, .. } = of(exited, result) else { panic!("{reason}") };
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_status_is_one_line_of_json() {
        let running = TaskStatus::Running { started_at: 5 };
        assert_eq!(running.json(), "{\"status\":\"running\",\"started_at\":5}\n");
        let failed = TaskStatus::Failed { finished_at: 6, error: "a \"b\"".to_owned() };
        let completed = TaskStatus::Completed { finished_at: 6 };
        for status in [TaskStatus::Pending, running, completed, failed] {
            let read = serde_json::from_str::<TaskStatus>(&status.json()).unwrap();
            assert_eq!((read, status.json().lines().count()), (status, 1));
        }
    }
}

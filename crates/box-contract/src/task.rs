//! The task of a run: the files of `/task` in the agent's root file system, and the verdict.
//!
//! ```text
//! /task/spec.json     the assignment: id, type, description, input
//! /task/meta.json     version, created_at, tags, timeout_seconds
//! /task/status        the progress: a TaskStatus
//! /task/result.json   initially empty; the agent writes any JSON
//! ```
//!
//! The agent can write only to `result.json`. Times are in seconds since 1970. The files and their fields are the ones
//! of OANIX's `TaskFs`.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::plan::{TaskPlan, TaskVerification, VerifyPlan};
use crate::wire::Exited;

/// The directory of the task in the agent's root file system.
pub const TASK_PATH: &str = "/task";
/// The file of the assignment.
pub const SPEC: &str = "spec.json";
/// The file of the task's metadata.
pub const META: &str = "meta.json";
/// The file of the task's progress.
pub const STATUS: &str = "status";
/// The file of the task's result.
pub const RESULT: &str = "result.json";
/// The maximum size of a result, in bytes.
pub const MAX_RESULT: usize = 1 << 20;
/// The maximum number of bytes of a result that init sends. The extra byte shows that a result is too long.
pub const MAX_SENT_RESULT: usize = MAX_RESULT + 1;
/// The maximum size in bytes of a task as JSON, in which the input is a JSON string.
pub const MAX_TASK: usize = 48 << 10;
/// The version of the files' format.
const VERSION: u32 = 1;

/// Why a text is not a task.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The text is not a JSON object.
    #[error("it is not a JSON object")]
    NoObject,
    /// The text is malformed JSON, or a field is missing or unknown.
    #[error("it is not a task: {0}")]
    Malformed(#[from] serde_json::Error),
    /// A required field is empty. The value is its name.
    #[error("its `{0}` is empty")]
    Empty(&'static str),
    /// A field contains a zero byte. The value is its name.
    #[error("its `{0}` has a zero byte")]
    ZeroByte(&'static str),
    /// The input is malformed JSON.
    #[error("its `input` is not JSON: {0}")]
    Input(serde_json::Error),
    /// The task is longer than [`MAX_TASK`].
    #[error(
        "it has {0} bytes, quotation marks and backslashes of `input` counted twice, and at most {MAX_TASK} are allowed"
    )]
    TooLong(usize),
    /// The time limit is zero.
    #[error("its `timeout_seconds` is 0; leave it out for no limit")]
    NoTime,
    /// The verification has no program.
    #[error("its `verify` names no program")]
    NoProgram,
    /// The time limit of the verification is zero.
    #[error("the `timeout` of its `verify` is 0")]
    NoVerifyTime,
}

/// A task in a file.
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
    /// Parses the task of a file: the fields of [`SPEC`], and `tags` and `timeout_seconds`.
    ///
    /// # Errors
    /// Returns the fault of the text.
    pub fn read(text: &str) -> Result<Self, TaskError> {
        // The deserializer would accept a list of the fields' values, too.
        if !text.trim_start().starts_with('{') {
            return Err(TaskError::NoObject);
        }
        let file: TaskFile<'_> = serde_json::from_str(text)?;
        let TaskFile { id, kind, description, input, tags, timeout_seconds } = file;
        let input = input.map(|it| it.get().to_owned());
        // Only a Boxfile has a verification: see `of_run`.
        let verify = None;
        Self { id, kind, description, input, tags, timeout_seconds, verify }.checked()
    }

    /// Returns the task of a run: the `given` one, or else the `declared` one of the box. The verification of the box applies to
    /// both, so that no run omits or replaces it.
    pub fn of_run(declared: Option<&Self>, given: Option<Self>) -> Option<Self> {
        let verify = declared.and_then(|it| it.verify.clone());
        given.map(|given| Self { verify, ..given }).or_else(|| declared.cloned())
    }

    /// Returns the task in its canonical form: tags are sorted without duplicates, and the input has no white space
    /// around its tokens.
    ///
    /// # Errors
    /// Returns the faults in [`TaskError`] that do not concern the file's syntax.
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
        // Init inserts the text verbatim into other JSON.
        let input = self.input.as_deref().map(serde_json::from_str::<IgnoredAny>);
        input.transpose().map_err(TaskError::Input)?;
        if self.timeout_seconds == Some(0) {
            return Err(TaskError::NoTime);
        }
        self.verify.as_ref().map_or(Ok(()), check_verification)?;
        let size = serde_json::to_vec(&self)?.len();
        if size > MAX_TASK { Err(TaskError::TooLong(size)) } else { Ok(self) }
    }

    /// Returns the contents of [`SPEC`]. The input is inserted verbatim, because [`Self::checked`] has validated it.
    pub fn spec_json(&self) -> String {
        let Self { id, kind, description, input, tags: _, timeout_seconds: _, verify: _ } = self;
        let [id, kind, description] = [id, kind, description].map(|it| quoted(it));
        let input = input.as_deref().unwrap_or("null");
        format!("{{\"id\":{id},\"type\":{kind},\"description\":{description},\"input\":{input}}}\n")
    }

    /// Returns the contents of [`META`] for a task created at this time.
    pub fn meta_json(&self, created_at: u64) -> String {
        let tags: Vec<_> = self.tags.iter().map(|it| quoted(it)).collect();
        let tags = tags.join(",");
        let limit = self.timeout_seconds.map_or("null".to_owned(), |it| it.to_string());
        format!(
            "{{\"version\":{VERSION},\"created_at\":{created_at},\"tags\":[{tags}],\"timeout_seconds\":{limit}}}\n"
        )
    }
}

/// Checks the command of a verification and its time limit.
fn check_verification(plan: &VerifyPlan) -> Result<(), TaskError> {
    if plan.argv.first().is_none_or(String::is_empty) {
        return Err(TaskError::NoProgram);
    }
    if plan.argv.iter().any(|it| it.contains('\0')) {
        return Err(TaskError::ZeroByte("verify"));
    }
    if plan.timeout_seconds == 0 { Err(TaskError::NoVerifyTime) } else { Ok(()) }
}

/// Returns a text as a JSON string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

/// The progress of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum TaskStatus {
    /// Init has not executed the agent's program yet. In the host's status, the box is not ready yet.
    Pending,
    /// The agent works on the task.
    Running {
        /// The time when the agent's program was executed. In the host's status, the time when the box became ready.
        started_at: u64,
    },
    /// The agent has exited with status 0, and the verification of the box runs. Only in the host's status.
    Verifying {
        /// The time when the agent ended.
        started_at: u64,
    },
    /// The agent has exited with status 0, the result is JSON or empty, and the verification of the box, if any, has succeeded.
    Completed {
        /// The time when the agent or the verification ended.
        finished_at: u64,
    },
    /// The agent has ended with another status or result, its time was up, or the verification has failed.
    Failed {
        /// The time when the agent or the verification ended.
        finished_at: u64,
        /// The reason, in words.
        error: String,
    },
}

impl TaskStatus {
    /// Returns the verdict on a task by its agent's exit, its result, and its verification, if it has one.
    pub fn of_end(
        exited: Exited,
        result: &[u8],
        verification: Option<&TaskVerification>,
        finished_at: u64,
    ) -> Self {
        let failure = why_failed(exited, result);
        match failure.or_else(|| verification.and_then(TaskVerification::failure)) {
            None => Self::Completed { finished_at },
            Some(error) => Self::Failed { finished_at, error },
        }
    }

    /// Returns whether the task has no verdict yet.
    pub const fn is_open(&self) -> bool {
        match self {
            Self::Pending | Self::Running { .. } | Self::Verifying { .. } => true,
            Self::Completed { .. } | Self::Failed { .. } => false,
        }
    }

    /// Returns the status's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running { .. } => "running",
            Self::Verifying { .. } => "verifying",
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
        }
    }

    /// Returns the contents of [`STATUS`].
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Removes the white space around the tokens of a JSON text. In contrast to parsing and serializing, this preserves the
/// order of keys and the digits of numbers.
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

/// Returns whether an agent's exit and its result permit a verification. Init decides by this without the memory that
/// [`TaskStatus::of_end`] takes for a hostile result, so a few results that are not JSON pass.
pub fn permits_verification(exited: Exited, result: &[u8]) -> bool {
    let is_json = || serde_json::from_slice::<IgnoredAny>(result).is_ok();
    let has_succeeded = exited.status == 0 && !exited.timed_out;
    has_succeeded && result.len() <= MAX_RESULT && (result.is_empty() || is_json())
}

fn why_failed(exited: Exited, result: &[u8]) -> Option<String> {
    let Exited { status, oom_killed, disk_full, timed_out, id: _, fenced: _ } = exited;
    if timed_out {
        return Some("its time was up".to_owned());
    }
    if status != 0 {
        let reason = match (oom_killed, disk_full) {
            (true, _) => "; its memory was used up",
            (false, true) => "; its disk was full",
            (false, false) => "",
        };
        return Some(format!("the agent ended with the status {status}{reason}"));
    }
    if result.len() > MAX_RESULT {
        return Some(format!("its result is longer than {MAX_RESULT} bytes"));
    }
    // Parsed as a `Value`, not as `IgnoredAny`, which would accept invalid escapes and excessive depths.
    let error = serde_json::from_slice::<Value>(result).err().filter(|_| !result.is_empty());
    error.map(|error| format!("its result is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ComponentName;
    use crate::wire::{MAX_VERIFICATION_OUTPUT, ProgramId, VerificationEnd};

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
            ("", "not a JSON object"),
            ("null", "not a JSON object"),
            (r#"["t","x","y"]"#, "not a JSON object"),
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
        let output = MAX_VERIFICATION_OUTPUT >> 10;
        assert!(page.contains(&format!("the last {output} KiB")));
    }

    #[test]
    fn the_verdict_is_that_of_the_agents_end_and_of_its_result() {
        let exit = |status, timed_out, oom_killed| Exited {
            id: ProgramId::AGENT,
            status,
            oom_killed,
            disk_full: false,
            timed_out,
            fenced: None,
        };
        let of = |exited, result: &[u8]| TaskStatus::of_end(exited, result, None, 9);
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

    fn verified() -> TaskPlan {
        let argv = vec!["npm".to_owned(), "test".to_owned()];
        let verify = VerifyPlan { argv, component: ComponentName::Agent, timeout_seconds: 60 };
        TaskPlan { verify: Some(verify), ..TaskPlan::read(FILE).unwrap() }
    }

    #[test]
    fn no_run_omits_or_replaces_the_verification_of_the_box() {
        let (declared, given) = (verified(), TaskPlan::read(FILE).unwrap());
        assert_eq!(TaskPlan::of_run(Some(&declared), Some(given.clone())), Some(declared.clone()));
        let own = declared.verify.clone().map(|it| VerifyPlan { argv: vec!["true".into()], ..it });
        let other = TaskPlan { verify: own, ..given.clone() };
        assert_eq!(TaskPlan::of_run(Some(&declared), Some(other.clone())), Some(declared.clone()));
        assert_eq!(TaskPlan::of_run(Some(&declared), None), Some(declared));
        assert_eq!(TaskPlan::of_run(Some(&given), Some(other)), Some(given.clone()));
        assert_eq!(TaskPlan::of_run(None, Some(given.clone())), Some(given));
        assert_eq!(TaskPlan::of_run(None, None), None);
        let text = r#"{"id":"t","type":"x","description":"y","verify":{"argv":["true"]}}"#;
        let error = TaskPlan::read(text).unwrap_err().to_string();
        assert!(error.contains("unknown field `verify`"), "{error}");
    }

    #[test]
    fn a_verification_names_a_program_and_has_time() {
        let with = |change: fn(&mut VerifyPlan)| {
            let mut task = verified();
            task.verify.iter_mut().for_each(change);
            task.checked().map_err(|error| error.to_string())
        };
        assert_eq!(with(|_| {}), Ok(verified()));
        type Change = fn(&mut VerifyPlan);
        let faults: [(Change, &str); 4] = [
            (|it| it.argv.clear(), "its `verify` names no program"),
            (|it| it.argv[0].clear(), "its `verify` names no program"),
            (|it| it.argv.push("\0".to_owned()), "its `verify` has a zero byte"),
            (|it| it.timeout_seconds = 0, "the `timeout` of its `verify` is 0"),
        ];
        for (change, reason) in faults {
            assert_eq!(with(change), Err(reason.to_owned()));
        }
    }

    #[test]
    fn a_task_is_completed_only_if_its_verification_has_succeeded() {
        let exit = |status, timed_out| Exited {
            id: ProgramId::AGENT,
            status,
            oom_killed: false,
            disk_full: false,
            timed_out,
            fenced: None,
        };
        let plan = verified().verify.unwrap();
        let of = |exited, status| {
            let end = VerificationEnd { status, ..VerificationEnd::default() };
            let verification = TaskVerification { end: Some(end), ..TaskVerification::new(&plan) };
            TaskStatus::of_end(exited, b"", Some(&verification), 9)
        };
        assert_eq!(of(exit(0, false), 0), TaskStatus::Completed { finished_at: 9 });
        let pending = TaskVerification::new(&plan);
        for (status, reason) in [
            (of(exit(0, false), 1), "the verification `npm test` ended with the status 1"),
            (of(exit(3, false), 0), "the agent ended with the status 3"),
            (
                TaskStatus::of_end(exit(0, false), b"", Some(&pending), 9),
                "the verification `npm test` did not take place",
            ),
        ] {
            let error = reason.to_owned();
            assert_eq!(status, TaskStatus::Failed { finished_at: 9, error });
        }
        for result in [b"".as_slice(), b"[1]"] {
            assert!(permits_verification(exit(0, false), result), "{result:?}");
        }
        let long = vec![b'1'; MAX_RESULT + 1];
        for (exited, result) in [
            (exit(1, false), b"".as_slice()),
            (exit(0, true), b""),
            (exit(0, false), b"{"),
            (exit(0, false), &long),
        ] {
            assert!(!permits_verification(exited, result), "{exited:?}");
        }
    }

    #[test]
    fn a_status_is_one_line_of_json() {
        let running = TaskStatus::Running { started_at: 5 };
        assert_eq!(running.json(), "{\"status\":\"running\",\"started_at\":5}\n");
        let failed = TaskStatus::Failed { finished_at: 6, error: "a \"b\"".to_owned() };
        let completed = TaskStatus::Completed { finished_at: 6 };
        let verifying = TaskStatus::Verifying { started_at: 6 };
        for status in [TaskStatus::Pending, running, verifying, completed, failed] {
            let read = serde_json::from_str::<TaskStatus>(&status.json()).unwrap();
            assert_eq!((read, status.json().lines().count()), (status, 1));
        }
    }
}

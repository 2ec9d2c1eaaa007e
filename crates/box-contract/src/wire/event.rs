//! The events of a box and the trajectories of its agent, for the run's logs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;

use serde::{Deserialize, Serialize};

use super::approval::{Denial, Question};
use super::command::{Builtin, Exec, Exited};
use super::frame::{Body, invalid, put};
use super::program_id::ProgramId;
use super::words::base64;
use crate::logs::is_trajectory_name;
use crate::{ComponentName, named_enum};

/// The maximum size of a command's program and arguments in an event, in bytes.
const MAX_ARGV_BYTES: usize = 1024;

/// An event in a box, as observed by init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestEvent {
    /// The component in which the event happened.
    pub component: ComponentName,
    /// The kind of the event.
    pub kind: GuestEventKind,
    /// The id of the command. Commands that run at the same time have different ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ProgramId>,
    /// The caller of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
    /// The number of the question about the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<u32>,
    /// The rule of the policy that asks about the command, or forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why the command was denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial: Option<Denial>,
    /// The command's program. If the agent or init is the caller, its arguments follow, up to 1 KiB in all. Bytes that are not
    /// UTF-8 are replaced by U+FFFD.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// All bytes of the words in `argv`, in base64, if one of them is not UTF-8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv_base64: Vec<String>,
    /// The built-in command that runs instead of a program.
    #[serde(rename = "own", default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    /// The exit status, as in [`Exited::status`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// Whether the program was killed after its time limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Whether the kernel's out-of-memory killer has ended a process in the component so far.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom_killed: bool,
}

named_enum! {
    /// The kinds of events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum GuestEventKind {
        /// The component's main program starts. The agent's program was executed already. The business application's
        /// program is about to be executed.
        Start "start",
        /// The agent's health check has passed.
        Ready "ready",
        /// The component's main program has ended.
        End "end",
        /// A command is about to run.
        Command "command",
        /// A command has ended, and its output has been read.
        CommandEnd "command-end",
        /// A command waits for an answer, because the policy asks about it.
        Question "question",
        /// A person has approved a command, which is about to run.
        Approved "approved",
        /// A command does not run, because the policy forbids it, or because nobody has approved it.
        Denied "denied",
    }
}

/// The state of a command about which the policy asks, or which it forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// It waits for an answer.
    Waits,
    /// A person has approved it.
    Approved,
    /// It does not run.
    Denied(Denial),
}

/// The caller of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// The agent, through `box-exec`.
    Agent,
    /// The host.
    Host,
    /// Init, for the verification of the task.
    Init,
}

impl GuestEvent {
    /// Creates an event of a component's main program.
    pub const fn new(component: ComponentName, kind: GuestEventKind) -> Self {
        Self {
            component,
            kind,
            command: None,
            by: None,
            question: None,
            rule: None,
            denial: None,
            argv: Vec::new(),
            argv_base64: Vec::new(),
            builtin: None,
            status: None,
            timed_out: false,
            oom_killed: false,
        }
    }

    /// Creates the event of a command that is about to run. An event of the host's command contains the program without
    /// its arguments, because the agent must not read them.
    pub fn of_command(number: ProgramId, exec: &Exec, by: Caller) -> Self {
        let argv = match (by, exec.builtin) {
            (Caller::Agent | Caller::Init, _) => exec.argv.as_slice(),
            (Caller::Host, None) => exec.argv.get(..1).unwrap_or_default(),
            (Caller::Host, Some(_)) => &[],
        };
        let argv = cut(argv);
        let is_text = argv.iter().all(|it| it.to_str().is_some());
        let bytes = argv.iter().filter(|_| !is_text).map(|it| base64(it.as_bytes()));
        Self {
            command: Some(number),
            by: Some(by),
            argv: argv.iter().map(|it| it.to_string_lossy().into_owned()).collect(),
            argv_base64: bytes.collect(),
            builtin: exec.builtin,
            ..Self::new(exec.component, GuestEventKind::Command)
        }
    }

    /// Creates an event of a command about which the policy asks, or which it forbids: one of the kinds `question`, `approved` and `denied`.
    /// The event has the words of a command as [`Self::of_command`] has them.
    pub fn of_question(number: ProgramId, exec: &Exec, about: &Question, of: Asked) -> Self {
        let (kind, denial) = match of {
            Asked::Waits => (GuestEventKind::Question, None),
            Asked::Approved => (GuestEventKind::Approved, None),
            Asked::Denied(denial) => (GuestEventKind::Denied, Some(denial)),
        };
        let question = Some(about.question).filter(|it| *it > 0);
        let rule = about.rule.clone();
        Self { kind, question, rule, denial, ..Self::of_command(number, exec, about.by) }
    }

    /// Creates the event of a program's exit. `command` is `None` for a component's main program.
    pub fn of_end(component: ComponentName, command: Option<ProgramId>, exited: Exited) -> Self {
        let kind = match command {
            Some(_) => GuestEventKind::CommandEnd,
            None => GuestEventKind::End,
        };
        let Exited { id: _, status, oom_killed, disk_full: _, timed_out, fenced: _ } = exited;
        Self { command, status: Some(status), oom_killed, timed_out, ..Self::new(component, kind) }
    }
}

/// Returns the words of a command that fit into an event. The last word may be cut.
fn cut(words: &[OsString]) -> Vec<&OsStr> {
    let mut room = MAX_ARGV_BYTES;
    let mut fitting = Vec::new();
    for word in words {
        if room == 0 {
            break;
        }
        let end = word.to_str().map_or(room.min(word.len()), |it| it.floor_char_boundary(room));
        fitting.push(OsStr::from_bytes(&word.as_bytes()[..end]));
        // An empty word is counted as one byte. After a word that was cut, no room is left.
        room = if end == word.len() { room.saturating_sub(end.max(1)) } else { 0 };
    }
    fitting
}

/// A part of a trajectory file that the agent has written. The parts of one file are consecutive. Like a task's result, they
/// need no [`Credit`](super::Credit), because the total size of all files is bounded by
/// [`MAX_TRAJECTORIES`](crate::logs::MAX_TRAJECTORIES).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trajectory {
    /// The file's name. [`is_trajectory_name`] accepts it.
    pub name: String,
    /// At most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub data: Vec<u8>,
}

impl Body for Trajectory {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        let length = u8::try_from(self.name.len()).map_err(io::Error::other)?;
        put(frame, &[&[length], self.name.as_bytes()].concat(), &self.data);
        Ok(())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let name = body.split_first().and_then(|(&length, rest)| rest.get(..length.into()));
        let name = name.and_then(|it| str::from_utf8(it).ok()).filter(|it| is_trajectory_name(it));
        let Some(name) = name.map(str::to_owned) else {
            return Err(invalid("a trajectory without a name"));
        };
        body.drain(..1 + name.len());
        Ok(Self { name, data: body })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn exec(argv: &[&str]) -> Exec {
        Exec::new(ComponentName::Business, argv)
    }

    #[test]
    fn only_the_agents_commands_have_their_arguments() {
        let command = exec(&["node", "--token=x"]);
        assert_eq!(
            GuestEvent::of_command(ProgramId(300), &command, Caller::Agent).argv,
            ["node", "--token=x"]
        );
        assert_eq!(GuestEvent::of_command(ProgramId(7), &command, Caller::Host).argv, ["node"]);
        let builtin = Exec { builtin: Some(Builtin::Check), ..command };
        assert_eq!(
            GuestEvent::of_command(ProgramId(300), &builtin, Caller::Agent).argv,
            ["node", "--token=x"]
        );
        assert_eq!(GuestEvent::of_command(ProgramId(7), &builtin, Caller::Host).argv, [""; 0]);
        assert_eq!(GuestEvent::of_command(ProgramId(7), &exec(&[]), Caller::Host).argv, [""; 0]);
    }

    #[test]
    fn long_commands_are_cut_where_a_character_ends() {
        let long = "é".repeat(MAX_ARGV_BYTES);
        let words = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(
            cut(&words(&["a", &long, "b"])),
            ["a", &long[..MAX_ARGV_BYTES - 2]].map(OsStr::new)
        );
        assert_eq!(cut(&vec![OsString::new(); 5000]).len(), MAX_ARGV_BYTES);
        assert_eq!(cut(&words(&["a", "", "b"])), ["a", "", "b"]);
    }

    #[test]
    fn words_that_are_not_text_are_there_with_all_bytes() {
        let words = [b"ls".to_vec(), b"\xFF\xFE".to_vec()].map(OsString::from_vec);
        let command = Exec::new(ComponentName::Business, words);
        let event = GuestEvent::of_command(ProgramId(300), &command, Caller::Agent);
        assert_eq!(event.argv, ["ls", "\u{FFFD}\u{FFFD}"]);
        assert_eq!(event.argv_base64, ["bHM=", "//4="]);
        let event = GuestEvent::of_command(ProgramId(7), &command, Caller::Host);
        assert_eq!((event.argv.len(), event.argv_base64.len()), (1, 0));
    }

    #[test]
    fn a_question_has_its_rule_and_a_denial_its_reason() {
        let command = exec(&["git", "push"]);
        let rule = (Some("git-write"), "it changes a repository");
        let of = |by, state| {
            let about = Question { question: 3, ..Question::about(&command, by, rule) };
            GuestEvent::of_question(ProgramId(300), &command, &about, state)
        };
        let asked = of(Caller::Agent, Asked::Waits);
        assert_eq!(
            serde_json::to_string(&asked).unwrap(),
            r#"{"component":"business","kind":"question","command":300,"by":"agent","question":3,"rule":"git-write","argv":["git","push"]}"#
        );
        let denied = of(Caller::Host, Asked::Denied(Denial::TimedOut));
        assert_eq!((denied.kind, denied.argv.len()), (GuestEventKind::Denied, 1));
        assert_eq!(denied.denial, Some(Denial::TimedOut));
        assert_eq!(of(Caller::Agent, Asked::Approved).kind, GuestEventKind::Approved);
    }

    #[test]
    fn an_event_is_one_line_of_json() {
        let exited = Exited {
            id: ProgramId(300),
            status: 1,
            oom_killed: false,
            disk_full: false,
            timed_out: true,
            fenced: None,
        };
        let event = GuestEvent::of_end(ComponentName::Business, Some(ProgramId(300)), exited);
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            r#"{"component":"business","kind":"command-end","command":300,"status":1,"timed_out":true}"#
        );
        assert_eq!(serde_json::from_str::<GuestEvent>(&line).unwrap(), event);
    }
}

//! A command that runs in a component, what it reads, and its end.

use std::io;

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, put};
use super::program_id::{ProgramId, one_byte};
use crate::{ComponentName, exit};

/// A command to run in a component. What it does not say is as the component's plan says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// One of [`ProgramId::of_commands`], and of no command that still runs; [`Output`](super::Output) and [`Exited`] name it.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// The component in whose namespaces and limits it runs.
    pub component: ComponentName,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables, each as `NAME=VALUE`, over those of the component's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// The user, as [`accounts::resolve`](crate::accounts::resolve) reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether [`HostMessage::Input`](super::HostMessage::Input) brings its standard input, which is empty otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// The size of the terminal that its standard streams are to be, if they are to be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// After how many milliseconds it is killed, with all processes of its process group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The work that init's own program does instead of `argv`, whose words after the first are its arguments.
    #[serde(rename = "own", default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
}

impl Exec {
    /// Returns a connection's one command, which is as the component's plan says, and has no standard input.
    pub fn new(component: ComponentName, argv: Vec<String>) -> Self {
        Self {
            id: ProgramId::COMMAND,
            component,
            argv,
            env: Vec::new(),
            workdir: None,
            user: None,
            stdin: false,
            terminal: None,
            timeout_ms: None,
            builtin: None,
        }
    }
}

/// A task that init's own program does as a command, with the rights of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Makes the component's health check once: succeeds where it passes, else says why it does not.
    Check,
    /// Writes an archive of a path to its standard output: a tar of it under its last name.
    Pack,
    /// Unpacks an archive from its standard input to a path.
    Unpack,
    /// Does something with loaded skills: only for the host, and in no component.
    Skills(SkillTask),
}

/// A task about the skills that are loaded while a box runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTask {
    /// Puts the skill of an archive on its standard input in place. Its argument is the
    /// [`SkillPlan`](crate::SkillPlan) as JSON.
    Load,
    /// Removes the one whose name is its argument.
    Unload,
    /// Writes the [`SkillPlan`](crate::SkillPlan) of each that is loaded to its standard output, as JSON on a line.
    List,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    /// The number of lines.
    pub rows: u16,
    /// The number of characters in a line.
    pub columns: u16,
}

/// The new size of a command's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resize {
    /// The id of the command.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// The size from now on.
    pub size: TerminalSize,
}

/// The end of a program, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// The program.
    pub id: ProgramId,
    /// The exit status, or 128 + the signal's number; 126 where the program could not be
    /// executed and 127 where it was not found.
    pub status: u8,
    /// Whether the kernel's out-of-memory killer ended something in the component so far.
    pub oom_killed: bool,
    /// Whether it was killed because its time was up.
    pub timed_out: bool,
}

impl Exited {
    /// Returns the exit code of a command that stands for this program: its status, but that of timeout(1) if it was killed
    /// because its time was up.
    pub const fn code(self) -> u8 {
        if self.timed_out { exit::TIMED_OUT } else { self.status }
    }

    /// Returns whether it has failed for lack of memory, as far as the host can tell: with status 0, what the kernel has
    /// ended in its component was no loss to it.
    pub const fn lacked_memory(self) -> bool {
        lacked_memory(self.oom_killed, Some(self.status))
    }
}

/// Returns whether a program has failed for lack of memory, by what the kernel's out-of-memory killer has done in its component,
/// and by its status, where that is known.
pub const fn lacked_memory(oom_killed: bool, status: Option<u8>) -> bool {
    oom_killed && !matches!(status, Some(0))
}

/// A part of the result of the box's task. All parts are sent at once and together are bounded
/// ([`MAX_SENT_RESULT`](crate::task::MAX_SENT_RESULT)), so they need no [`Credit`](super::Credit). They are more than a socket holds: once in a
/// run, init and the VMM wait until the host has read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskResult {
    /// At most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub data: Vec<u8>,
}

/// Bytes for the standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The id of the command.
    pub id: ProgramId,
    /// At most [`MAX_OUTPUT`](super::MAX_OUTPUT) bytes.
    pub data: Vec<u8>,
}

/// The end of the standard input of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputEnd {
    /// The id of the command.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
}

impl Body for TaskResult {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        put(frame, &[], &self.data);
        Ok(())
    }

    fn decode(data: Vec<u8>) -> io::Result<Self> {
        Ok(Self { data })
    }
}

impl Body for Input {
    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        put(frame, &[self.id.byte()?], &self.data);
        Ok(())
    }

    fn decode(mut body: Vec<u8>) -> io::Result<Self> {
        let Some(&id) = body.first() else {
            return Err(invalid("an input frame without its target"));
        };
        body.drain(..1);
        Ok(Self { id: id.into(), data: body })
    }
}

//! The events of a box, and the trajectories of its agent, for the logs of the run.

use std::io;

use serde::{Deserialize, Serialize};

use super::command::{Builtin, Exec, Exited};
use super::frame::{Body, invalid, put};
use super::program_id::ProgramId;
use crate::logs::is_trajectory_name;
use crate::{ComponentName, named_enum};

/// The most bytes of a command's program and arguments that an event has.
const MAX_ARGV_BYTES: usize = 1024;

/// Something that has happened in a box, as its init has seen it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestEvent {
    /// In which component.
    pub component: ComponentName,
    /// Its kind.
    pub kind: GuestEventKind,
    /// The number of the command: of those that run at once, each has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<ProgramId>,
    /// The one who runs the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
    /// The command's program; where the agent runs it, with its arguments, as far as they have 1 KiB in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The part of init's own program that runs instead.
    #[serde(rename = "own", default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    /// The exit status, as that of [`Exited`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// Whether it was killed because its time was up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Whether the kernel's out-of-memory killer ended something in the component so far.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom_killed: bool,
}

named_enum! {
    /// The kinds of events.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum GuestEventKind {
        /// The component's own program is started: the agent's was executed, the business application's is about to be.
        Start "start",
        /// The agent's health check has passed.
        Ready "ready",
        /// The component's own program has ended.
        End "end",
        /// A command is to run.
        Command "command",
        /// A command has ended, and what it has written is read.
        CommandEnd "command-end",
    }
}

/// One who runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// The agent, by `box-exec`.
    Agent,
    /// The host.
    Host,
}

impl GuestEvent {
    /// Returns the event of a component's own program.
    pub const fn new(component: ComponentName, kind: GuestEventKind) -> Self {
        Self {
            component,
            kind,
            command: None,
            by: None,
            argv: Vec::new(),
            builtin: None,
            status: None,
            timed_out: false,
            oom_killed: false,
        }
    }

    /// Returns the event that a command is to run. Of the host's, whose arguments are not the agent's to read, it has the program alone.
    pub fn of_command(number: ProgramId, exec: &Exec, by: Caller) -> Self {
        let argv = match (by, exec.builtin) {
            (Caller::Agent, _) => exec.argv.as_slice(),
            (Caller::Host, None) => exec.argv.get(..1).unwrap_or_default(),
            (Caller::Host, Some(_)) => &[],
        };
        Self {
            command: Some(number),
            by: Some(by),
            argv: cut(argv),
            builtin: exec.builtin,
            ..Self::new(exec.component, GuestEventKind::Command)
        }
    }

    /// Returns the event that a program has ended: a command where it has a number.
    pub fn of_end(component: ComponentName, command: Option<ProgramId>, exited: Exited) -> Self {
        let kind = match command {
            Some(_) => GuestEventKind::CommandEnd,
            None => GuestEventKind::End,
        };
        let Exited { id: _, status, oom_killed, timed_out } = exited;
        Self { command, status: Some(status), oom_killed, timed_out, ..Self::new(component, kind) }
    }
}

/// Returns the words that fit an event, the last one cut where need be.
fn cut(words: &[String]) -> Vec<String> {
    let mut room = MAX_ARGV_BYTES;
    let mut fitting = Vec::new();
    for word in words {
        if room == 0 {
            break;
        }
        let end = word.floor_char_boundary(room);
        fitting.push(word[..end].to_owned());
        // An empty word takes some room, too, and nothing comes after one that is cut.
        room = if end == word.len() { room.saturating_sub(end.max(1)) } else { 0 };
    }
    fitting
}

/// A part of a file that the agent has left as a trajectory. All parts of a file come one after the other, and those of
/// all files together are bounded ([`MAX_TRAJECTORIES`](crate::logs::MAX_TRAJECTORIES)), so that nobody grants them, as with a task's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trajectory {
    /// The file's name, of which [`is_trajectory_name`].
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
    use super::*;

    fn exec(argv: &[&str]) -> Exec {
        let argv = argv.iter().map(|&it| it.to_owned()).collect();
        Exec::new(ComponentName::Business, argv)
    }

    #[test]
    fn only_the_agents_commands_have_their_arguments() {
        let command = exec(&["node", "--token=x"]);
        assert_eq!(
            GuestEvent::of_command(ProgramId(300), &command, Caller::Agent).argv,
            command.argv
        );
        assert_eq!(GuestEvent::of_command(ProgramId(7), &command, Caller::Host).argv, ["node"]);
        let builtin = Exec { builtin: Some(Builtin::Check), ..command };
        assert_eq!(
            GuestEvent::of_command(ProgramId(300), &builtin, Caller::Agent).argv,
            builtin.argv
        );
        assert_eq!(GuestEvent::of_command(ProgramId(7), &builtin, Caller::Host).argv, [""; 0]);
        assert_eq!(GuestEvent::of_command(ProgramId(7), &exec(&[]), Caller::Host).argv, [""; 0]);
    }

    #[test]
    fn long_commands_are_cut_where_a_character_ends() {
        let long = "é".repeat(MAX_ARGV_BYTES);
        let words = |all: &[&str]| all.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            cut(&words(&["a", &long, "b"])),
            words(&["a", &long[..MAX_ARGV_BYTES - 2]]).as_slice()
        );
        assert_eq!(cut(&vec![String::new(); 5000]).len(), MAX_ARGV_BYTES);
        assert_eq!(cut(&words(&["a", "", "b"])), ["a", "", "b"]);
    }

    #[test]
    fn an_event_is_one_line_of_json() {
        let exited = Exited { id: ProgramId(300), status: 1, oom_killed: false, timed_out: true };
        let event = GuestEvent::of_end(ComponentName::Business, Some(ProgramId(300)), exited);
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            r#"{"component":"business","kind":"command-end","command":300,"status":1,"timed_out":true}"#
        );
        assert_eq!(serde_json::from_str::<GuestEvent>(&line).unwrap(), event);
    }
}

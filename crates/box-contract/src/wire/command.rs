//! A command in a component: its start, its input, and its exit.

use std::ffi::OsString;
use std::io;

use serde::{Deserialize, Serialize};

use super::frame::{Body, invalid, put};
use super::program_id::{ProgramId, one_byte};
use super::sizes::{MAX_FRAME, MAX_WORDS};
use super::words::{self, WORD};
use crate::{ComponentName, exit};

/// A command to run in a component. An absent `workdir` or `user` has the value of the component's plan.
///
/// The words of a command need not be UTF-8. It is not a value of serde, because JSON can have only the words that are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Exec {
    /// The id of the command: one of [`ProgramId::of_commands`] that no running command has. [`Output`](super::Output)
    /// and [`Exited`] contain it.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// The component in which the command runs, with its namespaces and limits.
    pub component: ComponentName,
    /// The program and its arguments.
    #[serde(with = "words")]
    pub argv: Vec<OsString>,
    /// Variables as `NAME=VALUE`. They take precedence over the component's environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "words")]
    pub env: Vec<OsString>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "words::one")]
    pub workdir: Option<OsString>,
    /// The user, as [`accounts::resolve`](crate::accounts::resolve) reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether [`HostMessage::Input`](super::HostMessage::Input) provides the standard input. If false, the input is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stdin: bool,
    /// The size of the command's terminal. `None` means that its standard streams are no terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// The time limit in milliseconds, after which the command and all that it has started are killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The built-in command that init runs instead of a program. Its arguments are the words of `argv` after the first.
    #[serde(rename = "own", default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
}

impl Exec {
    /// Creates a command for a connection that runs only this command ([`ProgramId::COMMAND`]). Its environment, working
    /// directory and user are those of the component's plan. Its standard input is empty.
    pub fn new<W: Into<OsString>>(
        component: ComponentName,
        argv: impl IntoIterator<Item = W>,
    ) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
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

    /// Returns whether the command reads what its caller sends: standard input, or a terminal.
    pub const fn has_input(&self) -> bool {
        self.stdin || self.terminal.is_some()
    }

    /// Returns whether every version of the protocol can carry the command: it fits into a frame as JSON.
    pub fn is_short(&self) -> bool {
        self.json().is_ok_and(|json| json.len() < MAX_FRAME)
    }

    fn json(&self) -> io::Result<Vec<u8>> {
        let mut json = Vec::new();
        Self::serialize(self, &mut serde_json::Serializer::new(&mut json))?;
        Ok(json)
    }

    /// Returns the command without its words.
    fn head(&self) -> Self {
        let Self { id, component, ref user, stdin, terminal, timeout_ms, builtin, .. } = *self;
        let (argv, env, workdir, user) = (Vec::new(), Vec::new(), None, user.clone());
        Self { id, component, argv, env, workdir, user, stdin, terminal, timeout_ms, builtin }
    }

    fn words(&self) -> impl Iterator<Item = &OsString> {
        self.argv.iter().chain(&self.env).chain(&self.workdir)
    }

    /// Returns the body of the command's frame, which [`Self::decoded`] reads.
    ///
    /// # Errors
    /// `InvalidInput` if the words need more than [`MAX_WORDS`] bytes.
    pub fn encoded(&self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        self.encode(&mut body)?;
        Ok(body)
    }

    /// Returns the command of a frame's body.
    ///
    /// # Errors
    /// `InvalidData`.
    pub fn decoded(body: Vec<u8>) -> io::Result<Self> {
        Self::decode(body)
    }
}

/// The first byte of a long command's body.
const LONG: u8 = 0;

impl Body for Exec {
    const MAX: usize = MAX_FRAME + MAX_WORDS;

    fn encode(&self, frame: &mut Vec<u8>) -> io::Result<()> {
        if let Ok(json) = self.json()
            && json.len() < MAX_FRAME
        {
            frame.extend_from_slice(&json);
            return Ok(());
        }
        let refused = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let size = words::size(self.words().count(), self.words().map(|it| it.len()).sum());
        if size > MAX_WORDS {
            return Err(refused(format!(
                "the command's arguments and variables need {size} bytes, {WORD} of them for the end and the address of each, and a program gets at most {MAX_WORDS}"
            )));
        }
        frame.push(LONG);
        for list in [&self.argv, &self.env] {
            let count = u32::try_from(list.len()).map_err(io::Error::other)?;
            frame.extend_from_slice(&count.to_le_bytes());
        }
        frame.extend_from_slice(&self.head().json()?);
        frame.push(0);
        if !words::join(self.words(), frame) {
            return Err(refused("an argument or a variable has a NUL byte".to_owned()));
        }
        Ok(())
    }

    fn decode(body: Vec<u8>) -> io::Result<Self> {
        let Some((&LONG, rest)) = body.split_first() else {
            if body.len() >= MAX_FRAME {
                return Err(invalid("a command of too much JSON"));
            }
            let mut json = serde_json::Deserializer::from_slice(&body);
            let exec = Self::deserialize(&mut json).and_then(|it| json.end().map(|()| it));
            return exec.map_err(|error| invalid(&error.to_string()));
        };
        let malformed = || invalid("a malformed long command");
        let (arguments, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (variables, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let count = |it: &[u8; 4]| usize::try_from(u32::from_le_bytes(*it)).ok();
        let (arguments, variables) =
            count(arguments).zip(count(variables)).ok_or_else(malformed)?;
        let end = rest.iter().position(|it| *it == 0).ok_or_else(malformed)?;
        let head = Self::decode(rest[..end].to_vec())?;
        let joined = &rest[end + 1..];
        let total = joined.iter().filter(|it| **it == 0).count();
        if words::size(total, joined.len() - total) > MAX_WORDS {
            return Err(invalid("a long command with too many words"));
        }
        let has_workdir =
            match total.checked_sub(arguments).and_then(|it| it.checked_sub(variables)) {
                Some(0) => false,
                Some(1) => true,
                _ => return Err(malformed()),
            };
        let mut words = words::split(joined).ok_or_else(malformed)?;
        let argv = words.by_ref().take(arguments).collect();
        let env = words.by_ref().take(variables).collect();
        let workdir = words.next().filter(|_| has_workdir);
        Ok(Self { argv, env, workdir, ..head })
    }
}

/// A built-in command of init. Except [`Skills`](Self::Skills), it runs in the component, with the rights of a normal command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Runs the component's health check once. It exits with 0 if the check passes, and otherwise prints the reason.
    Check,
    /// Writes a tar archive of a path to standard output. The path's last name is the archive's top-level entry.
    Pack,
    /// Unpacks a tar archive from standard input to a path.
    Unpack,
    /// Reads an [`ImageFile`](super::ImageFile) as JSON from each line of standard input, and writes the
    /// [`HiddenFiles`](super::HiddenFiles) to standard output.
    Hidden,
    /// Writes the [`Listing`](super::Listing) of the directory at a path to standard output.
    List,
    /// Manages loaded skills. Only the host may run it. It runs outside the components.
    Skills(SkillTask),
}

/// An operation on the skills that are loaded into a running box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTask {
    /// Installs the skill in the archive on standard input. The argument is the [`SkillPlan`](crate::SkillPlan) as
    /// JSON.
    Load,
    /// Removes the skill with the name in the argument.
    Unload,
    /// Writes the [`SkillPlan`](crate::SkillPlan) of each loaded skill to standard output, as one line of JSON each.
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
    /// The new size.
    pub size: TerminalSize,
}

/// The exit of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exited {
    /// The program.
    pub id: ProgramId,
    /// The exit status, or 128 + the signal's number. 126 means that the program could not be executed, and 127 that it
    /// was not found.
    pub status: u8,
    /// Whether the kernel's out-of-memory killer has ended a process in the component so far.
    pub oom_killed: bool,
    /// Whether the program has failed, and the file system of its component's root is full.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disk_full: bool,
    /// Whether the program was killed after its time limit.
    pub timed_out: bool,
    /// How the box's policy (`sandbox`) confined the program. `None` if no policy applies to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fenced: Option<Fenced>,
}

/// How a policy confined a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fenced {
    /// The whole policy was applied.
    Whole,
    /// The kernel has no Landlock, and the policy's fallback is to continue without it.
    WithoutLandlock,
    /// The policy did not let the program start.
    NotStarted,
}

impl Exited {
    /// Returns the exit code with which `boxlaunch` or `box-exec` ends for this program: the program's status, or the status
    /// of [timeout(1)](https://man7.org/linux/man-pages/man1/timeout.1.html) if it was killed after its time limit.
    pub const fn code(self) -> u8 {
        if self.timed_out { exit::TIMED_OUT } else { self.status }
    }

    /// Returns whether the program probably failed for lack of memory. If the status is 0, the program did not need the
    /// processes that the kernel killed.
    pub const fn lacked_memory(self) -> bool {
        lacked_memory(self.oom_killed, Some(self.status))
    }
}

/// Returns whether a program probably failed for lack of memory. `oom_killed` is whether the kernel's out-of-memory
/// killer has ended a process in its component. `status` is `None` if it is unknown.
pub const fn lacked_memory(oom_killed: bool, status: Option<u8>) -> bool {
    oom_killed && !matches!(status, Some(0))
}

/// A part of the result of the box's task. Init sends all parts at once. Their total size is bounded by
/// [`MAX_SENT_RESULT`](crate::task::MAX_SENT_RESULT), so they need no [`Credit`](super::Credit). They can exceed a
/// socket's buffer. Init and the VMM then block until the host has read them, which is acceptable once per run.
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

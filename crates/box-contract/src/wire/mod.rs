//! The control channel between `boxlaunch` and `box-init`.
//!
//! Init opens one vsock connection before any workload runs. A supervisor and its clients ([`ClientMessage`]), and init
//! and `box-exec`, exchange the same messages over Unix sockets. A connection over a Unix socket has only one command,
//! whose id for the client is [`ProgramId::COMMAND`]. The format of a frame is
//!
//! ```text
//! length: u32 little-endian   the length of kind and body, 1 to MAX_FRAME; of a long command, to MAX_FRAME + MAX_WORDS
//! kind:   u8                  the kind of the message
//! body:   JSON, except for
//!         Output:     id u8, stream u8, bytes
//!         Input:      id u8, bytes
//!         Secret:     index u8, bytes
//!         FilePart:   bytes
//!         Variable:   index u8, then nothing, or `=` and the value
//!         TaskResult: bytes
//!         Trajectory: the name's length u8, name, bytes
//!         Exec:       JSON, or for a long command as below
//! ```
//!
//! For example, if the agent writes the three bytes `hi\n` to its standard output, the frame is
//! `06 00 00 00 03 00 01 68 69 0a`.
//!
//! **Long commands.** A command that does not fit into MAX_FRAME as JSON, or has a word that is not UTF-8, has another
//! body since protocol 10. Only the messages to init have such frames: those of the guest have at most MAX_FRAME.
//!
//! ```text
//! 0:         u8                  where JSON would have `{`
//! arguments: u32 little-endian   how many arguments there are
//! variables: u32 little-endian   how many variables there are
//! JSON, then a NUL byte          the command without its words
//! words, each with a NUL byte    the arguments, the variables, and the working directory, if there is one
//! ```
//!
//! **Flow control.** The VMM handles all connections of a box in one loop, which blocks if one of their sockets is
//! full. A program's unread output is therefore bounded by a window that fits into a socket's buffer. Init sends at
//! most [`WINDOW`] bytes of a program's output, and then as many as the host has granted with [`HostMessage::Credit`].
//! Each frame uses [`Output::cost`] of these bytes. While the window is full, init does not read the program's pipes, and
//! the program waits. In the other direction, the host sends at most [`INPUT_WINDOW`] bytes of input, and then as many as
//! init has granted. The end of input is a message, because libkrun closes a half-closed connection.
//!
//! The guest is untrusted as soon as it runs. A frame that is too long, malformed or of an unknown kind is an error,
//! after which the reader closes the connection. Frames from the guest contain only data, never a path or a command.
//! The archive of `boxlaunch cp` is output, and its reader does not trust it either.

mod frame;

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ComponentName;
use frame::{Body, invalid, read_frame, write_frame};
use program_id::one_byte;

/// The version of this protocol. A host refuses an init with a later version.
pub const PROTOCOL: u32 = 15;
/// The oldest protocol version of the boxes that a host runs. See [`HostMessage::since`].
pub const OLDEST_PROTOCOL: u32 = 2;

/// Returns whether this version of the host supports a protocol version.
pub const fn is_spoken(protocol: u32) -> bool {
    OLDEST_PROTOCOL <= protocol && protocol <= PROTOCOL
}

/// The text in the box-init program by which `boxbuild` recognizes the program. It contains the versions of this protocol
/// and of the format ([`FORMAT_EPOCH`](crate::manifest::FORMAT_EPOCH)).
pub const INIT_MARK: &str = "boxbuild box-init for protocol 15 and format epoch 4";

/// Declares the messages of one direction, each with the kind and the body of its frame.
macro_rules! messages {
    (
        $(#[$about:meta])*
        pub enum $enum:ident { $($(#[$meaning:meta])* $kind:literal => $message:ident($body:ty),)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $enum {
            $($(#[$meaning])* $message($body),)+
        }

        impl $enum {
            /// Writes the message as one frame.
            ///
            /// # Errors
            /// Returns the writer's error, or `InvalidInput` if the message does not fit into a frame.
            pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
                match self {
                    $(Self::$message(body) => write_frame(writer, $kind, body),)+
                }
            }

            /// Reads one frame. Returns `None` at the end of the stream.
            ///
            /// # Errors
            /// Returns the reader's error, `UnexpectedEof` if the stream ends inside a frame, or `InvalidData` if the
            /// frame is malformed or of an unknown kind.
            pub fn read(reader: &mut impl Read) -> io::Result<Option<Self>> {
                let limits = [$(($kind, <$body as Body>::MAX)),+];
                let Some((kind, body)) = read_frame(reader, &limits)? else { return Ok(None) };
                Ok(Some(match kind {
                    $($kind => Self::$message(Body::decode(body)?),)+
                    other => return Err(invalid(&format!("a frame of the unknown kind {other}"))),
                }))
            }
        }
    };
}

messages! {
    /// The messages from init to the launcher.
    pub enum GuestMessage {
        /// The first frame of a connection, with init's protocol version.
        1 => Hello(Hello),
        /// The agent's health check has passed.
        2 => Ready(Timing),
        /// Bytes that a program wrote.
        3 => Output(Output),
        /// A program has ended.
        4 => Exited(Exited),
        /// The start or a request failed at a named step.
        5 => Failed(Failed),
        /// A program has read some of its input.
        6 => Credit(Credit),
        /// The resources in use, in response to [`HostMessage::Measure`].
        7 => Usage(Usage),
        /// The filter of the box has denied a connection. Only a supervisor sends it, to its clients.
        8 => Denied(Denied),
        /// A part of the task's result, sent before the agent's [`GuestMessage::Exited`].
        9 => TaskResult(TaskResult),
        /// An event, if `logs` of the plan has events.
        10 => Event(GuestEvent),
        /// A part of a trajectory, sent before the agent's [`GuestMessage::Exited`].
        11 => Trajectory(Trajectory),
        /// A request of a box that replaces this one is fulfilled. Only a supervisor sends it, to its clients.
        12 => Handed(Handed),
        /// A command waits for an answer, because the policy of the box asks about it.
        13 => Question(Question),
        /// All questions that wait were sent, in response to [`ClientMessage::Approvals`]. Only a supervisor sends it, to its clients.
        14 => QuestionsListed(QuestionsListed),
        /// A command no longer waits for an answer.
        15 => QuestionEnded(QuestionEnded),
        /// The policy has not let a command of the host start.
        16 => Refused(Refused),
        /// A step of the verification of the task, sent before the agent's [`GuestMessage::Exited`] if the task has a
        /// [`VerifyPlan`](crate::VerifyPlan).
        17 => Verification(Verification),
    }
}

messages! {
    /// The subset of [`GuestMessage`] that a caller in the box gets about its command. The box-init program reads no
    /// other messages of this direction.
    pub enum CallMessage {
        /// Bytes that the command wrote.
        3 => Output(Output),
        /// The command has ended.
        4 => Exited(Exited),
        /// The command has read some of its input.
        6 => Credit(Credit),
    }
}

mod approval;
mod client;
mod command;
mod event;
mod hidden;
mod listing;
mod mounts;
mod network;
mod output;
mod program_id;
mod secret;
mod sizes;
mod usage;
mod variable;
mod verification;
mod words;

pub use approval::{
    Answer, ApprovalsQuery, Denial, FollowQuestions, MAX_QUESTION, MAX_QUESTIONS, Question,
    QuestionEnded, QuestionsListed, Refused, Reply,
};
pub use client::{
    CLIENT_PROTOCOL, ClientMessage, Follow, Greeting, HandOver, Handed, PublishPort, RuleChange,
    TakeOver,
};
pub use command::{
    Builtin, Exec, Exited, Fenced, Input, InputEnd, Resize, SkillTask, TaskResult, TerminalSize,
    lacked_memory,
};
pub use event::{Asked, Caller, GuestEvent, GuestEventKind, Trajectory};
pub use frame::Frames;
pub use hidden::{HiddenFiles, ImageFile, MAX_HIDDEN};
pub use listing::{ListedEntry, ListedKind, Listing, MAX_LISTED};
pub use mounts::{
    FilePart, HostFile, HostSocket, MAX_DEVICES, MAX_FILES_BYTES, MOUNTS_FOLLOW, Mount,
    MountSource, Mounts, NO_MOUNTS, READ_ONLY_TAG, WRITABLE_TAG, devices, writable_tag,
};
pub use network::{
    Found, GuestNetwork, HostNetwork, LookUp, MAX_STREAM_DATA, NetworkHello, OpenIn, OpenOut,
    OpenService, OpenSocket, STREAM_WINDOW, StreamCredit, StreamData, StreamId, Way,
};
pub use output::{Output, Stream, Window, output_cost};
pub use program_id::ProgramId;
pub use secret::{
    MAX_SECRET, MAX_SECRETS, MIN_CREDENTIAL, Secret, SecretError, TOO_MANY_SECRETS, check_secret,
};
pub use sizes::{FRAME_COST, INPUT_WINDOW, MAX_FRAME, MAX_OUTPUT, MAX_WORDS, WINDOW};
pub use usage::{ComponentUsage, Measure, Usage};
pub use variable::{
    MAX_VALUE, MAX_VARIABLES, TOO_MANY_VARIABLES, Variable, VariableError, check_value,
};
pub use verification::{
    MAX_VERIFICATION_OUTPUT, MAX_VERIFICATION_REASON, Verification, VerificationEnd,
};

/// Proves that the sender is the init of this boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The nonce that the launcher passed to this boot, as text.
    pub nonce: String,
}

/// Durations of the start in the guest, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// From the start of the virtual CPU until init's first instruction. It is measured with the guest's time stamp
    /// counter, which starts at zero.
    pub kernel_ns: u64,
    /// From init's first instruction until the agent's program is executed.
    pub init_ns: u64,
    /// From the execution of the agent's program until its health check has passed.
    pub ready_ns: u64,
    /// From the health check until this message is sent.
    pub sent_ns: u64,
}

/// A grant to send more bytes of a program's output or input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// The program.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// The number of additional bytes.
    pub bytes: u32,
}

/// A connection that the box's filter has denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// The component that attempted the connection.
    pub component: ComponentName,
    /// The host, the reason, and the declaration that would allow the connection, in words.
    pub what: String,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The step of init, such as `mount the rootfs`.
    pub step: String,
    /// The error and its causes, in words.
    pub message: String,
}

messages! {
    /// The requests from the launcher to init.
    pub enum HostMessage {
        /// Runs a command in a component.
        65 => Exec(Exec),
        /// Sends a signal to the agent or to a command.
        66 => Signal(Signal),
        /// Ends all programs and powers off.
        67 => Shutdown(Shutdown),
        /// Bytes for a command's standard input.
        68 => Input(Input),
        /// A command's standard input ends.
        69 => InputEnd(InputEnd),
        /// Grants a program more output, after the host has passed output on.
        70 => Credit(Credit),
        /// A command's terminal has another size.
        71 => Resize(Resize),
        /// Requests the resources in use. The answers have the order of the requests.
        72 => Measure(Measure),
        /// The host's clock has been set.
        73 => Clock(HostTime),
        /// The value of a secret of the plan. The secrets are sent once each, in the plan's order, after the greeting
        /// and the variables.
        74 => Secret(Secret),
        /// The host's mounts, sent once, after the secrets, if [`MOUNTS_FOLLOW`] follows the nonce.
        75 => Mounts(Mounts),
        /// A variable of the plan's [`launch_variables`](crate::RunPlan::launch_variables). They are sent once each, in
        /// order, directly after the greeting and before the secrets.
        77 => Variable(Variable),
        /// A part of a file of the host: the content of each of [`Mounts::files`] follows the mounts, in order.
        78 => FilePart(FilePart),
        /// Connects a component to the host's end of the network, if it is not connected yet. The host sends this when
        /// one of the component's ports is published.
        76 => Connect(Connect),
        /// Answers a [`GuestMessage::Question`].
        80 => Answer(Answer),
    }
}

impl HostMessage {
    /// Returns the first supported protocol version that has this message.
    pub fn since(&self) -> u32 {
        match self {
            Self::Exec(Exec { builtin: Some(Builtin::Hidden | Builtin::List), .. }) => 13,
            Self::Exec(exec) if !exec.is_short() => 10,
            Self::Answer(_) => 14,
            Self::Mounts(mounts) if !mounts.skills.is_empty() => 15,
            Self::Variable(_) => 8,
            Self::Mounts(mounts) if !mounts.sockets.is_empty() => 11,
            Self::FilePart(_) => 10,
            Self::Mounts(mounts) if !mounts.files.is_empty() => 10,
            Self::Mounts(mounts) if mounts.are_together() => 9,
            Self::Mounts(Mounts { task: Some(_), .. }) => 6,
            Self::Connect(_) => 5,
            Self::Mounts(_) => 4,
            Self::Exec(Exec { builtin: Some(Builtin::Skills(_)), .. }) => 4,
            Self::Exec(exec) if exec.builtin.is_some() => 3,
            Self::Measure(_) | Self::Clock(_) | Self::Secret(_) => 3,
            Self::Exec(_) | Self::Signal(_) | Self::Shutdown(_) | Self::Input(_) => OLDEST_PROTOCOL,
            Self::InputEnd(_) | Self::Credit(_) | Self::Resize(_) => OLDEST_PROTOCOL,
        }
    }
}

/// The order to connect a component to the host's end of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    /// The component.
    pub component: ComponentName,
}

/// A signal for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// The program.
    pub id: ProgramId,
    /// The signal's number on Linux.
    pub signal: i32,
}

/// The time of the host's clock when the message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTime {
    /// Nanoseconds since 1970 (`CLOCK_REALTIME`).
    pub now_ns: u64,
}

/// The order to end all programs and power off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shutdown {
    /// The milliseconds between the signal that asks programs to end (SIGTERM, or the stop signal of their image) and
    /// SIGKILL.
    pub grace_ms: u32,
}

impl Shutdown {
    /// Creates the order with this time between the two signals.
    pub fn within(grace: Duration) -> Self {
        Self { grace_ms: u32::try_from(grace.as_millis()).unwrap_or(u32::MAX) }
    }

    /// Returns the time between the two signals.
    pub const fn grace(self) -> Duration {
        Duration::from_millis(self.grace_ms as u64)
    }
}

#[cfg(test)]
mod tests;

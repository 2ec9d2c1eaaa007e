//! The control channel between `boxlaunch` and `box-init`.
//!
//! One vsock connection, made by init before any workload runs. A supervisor and its clients ([`ClientMessage`]), and
//! init and `box-exec`, exchange the same messages over Unix sockets; there a connection has one command, and the ids
//! mean less. Each frame is
//!
//! ```text
//! length: u32 little-endian   of everything after it, 1 to MAX_FRAME
//! kind:   u8                  which message
//! body:   JSON; of Output: id u8, stream u8, then the bytes as they are; of Input: id u8, then the bytes; of Secret: index
//!         u8, then the bytes; of Variable: index u8, then nothing, or `=` and the value; of TaskResult: the bytes; of Trajectory: the name's length u8, the name, then the bytes
//! ```
//!
//! **Flow control.** The VMM carries all connections of a box in one loop, which stops when one of their sockets
//! is full. So what a program writes is bounded by a window that fits a socket: init sends at most
//! [`WINDOW`] bytes of it, each frame counted as [`Output::cost`] says, and then as many as the host has granted by
//! [`HostMessage::Credit`]; meanwhile it does not read the program's pipes, and the program waits. In the
//! other direction the host sends at most [`INPUT_WINDOW`] bytes of input, and then as many as init has
//! granted. The end of input is a message, because libkrun makes a half-closed connection a closed one.
//!
//! The guest is hostile from the moment that it runs: a frame that is too long, of an unknown
//! kind or malformed is an error, after which the reader hangs up. Guest → host frames carry data
//! only, never a path or a command; the archive of `boxlaunch cp` is output, whose reader is as distrustful.

mod frame;

use std::io::{self, Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ComponentName;
use frame::{Body, invalid, read_frame, write_frame};
use program_id::one_byte;

/// The version of this protocol; a host refuses an init of a later one.
pub const PROTOCOL: u32 = 8;
/// The oldest version whose boxes a host still runs: see [`HostMessage::since`].
pub const OLDEST_PROTOCOL: u32 = 2;

/// Returns whether a host of this version speaks a protocol.
pub const fn is_spoken(protocol: u32) -> bool {
    OLDEST_PROTOCOL <= protocol && protocol <= PROTOCOL
}

/// The text in box-init by which `boxbuild` knows it from other programs: the versions of this
/// protocol and of the format ([`FORMAT_EPOCH`](crate::manifest::FORMAT_EPOCH)) that it is for.
pub const INIT_MARK: &str = "boxbuild box-init for protocol 8 and format epoch 4";

/// Declares the messages of one direction: the kind of each one's frame, and its body.
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
            /// The writer's own, or `InvalidInput` where the message does not fit a frame.
            pub fn write(&self, writer: &mut impl Write) -> io::Result<()> {
                match self {
                    $(Self::$message(body) => write_frame(writer, $kind, body),)+
                }
            }

            /// Reads one frame; returns `None` at the end of the stream.
            ///
            /// # Errors
            /// The reader's own, `UnexpectedEof` in the middle of a frame, `InvalidData` for a
            /// frame of any other kind.
            pub fn read(reader: &mut impl Read) -> io::Result<Option<Self>> {
                let Some((kind, body)) = read_frame(reader)? else { return Ok(None) };
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
        /// The first frame of a connection, by which init names its protocol.
        1 => Hello(Hello),
        /// The agent's health check has passed.
        2 => Ready(Timing),
        /// Bytes that a program wrote.
        3 => Output(Output),
        /// A program has ended.
        4 => Exited(Exited),
        /// The start, or a request, failed at a named step.
        5 => Failed(Failed),
        /// A program has read some of its input.
        6 => Credit(Credit),
        /// The resources in use, as [`HostMessage::Measure`] asked for.
        7 => Usage(Usage),
        /// The filter of the box has denied something: from a supervisor to its clients alone.
        8 => Denied(Denied),
        /// A part of the task's result, before the agent's end.
        9 => TaskResult(TaskResult),
        /// Something has happened, for a plan whose `logs` have events.
        10 => Event(GuestEvent),
        /// A part of a trajectory, before the agent's end.
        11 => Trajectory(Trajectory),
    }
}

messages! {
    /// The messages of [`GuestMessage`] that a caller in the box gets about its command: the only ones that init's own
    /// program has to read.
    pub enum CallMessage {
        /// Bytes that the command wrote.
        3 => Output(Output),
        /// It has ended.
        4 => Exited(Exited),
        /// It has read some of its input.
        6 => Credit(Credit),
    }
}

mod client;
mod command;
mod event;
mod mounts;
mod network;
mod output;
mod program_id;
mod secret;
mod sizes;
mod usage;
mod variable;

pub use client::{CLIENT_PROTOCOL, ClientMessage, Follow, Greeting, RuleChange};
pub use command::{
    Builtin, Exec, Exited, Input, InputEnd, Resize, SkillTask, TaskResult, TerminalSize,
    lacked_memory,
};
pub use event::{Caller, GuestEvent, GuestEventKind, Trajectory};
pub use frame::Frames;
pub use mounts::{
    MAX_DEVICES, MOUNTS_FOLLOW, Mount, MountSource, Mounts, NO_MOUNTS, READ_ONLY_TAG, devices,
    writable_tag,
};
pub use network::{
    Found, GuestNetwork, HostNetwork, LookUp, MAX_STREAM_DATA, NetworkHello, OpenIn, OpenOut,
    STREAM_WINDOW, StreamCredit, StreamData, StreamId, Way,
};
pub use output::{Output, Stream, Window, output_cost};
pub use program_id::ProgramId;
pub use secret::{MAX_SECRET, MAX_SECRETS, Secret, SecretError, TOO_MANY_SECRETS, check_secret};
pub use sizes::{FRAME_COST, INPUT_WINDOW, MAX_FRAME, MAX_OUTPUT, WINDOW};
pub use usage::{ComponentUsage, Measure, Usage};
pub use variable::{
    MAX_VALUE, MAX_VARIABLES, TOO_MANY_VARIABLES, Variable, VariableError, check_value,
};

/// Proves that init is the init of this boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The nonce that the launcher gave to this boot, as text.
    pub nonce: String,
}

/// When things happened in the guest, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// The virtual CPU started → init's first instruction, by the guest's time stamp counter,
    /// which starts at zero.
    pub kernel_ns: u64,
    /// Init's first instruction → the agent's program is executed.
    pub init_ns: u64,
    /// → the health check has passed.
    pub ready_ns: u64,
    /// → this message is sent.
    pub sent_ns: u64,
}

/// More bytes that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credit {
    /// The program.
    #[serde(with = "one_byte")]
    pub id: ProgramId,
    /// How many bytes more than before.
    pub bytes: u32,
}

/// Something that the filter of a box has denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// Whose attempt it was.
    pub component: ComponentName,
    /// The host, the reason and the line that would allow it, for people.
    pub what: String,
}

/// A step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// The step that init was at, such as `mount the rootfs`.
    pub step: String,
    /// The error and its causes, for people.
    pub message: String,
}

messages! {
    /// The requests from the launcher to init.
    pub enum HostMessage {
        /// Run a command in a component.
        65 => Exec(Exec),
        /// Send a signal to the agent or to a command.
        66 => Signal(Signal),
        /// End everything and power off.
        67 => Shutdown(Shutdown),
        /// Bytes for a command's standard input.
        68 => Input(Input),
        /// A command's standard input ends.
        69 => InputEnd(InputEnd),
        /// Output was passed on, and its program may write as much again.
        70 => Credit(Credit),
        /// A command's terminal has another size.
        71 => Resize(Resize),
        /// Report the resources in use. Each request gets one answer, in their order.
        72 => Measure(Measure),
        /// The host's clock was set.
        73 => Clock(HostTime),
        /// The value of a secret of the plan: each comes once, in their order, after the greeting and the variables.
        74 => Secret(Secret),
        /// The mounts of the host, once, after the secrets: where the nonce is followed by [`MOUNTS_FOLLOW`].
        75 => Mounts(Mounts),
        /// A variable of the plan's [`launch_variables`](crate::RunPlan::launch_variables): each comes once, in their order,
        /// at once after the greeting and before the secrets.
        77 => Variable(Variable),
        /// Connect a component to the host's end of the network, if it is not connected yet: a port of it is published.
        76 => Connect(Connect),
    }
}

impl HostMessage {
    /// Returns the protocol that has this message, of those that a host speaks.
    pub fn since(&self) -> u32 {
        match self {
            Self::Variable(_) => 8,
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

/// The time on the host's clock, as this is sent.
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
    /// Milliseconds between the signal that asks programs to end, SIGTERM or that of their image, and SIGKILL.
    pub grace_ms: u32,
}

impl Shutdown {
    /// Returns the order with this time between the two signals.
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

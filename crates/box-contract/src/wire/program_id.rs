//! The ids of a box's programs.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// The id of a program: [`AGENT`](Self::AGENT), [`BUSINESS`](Self::BUSINESS), an id between them for a command of the
/// host, an id above them for a command of the agent, or [`VERIFICATION`](Self::VERIFICATION). The ids of the agent's commands
/// and of the verification occur only in the guest and in its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramId(pub u16);

impl ProgramId {
    /// The agent's main program.
    pub const AGENT: Self = Self(0);
    /// The business application's main program, if init starts it.
    pub const BUSINESS: Self = Self(255);
    /// The command that verifies the task.
    pub const VERIFICATION: Self = Self(u16::MAX);
    /// The command of a connection with only one command, as its client identifies it.
    pub const COMMAND: Self = Self(1);

    /// Returns the ids for commands of the host.
    pub fn of_commands() -> impl ExactSizeIterator<Item = Self> {
        (Self::AGENT.0 + 1..Self::BUSINESS.0).map(Self)
    }

    /// Returns whether the id belongs to a command rather than to a component's main program.
    pub const fn is_command(self) -> bool {
        !matches!(self, Self::AGENT | Self::BUSINESS)
    }

    /// Returns whether the host knows this id, because it does not belong to a command of the agent.
    pub const fn is_known_to_host(self) -> bool {
        self.0 <= Self::BUSINESS.0
    }

    /// Returns the id as one byte, for frames with one-byte ids.
    pub(super) fn byte(self) -> io::Result<u8> {
        let too_large = |_| io::Error::new(io::ErrorKind::InvalidInput, "the id needs two bytes");
        u8::try_from(self.0).map_err(too_large)
    }
}

impl From<u8> for ProgramId {
    fn from(byte: u8) -> Self {
        Self(byte.into())
    }
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Serializes an id that must fit into one byte. In all messages except exits and signals, ids have one byte in every
/// protocol version.
pub(super) mod one_byte {
    use serde::{Deserialize as _, Deserializer, Serializer, ser::Error as _};

    use super::ProgramId;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(
        id: &ProgramId,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(id.byte().map_err(S::Error::custom)?)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ProgramId, D::Error> {
        u8::deserialize(deserializer).map(ProgramId::from)
    }
}

//! The ids of the programs of a box.

use std::{fmt, io};

use serde::{Deserialize, Serialize};

/// The id of a program of a box: [`AGENT`](Self::AGENT), [`BUSINESS`](Self::BUSINESS), a command of the host between the
/// two, or a command of the agent above. Ids of commands of the agent stay in the guest, and in its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramId(pub u16);

impl ProgramId {
    /// The agent's own program.
    pub const AGENT: Self = Self(0);
    /// The business application's own program, if init starts that.
    pub const BUSINESS: Self = Self(255);
    /// The command of a connection that has one command, as its client names it.
    pub const COMMAND: Self = Self(1);

    /// Returns the ids that commands of the host can have.
    pub fn of_commands() -> impl ExactSizeIterator<Item = Self> {
        (Self::AGENT.0 + 1..Self::BUSINESS.0).map(Self)
    }

    /// Returns whether it is the id of a command, and not of a component's own program.
    pub const fn is_command(self) -> bool {
        !matches!(self, Self::AGENT | Self::BUSINESS)
    }

    /// Returns whether the host knows the program by this id: it is no command of the agent's.
    pub const fn is_known_to_host(self) -> bool {
        self.0 <= Self::BUSINESS.0
    }

    /// Returns the id as a frame has it that has one byte for it.
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

/// An id in JSON that fits one byte, as every protocol has those that are not of an end or a signal.
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

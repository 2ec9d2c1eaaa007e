//! A path at which the images differ, and which no policy decides.

use std::fmt;

use box_tree::listing::Origins;
use box_tree::{FieldDifference, Inode, Origin};
use diagnostics::Span;
use safe_text::bytes;
use safe_text::shown;

use super::accounts::AccountClash;
use super::conflicts::Conflicts;
use super::system_file::SystemFile;

/// The conflicts of two images that share one root, with the names of their origins.
#[derive(Debug)]
pub struct MergeConflicts {
    /// The conflicts; at least one.
    pub conflicts: Conflicts,
    /// The names that the conflicts' origins refer to by number.
    pub origins: Origins,
    /// The spans in the Boxfile that name the agent's image or program, and the business image.
    pub spans: [Span; 2],
}

/// A path at which the images differ, and which no policy of the Boxfile decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The absolute path in both images.
    pub path: Vec<u8>,
    /// The first field that differs.
    pub difference: FieldDifference,
    /// The entries of the agent's image and of the business image.
    pub sides: [Side; 2],
    /// What a user must know to decide the conflict, if there is anything.
    pub note: Option<Note>,
}

impl Conflict {
    /// Describes the conflict in a few lines, each safe for a terminal.
    pub fn describe(&self, origins: &Origins) -> String {
        let path = shown(&String::from_utf8_lossy(&self.path));
        let FieldDifference { field, values: [agent, business] } = &self.difference;
        let mut text = format!("{path}: {field} is {agent} and {business}");
        for (name, side) in ["agent", "business"].into_iter().zip(&self.sides) {
            // The origin is shown without its component, because `name` already shows it.
            let origin = origins.named(side.origin).map(|it| it.without_component().to_string());
            text += &format!("\n    {name:<9} {side}, {}", origin.unwrap_or_default());
        }
        text + &self.note.iter().map(|note| format!("\n    note      {note}")).collect::<String>()
    }
}

/// The entry of one image at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The origin of the entry.
    pub origin: Origin,
    /// The name of the entry's type.
    pub kind: &'static str,
    /// The size of a file in bytes. `None` for other types.
    pub size: Option<u64>,
    /// The number of entries below a directory.
    pub below: usize,
}

impl Side {
    pub(super) fn of(inode: &Inode, below: usize) -> Self {
        let size = inode.content().map(|it| it.size);
        Self { origin: inode.origin, kind: inode.type_name(), size, below }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind)?;
        match (self.size, self.below) {
            (Some(size), _) => write!(f, " of {}", bytes(size)),
            (None, 0) => Ok(()),
            (None, 1) => f.write_str(" with 1 entry"),
            (None, below) => write!(f, " with {below} entries"),
        }
    }
}

/// What a user must know to decide a conflict, such as why its policy cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The file describes a whole system.
    SystemFile(SystemFile),
    /// The files cannot be united, because two lines clash.
    Accounts(AccountClash),
    /// The policy is `merge`, but the entries are not two small account files with the same attributes.
    NotUnitable,
    /// The policy is `drop`, and both entries are directories.
    DroppedAttributes,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SystemFile(file) => fmt::Display::fmt(file, f),
            Self::Accounts(clash) => fmt::Display::fmt(clash, f),
            Self::NotUnitable => f.write_str(
                "`merge` combines two regular files with the same mode, owner and attributes; write \
                 `prefer-agent` or `prefer-business` instead",
            ),
            Self::DroppedAttributes => f.write_str(
                "both have this directory, and only its attributes differ: what is in it is \
                 merged, and `drop` would take all of it. Write `prefer-agent` or \
                 `prefer-business` for it",
            ),
        }
    }
}

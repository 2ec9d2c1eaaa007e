//! Errors about volumes.

use box_contract::rules::MAX_SCRATCH_BYTES;
use ext4_image::MIN_SIZE_WITH_JOURNAL;
use host_fs::OsError;
use safe_text::readable;

/// The least size of a volume, in bytes.
pub const MIN_SIZE: u64 = MIN_SIZE_WITH_JOURNAL;
/// The greatest size of a volume, in bytes.
pub const MAX_SIZE: u64 = MAX_SCRATCH_BYTES;

/// Why a volume cannot be created, used or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum VolumeError {
    /// The operating system refused an operation.
    #[error(transparent)]
    Os(#[from] OsError),
    /// There is no volume with this name.
    #[error("there is no volume {0:?}")]
    Missing(String),
    /// A volume with this name exists already.
    #[error("there is a volume {0} already")]
    Exists(String),
    /// A running VM uses the volume; `by` is the name of its box, or `None` if the volume's record cannot be read.
    #[error("the volume {name} is used by {}", user(by.as_deref()))]
    InUse { name: String, by: Option<String> },
    /// A box declares the volume, but it was not made for a box that declares it.
    #[error(
        "the box declares the volume {name} at {guest}, but that volume was made by other means"
    )]
    NotDeclared { name: String, guest: String },
    /// A box declares the volume, which boxes of other origins have used.
    #[error("the volume {name} has the files of another box, of {of}, and this box is of {by}")]
    OfAnother { name: String, guest: String, of: String, by: String },
    /// The name is not valid for a volume.
    #[error("{0:?} cannot be the name of a volume")]
    BadName(String),
    /// The size, in bytes, is not valid for a volume.
    #[error("a volume has from {least} to {most}, not {0} bytes", least = readable(MIN_SIZE), most = readable(MAX_SIZE))]
    BadSize(u64),
    /// The record is missing or malformed, or the disk has another size than the record.
    #[error("the volume {name} is damaged: {reason}")]
    Damaged { name: String, reason: String },
}

fn user(name: Option<&str>) -> String {
    name.map_or_else(|| "another box".to_owned(), |name| format!("the box {name}"))
}

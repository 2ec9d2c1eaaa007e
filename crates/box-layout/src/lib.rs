//! Opens and describes a box: an OCI image layout directory.
//!
//! ```text
//! oci-layout               {"imageLayoutVersion":"1.0.0"}              ≤ 1 MiB
//! index.json               names the one manifest                      ≤ 1 MiB
//! blobs/sha256/<manifest>  names the config and the blobs              ≤ 1 MiB
//! blobs/sha256/<config>    BoxConfig: the run plan                     ≤ 4 MiB
//! blobs/sha256/<blob>      rootfs (EROFS), init and kernel (ELF), listing
//! ```
//!
//! A box can come from a stranger. [`OpenBox::open`] reads its documents within bounds and compares
//! them with their digests; of the blobs that boot, it opens the files and nothing more. A file that
//! is a symbolic link or not regular is refused, and a blob's file name is always the hexadecimal
//! form of a parsed digest. What happens to the directory after that does not matter to the open
//! files.
#![forbid(unsafe_code)]

mod describe;
mod error;
mod open;
mod paths;
mod read;

pub use error::OpenError;
pub use open::{Blob, OpenBox, names_one_box};
pub use paths::{EntryKind, blob_path, entry_kind, is_layout};

//! Opens a box to run it: checks the box, and verifies its blobs.
//!
//! [`fn@open`] returns a [`box_layout::OpenBox`] whose files no other user can change. [`check_enforced`] refuses a box
//! with declarations that this version does not enforce, and [`mod@verify`] hashes its blobs.

mod error;
mod open;
pub mod receipt;
pub mod verify;

pub use error::OpenBoxError;
pub use open::{check_enforced, check_owner, check_owners, open};

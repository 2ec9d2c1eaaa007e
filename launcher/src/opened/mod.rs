//! A box that is opened to run: the checks of this host, and the verification of its blobs.

mod error;
mod open;
pub mod receipt;
pub mod verify;

pub use error::OpenBoxError;
pub use open::{check_enforced, check_owner, check_owners, open};

#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod action;
mod attachments;
mod base;
mod blob;
mod boxes;
mod bulk;
pub mod collect;
mod data;
mod error;
mod gate;
mod key;
mod label;
mod lock;
mod place;
mod publish;
mod reserve;
mod session;
mod store;
mod vouched;

pub use action::Refers;
pub use attachments::{Attachment, AttachmentInfo, MAX_ATTACHED, MAX_ATTACHMENT, MAX_ATTACHMENTS};
pub use base::Base;
pub use blob::BlobWriter;
pub use boxes::{Held, StoredBox, StoredBoxes, hold};
pub use bulk::BulkWriter;
pub use data::DataWriter;
pub use error::StoreError;
pub use key::{ActionKey, KeyHasher};
pub use label::{Label, Named, Owner, Pulled};
pub use lock::{ActionLock, waiting_text};
pub use session::Publishing;
pub use store::{Store, is_store, store_above};

//! A content-addressed store on a local disk, and the records of what was made from what.
//!
//! ```text
//! <store>/
//!   version              the store's format: "boxbuild store 1\n"
//!   lock                 flock: shared while a process uses the store
//!   gate, turn           flock: shared by who begins to use something, exclusive while things are deleted
//!   sessions/<...>       for each process that uses the store, when it began and the blobs that it uses
//!   blobs/<sha256 hex>   immutable (0444) bytes, named by their content
//!   actions/<key hex>    what an action made: a small value after its checksum
//!   data/<key hex>       what an action made that is large, and that its readers verify
//!   locks/<key hex>      flock: held while an action runs that others may need, too
//!   boxes/<sha256 hex>/  for each box of the store the two files by which it is found; its blobs are in blobs/
//!   names/<name>         the box that a name means, and to whom the name belongs
//!   pulled/<sha256 hex>  the box that was pulled under a reference, whose hash names the file
//!   roots/<sha256 hex>   the path of a directory elsewhere whose box has its blobs here
//!   tmp/                 what is being written
//! ```
//!
//! **Crash story.** A blob or record (but not the data of an action) is written to `tmp/` under a
//! name that nobody can predict, flushed to the disk, and only then given its name; the directory is
//! flushed before the call returns. A crash at any moment leaves an old state or a new one and
//! perhaps a file in `tmp/`, never a half object under a name. Two writers of the same content are
//! both right: the last one's file stays.
//!
//! Whoever opens the store while nobody else has it open, as `lock` tells, empties `tmp/`. A process
//! that is killed loses its lock with its life, so its files stay until then and no longer; those of
//! a process that still lives are never touched. The same holds for `locks/`.
//!
//! **Work that is done once.** Who is about to run an action takes its lock ([`Store::lock_action`]), looks for its record again,
//! and runs it only if there is none. The lock saves work and is not needed for what is right. Its holder removes
//! its file before it lets go of it, so that `locks/` does not grow; whoever gets the lock of a file that has no name any more
//! begins again. A store of an earlier version lacks directories, and gets them when it is opened.
//!
//! **Names.** A name belongs to the Boxfile whose build gave it, until that file is gone: [`Store::name_box`] moves the name to the
//! newest box of this Boxfile, and refuses another one. Who only starts boxes reads them with [`StoredBoxes`], which makes
//! nothing and waits for nobody but a process that deletes.
//!
//! **What is deleted.** [`collect`] has the rules. Each process that has the store open notes in its session which blobs it uses, before it
//! looks whether they are there, and sets the time of each record that it reads. For that it holds the gate shared for a moment, and
//! [`Store::publish`] holds it until a box has its names. Who deletes holds it alone, and so sees all that is used. The times of
//! blobs are never changed: by them a large file is known that was hashed before.
//!
//! **Trust.** A blob is right when it gets its name, but a disk or another program may damage it
//! later. So its name alone proves nothing: [`Store::read`], [`Store::verify`] and [`Store::put`] hash what is there. [`Store::size`],
//! [`Store::open_blob`] and [`Store::export`] do not; whoever calls them verifies the blob before,
//! or what is read of it. Writing the right content again mends a damaged blob. An action's record
//! that is damaged counts as absent.
#![forbid(unsafe_code)]

mod action;
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
mod publish;
mod reserve;
mod session;
mod store;
mod vouched;

pub use action::Refers;
pub use base::Base;
pub use blob::BlobWriter;
pub use boxes::{Held, StoredBox, StoredBoxes, hold};
pub use bulk::BulkWriter;
pub use data::DataWriter;
pub use error::StoreError;
pub use key::{ActionKey, KeyHasher};
pub use label::{Label, Named, Owner, Pulled};
pub use lock::ActionLock;
pub use session::Publishing;
pub use store::{Store, store_above};

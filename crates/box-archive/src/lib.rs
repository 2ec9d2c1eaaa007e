//! Files with boxes: OCI image layouts of several boxes, as an archive or a directory.
//!
//! ```text
//! oci-layout               {"imageLayoutVersion":"1.0.0"}
//! index.json               names the manifest of each box, with its name in an annotation
//! blobs/sha256/<manifest>  the manifests, in the order of their digests
//! blobs/sha256/<blob>      all other blobs, in the order of their digests; those that boxes share are there once
//! ```
//!
//! A [`Bundle`] writes it: the blobs are plain, so that the digest in the index is the box digest, and the same boxes give the same
//! bytes. An [`Archive`] reads it, and every archive and directory of this kind that other tools write; a box may be there in any
//! [form](box_registry::Form) that a registry has it in. The reading is that of a pull: the [plan](Plan) says what a store lacks,
//! and then that is read, inflated and verified.
//!
//! ```text
//! save     open boxes   → an archive or a directory
//! read     a path, or a stream → an Archive: the boxes in it, and their blobs
//! stream   an archive that is read once, from its beginning to its end
//! load     an Archive   → a plan, and then the store
//! report   what is said of them
//! keep     a box whose blobs are in the store → it is found there
//! ```
//!
//! **A stream** cannot be gone back in. What a plan needs is therefore at its beginning: the order above is that order. Another archive
//! has to be a file.
//!
//! **Nobody is believed.** Of an archive the headers are looked at by the reader of layers, and refused as there. No name of it
//! becomes a path of the host: a blob is looked for by the digest that a manifest names, and gets its name in the store when
//! its own bytes were hashed. A box is found only when all its blobs are there and it can be opened.
#![forbid(unsafe_code)]

mod error;
mod keep;
mod load;
mod read;
mod report;
mod save;
mod stream;
#[cfg(test)]
mod tests;

pub use error::ArchiveError;
pub use keep::{NameGiven, Names};
pub use load::{Loaded, Plan};
pub use read::{Archive, Boxed};
pub use save::{Bundle, Saved, check_output, is_compressed, is_tar};

//! Inspects and exports built boxes, and lists their packages.
//!
//! ```text
//! opened  a box's directory  → its documents and its Listing
//! diff    two of anything    → what differs
//! entry   an entry           → as text, as JSON
//! verify  box                → what of it is as it should be
//! export  box                → image, archive, directory or OCI image
//! sbom    a box's Listing    → its packages, as an SPDX document
//! ```
#![forbid(unsafe_code)]

mod contents;
pub mod diff;
pub mod entry;
mod error;
pub mod export;
mod links;
pub mod opened;
mod paths;
pub mod sbom;
pub mod verify;

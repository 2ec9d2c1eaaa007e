//! What a box is given when it runs.

pub(super) mod cap;
pub(super) mod logs;
pub(super) mod mounts;
pub(super) mod network;
pub(super) mod sandbox;
pub(super) mod secret;
pub(super) mod task;

use crate::Scope;
use crate::parse::reader::Reader;

/// Takes the property that says who sees something.
fn scope(reader: &mut Reader<'_>, default: Scope) -> Scope {
    match reader.choice("component") {
        Some("agent") => Scope::Agent,
        Some("business") => Scope::Business,
        Some(_) => Scope::Both,
        None => default,
    }
}

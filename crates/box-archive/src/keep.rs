//! Gives boxes of the store the names that a file has for them.

use box_cache::{Named, Owner, Pulled, Store, StoreError};
use box_digest::Digest;
use box_image::RemoteName;
use box_image::rules::is_name;

use crate::ArchiveError;

/// What became of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameGiven {
    /// The box has it.
    Given,
    /// Another box has it, of this owner.
    Taken(Owner),
    /// Another box has it, which was pulled under this reference.
    Pulled,
    /// It is no name that a box of a store can have.
    NotAName,
}

/// Gives a box a name, unless another one has it. It may be the name of a box in a registry: `run` then needs no registry.
pub(crate) fn name(store: &Store, digest: Digest, name: &str) -> Result<NameGiven, ArchiveError> {
    if let Some(remote) = RemoteName::parse(name).ok().filter(|it| it.tag.is_some()) {
        return pulled(store, digest, remote.unpinned().to_string());
    }
    if !is_name(name) {
        return Ok(NameGiven::NotAName);
    }
    match store.name_box(name, &Named { digest, owner: Owner::Archive }) {
        Ok(_) => Ok(NameGiven::Given),
        Err(StoreError::NameTaken { owner, .. }) => Ok(NameGiven::Taken(owner)),
        Err(error) => Err(error.into()),
    }
}

/// Remembers a reference, unless something else was pulled under it: what a file says of a registry, nobody has verified.
fn pulled(store: &Store, digest: Digest, reference: String) -> Result<NameGiven, ArchiveError> {
    match store.pulled(&reference)? {
        Some(before) if before.digest != digest => return Ok(NameGiven::Pulled),
        Some(_) => {}
        None => store.note_pulled(&Pulled { reference, digest, registry_digest: digest })?,
    }
    Ok(NameGiven::Given)
}

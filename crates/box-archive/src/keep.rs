//! Gives boxes in the store the names that they have in a file.

use box_cache::{Named, Owner, Pulled, Store, StoreError};
use box_contract::RemoteName;
use box_contract::rules::is_name;
use box_digest::Digest;

use crate::ArchiveError;

/// Which names the boxes of a file get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// No names: the boxes are found by their digests.
    None,
    /// The names in the file. If another box in the store has one of them, no box is loaded.
    Free,
    /// The names in the file. Other boxes in the store lose these names.
    Replace,
}

/// The outcome for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameGiven {
    /// The box has the name.
    Given,
    /// The box has the name, and the box of this digest had it before.
    Moved(Digest),
    /// The name is not valid for a box of a store.
    NotAName,
}

/// A valid name of a box of a store.
enum Label {
    Name(Named),
    /// A reference to a registry, such as `ghcr.io/acme/one:v1`. With it, `run` finds the box in the store. The note says that only
    /// the file declares it, so that a policy does not take the box for one of that registry.
    Pulled(Pulled),
}

impl Label {
    fn new(digest: Digest, name: &str) -> Option<Self> {
        let remote = RemoteName::parse(name).ok().filter(|it| it.tag.is_some());
        if let Some(remote) = remote {
            // A digest of the registry's manifest would not be verified, so only the box digest is accepted.
            if remote.digest.is_some_and(|it| it != digest) {
                return None;
            }
            let reference = remote.unpinned().to_string();
            return Some(Self::Pulled(Pulled {
                reference,
                digest,
                registry_digest: digest,
                is_asked: true,
                is_loaded: true,
            }));
        }
        is_name(name).then_some(Self::Name(Named { digest, owner: Owner::Archive }))
    }
}

/// Returns the name by which the box can be found in the store, or `None` if `name` is not valid.
pub(crate) fn text(digest: Digest, name: &str) -> Option<String> {
    Some(match Label::new(digest, name)? {
        Label::Name(_) => name.to_owned(),
        Label::Pulled(pulled) => pulled.reference,
    })
}

/// Returns an error if another box has the name.
pub(crate) fn check(store: &Store, digest: Digest, name: &str) -> Result<(), ArchiveError> {
    match Label::new(digest, name) {
        Some(Label::Name(named)) => store.check_name(name, &named).map_err(name_taken),
        Some(Label::Pulled(pulled)) => {
            other_pulled(store, &pulled)?.map_or(Ok(()), |_| Err(taken_by_pull(name)))
        }
        None => Ok(()),
    }
}

/// Gives the box of `digest` the name `name`.
pub(crate) fn name(
    store: &Store,
    digest: Digest,
    name: &str,
    names: Names,
) -> Result<NameGiven, ArchiveError> {
    if names != Names::Replace {
        check(store, digest, name)?;
    }
    let before = match Label::new(digest, name) {
        None => return Ok(NameGiven::NotAName),
        Some(Label::Name(named)) if names == Names::Replace => {
            store.rename_box(name, &named)?.map(|it| it.digest)
        }
        Some(Label::Name(named)) => {
            store.name_box(name, &named).map(|_| None).map_err(name_taken)?
        }
        Some(Label::Pulled(pulled)) => {
            let other = other_pulled(store, &pulled)?;
            match names {
                Names::Replace => store.note_pulled(&pulled)?,
                Names::Free | Names::None => {
                    if store.offer_pulled(&pulled)?.is_some() {
                        return Err(taken_by_pull(name));
                    }
                }
            }
            other
        }
    };
    Ok(before.filter(|it| *it != digest).map_or(NameGiven::Given, NameGiven::Moved))
}

/// Returns the digest of another box that was pulled under the same reference. A reference in a file is not verified, so it must
/// not replace that box silently.
fn other_pulled(store: &Store, pulled: &Pulled) -> Result<Option<Digest>, StoreError> {
    let before = store.pulled(&pulled.reference)?.map(|it| it.digest);
    Ok(before.filter(|it| *it != pulled.digest))
}

fn taken_by_pull(name: &str) -> ArchiveError {
    let holder = "a box that was pulled".to_owned();
    ArchiveError::NameTaken { name: name.to_owned(), holder }
}

fn name_taken(error: StoreError) -> ArchiveError {
    match error {
        StoreError::NameTaken { name, owner } => {
            ArchiveError::NameTaken { name, holder: owner.to_string() }
        }
        error => error.into(),
    }
}

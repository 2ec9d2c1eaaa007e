//! Gives boxes of the store the names that a file has for them.

use box_cache::{Named, Owner, Pulled, Store, StoreError};
use box_contract::RemoteName;
use box_contract::rules::is_name;
use box_digest::Digest;

use crate::ArchiveError;

/// Which names the boxes of a file get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// None: they are found by their digests.
    None,
    /// Those that the file gives them. If another box has one of these, nothing is loaded.
    Free,
    /// Those that the file gives them, whatever box has them.
    Replace,
}

/// What became of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameGiven {
    /// The box has it.
    Given,
    /// The box has it, and another box had it before: the one of this digest.
    Moved(Digest),
    /// It is no name that a box of a store can have.
    NotAName,
}

/// A name that a box of a store can have.
enum Label {
    Name(Named),
    /// The name of a box in a registry: `run` then needs no registry.
    Pulled(Pulled),
}

impl Label {
    fn new(digest: Digest, name: &str) -> Option<Self> {
        let remote = RemoteName::parse(name).ok().filter(|it| it.tag.is_some());
        if let Some(remote) = remote {
            // What a file says of a digest nobody has checked, unless it is the box's.
            if remote.digest.is_some_and(|it| it != digest) {
                return None;
            }
            let reference = remote.unpinned().to_string();
            return Some(Self::Pulled(Pulled {
                reference,
                digest,
                registry_digest: digest,
                is_asked: true,
            }));
        }
        is_name(name).then_some(Self::Name(Named { digest, owner: Owner::Archive }))
    }
}

/// Returns what a box will be found by; `None` if the name is none.
pub(crate) fn text(digest: Digest, name: &str) -> Option<String> {
    Some(match Label::new(digest, name)? {
        Label::Name(_) => name.to_owned(),
        Label::Pulled(pulled) => pulled.reference,
    })
}

/// Checks that no other box has a name.
pub(crate) fn check(store: &Store, digest: Digest, name: &str) -> Result<(), ArchiveError> {
    match Label::new(digest, name) {
        Some(Label::Name(named)) => store.check_name(name, &named).map_err(name_taken),
        Some(Label::Pulled(pulled)) => {
            other_pulled(store, &pulled)?.map_or(Ok(()), |_| Err(taken_by_pull(name)))
        }
        None => Ok(()),
    }
}

/// Gives a box a name.
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

/// Returns the other box that was pulled under a reference: what a file says of a registry, nobody has verified.
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

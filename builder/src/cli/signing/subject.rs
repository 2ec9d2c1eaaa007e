//! The box that statements are about.

use box_contract::{ErrorCode, RemoteName};
use box_digest::Digest;
use box_find::{BoxReference, FindError, Stores};
use box_inspect::opened::OpenBox;
use cli_common::store::BoxArgument;
use cli_registry::Located;
use oci_registry::Registry;
use safe_text::shell_word;

use crate::cli::failure::Failure;
use crate::cli::stored::PROGRAM;

/// The box of a command, in the store, in a directory or in a registry.
pub(crate) struct Subject<'a> {
    argument: &'a BoxArgument,
    pub(super) digest: Digest,
    /// The name of the box in a registry without its tag, if the command line names one.
    name: Option<String>,
    /// Whether the store has the box.
    pub(super) is_stored: bool,
    /// The box in its registry, if it is named there and the store has no box of that name.
    pub(super) located: Option<(RemoteName, Located)>,
}

impl<'a> Subject<'a> {
    /// Finds the box. If it is named in a registry and was not pulled, reads its documents there, and no blob.
    pub(crate) fn find(argument: &'a BoxArgument, client: &Registry) -> Result<Self, Failure> {
        let reference = argument.parse()?;
        let stores = argument.store.stores(&PROGRAM);
        let (digest, located) = match (reference.find(stores.clone()), reference.remote()) {
            (Err(FindError::NotPulled(_) | FindError::NoStore), Some(name)) => {
                let located = Located::read(client, name)?;
                (located.remote.digest, Some((name.clone(), located)))
            }
            (found, _) => (found?.documents()?.digest, None),
        };
        let name = reference.remote().map(RemoteName::whole_repository);
        let is_stored = is_stored(&stores, &digest)?;
        Ok(Self { argument, digest, name, is_stored, located })
    }

    /// Refuses a box that is only in a registry and is named by its tag alone: somebody may have pushed another box there.
    pub(crate) fn check_pinned(&self) -> Result<(), Failure> {
        let is_moving = |it: &&(RemoteName, Located)| it.0.digest.is_none() && !self.is_stored;
        let Some((name, _)) = self.located.as_ref().filter(is_moving) else { return Ok(()) };
        let help = format!(
            "name the box that you mean: {name}@sha256:..., with the digest that `boxbuild build` printed"
        );
        let message = format!(
            "{name} is only in the registry, where its tag can name another box at any time"
        );
        Err(Failure::new((ErrorCode::Usage, help), message))
    }

    /// Returns the box digest.
    pub(crate) const fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the name of the box for a statement.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns whether the box is only in a registry.
    pub(crate) const fn is_elsewhere(&self) -> bool {
        self.located.is_some() && !self.is_stored
    }

    pub(super) fn stores(&self) -> Stores {
        self.argument.store.stores(&PROGRAM)
    }

    pub(super) const fn argument(&self) -> &BoxArgument {
        self.argument
    }

    /// Opens the box with its content.
    pub(crate) fn open(&self) -> Result<OpenBox, Failure> {
        if self.is_elsewhere() {
            let word = shell_word(self.argument.word());
            let help = format!("fetch it first: `boxbuild pull {word}`");
            let message = "the content of the box is needed, and the store does not have it";
            return Err(Failure::new((ErrorCode::BoxNotFound, help), message));
        }
        let reference = match &self.located {
            Some(_) => BoxReference::of_digest(self.digest),
            None => self.argument.parse()?,
        };
        Ok(reference.find(self.stores())?.open()?)
    }
}

/// Returns whether the store or the read-only store has a box. A box in a directory needs no store.
fn is_stored(stores: &Stores, digest: &Digest) -> Result<bool, Failure> {
    let boxes = cli_common::store::stored_boxes(stores)?;
    Ok(boxes.is_some_and(|it| it.directory(digest).is_dir()))
}

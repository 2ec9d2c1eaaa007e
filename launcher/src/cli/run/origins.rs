//! Where the box of a run is from, which decides what volumes it gets.

use std::fs;

use box_cache::{Label, Owner, StoredBoxes};
use box_digest::Digest;
use box_find::BoxReference;
use boxlaunch::mounts::volumes::{Claim, repository};
use cli_common::store::{CommandFault, stored_boxes};

use super::options::RunArgs;
use crate::cli::error::Failure;
use crate::cli::stored::PROGRAM;

/// Returns the claim of a box on the volumes that it declares. Its origins are the Boxfiles and the repositories from which the store
/// has it, and the path of a box outside of the store.
pub(super) fn claim(args: &RunArgs, digest: &Digest) -> Result<Claim, Failure> {
    let boxes = stored_boxes(&args.subject.store.stores(&PROGRAM))?;
    let mut origins = match &boxes {
        Some(boxes) => in_store(boxes, digest).map_err(CommandFault::from)?,
        None => Vec::new(),
    };
    let path = BoxReference::parse(args.subject.word())?.path().map(fs::canonicalize);
    let is_stored = |path: &std::path::Path| {
        boxes
            .as_ref()
            .is_some_and(|it| fs::canonicalize(it.directory(digest)).is_ok_and(|it| it == path))
    };
    let path = path.and_then(Result::ok).filter(|it| !is_stored(it));
    origins.extend(path.map(|it| it.to_string_lossy().into_owned()));
    Ok(Claim::new(origins, digest, args.replaces.as_ref().map(|it| it.from)))
}

/// Returns the Boxfiles, images and repositories of a box in the store. What an archive declares of itself is none.
fn in_store(boxes: &StoredBoxes, digest: &Digest) -> Result<Vec<String>, box_cache::StoreError> {
    let loaded = boxes.references(digest)?.into_iter().filter(|it| it.is_loaded);
    let loaded: Vec<_> = loaded.map(|it| it.reference).collect();
    let labelled = boxes.all()?.into_iter().filter(|it| it.digest == *digest);
    let origins = labelled.filter_map(|it| match (it.label?, it.owner) {
        (_, Some(Owner::Boxfile(path) | Owner::Tagged(path))) => {
            Some(path.to_string_lossy().into_owned())
        }
        (_, Some(Owner::Image(image))) => Some(image),
        (Label::Pulled(reference), _) if !loaded.contains(&reference) => {
            Some(repository(&reference).to_owned())
        }
        _ => None,
    });
    Ok(origins.collect())
}

//! Reads the documents of a box: manifest, config and listing.
//!
//! [`OpenBox`] verifies manifest and config. It opens the kernel, the init and the rootfs but does not hash them;
//! `boxlaunch verify` does.

use std::path::PathBuf;

use box_contract::manifest::LISTING_TYPE;
use box_contract::{ComponentName, ComponentPlan};
use box_layout::Places;
pub use box_layout::{Documents, OpenBox};
use box_tree::entries;
use box_tree::listing::{FileOrigin, LISTING_BYTES, Listing, ListingError, Origins};
use safe_text::readable;
use safe_text::shown;

/// An error from opening a box or reading its documents.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum OpenError {
    /// The box cannot be opened, or one of its files does not match the manifest.
    #[error(transparent)]
    Layout(#[from] box_layout::OpenError),
    /// The manifest does not name exactly one listing.
    #[error("{} does not name exactly one listing ({LISTING_TYPE})", path.display())]
    NoListing { path: PathBuf },
    /// The listing is malformed.
    #[error("the listing of {} is damaged", path.display())]
    Listing { path: PathBuf, source: ListingError },
    /// The box lacks the component.
    #[error("the box {} has no {} component", path.display(), component.name())]
    NoComponent { path: PathBuf, component: ComponentName },
    /// The tree digest of the listing is not the one in the config.
    #[error("the listing of {} does not match its rootfs", path.display())]
    WrongListing { path: PathBuf },
    /// This version can start a box of this epoch, but cannot compare its rootfs with its listing.
    #[error(
        "the box {} is of format epoch {epoch}: this version starts it, but cannot compare its files with its listing",
        path.display()
    )]
    OldEpoch { path: PathBuf, epoch: u32 },
    /// Two boxes have the same listing and different rootfs files, which no build makes.
    #[error(
        "the listings are equal, but the rootfs files differ: {} or {} does not have what its listing \
         names", a.display(), b.display()
    )]
    Forged { a: PathBuf, b: PathBuf },
}

/// Opens the box in a directory. Files that are missing there are looked up in the store, if `places` has one.
///
/// # Errors
/// [`OpenError::Layout`].
pub fn open(places: impl Into<Places>) -> Result<OpenBox, OpenError> {
    Ok(OpenBox::open(places)?)
}

/// Returns the plan of a component.
///
/// # Errors
/// [`OpenError::NoComponent`].
pub fn component(
    opened: &Documents,
    component: ComponentName,
) -> Result<&ComponentPlan, OpenError> {
    let missing = || OpenError::NoComponent { path: opened.places.directory.clone(), component };
    opened.config.plan.component(component).ok_or_else(missing)
}

/// Reads the listing, whose tree digest must match the config. [`crate::verify`] checks that the rootfs has that tree.
///
/// # Errors
/// [`OpenError`].
pub fn listing(opened: &Documents) -> Result<Listing, OpenError> {
    let path = || opened.places.directory.clone();
    let Some(named) = opened.manifest.blob(LISTING_TYPE) else {
        // Boxes of other versions may have no listing.
        return Err(OpenError::NoListing { path: path() });
    };
    let listing = Listing::decode(&opened.read_blob(named, LISTING_BYTES as u64)?)
        .map_err(|source| OpenError::Listing { path: path(), source })?;
    if listing.tree.digest() == opened.config.tree {
        return Ok(listing);
    }
    Err(OpenError::WrongListing { path: path() })
}

/// Checks that two boxes with the same listing have the same rootfs. The rootfs follows from the listing, which has every entry
/// and the layers whose segments contain the data. A `file` of the checkout is an exception: its segment also has files that a
/// policy hides and that the listing lacks. Therefore nothing is compared if `origins`, the origins of the first box, have such
/// files.
///
/// # Errors
/// [`OpenError::Forged`].
pub fn check_same_rootfs(a: &Documents, b: &Documents, origins: &Origins) -> Result<(), OpenError> {
    if !origins.files.is_empty() {
        return Ok(());
    }
    let listing = |it: &Documents| it.manifest.blob(LISTING_TYPE).map(|blob| blob.digest);
    let parts = |it: &Documents| -> Vec<_> { it.parts().iter().map(|part| part.digest).collect() };
    let is_comparable = a.config.epoch == b.config.epoch && listing(a).is_some();
    if is_comparable && listing(a) == listing(b) && parts(a) != parts(b) {
        return Err(OpenError::Forged {
            a: a.places.directory.clone(),
            b: b.places.directory.clone(),
        });
    }
    Ok(())
}

/// Hashes the parts of the rootfs and compares them with the digests in the manifest.
///
/// # Errors
/// [`OpenError::Layout`].
pub fn verify_rootfs(opened: &OpenBox) -> Result<(), OpenError> {
    Ok(opened.rootfs.verify()?)
}

/// Describes the origins of the rootfs. `hidden` is the number of bytes in its segments that belong to no file.
pub fn describe_origins(listing: &Listing, hidden: u64) -> String {
    let mut text = format!("\nrootfs\n  entries           {}\n", entries(&listing.tree).count());
    if hidden > 0 {
        text += &format!("  hidden by layers  {}\n", readable(hidden));
    }
    for image in &listing.origins.images {
        for (at, layer) in (1..).zip(&image.layers) {
            let name = format!("{} layer {at}", image.component.name());
            text += &format!("  {name:<18}{layer}\n");
        }
    }
    if let Some(digest) = listing.origins.program {
        text += &format!("  agent program     {digest}\n");
    }
    for FileOrigin { component, path } in &listing.origins.files {
        let name = format!("{} file", component.name());
        text += &format!("  {name:<18}{}\n", shown(path));
    }
    text
}

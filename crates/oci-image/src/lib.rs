#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod config;
mod docker;
mod documents;
mod error;
mod files;
mod find;
mod form;
mod image;
mod keys;
mod layers;
mod layout;
mod media;
mod platform;
mod registry;
mod source;
#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use box_contract::manifest::LAYOUT_FILE;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use oci_registry::Repository;

use archive::Archive;
pub use archive::{compressed, is_lfs_pointer};
pub use error::{SourceError, Unread};
use files::{Directory, Files};
use find::Wanted;
pub use form::{Form, Found, LFS_POINTER};
pub use image::{Image, Mislabelled};
use layout::Layout;
pub use oci_spec::image::Config;
pub use registry::{Access, Registries, Remote};

/// Opens the image of a reference, for a platform. A digest in the reference takes precedence over the digest `pinned`. If there
/// is a digest, the tag is ignored, because it may name another manifest by now.
///
/// # Errors
/// [`SourceError`].
pub fn open<'a>(
    reference: &ImageRef,
    pinned: Option<Digest>,
    platform: Platform,
    access: &Access<'a>,
) -> Result<Image<'a>, SourceError> {
    let (tag, declared) = tag_and_digest(reference);
    let wanted = Wanted { tag, digest: declared.or(pinned), platform };
    match reference {
        ImageRef::OciLayout { path, .. } => directory(&access.base.join(path), wanted),
        ImageRef::OciArchive { path, .. } => archive(&access.base.join(path), wanted),
        ImageRef::DockerArchive { path, .. } => docker::find(&access.base.join(path), wanted),
        ImageRef::Registry { host, repository, .. } => remote(host, repository, wanted, access),
    }
}

/// Returns the form of the image at `path`, a directory or an archive (`*.tar`). Returns `None` if there is no image.
pub fn form_of(path: &Path) -> Option<Form> {
    if path.join(LAYOUT_FILE).is_file() {
        return Some(Form::Layout);
    }
    if path.extension().is_none_or(|extension| extension != "tar") {
        return None;
    }
    let archive = Archive::open(path, Form::OciArchive).ok()?;
    match (archive.has(docker::MANIFEST_FILE), archive.has(LAYOUT_FILE)) {
        // Current versions of `docker save` also write the files of a layout.
        (true, _) => Some(Form::DockerArchive),
        (false, true) => Some(Form::OciArchive),
        (false, false) => None,
    }
}

fn tag_and_digest(reference: &ImageRef) -> (Option<&str>, Option<Digest>) {
    match reference {
        ImageRef::OciLayout { tag, digest, .. }
        | ImageRef::OciArchive { tag, digest, .. }
        | ImageRef::Registry { tag, digest, .. } => (tag.as_deref(), *digest),
        ImageRef::DockerArchive { tag, .. } => (tag.as_deref(), None),
    }
}

/// Opens an image of a layout directory.
fn directory(path: &Path, wanted: Wanted<'_>) -> Result<Image<'static>, SourceError> {
    let lacks = |_: &Directory| {
        let found = if path.is_file() {
            Found::File
        } else if path.join(docker::MANIFEST_FILE).is_file() {
            Found::SkopeoDirectory
        } else if path.exists() {
            Found::Lacks(LAYOUT_FILE)
        } else {
            Found::Nothing
        };
        SourceError::NotAnImage { path: path.to_owned(), expected: Form::Layout, found }
    };
    layout(Layout::open(Directory(path.to_owned()), Form::Layout, lacks)?, wanted)
}

/// Opens an image of a layout in an archive.
fn archive(path: &Path, wanted: Wanted<'_>) -> Result<Image<'static>, SourceError> {
    let lacks = |archive: &Archive| {
        let is_docker = archive.has(docker::MANIFEST_FILE);
        let found = if is_docker { Found::DockerArchive } else { Found::Lacks(LAYOUT_FILE) };
        SourceError::NotAnImage { path: path.to_owned(), expected: Form::OciArchive, found }
    };
    let archive = Archive::open(path, Form::OciArchive)?;
    layout(Layout::open(archive, Form::OciArchive, lacks)?, wanted)
}

fn layout<F: Files + 'static>(
    layout: Layout<F>,
    wanted: Wanted<'_>,
) -> Result<Image<'static>, SourceError> {
    let layout = Arc::new(layout);
    let (identity, manifest) = find::find(&*layout, wanted)?;
    Image::assemble(layout, identity, &manifest, wanted.platform)
}

/// Opens an image of a registry.
fn remote<'a>(
    host: &str,
    name: &str,
    wanted: Wanted<'_>,
    access: &Access<'a>,
) -> Result<Image<'a>, SourceError> {
    let repository = Repository::new(host, name).map_err(registry::failed)?;
    let repo = Arc::new(access.repo(repository)?);
    let (identity, manifest) = find::find(&*repo, wanted)?;
    Image::assemble(repo, identity, &manifest, wanted.platform)
}

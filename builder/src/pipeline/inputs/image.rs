//! Opens the images of a build by the digests that the lock pins, or else by their references.

use std::path::{Path, PathBuf};

use box_cache::Store;
use box_contract::ImageRef;
use box_contract::{ComponentName, HUB, HUB_LIBRARY};
use box_digest::Digest;
use box_layout::Documents;
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Spanned};
use oci_image::{Access, Form, Found, Image, Mislabelled, Registries, SourceError};
use safe_text::shown;

use super::ComponentImage;
use crate::pipeline::request::Request;
use crate::{BuildError, Cause, Meant};

/// Opens the images of all components that have one. All failures are merged into one error.
pub(super) fn read<'a>(
    request: &Request<'a>,
    store: &'a Store,
) -> Result<Vec<ComponentImage<'a>>, BuildError> {
    let (mut images, mut errors) = (Vec::new(), Vec::new());
    for component in ComponentName::ALL {
        let declared = request.boxfile.component(component);
        if let Some(image) = declared.and_then(|it| it.image.as_ref()) {
            match open(request, component, image, store) {
                Ok(image) => images.push((component, image)),
                Err(error) => errors.push(error),
            }
        }
    }
    BuildError::all(errors).map(|()| images)
}

fn open<'a>(
    request: &Request<'a>,
    component: ComponentName,
    reference: &Spanned<ImageRef>,
    store: &'a Store,
) -> Result<Image<'a>, BuildError> {
    let span = reference.span;
    let pin = request.pins.image(component, &reference.value.to_string(), request.platform);
    let pinned = pin.map(|entry| super::entries::image_digest(entry, span)).transpose()?;
    let access = access(request, store);
    let image = oci_image::open(&reference.value, pinned, request.platform, &access);
    let image =
        image.map_err(|source| match (pin.zip(pinned), place_without(&source, pinned)) {
            (Some((entry, digest)), Some(place)) => {
                BuildError::PinGone { span, name: entry.name.clone(), place, digest }
            }
            _ => BuildError::image(component, span, cause(source, &reference.value, request.base)),
        })?;
    if let Some(entry) = pin {
        super::entries::check_image(entry, &image, span)?;
    }
    Ok(image)
}

/// Returns the warnings about image layouts whose tag names another image than the one that the lock pins. A layout
/// is a local directory, so a user expects its present image.
pub(super) fn changed(
    request: &Request<'_>,
    store: &Store,
    images: &[ComponentImage<'_>],
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (component, image) in images {
        let declared = request.boxfile.component(*component).and_then(|it| it.image.as_ref());
        let Some(reference) = declared else { continue };
        if !matches!(reference.value, ImageRef::OciLayout { digest: None, .. }) {
            continue;
        }
        let access = access(request, store);
        let now = oci_image::open(&reference.value, None, request.platform, &access);
        let Some(now) = now.ok().filter(|now| now.manifest != image.manifest) else { continue };
        let message = format!("the lock keeps another image than {} has now", reference.value);
        let label = format!("now {}, locked {}", now.manifest.short(), image.manifest.short());
        let help = format!("run `boxbuild update {}` to build the new one", component.name());
        warnings.push(Diagnostic::warning(message, reference.span, label).with_help(help));
    }
    warnings
}

/// Returns the warnings about layers whose media type names another compression than they have. Such a box is
/// correct, but some programs refuse the image.
pub(super) fn mislabelled(request: &Request<'_>, images: &[ComponentImage<'_>]) -> Vec<Diagnostic> {
    let warning = |component: ComponentName, it: &Mislabelled| {
        let Mislabelled { number, label, found } = it;
        let message = format!(
            "layer {number} of the image of `{}` is {}, but its manifest labels it as {}",
            component.name(),
            found.name(),
            label.name()
        );
        let help = "it was recognized by its first bytes; so that other programs can read it, too, copy the image with a \
                    current tool that compresses it again";
        let span = request.boxfile.root_span(component);
        Diagnostic::warning(message, span, "named here").with_help(help)
    };
    let each = images.iter().flat_map(|(component, image)| {
        image.mislabelled().into_iter().map(|it| warning(*component, &it)).collect::<Vec<_>>()
    });
    each.collect()
}

/// Returns the cause of a failure, with the image that was probably meant.
fn cause(source: SourceError, reference: &ImageRef, base: &Path) -> Cause {
    if let Some(path) = box_at(reference, base) {
        return Cause::IsBox(path);
    }
    let meant = match (&source, reference) {
        (_, ImageRef::Registry { host, repository, .. }) if host == HUB => {
            unprefixed(repository, base)
        }
        (SourceError::NotAnImage { found: Found::Nothing, .. }, _) => misspelt(reference, base),
        _ => None,
    };
    match meant {
        Some(meant) => Cause::Misnamed { meant, source },
        None => source.into(),
    }
}

/// Returns the path of the box that a reference names instead of an image.
fn box_at(reference: &ImageRef, base: &Path) -> Option<PathBuf> {
    let path = match reference {
        ImageRef::OciLayout { path, .. } => path,
        ImageRef::Registry { host, repository, .. } if host == HUB => path_of(repository),
        _ => return None,
    };
    Documents::read(&base.join(path)).is_ok().then(|| path.into())
}

/// Returns the path that was parsed as a repository, because it has no prefix.
fn path_of(repository: &str) -> &str {
    repository.strip_prefix(HUB_LIBRARY).unwrap_or(repository)
}

/// Returns the directory or image archive whose path was written without a prefix, such as `agent.tar` for
/// `oci-archive:agent.tar`, and therefore parsed as a repository.
fn unprefixed(repository: &str, base: &Path) -> Option<Meant> {
    let path = path_of(repository);
    let place = base.join(path);
    let form = if place.is_dir() { Form::Layout } else { oci_image::form_of(&place)? };
    Some(Meant::Unprefixed { path: path.to_owned(), form })
}

/// Returns the reference to an existing image that was probably meant: the same path without leading slashes, or a
/// sibling with a similar name.
fn misspelt(reference: &ImageRef, base: &Path) -> Option<Meant> {
    let mut meant = reference.clone();
    let (form, path) = match &mut meant {
        ImageRef::OciLayout { path, .. } => (Form::Layout, path),
        ImageRef::OciArchive { path, .. } => (Form::OciArchive, path),
        ImageRef::DockerArchive { path, .. } => (Form::DockerArchive, path),
        ImageRef::Registry { .. } => return None,
    };
    let relative = path.starts_with('/').then(|| path.trim_start_matches('/').to_owned());
    // A message suggests only paths of images, and no other files.
    let is_image = |it: &String| oci_image::form_of(&base.join(it)) == Some(form);
    *path = relative.filter(is_image).or_else(|| neighbour(path, base).filter(is_image))?;
    Some(Meant::Other(meant))
}

/// Returns the sibling of a path with the most similar name.
fn neighbour(path: &str, base: &Path) -> Option<String> {
    /// The maximum number of names that are compared.
    const MAX_NAMES: usize = 8192;
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(it, name)| (it, name));
    let before = &path[..path.len() - name.len()];
    // For a path such as `/agnet`, the directory is the root.
    let directory = if directory.is_empty() { before } else { directory };
    let entries = std::fs::read_dir(base.join(directory)).ok()?;
    let names = entries.take(MAX_NAMES).filter_map(|it| it.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|it| shown(it) == *it && !it.contains(':')).collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Some(format!("{before}{}", nearest(name, &names)?))
}

/// Returns the location of an image if the error is that the pinned image no longer exists.
fn place_without(error: &SourceError, pinned: Option<Digest>) -> Option<String> {
    match error {
        SourceError::Gone { place, digest } if Some(*digest) == pinned => Some(place.clone()),
        SourceError::NotAnImage { path, found: Found::Nothing, .. } => {
            Some(path.display().to_string())
        }
        _ => None,
    }
}

/// Returns the access to the images of a build.
fn access<'a>(request: &Request<'a>, store: &'a Store) -> Access<'a> {
    let (base, offline) = (request.base, request.fetch.offline);
    let registries = request.remote.map(|remote| Registries { store, remote, offline });
    Access { base, registries }
}

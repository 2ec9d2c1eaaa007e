//! The images: as the lock pins them, or as their references lead to them.

use std::path::Path;

use box_cache::Store;
use box_digest::Digest;
use box_image::{ComponentName, HUB, HUB_LIBRARY};
use boxfile_spec::{Diagnostic, ImageRef, Spanned};
use oci_image::{Access, Found, Image, Mislabelled, Registries, SourceError};

use crate::pipeline::request::Request;
use crate::{BuildError, Cause};

/// Opens the images of all components that have one. Everything that is wrong with them is one error.
pub(super) fn read(
    request: &Request<'_>,
    store: &Store,
) -> Result<Vec<(ComponentName, Image)>, BuildError> {
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

fn open(
    request: &Request<'_>,
    component: ComponentName,
    reference: &Spanned<ImageRef>,
    store: &Store,
) -> Result<Image, BuildError> {
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

/// Returns the warnings about layouts in which the tag means another image than the one that the lock
/// pins: they are at hand, so that a person expects what is there now.
pub(super) fn changed(
    request: &Request<'_>,
    store: &Store,
    images: &[(ComponentName, Image)],
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

/// Returns the warnings about layers that are compressed in another way than their images say. Such a box is right;
/// but some programs refuse the image.
pub(super) fn mislabelled(
    request: &Request<'_>,
    store: &Store,
    images: &[(ComponentName, Image)],
) -> Vec<Diagnostic> {
    let access = access(request, store);
    let warning = |component: ComponentName, it: &Mislabelled| {
        let Mislabelled { number, label, found } = it;
        let message = format!(
            "layer {number} of the image of `{}` is {}, but its manifest labels it as {}",
            component.name(),
            found.name(),
            label.name()
        );
        let help = "it was read by its first bytes; to have other programs read it, too, copy the image with a \
                    current tool that compresses it again";
        let span = request.boxfile.root_span(component);
        Diagnostic::warning(message, span, "named here").with_help(help)
    };
    let each = images.iter().flat_map(|(component, image)| {
        image
            .mislabelled(&access)
            .into_iter()
            .map(|it| warning(*component, &it))
            .collect::<Vec<_>>()
    });
    each.collect()
}

/// Returns the cause of a failure; of a reference to a registry that is the path of a directory, too,
/// the cause says so.
fn cause(source: SourceError, reference: &ImageRef, base: &Path) -> Cause {
    let ImageRef::Registry { host, repository, .. } = reference else { return source.into() };
    let path = repository.strip_prefix(HUB_LIBRARY).unwrap_or(repository);
    if host == HUB && base.join(path).is_dir() {
        return Cause::Unprefixed { path: path.to_owned(), source };
    }
    source.into()
}

/// Returns the place of an image if an error is that the pinned image is no longer there.
fn place_without(error: &SourceError, pinned: Option<Digest>) -> Option<String> {
    match error {
        SourceError::Gone { place, digest } if Some(*digest) == pinned => Some(place.clone()),
        SourceError::NotAnImage { path, found: Found::Nothing, .. } => {
            Some(path.display().to_string())
        }
        _ => None,
    }
}

/// Returns what is needed to get at the images of a build.
pub(in crate::pipeline) fn access<'a>(request: &Request<'a>, store: &'a Store) -> Access<'a> {
    let (base, offline) = (request.base, request.fetch.offline);
    let registries = request.remote.map(|remote| Registries { store, remote, offline });
    Access { base, registries }
}

//! The images: as the lock pins them, or as their references lead to them.

use std::path::PathBuf;

use box_image::{ComponentName, Digest};
use boxfile_spec::{ImageRef, Spanned};

use super::{Request, declared};
use crate::BuildError;
use crate::source::{self, Image, SourceError, Wanted};

/// Opens the images of all components that have one.
pub(super) fn read(request: &Request<'_>) -> Result<Vec<(ComponentName, Image)>, BuildError> {
    let mut images = Vec::new();
    for component in ComponentName::ALL {
        let image = declared(request.boxfile, component).and_then(|it| it.image.as_ref());
        if let Some(image) = image {
            images.push((component, open(request, component, image)?));
        }
    }
    Ok(images)
}

fn open(
    request: &Request<'_>,
    component: ComponentName,
    reference: &Spanned<ImageRef>,
) -> Result<Image, BuildError> {
    let span = reference.span;
    let failed = |source| BuildError::Image { component, span, source };
    let (layout, tag, declared) = layout(request, &reference.value).map_err(failed)?;
    let pin = request.pins.image(component, &reference.value.to_string(), request.platform);
    let pinned = pin.map(|entry| super::entries::image_digest(entry, span)).transpose()?;
    // A pin decides what a tag means; against a digest of the Boxfile it is nothing.
    let wanted = Wanted { tag, digest: declared.or(pinned), platform: request.platform };
    let image = source::open(&layout, wanted).map_err(|source| match (source, pin) {
        (SourceError::Gone { path, digest }, Some(entry)) if declared.is_none() => {
            BuildError::PinGone { span, name: entry.name.clone(), path, digest }
        }
        (source, _) => failed(source),
    })?;
    if let Some(entry) = pin {
        super::entries::check_image(entry, &image, span)?;
    }
    Ok(image)
}

/// Returns the layout directory of a reference, its tag and its digest.
fn layout<'r>(
    request: &Request<'_>,
    reference: &'r ImageRef,
) -> Result<(PathBuf, Option<&'r str>, Option<Digest>), SourceError> {
    match reference {
        ImageRef::OciLayout { path, tag, digest } => {
            let digest = digest.map(|digest| Digest::from_bytes(digest.0));
            Ok((request.base.join(path), tag.as_deref(), digest))
        }
        other => Err(SourceError::Unsupported { reference: other.to_string() }),
    }
}

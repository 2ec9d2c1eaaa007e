//! The tree of an OCI image, whose layers are decoded in memory.

use std::io;

use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree::listing::{ImageOrigin, Listing, ListingError, Origins, check_paths};
use oci_image::{Access, SourceError};
use oci_layer::{Excess, LayerError, Limits, Total, flatten};

use super::{Side, SideKind};

/// An image that cannot be compared.
#[derive(Debug, thiserror::Error)]
#[error("the image {reference} cannot be read")]
#[allow(missing_docs, reason = "the fields are named by the message")]
pub struct ImageError {
    pub reference: String,
    pub source: ImageFault,
}

/// Why an image cannot be compared.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum ImageFault {
    /// A document or blob cannot be read.
    Source(#[from] SourceError),
    /// A layer is refused.
    Layer(#[from] LayerError),
    /// The layers together exceed a limit of memory.
    Excess(#[from] Excess),
    /// The paths of the image together are longer than the paths of a box may be.
    #[error("the image has too many files to list")]
    Paths(#[from] ListingError),
}

impl Side {
    /// Takes an image and decodes its layers. The files' data are hashed and not kept.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn of_image(
        reference: &ImageRef,
        platform: Platform,
        access: &Access<'_>,
    ) -> Result<Self, ImageError> {
        let failed = |source| ImageError { reference: reference.to_string(), source };
        image(reference, platform, access).map_err(failed)
    }
}

fn image(
    reference: &ImageRef,
    platform: Platform,
    access: &Access<'_>,
) -> Result<Side, ImageFault> {
    let image = oci_image::open(reference, None, platform, access)?;
    image.fetch_layers(&image.layers.iter().collect::<Vec<_>>())?;
    let total = Total::default();
    let decoded = total.read(&image.layers, |layer| {
        let blob = image.open_layer(layer)?;
        Ok::<_, ImageFault>(total.decode(
            layer,
            blob,
            &mut io::sink(),
            &mut io::sink(),
            &Limits::default(),
        )?)
    })?;
    let both = image.layers.iter().map(|layer| (layer.digest, &decoded[&layer.diff_id]));
    Total::of(both.clone().map(|(_, index)| index)).check()?;
    // The component does not matter: the origin of an image's entry is shown without it (`Side::origin`).
    let component = ComponentName::Agent;
    let tree = flatten(component, both)?;
    // Apply the same limit for paths as a build.
    check_paths(&tree)?;
    let layers: Vec<Digest> = image.layers.iter().map(|layer| layer.diff_id).collect();
    let images = vec![ImageOrigin { component, layers }];
    let origins = Origins { images, ..Origins::default() };
    let kind = SideKind::Image(image.manifest);
    Ok(Side::new(kind, Listing { tree, origins }, Vec::new()))
}

//! The tree of an image, which is decoded for the purpose.

use std::io;

use box_contract::ComponentName;
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use box_tree::listing::{ImageOrigin, Listing, ListingError, Origins, check_paths};
use oci_image::{Access, SourceError};
use oci_layer::{Excess, LayerError, Limits, Total, flatten};

use super::{Side, SideKind};

/// An image cannot be compared.
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
    /// The layers have more together than can be held.
    Excess(#[from] Excess),
    /// Its paths are longer than those of any box.
    #[error("the image has too many files to list")]
    Paths(#[from] ListingError),
}

impl Side {
    /// Takes an image, whose layers are decoded; the files' data are hashed and kept nowhere.
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
    // Whose the image would be does not matter here: see `Side::origin`.
    let component = ComponentName::Agent;
    let tree = flatten(component, both)?;
    // As a build does: no box could have them.
    check_paths(&tree)?;
    let layers: Vec<Digest> = image.layers.iter().map(|layer| layer.diff_id).collect();
    let images = vec![ImageOrigin { component, layers }];
    let origins = Origins { images, ..Origins::default() };
    let kind = SideKind::Image(image.manifest);
    Ok(Side::new(kind, Listing { tree, origins }, Vec::new()))
}

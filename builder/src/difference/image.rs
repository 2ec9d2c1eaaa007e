//! The tree of an image, which is decoded for the purpose.

use std::io;

use box_image::{ComponentName, Digest};
use boxfile_spec::{ImageRef, Platform};
use rayon::prelude::*;

use super::{Side, SideKind};
use crate::layer::{LayerError, Limits, decode, flatten};
use crate::listing::{ImageOrigin, Listing, Origins};
use crate::source::{self, Access, SourceError};

/// Why an image cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The image cannot be read.
    #[error("the image {reference} cannot be read")]
    Source {
        /// The image.
        reference: String,
        /// Why not.
        source: SourceError,
    },
    /// A layer is refused.
    #[error("the image {reference} is refused")]
    Layer {
        /// The image.
        reference: String,
        /// Why.
        source: LayerError,
    },
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
        let named = || reference.to_string();
        let unreadable = |source| ImageError::Source { reference: named(), source };
        let image = source::open(reference, None, platform, access).map_err(unreadable)?;
        image.fetch_layers(&image.layers.iter().collect::<Vec<_>>(), access).map_err(unreadable)?;
        let decode_one = |layer| {
            let blob = image.open_layer(layer, access).map_err(unreadable)?;
            let decoded = decode(layer, blob, &mut io::sink(), &Limits::default());
            decoded.map_err(|source| ImageError::Layer { reference: named(), source })
        };
        let decoded: Vec<_> = image.layers.par_iter().map(decode_one).collect();
        let indexes: Vec<_> = decoded.into_iter().collect::<Result<_, _>>()?;
        let layers: Vec<Digest> = image.layers.iter().map(|layer| layer.digest).collect();
        let both = layers.iter().copied().zip(&indexes);
        let tree = flatten(ComponentName::Agent, both)
            .map_err(|source| ImageError::Layer { reference: named(), source })?;
        // Whose the image would be is nobody's matter here: see `Side::origin`.
        let component = ComponentName::Agent;
        let images = vec![ImageOrigin { component, digest: image.manifest, layers }];
        let origins = Origins { images, ..Origins::default() };
        let kind = SideKind::Image(image.manifest);
        Ok(Self::new(kind, Listing { tree, origins }, Vec::new()))
    }
}

//! The tree of an image, which is decoded for the purpose.

use std::collections::BTreeMap;
use std::io;

use box_digest::Digest;
use box_image::ComponentName;
use box_tree::listing::{ImageOrigin, Listing, Origins};
use boxfile_spec::{ImageRef, Platform};
use oci_image::{Access, SourceError};
use oci_layer::{Excess, LayerError, LayerIndex, LayerSource, Limits, Total, decode, flatten};
use rayon::prelude::*;

use super::{Side, SideKind};

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
    /// The image has more entries than can be held.
    #[error("the layers of the image {reference} have more than {limit} entries together")]
    Entries {
        /// The image.
        reference: String,
        /// How many they may have.
        limit: usize,
    },
    /// The image has more names and attributes than can be held.
    #[error(
        "the layers of the image {reference} have more than {limit} bytes of names and attributes \
         together"
    )]
    IndexBytes {
        /// The image.
        reference: String,
        /// How many they may have.
        limit: usize,
    },
}

impl ImageError {
    const fn too_much(excess: Excess, reference: String) -> Self {
        match excess {
            Excess::Entries(limit) => Self::Entries { reference, limit },
            Excess::IndexBytes(limit) => Self::IndexBytes { reference, limit },
        }
    }
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
        let image = oci_image::open(reference, None, platform, access).map_err(unreadable)?;
        image.fetch_layers(&image.layers.iter().collect::<Vec<_>>(), access).map_err(unreadable)?;
        let refused = |source| ImageError::Layer { reference: named(), source };
        let decoded = decode_each(&image.layers, &named, |layer| {
            let blob = image.open_layer(layer, access).map_err(unreadable)?;
            decode(layer, blob, &mut io::sink(), &Limits::default()).map_err(refused)
        })?;
        let layers: Vec<Digest> = image.layers.iter().map(|layer| layer.diff_id).collect();
        let both = image.layers.iter().map(|layer| (layer.digest, &decoded[&layer.diff_id]));
        let tree = flatten(ComponentName::Agent, both).map_err(refused)?;
        // Whose the image would be is nobody's matter here: see `Side::origin`.
        let component = ComponentName::Agent;
        let images = vec![ImageOrigin { component, layers }];
        let origins = Origins { images, ..Origins::default() };
        let kind = SideKind::Image(image.manifest);
        Ok(Self::new(kind, Listing { tree, origins }, Vec::new()))
    }
}

/// Decodes the layers of an image, several at a time, and each once however often it is there.
fn decode_each(
    layers: &[LayerSource],
    named: &(impl Fn() -> String + Sync),
    decode_one: impl Fn(&LayerSource) -> Result<LayerIndex, ImageError> + Sync,
) -> Result<BTreeMap<Digest, LayerIndex>, ImageError> {
    let distinct: BTreeMap<Digest, &LayerSource> =
        layers.iter().map(|it| (it.diff_id, it)).collect();
    let held = Total::default();
    let too_much = |excess| ImageError::too_much(excess, named());
    let decode_bounded = |(id, layer): (Digest, &LayerSource)| {
        held.check().map_err(too_much)?;
        let index = decode_one(layer)?;
        held.add(&index);
        Ok((id, index))
    };
    let decoded: Vec<_> = distinct.into_par_iter().map(decode_bounded).collect();
    let decoded = decoded.into_iter().collect::<Result<BTreeMap<_, _>, ImageError>>()?;
    let applied = layers.iter().map(|layer| &decoded[&layer.diff_id]);
    Total::of(applied).check().map_err(too_much)?;
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use oci_layer::{Action, Change, Compression, ENTRIES_MAX};

    use super::*;

    fn layer(number: u8) -> LayerSource {
        let digest = Digest::from_bytes([number; 32]);
        LayerSource { digest, size: 1, compression: Compression::None, diff_id: digest }
    }

    /// Decodes layers, each of which has so many entries; tells how many were decoded for it.
    fn decode_all(layers: &[LayerSource], entries: usize) -> (usize, Result<usize, ImageError>) {
        decode_named(layers, entries, b"")
    }

    /// The same, of entries with this path.
    fn decode_named(
        layers: &[LayerSource],
        entries: usize,
        path: &[u8],
    ) -> (usize, Result<usize, ImageError>) {
        let calls = AtomicUsize::new(0);
        let decoded = decode_each(layers, &|| "oci:a".to_owned(), |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let change = Change { path: path.to_vec(), action: Action::Whiteout };
            Ok(LayerIndex { changes: vec![change; entries], contents: Vec::new() })
        });
        (calls.into_inner(), decoded.map(|decoded| decoded.len()))
    }

    #[test]
    fn a_layer_that_is_there_again_is_decoded_once() {
        let layers = [layer(1), layer(2), layer(1), layer(1)];
        assert!(matches!(decode_all(&layers, 3), (2, Ok(2))));
    }

    #[test]
    fn entries_are_bounded_over_all_layers() {
        let again = vec![layer(1); 256];
        assert!(matches!(decode_all(&again, ENTRIES_MAX / 256), (1, Ok(1))));
        let (calls, refused) = decode_all(&again, ENTRIES_MAX / 256 + 1);
        assert_eq!(calls, 1);
        insta::assert_snapshot!(
            refused.unwrap_err(),
            @"the layers of the image oci:a have more than 1048576 entries together"
        );
        // Once they are too many, none more is decoded, but for what other threads are at.
        let many: Vec<_> = (0..=255).map(layer).collect();
        let (calls, refused) = decode_all(&many, ENTRIES_MAX / 8);
        assert!(calls < 9 + rayon::current_num_threads(), "{calls}");
        assert!(matches!(refused, Err(ImageError::Entries { .. })));
    }

    #[test]
    fn names_are_bounded_over_all_layers() {
        let (calls, refused) = decode_named(&vec![layer(1); 256], 1 << 10, &[b'n'; 1 << 10]);
        assert_eq!(calls, 1);
        insta::assert_snapshot!(
            refused.unwrap_err(),
            @"the layers of the image oci:a have more than 201326592 bytes of names and attributes together"
        );
    }
}

//! The probe's report on an image.

use serde::{Deserialize, Serialize};

/// The outcome of reading one image.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The image's directory.
    pub(crate) name: String,
    /// The entries of the image's tree. `None` if the image was refused.
    pub(crate) tree: Option<Vec<String>>,
    /// The kind of the error. If the image cannot be opened, this is the error's debug output; if a layer is refused, the kind
    /// with its causes.
    pub(crate) kind: String,
    /// The error's text.
    pub(crate) text: String,
    /// The digest of the layer in the error.
    pub(crate) layer: String,
    /// The archive's entry in the error, and the entry's offset.
    pub(crate) entry: Option<(String, Option<u64>)>,
    /// The number of files in the store that do not belong to a complete layer.
    pub(crate) left: usize,
}

/// The probe's report on all images.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The outcome of each image, ordered by the images' directories.
    pub(crate) outcomes: Vec<Outcome>,
    /// The probe's peak memory, in KiB.
    pub(crate) peak: u64,
}

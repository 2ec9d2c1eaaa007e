//! The probe's report on an image.

use serde::{Deserialize, Serialize};

/// The outcome for an image.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The image's directory.
    pub(crate) name: String,
    /// The entries of the tree that it gave; nothing where it was refused.
    pub(crate) tree: Option<Vec<String>>,
    /// The error's kind.
    pub(crate) kind: String,
    /// The error's text.
    pub(crate) text: String,
    /// The digest of the layer to blame.
    pub(crate) layer: String,
    /// The entry to blame, and its offset in the archive.
    pub(crate) entry: Option<(String, Option<u64>)>,
    /// How many files there are in the store but what whole layers have left.
    pub(crate) left: usize,
}

/// The probe's last report.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Of each image, by the names of their directories.
    pub(crate) outcomes: Vec<Outcome>,
    /// The most memory that it had, in KiB.
    pub(crate) peak: u64,
}

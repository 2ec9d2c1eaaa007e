//! The known differences between umoci 0.4.7 and boxbuild. Each test has the rule of layer.md, the behaviour of both programs,
//! and a minimal image. All other differences fail the tests.

mod links;
mod markers;
mod metadata;

use std::collections::BTreeSet;
use std::time::SystemTime;

use oci_layer::LayerError;
use testkit::images::{Compression, Config, Image, Layer};

use crate::listing::{Kind, Listing};
use crate::{ours, theirs};

/// Sets umoci's times of the directories in `touched` to ours if umoci gave them the time of the unpacking. Returns their
/// number. See `times_of_directories_that_no_entry_names`.
pub(crate) fn forgive_times(
    ours: &Listing,
    theirs: &mut Listing,
    touched: &BTreeSet<Vec<u8>>,
    start: SystemTime,
) -> usize {
    let mut forgiven = 0;
    for path in touched {
        if let (Some(ours), Some(theirs)) = (ours.get(path), theirs.get_mut(path))
            && theirs.kind == Kind::Directory
            && theirs.mtime.0 >= seconds(start)
            && ours.mtime != theirs.mtime
        {
            theirs.mtime = ours.mtime;
            forgiven += 1;
        }
    }
    forgiven
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// Applies the layers, lowest first, with boxbuild and with umoci.
fn both(layers: &[Layer]) -> (Result<Listing, LayerError>, Result<Listing, String>) {
    let directory = tempfile::tempdir().unwrap();
    let image = layers.iter().map(Layer::to_tar).fold(Image::new(Config::default()), Image::with);
    image.write_layout(directory.path(), "latest", Compression::Gzip).unwrap();
    let ours = ours::tree(directory.path(), "latest").map(|tree| ours::listing(&tree));
    (ours, theirs::unpacked(directory.path(), "latest"))
}

/// Returns the text of the cause for which an entry was refused.
fn cause(refused: Result<Listing, LayerError>) -> String {
    let kind = refused.unwrap_err().kind;
    std::error::Error::source(&kind).unwrap().to_string()
}

/// Returns the paths of all entries except the root.
fn paths(listing: &Listing) -> Vec<&str> {
    listing.keys().skip(1).map(|path| std::str::from_utf8(path).unwrap()).collect()
}

/// Checks the paths in the trees that boxbuild and umoci make of the layers.
fn check_paths(layers: &[Layer], ours: &[&str], theirs: &[&str]) {
    let (our_tree, their_tree) = both(layers);
    assert_eq!(paths(&our_tree.unwrap()), ours, "boxbuild: {layers:?}");
    assert_eq!(paths(&their_tree.unwrap()), theirs, "umoci: {layers:?}");
}

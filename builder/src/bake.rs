//! Baking: a root tree becomes an EROFS image.

use std::io::Write;

use box_tree::Tree;
use box_tree::erofs::image_builder;
use erofs_writer::Summary;

use crate::pack::PackReader;

/// Writes a tree as an EROFS image.
///
/// # Errors
/// The writer's, where the sink or a pack fails; what was written then is no image.
pub fn bake(
    tree: &Tree,
    packs: &mut PackReader<'_>,
    mut out: impl Write,
) -> Result<Summary, erofs_writer::Error> {
    image_builder(tree)?.write(&mut out, packs)
}

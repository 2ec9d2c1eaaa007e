//! Composing: images, skills and the run plan become one root tree.

mod error;
mod plan;
mod split;
mod user;

pub use error::ComposeError;
pub use plan::plan_of;
pub use split::{Parts, compose};

use box_image::ComponentName;

use crate::source::Image;
use crate::tree::Tree;

/// A component's image, flattened.
#[derive(Debug)]
pub struct FlatImage {
    /// Which component it is for.
    pub component: ComponentName,
    /// The image.
    pub image: Image,
    /// Its layers, applied.
    pub tree: Tree,
}

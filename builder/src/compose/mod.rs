//! Composes images, skills and the run plan into one root tree.

mod conventions;
mod error;
mod files;
mod labels;
pub mod merged;
mod mounts;
mod plan;
mod programs;
mod root;
mod system;
mod user;
mod vsock;

use box_contract::ComponentName;
use box_tree::Tree;
use oci_image::Config;

pub use error::{CLibrary, ComposeError, Obstacle, Unrunnable};
pub use files::{Baked, bake};
pub use labels::ImageConfig;
pub use merged::{Merge, MergeReport, merge};
pub use mounts::check as check_mounts;
pub(crate) use plan::image_words;
pub use plan::{Env, check_devices, plan_of, unsupported};
pub use programs::check_programs;
pub use root::{ComponentRoot, Parts, check_roots, compose};
pub use system::System;
pub use vsock::OnLoopback;

/// A component's image, flattened.
#[derive(Debug)]
pub struct FlatImage {
    /// The component that the image is for.
    pub component: ComponentName,
    /// The image's config.
    pub process: Config,
    /// The root that results from applying the image's layers.
    pub tree: Tree,
}

impl FlatImage {
    /// Returns the image's declarations of how its program runs.
    pub(crate) const fn config(&self) -> ImageConfig<'_> {
        ImageConfig { component: self.component, process: &self.process }
    }
}

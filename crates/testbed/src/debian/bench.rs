//! Two images of full size for the benchmark. They have all files of their packages.

use std::path::{Path, PathBuf};

use super::kept::kept;
use super::tree::{Base, SOURCE_DATE_EPOCH, SUITE};
use super::{SEARCH_PATH, TAG};
use crate::prerequisites::Say;
use crate::{Result, Workspace};
use testkit::images::{Compression, Config, Image, LayerTar};

const RECIPE: &str = "2";
/// The variant that debootstrap installs by default.
const OPTIONS: [&str; 1] = ["--variant=important"];
const PYTHON_PACKAGES: &str = "python3,python3-numpy";
const NODE_PACKAGES: &str = "nodejs,npm";

/// The OCI image layouts of the two images, with the tag [`BenchImages::TAG`]. Each image has two gzip layers. The lower
/// layer is the same in both images, byte for byte.
#[derive(Debug, Clone)]
pub struct BenchImages {
    /// Debian, python3 and numpy.
    pub python: PathBuf,
    /// Debian, nodejs and npm: tens of thousands of small files.
    pub node: PathBuf,
}

impl BenchImages {
    /// The tag of both images.
    pub const TAG: &str = TAG;

    /// Returns the images. Missing images are made first, which takes some minutes, downloads about 200 MB, and needs
    /// 2 GB of memory and of disk.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let packages = [PYTHON_PACKAGES, NODE_PACKAGES];
        let recipe = [&["bench", RECIPE, SUITE, SOURCE_DATE_EPOCH][..], &OPTIONS, &packages];
        let made = kept(workspace, &recipe.concat(), say, write_images)?;
        Ok(Self { python: made.join("python"), node: made.join("node") })
    }
}

fn write_images(scratch: &Path, draft: &Path, say: Say<'_>) -> Result<()> {
    let base = Base::make(&OPTIONS, scratch, say)?;
    for (name, packages, program) in
        [("python", PYTHON_PACKAGES, "/usr/bin/python3"), ("node", NODE_PACKAGES, "/usr/bin/node")]
    {
        let upper = base.layer_of(packages, scratch, say)?;
        write_image(&draft.join(name), [base.layer.clone(), upper], program)?;
    }
    Ok(())
}

fn write_image(layout: &Path, layers: [LayerTar; 2], program: &str) -> Result<()> {
    let config = Config {
        cmd: vec![program.to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        ..Config::default()
    };
    let image = layers.into_iter().fold(Image::new(config), Image::with);
    image.write_layout(layout, TAG, Compression::Gzip)?;
    Ok(())
}

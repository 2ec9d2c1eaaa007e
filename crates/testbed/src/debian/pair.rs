//! Images of agents and a business image, small enough for every test run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::kept::{kept, key_of};
use super::tree::{Base, slim_base};
use super::{SEARCH_PATH, TAG};
use crate::prerequisites::Say;
use crate::{Result, Workspace};
use testkit::images::{Compression, Config, Image, Layer};

const RECIPE: &str = "3";
const AGENT_PACKAGES: &str = "python3";
const BUSINESS_PACKAGES: &str = "nodejs";
/// The directories of the image layouts.
const NAMES: [&str; 3] = ["agent", "python", "business"];
const AGENT: &str = include_str!("agent.py");

/// The OCI image layouts of the images, with the tag [`DebianImages::TAG`].
#[derive(Debug, Clone)]
pub struct DebianImages {
    /// Debian, python3, and an agent that serves `/health` on port 4088.
    pub agent: PathBuf,
    /// Debian and python3. It runs `/agent/agent.py`, which the test has to provide.
    pub python: PathBuf,
    /// The business image: Debian and nodejs.
    pub business: PathBuf,
}

impl DebianImages {
    /// The tag of all images.
    pub const TAG: &str = TAG;

    /// Returns the images. Missing images are made first, which takes a minute or more and downloads about 60 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let base = slim_base(workspace, say)?;
        let key = key_of(&base);
        let packages = [AGENT_PACKAGES, BUSINESS_PACKAGES];
        let recipe = [&["pair", RECIPE, AGENT, &key][..], &packages].concat();
        let made = kept(workspace, &recipe, say, |scratch, draft, say| {
            write_images(&Base::read(&base)?, scratch, draft, say)
        })?;
        let [agent, python, business] = NAMES.map(|name| made.join(name));
        Ok(Self { agent, python, business })
    }
}

fn write_images(base: &Base, scratch: &Path, draft: &Path, say: Say<'_>) -> Result<()> {
    let agent = Layer::new().dir("/agent", 0o755).file("/agent/agent.py", 0o755, AGENT).to_tar();
    let python = base.layer_of(AGENT_PACKAGES, scratch, say)?;
    let node = base.layer_of(BUSINESS_PACKAGES, scratch, say)?;
    let images = [
        Image::new(agent_config()).with(base.layer.clone()).with(python.clone()).with(agent),
        Image::new(python_config()).with(base.layer.clone()).with(python),
        Image::new(business_config()).with(base.layer.clone()).with(node),
    ];
    for (image, name) in images.iter().zip(NAMES) {
        image.write_layout(&draft.join(name), TAG, Compression::Gzip)?;
    }
    Ok(())
}

fn agent_config() -> Config {
    Config {
        labels: BTreeMap::from([
            ("a3s.type".to_owned(), "agent".to_owned()),
            ("a3s.port".to_owned(), "4088".to_owned()),
        ]),
        ..python_config()
    }
}

fn python_config() -> Config {
    Config {
        entrypoint: vec!["/usr/bin/python3".to_owned(), "/agent/agent.py".to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        working_dir: "/agent".to_owned(),
        ..Config::default()
    }
}

fn business_config() -> Config {
    Config {
        cmd: vec!["/usr/bin/node".to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        ..Config::default()
    }
}

//! An agent's image and a business image, small enough to be made in every test run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::diff::layer_between;
use super::kept::kept;
use super::tree::{SOURCE_DATE_EPOCH, SUITE, debian_tree};
use super::{SEARCH_PATH, TAG};
use crate::images::{Compression, Config, Image, Layer};
use crate::prerequisites::Say;
use crate::{Result, Workspace};

const RECIPE: &str = "1";
const AGENT_PACKAGES: &str = "python3";
const BUSINESS_PACKAGES: &str = "nodejs";
const AGENT: &str = include_str!("agent.py");
/// Nobody reads manuals here.
const OPTIONS: [&str; 4] = [
    "--variant=essential",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
];

/// The OCI image layouts of the two images; the tag of each is [`DebianImages::TAG`].
#[derive(Debug, Clone)]
pub struct DebianImages {
    /// Debian, python3, and an agent that serves `/health` on port 4088.
    pub agent: PathBuf,
    /// The business image: Debian and nodejs.
    pub business: PathBuf,
}

impl DebianImages {
    /// The tag of both images.
    pub const TAG: &str = TAG;

    /// Returns the images, after they were made where they were missing; that takes a minute or
    /// more and downloads about 60 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let packages = [AGENT_PACKAGES, BUSINESS_PACKAGES];
        let recipe = [&[RECIPE, SUITE, AGENT, SOURCE_DATE_EPOCH][..], &OPTIONS, &packages].concat();
        let made = kept(workspace, &recipe, say, write_images)?;
        Ok(Self { agent: made.join("agent"), business: made.join("business") })
    }
}

fn write_images(scratch: &Path, draft: &Path, say: Say<'_>) -> Result<()> {
    let base = debian_tree(&OPTIONS, "", scratch, say)?;
    let python = debian_tree(&OPTIONS, AGENT_PACKAGES, scratch, say)?;
    let agent = Layer::new().dir("/agent", 0o755).file("/agent/agent.py", 0o755, AGENT).to_tar();
    Image::new(agent_config())
        .with(base.clone())
        .with(layer_between(&base, &python)?)
        .with(agent)
        .write_layout(&draft.join("agent"), TAG, Compression::Gzip)?;
    let node = debian_tree(&OPTIONS, BUSINESS_PACKAGES, scratch, say)?;
    Image::new(business_config())
        .with(base.clone())
        .with(layer_between(&base, &node)?)
        .write_layout(&draft.join("business"), TAG, Compression::Gzip)
        .map(drop)
}

fn agent_config() -> Config {
    Config {
        entrypoint: vec!["/usr/bin/python3".to_owned(), "/agent/agent.py".to_owned()],
        env: vec![SEARCH_PATH.to_owned()],
        working_dir: "/agent".to_owned(),
        labels: BTreeMap::from([
            ("a3s.type".to_owned(), "agent".to_owned()),
            ("a3s.port".to_owned(), "4088".to_owned()),
        ]),
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

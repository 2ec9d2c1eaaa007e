//! Two images of the size and shape that real ones have, made of Debian packages.
//!
//! The agent's has python3 and a small agent, the business one has nodejs. Both stand on the same
//! base layer, byte for byte. They are made once and kept in the build output:
//!
//! ```text
//! target/debian-images/KEY/agent       an OCI image layout, tag "latest"
//! target/debian-images/KEY/business
//! ```
//!
//! KEY is a digest of the recipe: what this file says.

mod diff;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::images::{Compression, Config, Image, Layer, LayerTar};
use crate::prerequisites::{Package, Say, lock, packages};
use crate::{KitError, Result, Workspace, digest, program};

const RECIPE: &str = "1";
const SUITE: &str = "bookworm";
const AGENT_PACKAGES: &str = "python3";
const BUSINESS_PACKAGES: &str = "nodejs";
const AGENT: &str = include_str!("agent.py");
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// No file is newer than this: 2026-01-01, in seconds since 1970.
const SOURCE_DATE_EPOCH: &str = "1767225600";
/// Options of each run: nobody reads manuals here, and nobody needs the tree after a crash.
const OPTIONS: [&str; 6] = [
    "--quiet",
    "--variant=essential",
    "--dpkgopt=force-unsafe-io",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
];

/// The OCI image layouts of the two images; the tag of each is [`DebianImages::TAG`].
#[derive(Debug, Clone)]
pub struct DebianImages {
    /// Debian, python3, and an agent that serves `/health` on port 4088.
    pub agent: PathBuf,
    /// Debian and nodejs.
    pub business: PathBuf,
}

impl DebianImages {
    /// The tag of both images.
    pub const TAG: &str = "latest";

    /// Returns the images, after they were made where they were missing; that takes a minute or
    /// more and downloads about 60 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let folder = workspace.target("debian-images");
        let made = folder.join(key());
        let images = Self { agent: made.join("agent"), business: made.join("business") };
        if made.is_dir() {
            return Ok(images);
        }
        let _lock = lock(&folder)?;
        if !made.is_dir() {
            packages(&[Package::Mmdebstrap], say)?;
            let scratch = tempfile::tempdir_in(&folder).map_err(KitError::file("make", &folder))?;
            let draft = scratch.path().join("ready");
            write_images(scratch.path(), &draft, say)?;
            fs::rename(&draft, &made).map_err(KitError::file("rename", &draft))?;
        }
        Ok(images)
    }
}

fn key() -> String {
    let packages = [AGENT_PACKAGES, BUSINESS_PACKAGES];
    let recipe = [&[RECIPE, SUITE, AGENT, SOURCE_DATE_EPOCH][..], &OPTIONS, &packages].concat();
    digest::of_bytes(recipe.join("\0").as_bytes()).hex()[..16].to_owned()
}

fn write_images(scratch: &Path, draft: &Path, say: Say<'_>) -> Result<()> {
    let base = debian_tree("", scratch, say)?;
    let python = debian_tree(AGENT_PACKAGES, scratch, say)?;
    let agent = Layer::new().dir("/agent", 0o755).file("/agent/agent.py", 0o755, AGENT).to_tar();
    Image::new(agent_config())
        .with(base.clone())
        .with(diff::layer_between(&base, &python)?)
        .with(agent)
        .write_layout(&draft.join("agent"), DebianImages::TAG, Compression::Gzip)?;
    let node = debian_tree(BUSINESS_PACKAGES, scratch, say)?;
    Image::new(business_config())
        .with(base.clone())
        .with(diff::layer_between(&base, &node)?)
        .write_layout(&draft.join("business"), DebianImages::TAG, Compression::Gzip)
        .map(drop)
}

/// Makes a tree of essential packages and those named, as a tar stream.
fn debian_tree(include: &str, scratch: &Path, say: Say<'_>) -> Result<LayerTar> {
    let tar = scratch.join(format!("{SUITE}-{include}.tar"));
    let mut command = Command::new("mmdebstrap");
    command.env("SOURCE_DATE_EPOCH", SOURCE_DATE_EPOCH).args(OPTIONS);
    if !include.is_empty() {
        command.arg(format!("--include={include}"));
    }
    command.arg(SUITE).arg(&tar);
    say(&format!("making a Debian tree: {}", program::shown(&command)));
    program::run(&mut command)?;
    LayerTar::read(&tar)
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

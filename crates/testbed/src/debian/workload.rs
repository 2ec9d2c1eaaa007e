//! An image with programs that use many features of a kernel.

use std::path::PathBuf;

use super::kept::{kept, key_of};
use super::tree::{Base, slim_base};
use super::{SEARCH_PATH, TAG};
use crate::prerequisites::Say;
use crate::{Result, Workspace};
use testkit::images::{Compression, Config, Image};

const RECIPE: &str = "4";
const PACKAGES: &str = "apt,ca-certificates,curl,git,nodejs,npm,python3-httpx,python3-numpy,python3-pip,python3-requests,python3-venv,sqlite3,strace";

/// The OCI image layout of Debian with apt, curl, git, Node.js and npm, Python with httpx, numpy, pip, requests and venv,
/// SQLite and strace.
#[derive(Debug, Clone)]
pub struct WorkloadImage(pub PathBuf);

impl WorkloadImage {
    /// Returns the image. A missing image is made first, which takes a minute or more and downloads about 150 MB.
    ///
    /// # Errors
    /// mmdebstrap is missing and cannot be installed, or fails, or the disk is full.
    pub fn make(workspace: &Workspace, say: Say<'_>) -> Result<Self> {
        let base = slim_base(workspace, say)?;
        let recipe = ["workload", RECIPE, &key_of(&base), PACKAGES];
        let made = kept(workspace, &recipe, say, |scratch, draft, say| {
            let base = Base::read(&base)?;
            let env = vec![SEARCH_PATH.to_owned()];
            Image::new(Config { cmd: vec!["/bin/sh".to_owned()], env, ..Config::default() })
                .with(base.layer.clone())
                .with(base.layer_of(PACKAGES, scratch, say)?)
                .write_layout(&draft.join("image"), TAG, Compression::Gzip)?;
            Ok(())
        })?;
        Ok(Self(made.join("image")))
    }
}

//! The SPDX project's validator of documents, from the Python index.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{Result, Workspace, program};

/// The validator, and the dependencies that it needs for JSON documents: 2 MB of plain Python.
const REQUIREMENTS: &str = "\
spdx-tools==0.8.3 --hash=sha256:638fd9bd8be61901316eb6d063574e16d5403a1870073ec4d9241426a997501a
beartype==0.23.1 --hash=sha256:4461b4dc57e3fdd6c8a8464b22cf118002eea107c33e9fef651c69068ab3cce3
boolean.py==5.0 --hash=sha256:ef28a70bd43115208441b53a045d1549e2f0ec6e3d08a9d142cbc41c1938e8d9
license-expression==30.4.4 --hash=sha256:421788fdcadb41f049d2dc934ce666626265aeccefddd25e162a26f23bcbf8a4
semantic-version==2.10.0 --hash=sha256:de78a3b8e0feda74cabc54aab2da702113e33ac9d9eb9d2389bcf1f58b7d9177
uritools==6.1.3 --hash=sha256:136f113e76e53f85bf2d9cce0c3d40ceec775d0409e7d6de9b28f046a7d42838
";
const PROGRAM: &str = include_str!("spdx.py");

/// The SPDX project's validator of documents.
#[derive(Debug, Clone)]
pub struct SpdxValidator {
    folder: PathBuf,
}

impl SpdxValidator {
    /// Returns the faults of an SPDX 2.3 document in JSON. The text is empty if there are none.
    ///
    /// # Errors
    /// The document cannot be parsed.
    pub fn check(&self, document: &Path) -> Result<String> {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &self.folder).args(["-c", PROGRAM]).arg(document);
        Ok(String::from_utf8_lossy(&program::run(&mut python)?).into_owned())
    }
}

/// Returns the validator. If it is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// The validator cannot be downloaded, or has another digest.
pub fn spdx_validator(workspace: &Workspace, say: Say<'_>) -> Result<SpdxValidator> {
    python_packages(workspace, ("spdx", Platform::Any), REQUIREMENTS, say)
        .map(|folder| SpdxValidator { folder })
}

//! The ORAS project's client for registries, from the Python index.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{Result, Workspace, program};

/// The client and its dependencies, with the last jsonschema that is plain Python.
const REQUIREMENTS: &str = "\
oras==0.2.43 --hash=sha256:bf295b1cfb5017f579c35c3394c7a71707f6aff463cb6699d5d191a6d8b56ea6
requests==2.34.2 --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
urllib3==2.8.0 --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3
idna==3.20 --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
certifi==2026.10.19.post1 --hash=sha256:1324c476b4811eff41a8bc2122cd0bbd4d9c7234c725446d99ab1612b3a7fdd2
charset-normalizer==3.5.3 --hash=sha256:96e268b0cbda016ac519513294fcd17032264085b600abaac58b93049477e132
jsonschema==4.17.3 --hash=sha256:a870ad254da1a8ca84b6a2905cac29d265f805acc57af304784962a2aa6508f6
attrs==26.1.0 --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309
pyrsistent==0.20.0 --hash=sha256:c55acc4733aad6560a7f5f818466631f07efc001fd023f34a6c203f8b6df0f0b
";
const PROGRAM: &str = include_str!("oras.py");

/// The ORAS project's client for registries.
#[derive(Debug, Clone)]
pub struct Oras {
    folder: PathBuf,
}

impl Oras {
    /// Copies an artifact between two repositories of a registry without TLS. The client writes all blobs of the artifact to
    /// the directory `through`, and makes a new manifest. Returns the original manifest, in JSON.
    ///
    /// # Errors
    /// The client fails.
    pub fn copy(&self, from: &str, to: &str, through: &Path) -> Result<String> {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &self.folder).args(["-c", PROGRAM, from, to]).arg(through);
        Ok(String::from_utf8_lossy(&program::run(&mut python)?).into_owned())
    }
}

/// Returns the client. If it is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// The client cannot be downloaded, or has another digest.
pub fn oras(workspace: &Workspace, say: Say<'_>) -> Result<Oras> {
    python_packages(workspace, ("oras", Platform::Any), REQUIREMENTS, say)
        .map(|folder| Oras { folder })
}

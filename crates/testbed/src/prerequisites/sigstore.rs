//! The sigstore project's verifier of bundles, from the npm registry.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::Say;
use super::npm::{NpmPackages, npm_packages};
use crate::{KitError, Result, Workspace, program};

/// The verifier, and npm's lock with the digests of it and of its dependencies.
const PACKAGE: &str = include_str!("sigstore/package.json");
const LOCK: &str = include_str!("sigstore/package-lock.json");
const PROGRAM: &str = include_str!("sigstore/verify.js");

/// The sigstore project's verifier of bundles.
#[derive(Debug, Clone)]
pub struct Sigstore {
    packages: NpmPackages,
}

/// What the verifier says about a bundle: `Ok`, or its error.
pub type Verdict = std::result::Result<(), String>;

#[derive(Serialize)]
struct Input<'a> {
    keys: &'a [(String, String)],
    bundles: &'a [String],
    private: &'a [String],
}

#[derive(Deserialize)]
struct Output {
    bundles: Vec<Option<String>>,
    public: Vec<String>,
}

impl Sigstore {
    /// Verifies each of the texts `bundles`. `keys` has a hint and a public key in PEM for each trusted key. The verifier requires
    /// no transparency log and no time. It reads no statement, so it accepts one about another subject.
    ///
    /// # Errors
    /// Node.js fails.
    pub fn verify(&self, keys: &[(String, String)], bundles: &[String]) -> Result<Vec<Verdict>> {
        let output = self.run(&Input { keys, bundles, private: &[] })?;
        Ok(output.bundles.into_iter().map(|it| it.map_or(Ok(()), Err)).collect())
    }

    /// Returns the public key in PEM of each private key in PEM, as Node.js derives it.
    ///
    /// # Errors
    /// Node.js fails, or cannot read a key.
    pub fn public_keys(&self, private: &[String]) -> Result<Vec<String>> {
        Ok(self.run(&Input { keys: &[], bundles: &[], private })?.public)
    }

    fn run(&self, input: &Input<'_>) -> Result<Output> {
        let NpmPackages { node, folder } = &self.packages;
        let file = tempfile::NamedTempFile::new_in(folder);
        let file = file.map_err(KitError::file("make", folder))?;
        let text = serde_json::to_vec(input)
            .map_err(|error| KitError::malformed("a list of bundles", error))?;
        fs::write(file.path(), text).map_err(KitError::file("write", file.path()))?;
        let mut node = Command::new(node);
        node.current_dir(folder).args(["-e", PROGRAM]).arg(file.path());
        let output = program::run(&mut node)?;
        let read = serde_json::from_slice(&output);
        read.map_err(|error| KitError::malformed("the verdicts of @sigstore/verify", error))
    }
}

/// Returns the verifier. If it or Node.js is missing, it is downloaded into the cache of the checks first, without installing it.
///
/// # Errors
/// One of them cannot be downloaded, or has another digest.
pub fn sigstore(workspace: &Workspace, say: Say<'_>) -> Result<Sigstore> {
    let packages = npm_packages(workspace, "sigstore", (PACKAGE, LOCK), say)?;
    Ok(Sigstore { packages })
}

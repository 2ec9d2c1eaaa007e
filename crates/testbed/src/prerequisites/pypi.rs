//! Downloads packages of the Python index into the cache of the checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_digest::Digest;

use super::{Say, pip};
use crate::{Cache, KitError, Result, Workspace, program};

/// The systems for which packages are made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Platform {
    /// Any system: the packages are plain Python.
    Any,
    /// Linux on x86-64 with glibc 2.28 or later. Debian has had it since version 10.
    Linux,
    /// This system, and the version of Python that is used here. The requirements have a digest for each supported version.
    ThisPython,
}

impl Platform {
    /// Returns the tags in the names of packages
    /// ([platform compatibility tags](https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/)). Empty if
    /// pip chooses the packages that fit.
    const fn tags(self) -> &'static [&'static str] {
        match self {
            Self::Any => &["any"],
            Self::Linux => &["manylinux_2_28_x86_64", "manylinux_2_17_x86_64"],
            Self::ThisPython => &[],
        }
    }
}

/// Returns a directory with Python packages, for `PYTHONPATH`. If it is missing, the packages are downloaded first, without
/// installing them for the system. `requirements` lists the packages and all their dependencies with their digests. Only
/// these are fetched. Except with [`Platform::ThisPython`], they are for every version of Python, so that one list fits all.
pub(crate) fn python_packages(
    workspace: &Workspace,
    (name, platform): (&str, Platform),
    requirements: &str,
    say: Say<'_>,
) -> Result<PathBuf> {
    let python = platform.tags().is_empty().then(python_version).transpose()?.unwrap_or_default();
    let key = Digest::of(format!("{requirements}{python}").as_bytes()).hex();
    Cache::of_user(workspace).made((name, &key), |scratch, draft| {
        pip(say)?;
        say(&format!("fetching {name} with pip, without installing it"));
        fetch(scratch, draft, platform, requirements)
    })
}

/// Returns the version that `python3 --version` prints.
fn python_version() -> Result<String> {
    let text = program::run(Command::new("python3").arg("--version"))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn fetch(scratch: &Path, draft: &Path, platform: Platform, requirements: &str) -> Result<()> {
    let list = scratch.join("requirements.txt");
    fs::write(&list, requirements).map_err(KitError::file("write", &list))?;
    let mut python = Command::new("python3");
    python.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:"]);
    for tag in platform.tags() {
        python.args(["--platform", tag]);
    }
    if !platform.tags().is_empty() {
        python.args(["--implementation", "py", "--abi", "none"]);
    }
    python.args(["--require-hashes", "--no-warn-script-location", "--target"]).arg(draft);
    program::run(python.arg("--requirement").arg(&list)).map(drop)
}

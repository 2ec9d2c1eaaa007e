//! The advisories of RustSec, from the checkout of the advisory database that `ADVISORY_DB` names.
//!
//! An advisory is a Markdown file `crates/NAME/ID.md` that begins with a block of TOML, in the
//! [advisory format](https://github.com/RustSec/advisory-db#advisory-format).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use semver::VersionReq;
use serde::Deserialize;
use testbed::{KitError, Result};

use super::Package;

/// The beginning and the end of the TOML block.
const BLOCK: (&str, &str) = ("```toml", "```");

#[derive(Debug, Deserialize)]
struct Document {
    advisory: Advisory,
    versions: Versions,
}

#[derive(Debug, Deserialize)]
struct Advisory {
    id: String,
    /// The date on which the advisory was withdrawn, if it was.
    withdrawn: Option<String>,
    /// The kind of an advisory that is not a vulnerability, such as `unmaintained`. `None` for a vulnerability.
    informational: Option<String>,
}

/// The versions that an advisory does not affect.
#[derive(Debug, Deserialize)]
struct Versions {
    patched: Vec<VersionReq>,
    #[serde(default)]
    unaffected: Vec<VersionReq>,
}

/// Returns the path of the database's checkout from the environment variable `ADVISORY_DB`. `None` if it is not set.
pub(super) fn database() -> Option<PathBuf> {
    env::var_os("ADVISORY_DB").map(PathBuf::from)
}

/// Returns a line for each advisory that affects one of the crates.
///
/// # Errors
/// The directory is not a checkout of the database, or an advisory is malformed.
pub(super) fn concerning(database: &Path, packages: &[Package]) -> Result<Vec<String>> {
    let all = database.join("crates");
    fs::read_dir(&all).map_err(KitError::file("list the advisories in", &all))?;
    let mut found = Vec::new();
    for package in packages.iter().filter(|it| it.source.is_some()) {
        let Ok(entries) = fs::read_dir(all.join(&package.name)) else { continue };
        for entry in entries {
            let path = entry.map_err(KitError::file("list the advisories in", &all))?.path();
            let text = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
            let document =
                parse(&text).map_err(|error| KitError::malformed("an advisory", error))?;
            if document.concerns(package) {
                let Package { name, version, .. } = package;
                found.push(format!("{name} {version} has the advisory {}", document.advisory.id));
            }
        }
    }
    Ok(found)
}

fn parse(text: &str) -> std::result::Result<Document, String> {
    let block = text.split_once(BLOCK.0).and_then(|(_, rest)| rest.split_once(BLOCK.1));
    let (block, _) = block.ok_or("it has no block of TOML")?;
    toml::from_str(block).map_err(|error| error.to_string())
}

impl Document {
    fn concerns(&self, package: &Package) -> bool {
        let Advisory { withdrawn, informational, .. } = &self.advisory;
        let is_unsound = informational.as_deref().is_none_or(|it| it == "unsound");
        let Versions { patched, unaffected } = &self.versions;
        let mut safe = patched.iter().chain(unaffected);
        withdrawn.is_none() && is_unsound && !safe.any(|it| it.matches(&package.version))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::package;
    use super::*;

    const TEXT: &str = "```toml\n[advisory]\nid = \"RUSTSEC-2020-0001\"\npackage = \"a\"\n\
                        [versions]\npatched = [\">= 1.2.3\"]\nunaffected = [\"< 1.0\"]\n```\n# Title\n";

    #[test]
    fn versions_between_are_concerned() {
        let database = tempfile::tempdir().unwrap();
        let directory = database.path().join("crates/a");
        fs::create_dir_all(&directory).unwrap();
        let concerned = |version: &str, text: &str| {
            fs::write(directory.join("RUSTSEC-2020-0001.md"), text).unwrap();
            concerning(database.path(), &[package("a", version, "MIT", "registry")]).unwrap()
        };
        assert_eq!(concerned("1.1.0", TEXT), ["a 1.1.0 has the advisory RUSTSEC-2020-0001"]);
        assert_eq!(concerned("1.2.3", TEXT), [""; 0]);
        assert_eq!(concerned("0.9.0", TEXT), [""; 0]);
        let withdrawn = TEXT.replace("package", "withdrawn = \"2021-01-01\"\npackage");
        assert_eq!(concerned("1.1.0", &withdrawn), [""; 0]);
        let unmaintained = TEXT.replace("package", "informational = \"unmaintained\"\npackage");
        assert_eq!(concerned("1.1.0", &unmaintained), [""; 0]);
    }

    #[test]
    fn a_directory_without_advisories_is_an_error() {
        assert!(concerning(Path::new("/nowhere"), &[]).is_err());
        assert!(parse("# Title").is_err());
    }
}

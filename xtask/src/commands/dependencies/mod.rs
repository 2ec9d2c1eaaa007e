//! `cargo xtask dependencies`: checks the licences, sources, versions and advisories of all dependencies.

mod advisories;
#[cfg(test)]
mod ours;

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Deserialize;
use spdx::{Expression, ParseMode};
use testbed::{KitError, Result, Workspace, program};
use tool_output::say;

use super::Outcome;

/// The permitted licences of dependencies, as [SPDX identifiers](https://spdx.org/licenses/). All of them permit distributing the
/// programs under the project's licence.
const LICENCES: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Crates with another licence. They are permitted because only tests use them, so they are not distributed.
const ONLY_IN_TESTS: [&str; 1] = ["option-ext"];
/// The only permitted source of dependencies.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The reason for older versions that only ocipkg needs. They are in none of the distributed programs.
const OCIPKG: &str = "ocipkg, which only tests use";
/// The crates of which several versions are permitted, and the reason for the older version of each.
const TWICE: [(&str, &str); 22] = [
    ("base64", OCIPKG),
    ("bitflags", "libkrun, by vm-memory"),
    ("block-buffer", OCIPKG),
    ("cpufeatures", OCIPKG),
    ("crypto-common", OCIPKG),
    ("digest", OCIPKG),
    ("getrandom", "ring and rand, each a version of its own"),
    ("miniz_oxide", "backtraces of the test programs"),
    ("nix", "libkrun"),
    ("oci-spec", OCIPKG),
    ("r-efi", "getrandom, for a platform that is none of ours"),
    ("rand", "proptest"),
    ("rand_core", "proptest"),
    ("sha2", OCIPKG),
    ("syn", "derives that have not moved to its new version"),
    ("toml", OCIPKG),
    ("toml_datetime", OCIPKG),
    ("unicode-width", "the errors of kdl"),
    ("vmm-sys-util", "libkrun"),
    ("webpki-roots", OCIPKG),
    ("windows-sys", "for a platform that is none of ours"),
    ("winnow", "kdl"),
];

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: semver::Version,
    license: Option<String>,
    /// `None` for crates of the workspace.
    source: Option<String>,
}

pub(crate) fn run() -> Outcome {
    let workspace = Workspace::find();
    let packages = packages(&workspace)?;
    check_all(&packages)?;
    let foreign = packages.iter().filter(|it| it.source.is_some()).count();
    let advisories = match advisories::database() {
        Some(_) => "no advisory concerns them",
        None => "ADVISORY_DB names no checkout of the advisory database",
    };
    say::note(&format!(
        "{foreign} crates: licences, sources and versions are as agreed; {advisories}"
    ));
    Ok(ExitCode::SUCCESS)
}

/// Checks all dependencies.
///
/// # Errors
/// A licence, source or version is not permitted, or an advisory applies. The error lists all of these.
pub(super) fn check(workspace: &Workspace) -> Result<()> {
    check_all(&packages(workspace)?)
}

fn packages(workspace: &Workspace) -> Result<Vec<Package>> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1"]);
    let text = program::run(&mut cargo)?;
    let metadata: Metadata = serde_json::from_slice(&text)
        .map_err(|error| KitError::malformed("what cargo metadata prints", error))?;
    Ok(metadata.packages)
}

fn check_all(packages: &[Package]) -> Result<()> {
    let judged = packages.iter().filter(|it| !ONLY_IN_TESTS.contains(&&*it.name));
    let mut found: Vec<String> = judged.filter_map(wrong_licence).collect();
    found.extend(packages.iter().filter_map(wrong_source));
    found.extend(versions(packages, &TWICE));
    if let Some(database) = advisories::database() {
        found.extend(advisories::concerning(&database, packages)?);
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(KitError::malformed("the dependencies", found.join("\n")))
}

/// Returns a line about a crate's licence if [`LICENCES`] does not permit it.
fn wrong_licence(package: &Package) -> Option<String> {
    let Package { name, version, license, .. } = package;
    let Some(text) = license else { return Some(format!("{name} {version} names no licence")) };
    // Older crates write `MIT/Apache-2.0`.
    let mode = ParseMode { allow_slash_as_or_operator: true, ..ParseMode::STRICT };
    let Ok(expression) = Expression::parse_mode(text, mode) else {
        return Some(format!("{name} {version}: {text:?} is no licence expression"));
    };
    let agreed = expression.evaluate(|wanted| {
        let id = wanted.license.id().map_or("", |it| it.name);
        wanted.addition.is_none() && LICENCES.contains(&id)
    });
    (!agreed).then(|| format!("{name} {version} is under {text}"))
}

fn wrong_source(package: &Package) -> Option<String> {
    let source = package.source.as_deref().filter(|it| *it != REGISTRY)?;
    Some(format!("{} {} comes from {source}", package.name, package.version))
}

/// Returns a line for each crate with several versions that `twice` does not permit, and for each outdated entry of `twice`.
fn versions(packages: &[Package], twice: &[(&str, &str)]) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in packages {
        versions.entry(&package.name).or_default().push(package.version.to_string());
    }
    let is_agreed = |name: &str| twice.iter().any(|(agreed, _)| *agreed == name);
    let several = versions.iter().filter(|(name, all)| all.len() > 1 && !is_agreed(name));
    let several = several.map(|(name, all)| format!("{name} is there as {}", all.join(" and ")));
    let gone = twice.iter().filter(|(name, _)| versions.get(name).is_none_or(|all| all.len() < 2));
    let gone =
        gone.map(|(name, reason)| format!("{name} is there once, but agreed to twice ({reason})"));
    several.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn package(name: &str, version: &str, license: &str, source: &str) -> Package {
        let (license, source) = (Some(license.to_owned()), Some(source.to_owned()));
        Package { name: name.to_owned(), version: version.parse().unwrap(), license, source }
    }

    #[test]
    fn licences_are_judged_as_expressions() {
        let wrong = |license| wrong_licence(&package("a", "1.0.0", license, REGISTRY));
        for agreed in
            ["MIT", "MIT/Apache-2.0", "GPL-3.0-only OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert_eq!(wrong(agreed), None, "{agreed}");
        }
        for refused in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "mine", ""] {
            assert!(wrong(refused).is_some(), "{refused}");
        }
    }

    #[test]
    fn other_sources_are_named() {
        assert_eq!(wrong_source(&package("a", "1.0.0", "MIT", REGISTRY)), None);
        let git = wrong_source(&package("a", "1.0.0", "MIT", "git+https://example.org/a"));
        assert_eq!(git.unwrap(), "a 1.0.0 comes from git+https://example.org/a");
    }

    #[test]
    fn a_second_version_needs_an_agreement_that_is_used() {
        let twice = ["1.0.0", "2.0.0"].map(|version| package("a", version, "MIT", REGISTRY));
        assert_eq!(versions(&twice, &[]), ["a is there as 1.0.0 and 2.0.0"]);
        assert_eq!(versions(&twice, &[("a", "x")]), [""; 0]);
        assert_eq!(
            versions(&twice[..1], &[("a", "x")]),
            ["a is there once, but agreed to twice (x)"]
        );
    }
}

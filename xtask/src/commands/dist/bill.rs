//! The bill of materials of a release: the crates in its programs, and the source of its kernel.
//!
//! It is a document of the [SPDX specification 2.3](https://spdx.github.io/spdx-spec/v2.3/).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use testbed::lean_kernel::LeanKernel;
use testbed::prerequisites::MUSL;
use testbed::{KitError, Result, Workspace, program};

use super::{VERSION, write as write_file};

/// The packages of the programs in a release.
const PROGRAMS: [&str; 4] = ["boxbuild", "boxlaunch", "box-init", "box-front"];
/// The identifier of the document, and the one of the release in it.
const DOCUMENT: &str = "SPDXRef-DOCUMENT";
const RELEASE: &str = "SPDXRef-release";
const KERNEL: &str = "SPDXRef-kernel";
/// The required time of creation. A document with the current time would differ between two builds.
const CREATED: &str = "1970-01-01T00:00:00Z";
/// The value for a field without a statement.
const UNSAID: &str = "NOASSERTION";

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

/// A crate.
#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of the workspace.
    source: Option<String>,
}

/// The graph of the dependencies.
#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

/// The kind of a dependency: `None` for a crate that is linked, `build` or `dev` otherwise.
#[derive(Debug, Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// The part of Cargo.lock that has the checksums.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<LockedPackage>,
}

#[derive(Debug, Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the document to `to`.
///
/// # Errors
/// cargo fails, or a file cannot be read or written.
pub(super) fn write(workspace: &Workspace, kernel: &LeanKernel, to: &Path) -> Result<()> {
    let metadata = metadata(workspace)?;
    let checksums = checksums(workspace)?;
    let document = document(&linked(&metadata), &checksums, kernel);
    let text = serde_json::to_string_pretty(&document);
    let text = text.map_err(|error| KitError::malformed("the bill of materials", error))?;
    write_file(to, &(text + "\n"))
}

fn metadata(workspace: &Workspace) -> Result<Metadata> {
    let mut cargo = workspace.cargo();
    cargo.args(["metadata", "--locked", "--format-version", "1", "--filter-platform", MUSL]);
    serde_json::from_slice(&program::run(&mut cargo)?)
        .map_err(|error| KitError::malformed("the output of cargo metadata", error))
}

/// Returns the sha256 of each crate of a registry, by name and version.
fn checksums(workspace: &Workspace) -> Result<BTreeMap<(String, String), String>> {
    let path = workspace.path("Cargo.lock");
    let text = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
    let lock: Lock =
        toml::from_str(&text).map_err(|error| KitError::malformed("Cargo.lock", error))?;
    let entry = |it: LockedPackage| Some(((it.name, it.version), it.checksum?));
    Ok(lock.package.into_iter().filter_map(entry).collect())
}

/// Returns the crates that are linked into the programs, sorted by name and version: not the ones that only tests or build
/// scripts use. Procedural macros, which only the compiler runs, are included.
fn linked(metadata: &Metadata) -> Vec<&Package> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (&*node.id, node)).collect();
    let roots = metadata.packages.iter().filter(|it| it.source.is_none());
    let mut left: Vec<&str> =
        roots.filter(|it| PROGRAMS.contains(&&*it.name)).map(|it| &*it.id).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = left.pop() {
        if found.insert(id) {
            let deps = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let linked = deps.filter(|it| it.dep_kinds.iter().any(|kind| kind.kind.is_none()));
            left.extend(linked.map(|it| &*it.pkg));
        }
    }
    let mut packages: Vec<_> =
        metadata.packages.iter().filter(|it| found.contains(&*it.id)).collect();
    packages.sort_by_key(|it| (&it.name, &it.version));
    packages
}

fn document(
    crates: &[&Package],
    checksums: &BTreeMap<(String, String), String>,
    kernel: &LeanKernel,
) -> Value {
    let release = json!({
        "SPDXID": RELEASE, "name": "boxbuild", "versionInfo": VERSION, "filesAnalyzed": false,
        "downloadLocation": UNSAID, "licenseConcluded": UNSAID, "licenseDeclared": env!("CARGO_PKG_LICENSE"),
        "copyrightText": UNSAID, "supplier": UNSAID,
    });
    let mut packages = vec![release, kernel_item(kernel)];
    packages.extend(crates.iter().map(|it| crate_item(it, checksums)));
    let mut relationships = vec![relationship(DOCUMENT, "DESCRIBES", RELEASE)];
    relationships.extend(
        packages[1..]
            .iter()
            .map(|it| relationship(RELEASE, "CONTAINS", it["SPDXID"].as_str().unwrap_or_default())),
    );
    json!({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": DOCUMENT,
        "name": format!("boxbuild-{VERSION}"),
        "documentNamespace": format!("https://boxbuild.invalid/release/{VERSION}/{}", kernel.about.sha256),
        "creationInfo": { "created": CREATED, "creators": [format!("Tool: boxbuild-xtask-{VERSION}")] },
        "packages": packages, "relationships": relationships,
    })
}

fn crate_item(package: &Package, checksums: &BTreeMap<(String, String), String>) -> Value {
    let Package { name, version, license, .. } = package;
    let locator = format!("pkg:cargo/{name}@{version}");
    let mut item = json!({
        "SPDXID": format!("SPDXRef-crate-{}-{}", identifier(name), identifier(version)),
        "name": name, "versionInfo": version, "filesAnalyzed": false, "downloadLocation": UNSAID,
        "licenseConcluded": UNSAID, "licenseDeclared": license.as_deref().map_or_else(|| UNSAID.to_owned(), expression),
        "copyrightText": UNSAID, "supplier": UNSAID,
        "externalRefs": [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator,
        }],
    });
    if let Some(sha256) = checksums.get(&(name.clone(), version.clone())) {
        item["checksums"] = json!([{ "algorithm": "SHA256", "checksumValue": sha256 }]);
    }
    item
}

fn kernel_item(kernel: &LeanKernel) -> Value {
    let about = &kernel.about;
    let (name, version) = about.source.split_once(' ').unwrap_or((&about.source, ""));
    json!({
        "SPDXID": KERNEL, "name": name, "versionInfo": version, "filesAnalyzed": false,
        "downloadLocation": UNSAID, "licenseConcluded": UNSAID, "licenseDeclared": "GPL-2.0-only WITH Linux-syscall-note",
        "copyrightText": UNSAID, "supplier": "Organization: Debian",
        "sourceInfo": format!("compiled by {}; the sha256 of its source package is {}", about.compiler, about.source_sha256),
        "checksums": [{ "algorithm": "SHA256", "checksumValue": about.sha256 }],
    })
}

/// Returns a crate's licence as an SPDX expression. Older crates separate alternatives by a slash, as in `MIT/Apache-2.0`.
fn expression(license: &str) -> String {
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

/// Returns a text with only the characters that an SPDX identifier may have: letters, digits, `.` and `-`.
fn identifier(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    text.chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_crates_are_listed_and_crates_of_tests_are_not() {
        let metadata = metadata(&Workspace::find()).unwrap();
        let names: BTreeSet<_> = linked(&metadata).into_iter().map(|it| &*it.name).collect();
        for name in ["boxbuild", "boxlaunch", "box-init", "kdl", "libkrun", "rustix", "zstd-sys"] {
            assert!(names.contains(name), "{name}");
        }
        for name in ["insta", "proptest", "tempdir", "testbed", "ocipkg", "cc"] {
            assert!(!names.contains(name), "{name}");
        }
        let checksums = checksums(&Workspace::find()).unwrap();
        for package in linked(&metadata).into_iter().filter(|it| it.source.is_some()) {
            let key = (package.name.clone(), package.version.clone());
            assert_eq!(checksums.get(&key).map(String::len), Some(64), "{}", package.name);
            assert!(package.license.is_some(), "{}", package.name);
        }
    }

    #[test]
    fn texts_fit_the_grammar_of_spdx() {
        assert_eq!(expression("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(expression("MIT OR Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(identifier("zstd-sys 2.0+zstd_1"), "zstd-sys-2.0-zstd-1");
    }
}

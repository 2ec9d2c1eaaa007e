//! Tests the packages of this repository: they have only permitted dependencies, and the documentation has a row for each direct
//! dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;
use testbed::{Workspace, program};

/// A package of this repository.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal dependency, otherwise `dev` or `build`.
    kind: Option<String>,
    /// Whether a feature enables the dependency.
    optional: bool,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

fn packages() -> Vec<Package> {
    let mut cargo = Workspace::find().cargo();
    let text = program::run(cargo.args(["metadata", "--no-deps", "--format-version", "1"]));
    serde_json::from_slice::<Metadata>(&text.unwrap()).unwrap().packages
}

/// Returns the name of a package, and the names of all packages of this repository on which it depends directly or indirectly.
fn made_of(packages: &[Package], name: &str) -> Vec<String> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(name) = waiting.pop() {
        let Some(package) = packages.iter().find(|package| package.name == name) else { continue };
        if found.insert(name) {
            let linked = package.dependencies.iter().filter(|it| it.kind.is_none());
            waiting.extend(linked.map(|dependency| dependency.name.clone()));
        }
    }
    found.into_iter().collect()
}

#[test]
fn dependencies_point_one_way_as_contributing_says() {
    let packages = packages();
    let of = |name: &str| made_of(&packages, name);
    for leaf in ["box-digest", "ext4-image", "host-fs", "safe-text"] {
        assert_eq!(of(leaf), [leaf]);
    }
    assert_eq!(of("box-contract"), ["box-contract", "box-digest", "safe-text"]);
    assert_eq!(of("erofs-writer"), ["box-digest", "erofs-writer"]);
    assert_eq!(of("diagnostics"), ["box-contract", "box-digest", "diagnostics", "safe-text"]);
    let of_init = [
        "box-contract",
        "box-copy",
        "box-digest",
        "box-init",
        "command-fence",
        "command-policy",
        "host-fs",
        "safe-text",
    ];
    assert_eq!(of("box-init"), of_init, "PID 1 has the fewest");
    let (builder, launcher) = (of("boxbuild"), of("boxlaunch"));
    assert!(!builder.iter().any(|it| it == "boxlaunch" || it == "vmm"), "{builder:?}");
    let languages = ["boxbuild", "boxfile-spec"];
    assert!(!launcher.iter().any(|it| languages.contains(&it.as_str())), "{launcher:?}");
    let links_libkrun = |package: &&Package| {
        package.dependencies.iter().any(|it| it.kind.is_none() && it.name == "libkrun")
    };
    let names: Vec<_> = packages.iter().filter(links_libkrun).map(|it| &it.name).collect();
    assert_eq!(names, ["vmm"]);
}

/// The nodes of a diagram, and the crates of each.
type Nodes<'p> = BTreeMap<&'p str, Vec<&'p str>>;

/// Returns the nodes and the arrows of the diagram in `docs/architecture.md`.
fn map(page: &str) -> (Nodes<'_>, Vec<(&str, &str)>) {
    let picture = page.split("```mermaid\nflowchart TD\n").nth(1).unwrap();
    let (mut nodes, mut arrows) = (BTreeMap::new(), Vec::new());
    for line in picture.lines().take_while(|line| *line != "```") {
        let (from, to) = line.split_once(" --> ").unwrap_or((line, ""));
        let (node, label) = from.trim().split_once("[\"").unwrap();
        let crates = label.split_once(": ").map_or(label, |(_, crates)| crates);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let crates = crates.split(|c| !is_name(c)).filter(|it| !it.is_empty());
        nodes.insert(node, crates.collect());
        arrows.extend(to.split(" & ").filter(|it| !it.is_empty()).map(|it| (node, it)));
    }
    (nodes, arrows)
}

#[test]
fn the_map_of_the_crates_is_true() {
    let (packages, workspace) = (packages(), Workspace::find());
    let read = |page| fs::read_to_string(workspace.path(page)).unwrap();
    let page = read("docs/architecture.md");
    let (nodes, arrows) = map(&page);
    let pages = page.clone() + &read("CONTRIBUTING.md");
    let node_of = |name: &str| {
        let name = if name == "box-cache" { "cache" } else { name };
        nodes.iter().find(|(_, crates)| crates.contains(&name)).map(|it| *it.0)
    };
    let reaches = |from: &str, to: &str| {
        let (mut found, mut waiting) = (BTreeSet::new(), vec![from]);
        while let Some(node) = waiting.pop() {
            if found.insert(node) {
                waiting.extend(arrows.iter().filter(|it| it.0 == node).map(|it| it.1));
            }
        }
        found.contains(to)
    };
    for package in &packages {
        let directory = format!("`crates/{}/`", package.name);
        let is_crate = workspace.path(&format!("crates/{}", package.name)).exists();
        assert!(!is_crate || pages.contains(&directory), "{directory} is on no page");
        let Some(from) = node_of(&package.name) else { continue };
        for used in package.dependencies.iter().filter(|it| it.kind.is_none() && !it.optional) {
            let to = node_of(&used.name);
            let is_drawn = to.is_none_or(|to| reaches(from, to));
            assert!(is_drawn, "{} ({from}) uses {} ({to:?})", package.name, used.name);
        }
    }
}

#[test]
fn every_direct_dependency_has_its_line_and_no_other_crate_has_one() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|it| it.name.as_str()).collect();
    let used: BTreeSet<&str> = packages
        .iter()
        // `boxbuild-tests` has only tests, so its dependencies are in no program.
        .filter(|package| package.name != "boxbuild-tests")
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| dependency.kind.is_none() && !ours.contains(&*dependency.name))
        .map(|dependency| dependency.name.as_str())
        .collect();
    let page = fs::read_to_string(Workspace::find().path("docs/dependencies.md")).unwrap();
    let first_table = page.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let documented: BTreeSet<&str> = first_table
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|crates| crates.split(','))
        .filter_map(|name| name.split_whitespace().next())
        .collect();
    assert_eq!(documented, used);
}

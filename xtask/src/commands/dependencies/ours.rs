//! The rules for the packages of this repository: who may depend on whom, and that each foreign crate has its line.

use std::collections::BTreeSet;
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
    /// `None` for one that is not for tests or building alone.
    kind: Option<String>,
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

/// Returns the names of the packages of this repository that one of them is made of, with its own.
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
    let of_init = ["box-contract", "box-copy", "box-digest", "box-init", "host-fs", "safe-text"];
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

#[test]
fn every_direct_dependency_has_its_line_and_no_other_crate_has_one() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|it| it.name.as_str()).collect();
    let used: BTreeSet<&str> = packages
        .iter()
        // Of the package that is all tests, every dependency is one for tests.
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

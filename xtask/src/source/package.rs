//! The packages of this repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use testkit::{KitError, Result, Workspace, program};

/// The programs that people install.
const SHIPPED: [&str; 3] = ["boxbuild", "boxlaunch", "box-init"];

/// A package of this repository.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
    dependencies: Vec<Dependency>,
    /// Whether a program that people install is made of it.
    #[serde(skip)]
    pub(crate) shipped: bool,
}

#[derive(Debug, Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
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

impl Package {
    /// Returns the root files of its library and its programs.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Path> {
        let code = self.targets.iter().filter(|it| {
            it.kind.iter().any(|kind| matches!(kind.as_str(), "lib" | "bin" | "proc-macro"))
        });
        code.map(|target| target.src_path.as_path())
    }

    /// Returns all Rust files of the package, the tests' among them.
    ///
    /// # Errors
    /// A directory cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut folders: Vec<_> =
            self.manifest_path.parent().map(Path::to_owned).into_iter().collect();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(KitError::file("list", &folder))? {
                let path = entry.map_err(KitError::file("list", &folder))?.path();
                let is_other_package = path.join("Cargo.toml").exists();
                if path.is_dir() && !is_other_package {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    found.push(path);
                }
            }
        }
        Ok(found)
    }
}

/// Returns the packages of this repository, the shipped ones first.
///
/// # Errors
/// cargo cannot read a manifest.
pub(crate) fn packages(workspace: &Workspace) -> Result<Vec<Package>> {
    let mut cargo = workspace.cargo();
    let text = program::run(cargo.args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_slice(&text)
        .map_err(|error| KitError::malformed("the output of cargo metadata", error))?;
    let mut packages = metadata.packages;
    let shipped = linked(&packages, &SHIPPED);
    for package in &mut packages {
        package.shipped = shipped.contains(&package.name);
    }
    packages.sort_by_key(|package| !package.shipped);
    Ok(packages)
}

/// Returns the names of the packages of this repository that some of them are made of, with their own.
fn linked(packages: &[Package], of: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<String> = of.iter().map(|&name| name.to_owned()).collect();
    while let Some(name) = waiting.pop() {
        let Some(package) = packages.iter().find(|package| package.name == name) else { continue };
        if found.insert(name) {
            let linked = package.dependencies.iter().filter(|it| it.kind.is_none());
            waiting.extend(linked.map(|dependency| dependency.name.clone()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_are_made_of_is_told_from_helpers() {
        let packages = packages(&Workspace::find()).unwrap();
        let shipped = |name: &str| packages.iter().find(|it| it.name == name).map(|it| it.shipped);
        for name in SHIPPED.into_iter().chain(["boxfile-spec", "box-image", "erofs-writer"]) {
            assert_eq!(shipped(name), Some(true), "{name}");
        }
        for name in ["xtask", "testkit", "boxbuild-tests", "hello-agent"] {
            assert_eq!(shipped(name), Some(false), "{name}");
        }
    }

    #[test]
    fn dependencies_point_one_way_as_contributing_says() {
        let packages = packages(&Workspace::find()).unwrap();
        let of = |name: &str| linked(&packages, &[name]).into_iter().collect::<Vec<_>>();
        for leaf in ["box-digest", "ext4-image", "guards", "host-fs"] {
            assert_eq!(of(leaf), [leaf]);
        }
        assert_eq!(of("box-image"), ["box-digest", "box-image"]);
        assert_eq!(of("erofs-writer"), ["box-digest", "erofs-writer"]);
        assert_eq!(
            of("box-init"),
            ["box-copy", "box-digest", "box-image", "box-init", "host-fs"],
            "PID 1 has the fewest"
        );
        let (builder, launcher) = (of("boxbuild"), of("boxlaunch"));
        assert!(!builder.iter().any(|it| it == "boxlaunch"), "{builder:?}");
        assert!(!launcher.iter().any(|it| it == "boxbuild"), "{launcher:?}");
        let links_libkrun = |package: &&Package| {
            package.dependencies.iter().any(|it| it.kind.is_none() && it.name == "libkrun")
        };
        let names: Vec<_> = packages.iter().filter(links_libkrun).map(|it| &it.name).collect();
        assert_eq!(names, ["boxlaunch"]);
    }

    #[test]
    fn every_direct_dependency_has_its_line_and_no_other_crate_has_one() {
        let workspace = Workspace::find();
        let packages = packages(&workspace).unwrap();
        let ours: BTreeSet<&str> = packages.iter().map(|it| it.name.as_str()).collect();
        let used: BTreeSet<&str> = packages
            .iter()
            // Of the package that is all tests, every dependency is one for tests.
            .filter(|package| package.name != "boxbuild-tests")
            .flat_map(|package| &package.dependencies)
            .filter(|dependency| dependency.kind.is_none() && !ours.contains(&*dependency.name))
            .map(|dependency| dependency.name.as_str())
            .collect();
        let page = fs::read_to_string(workspace.path("docs/dependencies.md")).unwrap();
        let first_table = page.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let documented: BTreeSet<&str> = first_table
            .take_while(|line| line.starts_with('|'))
            .filter_map(|line| line.split('|').nth(1))
            .flat_map(|crates| crates.split(','))
            .filter_map(|name| name.split_whitespace().next())
            .collect();
        assert_eq!(documented, used);
    }
}

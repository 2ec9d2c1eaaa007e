//! The packages of a box by name, for a comparison with another box.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use box_contract::{ComponentName, RunPlan};
use box_tree::ReadContent;
use box_tree::listing::{Listing, NamedOrigin};
use serde::Serialize;

use super::npm;

/// What identifies a package in two boxes, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PackageName {
    /// The part of the box that contains the package: see [`part`].
    pub part: String,
    /// The type of its package URL: `deb`, `apk`, `alpm`, `pypi` or `npm`.
    pub kind: &'static str,
    /// The package's name. Foreign text.
    pub name: String,
}

/// The packages of a box.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The versions of each package. A part can have several versions of one npm package.
    pub packages: BTreeMap<PackageName, BTreeSet<String>>,
    /// The size of each package's files, in bytes: what dpkg, apk and pacman declare, and the files below the directory of an npm
    /// package. Python's packages have none.
    pub sizes: BTreeMap<PackageName, u64>,
    /// Notes on databases and entries that were left out. The SBOM has the same notes.
    pub left_out: Vec<String>,
}

impl Inventory {
    /// Reads the package databases of a box.
    ///
    /// # Errors
    /// An error of reading from `contents`.
    pub fn read(
        plan: &RunPlan,
        listing: &Listing,
        contents: &mut dyn ReadContent,
    ) -> io::Result<Self> {
        let (found, left_out) = super::installed(plan, listing, contents)?;
        let mut packages = BTreeMap::<_, BTreeSet<String>>::new();
        let mut sizes = BTreeMap::<_, u64>::new();
        for it in found {
            let name = PackageName { part: part(it.origin.as_ref()), kind: it.kind, name: it.name };
            let measured = || (it.kind == "npm").then(|| npm::size(&listing.tree, &it.path));
            if let Some(size) = it.size.or_else(measured) {
                let sum: &mut u64 = sizes.entry(name.clone()).or_default();
                *sum = sum.saturating_add(size);
            }
            packages.entry(name).or_default().insert(it.version);
        }
        Ok(Self { packages, sizes, left_out })
    }
}

/// Names the part of a box that contains an entry: `agent` or `business` for an image, `skill NAME`, `agent file PATH`, `program`,
/// or `box` for everything that the builder has made. Can contain foreign text.
pub fn part(origin: Option<&NamedOrigin<'_>>) -> String {
    match origin {
        Some(NamedOrigin::Image { component: Some(component), .. }) => component.name().to_owned(),
        Some(NamedOrigin::Skill { name }) => format!("skill {name}"),
        Some(NamedOrigin::File { component, path }) => {
            let component = component.map_or("", ComponentName::name);
            format!("{component} file {path}").trim_start().to_owned()
        }
        Some(NamedOrigin::Program { .. }) => "program".to_owned(),
        _ => "box".to_owned(),
    }
}

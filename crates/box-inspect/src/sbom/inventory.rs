//! The packages of a box by name, for a comparison with another box.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use box_contract::{ComponentName, RunPlan};
use box_tree::ReadContent;
use box_tree::listing::{Listing, NamedOrigin};
use serde::Serialize;

use super::npm;
use super::scan::Database;

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

/// A box whose packages are compared with those of another box.
pub struct Packaged<'a> {
    /// The run plan, which has the roots of the components.
    pub plan: &'a RunPlan,
    /// All entries of the box, with their origins.
    pub listing: &'a Listing,
    /// The contents of the files.
    pub contents: &'a mut dyn ReadContent,
}

impl fmt::Debug for Packaged<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packaged").field("name", &self.plan.name).finish_non_exhaustive()
    }
}

impl Packaged<'_> {
    /// Lists the package databases, but reads none.
    pub(crate) fn databases(&mut self) -> io::Result<BTreeSet<Database>> {
        let mut found = BTreeSet::new();
        let mut choose = |it: Database| {
            found.extend(it.kind.is_some().then_some(it));
            false
        };
        super::installed(self.plan, self.listing, (&mut *self.contents, &mut choose))?;
        Ok(found)
    }
}

impl Database {
    /// Returns whether the database may list a package, or has listed it.
    pub(crate) fn may_have(&self, package: &PackageName) -> bool {
        // Each layer that installs a package rewrites the whole database of the distribution, so the packages in it belong to
        // the parts of their files.
        let is_shared = ["deb", "apk"].contains(&package.kind);
        self.kind == Some(package.kind) && (is_shared || self.part == package.part)
    }
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
    /// Reads all package databases of a box.
    ///
    /// # Errors
    /// An error of reading from `contents`.
    pub fn of(packaged: &mut Packaged<'_>) -> io::Result<Self> {
        Self::read(packaged, &BTreeSet::new())
    }

    /// Reads the package databases of a box, except those `known`.
    ///
    /// # Errors
    /// An error of reading from `contents`.
    pub(crate) fn read(of: &mut Packaged<'_>, known: &BTreeSet<Database>) -> io::Result<Self> {
        // The distribution is a part of no name.
        let mut choose = |it: Database| it.kind.is_some() && !known.contains(&it);
        let (found, left_out) =
            super::installed(of.plan, of.listing, (&mut *of.contents, &mut choose))?;
        let mut packages = BTreeMap::<_, BTreeSet<String>>::new();
        let mut sizes = BTreeMap::<_, u64>::new();
        for it in found {
            let name = PackageName { part: part(it.origin.as_ref()), kind: it.kind, name: it.name };
            let measured = || (it.kind == "npm").then(|| npm::size(&of.listing.tree, &it.path));
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

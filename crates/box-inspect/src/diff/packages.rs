//! The packages that differ between two boxes.

use std::collections::BTreeSet;
use std::io;

use safe_text::shown;
use serde::Serialize;

use crate::sbom::{Inventory, PackageName, Packaged};

/// A package that two boxes have in different versions, or that only one of them has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PackageChange {
    /// The package.
    #[serde(flatten)]
    pub package: PackageName,
    /// Its versions in the first box, sorted; empty if that box lacks it. Foreign texts.
    pub a: Vec<String>,
    /// Its versions in the second box.
    pub b: Vec<String>,
}

impl PackageChange {
    /// Formats the change as one line that is safe for a terminal: `agent deb libc6  2.36 → 2.37`.
    pub fn line(&self) -> String {
        let PackageName { part, kind, name } = &self.package;
        let [a, b] = [&self.a, &self.b].map(|it| it.join(", "));
        let change = match (a.as_str(), b.as_str()) {
            ("", b) => format!("+{b}"),
            (a, "") => format!("-{a}"),
            (a, b) => format!("{a} → {b}"),
        };
        shown(&format!("{part} {kind} {name}  {change}"))
    }
}

/// The packages that differ between two boxes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageChanges {
    /// Each package whose versions differ, in the order of parts and names.
    pub changes: Vec<PackageChange>,
    /// Whether a package database that differs is not fully read.
    pub is_incomplete: bool,
}

impl PackageChanges {
    /// Compares the packages of two boxes whose rootfs are on this host. Also reads the databases that both listings have, so that
    /// a box whose rootfs has other data than its listing is an error, and never a box without a change.
    ///
    /// # Errors
    /// An error of reading contents.
    pub fn verified(a: &mut Packaged<'_>, b: &mut Packaged<'_>) -> io::Result<Self> {
        let found = Self::of(a, b)?;
        Inventory::of(a)?;
        Inventory::of(b)?;
        Ok(found)
    }

    /// Compares the packages of two boxes. A database that both listings have is not read, unless it may name a package that
    /// another database has changed: so little of a box in a registry is fetched. Such a database is not verified.
    ///
    /// # Errors
    /// An error of reading contents.
    pub fn of(a: &mut Packaged<'_>, b: &mut Packaged<'_>) -> io::Result<Self> {
        let mut known = &a.databases()? & &b.databases()?;
        loop {
            let (one, other) = (Inventory::read(a, &known)?, Inventory::read(b, &known)?);
            let changes = differing(&one, &other);
            let count = known.len();
            // Two copies of a package count once, so one of them may be in a database that was not read.
            known.retain(|it| !changes.iter().any(|change| it.may_have(&change.package)));
            if known.len() == count {
                let is_incomplete = [one, other].iter().any(|it| !it.left_out.is_empty());
                return Ok(Self { changes, is_incomplete });
            }
        }
    }
}

/// Returns each package whose versions differ, in the order of parts and names.
fn differing(a: &Inventory, b: &Inventory) -> Vec<PackageChange> {
    let names: BTreeSet<&PackageName> = a.packages.keys().chain(b.packages.keys()).collect();
    let changed = names.into_iter().filter(|name| a.packages.get(*name) != b.packages.get(*name));
    let change = |name: &PackageName| PackageChange {
        package: name.clone(),
        a: versions(a, name),
        b: versions(b, name),
    };
    changed.map(change).collect()
}

fn versions(of: &Inventory, name: &PackageName) -> Vec<String> {
    of.packages.get(name).into_iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(packages: &[(&str, &str)]) -> Inventory {
        let mut inventory = Inventory::default();
        for (name, version) in packages {
            let (part, kind, name) = ("agent".to_owned(), "npm", (*name).to_owned());
            let versions = inventory.packages.entry(PackageName { part, kind, name }).or_default();
            versions.insert((*version).to_owned());
        }
        inventory
    }

    #[test]
    fn a_package_is_listed_once_with_all_its_versions() {
        let a = inventory(&[("a", "1"), ("b", "1"), ("c", "1"), ("c", "2"), ("same", "1")]);
        let b = inventory(&[("b", "2"), ("c", "2"), ("d", "\u{1b}[2J"), ("same", "1")]);
        let lines: Vec<_> = differing(&a, &b).iter().map(PackageChange::line).collect();
        assert_eq!(
            lines,
            [
                "agent npm a  -1",
                "agent npm b  1 → 2",
                "agent npm c  1, 2 → 2",
                "agent npm d  +\u{fffd}[2J"
            ]
        );
        assert_eq!(differing(&a, &a), []);
    }
}

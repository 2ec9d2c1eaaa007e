//! The SBOM of a box: an SPDX 2.3 document in JSON.
//!
//! Its content depends on the box alone: the packages in the package databases of the images, the
//! images and skills themselves, kernel and init. Databases are untrusted input, so the size of each
//! file and the size of all files are limited. An entry that cannot be parsed is left out, and the
//! document has a note about it.
//!
//! Format: [SPDX specification 2.3](https://spdx.github.io/spdx-spec/v2.3/) (ISO/IEC 5962 and its
//! schema `spdx-schema.json`).

mod apk;
mod database;
mod dpkg;
mod inventory;
mod kept;
mod license;
mod npm;
mod package;
mod pacman;
mod parts;
mod python;
mod release;
mod root;
mod scan;
mod spdx;
#[cfg(test)]
mod tests;
mod unread;

use std::io;

use box_contract::RunPlan;
use box_digest::{Blake3Digest, Digest};
use box_tree::listing::{Listing, NamedOrigin};
use box_tree::{ReadContent, entries};

pub use apk::APK_DATABASES;
use database::Installed;
pub use dpkg::DPKG_DATABASE;
pub use inventory::{Inventory, PackageName, Packaged, part};
pub use kept::keep_databases;
use package::Package;
use scan::{Choose, Scan};
pub use spdx::Document;

/// The maximum size of one file of Python's or npm's metadata, in bytes.
const MAX_METADATA: u64 = 1 << 20;

/// The input of an SBOM.
#[derive(Debug)]
pub struct Subject<'a> {
    /// The box digest.
    pub digest: Digest,
    /// The run plan, which has the roots of the components.
    pub plan: &'a RunPlan,
    /// All entries of the box, with their origins.
    pub listing: &'a Listing,
    /// The tree digest.
    pub tree: Blake3Digest,
    /// The kernel's sha256 and version line.
    pub kernel: (Digest, &'a str),
    /// The init's sha256.
    pub init: Digest,
}

/// Makes the SBOM of a box.
///
/// # Errors
/// An error of reading from `contents`.
pub fn document(subject: &Subject<'_>, contents: &mut dyn ReadContent) -> io::Result<Document> {
    let (mut packages, notes) =
        installed(subject.plan, subject.listing, (contents, &mut |_| true))?;
    kept::find_common_layers(&mut packages, &subject.listing.origins);
    let mut document = Document::new(subject.plan.name.clone(), subject.tree, &notes);
    parts::add(&mut document, subject);
    for package in packages {
        document.add(&package);
    }
    Ok(document)
}

/// Reads the package databases of a box that `choose` chooses. Also returns notes on what was left out.
fn installed<'a>(
    plan: &RunPlan,
    listing: &'a Listing,
    (contents, choose): (&mut dyn ReadContent, Choose<'_>),
) -> io::Result<(Vec<Package<'a>>, Vec<String>)> {
    let mut scan = Scan::new(listing, contents, choose);
    let roots = root::all(plan, &listing.tree);
    let mut last = None;
    for root in &roots {
        let distribution = release::read(&mut scan, &root.databases)?;
        let installed = Installed { root, distribution };
        dpkg::read(&mut scan, &installed)?;
        apk::read(&mut scan, &installed)?;
        pacman::read(&mut scan, &installed)?;
        // Two components can have the same root, whose databases are noted once.
        if last.replace(root.files()) != Some(root.files()) {
            unread::note(&mut scan, root);
        }
    }
    modules(&mut scan)?;
    Ok(scan.finish())
}

/// Reads the package of a file at a path, with the origin of the file.
type Parse = for<'a> fn(&str, &[u8], Option<NamedOrigin<'a>>) -> Option<Package<'a>>;

/// Finds the packages that Python's tools and npm have installed, at any path.
fn modules(scan: &mut Scan<'_, '_>) -> io::Result<()> {
    let listing = scan.listing;
    for (path, id) in entries(&listing.tree) {
        let (kind, parse): (_, Parse) = if python::is_metadata(&path) {
            (python::KIND, python::package)
        } else if npm::is_manifest(&path) {
            (npm::KIND, npm::package)
        } else {
            continue;
        };
        if listing.tree.inode(id).names().is_some() {
            continue;
        }
        let name = String::from_utf8_lossy(&path);
        if !scan.has_room(&name) {
            break;
        }
        let Some(text) = scan.text(id, &name, (Some(kind), MAX_METADATA))? else { continue };
        match parse(&text, &path, listing.origin(id)) {
            Some(package) => scan.packages.push(package),
            None => scan.note(&name, "it has no name and version that a package can have"),
        }
    }
    Ok(())
}

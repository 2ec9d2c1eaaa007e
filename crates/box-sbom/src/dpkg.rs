//! dpkg's database (deb-control(5), dpkg-query(1)): `/var/lib/dpkg/status`, and one file for each
//! package in `status.d`, as images without dpkg have it.

use std::io;
use std::rc::Rc;

use super::database::{self, Format, Installed, Paragraph, take_first, value};
use super::package::{Package, is_word, purl, supplier};
use super::scan::Scan;

/// Where dpkg has its database.
pub const DPKG_DATABASE: &str = "/var/lib/dpkg/status";

const FOLDER: &str = "/var/lib/dpkg";
/// The files of images without dpkg, one for each package.
pub(super) const FILES: &str = "/var/lib/dpkg/status.d";
/// Ten times what a desktop has.
const STATUS: Format = Format { limit: 64 << 20, take, is_installed, package };
const ONE: Format = Format { limit: 1 << 20, ..STATUS };

/// Reads the database of a component.
pub(super) fn read(scan: &mut Scan<'_, '_>, installed: &Installed<'_>) -> io::Result<()> {
    database::read(scan, installed, DPKG_DATABASE, &STATUS)?;
    let names = scan.names(&installed.root.databases, FILES).into_iter();
    names
        .filter(|it| is_file(it))
        .try_for_each(|name| database::read(scan, installed, &format!("{FILES}/{name}"), &ONE))
}

/// Returns whether a file in [`FILES`] is that of a package. Beside them are the digests of the
/// packages' files.
pub(super) fn is_file(name: &str) -> bool {
    !name.ends_with(".md5sums")
}

fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
    take_first(
        &["Package", "Status", "Version", "Architecture", "Maintainer"],
        paragraph,
        name,
        value,
    );
}

/// Returns whether a package is there: it may be removed but for its settings. In `status.d` nothing
/// says so.
fn is_installed(paragraph: &Paragraph<'_>) -> bool {
    value(paragraph, "Status").is_none_or(|it| it.split_whitespace().last() == Some("installed"))
}

fn package<'a>(
    scan: &mut Scan<'a, '_>,
    Installed { root, distribution }: &Installed<'_>,
    file: &Rc<[u8]>,
    paragraph: &Paragraph<'_>,
) -> Option<Package<'a>> {
    let field = |name| value(paragraph, name).filter(|it| is_word(it));
    let (name, version) = (field("Package")?, field("Version")?);
    let arch = field("Architecture").unwrap_or_default();
    // dpkg writes this list when it unpacks the package, so that its layer is the package's.
    let info = format!("{FOLDER}/info/{name}");
    let origin = root.origin(scan, &format!("{info}.list"));
    let origin = origin.or_else(|| root.origin(scan, &format!("{info}:{arch}.list")));
    let namespace = if distribution.id.is_empty() { "debian" } else { &distribution.id };
    let qualifiers = [("arch", arch), ("distro", &distribution.release)];
    Some(Package {
        kind: "deb",
        purl: purl("deb", namespace, name, version, &qualifiers),
        name: name.to_owned(),
        version: version.to_owned(),
        license: None,
        supplier: value(paragraph, "Maintainer").and_then(supplier),
        origin,
        path: Rc::clone(file),
    })
}

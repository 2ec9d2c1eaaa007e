//! dpkg's database (deb-control(5), dpkg-query(1)): `/var/lib/dpkg/status`, and one file for each
//! package in `status.d`, as images without dpkg have it.

use std::io;

use super::control::{Paragraph, paragraphs, take_first, value};
use super::package::{Package, is_word};
use super::purl::purl;
use super::release::Distribution;
use super::scan::Scan;

const FOLDER: &str = "/var/lib/dpkg";
/// Ten times what a desktop has.
const STATUS_MAX: u64 = 64 << 20;
const ONE_MAX: u64 = 1 << 20;

/// Reads the database of the component at a root.
pub(super) fn read(
    scan: &mut Scan<'_, '_>,
    root: &str,
    distribution: &Distribution,
) -> io::Result<()> {
    one(scan, root, &format!("{root}{FOLDER}/status"), STATUS_MAX, distribution)?;
    let folder = format!("{root}{FOLDER}/status.d");
    for name in scan.names(&folder) {
        // Beside them lie the digests of the packages' files.
        if !name.ends_with(".md5sums") {
            one(scan, root, &format!("{folder}/{name}"), ONE_MAX, distribution)?;
        }
    }
    Ok(())
}

fn one(
    scan: &mut Scan<'_, '_>,
    root: &str,
    path: &str,
    limit: u64,
    distribution: &Distribution,
) -> io::Result<()> {
    let Some(text) = scan.file(path, limit)? else { return Ok(()) };
    for paragraph in paragraphs(&text, take).filter(is_installed) {
        match package(scan, root, path, &paragraph, distribution) {
            Some(package) => scan.add(package),
            None => scan.note(path, "an entry has no name or version that a package can have"),
        }
    }
    Ok(())
}

fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
    if ["Package", "Status", "Version", "Architecture"]
        .iter()
        .any(|it| it.eq_ignore_ascii_case(name))
    {
        take_first(paragraph, name, value);
    }
}

/// Tells whether a package is there: it may be removed but for its settings. In `status.d` nothing
/// says so.
fn is_installed(paragraph: &Paragraph<'_>) -> bool {
    value(paragraph, "Status").is_none_or(|it| it.split_whitespace().last() == Some("installed"))
}

fn package<'a>(
    scan: &Scan<'a, '_>,
    root: &str,
    path: &str,
    paragraph: &Paragraph<'_>,
    distribution: &Distribution,
) -> Option<Package<'a>> {
    let field = |name| value(paragraph, name).filter(|it| is_word(it));
    let (name, version) = (field("Package")?, field("Version")?);
    let arch = field("Architecture").unwrap_or_default();
    // dpkg writes this list when it unpacks the package, so that its layer is the package's.
    let info = format!("{root}{FOLDER}/info/{name}");
    let origin = scan.origin(&format!("{info}.list"));
    let origin = origin.or_else(|| scan.origin(&format!("{info}:{arch}.list")));
    let namespace = if distribution.id.is_empty() { "debian" } else { &distribution.id };
    let qualifiers = [("arch", arch), ("distro", &distribution.release)];
    Some(Package {
        kind: "deb",
        purl: purl("deb", namespace, name, version, &qualifiers),
        name: name.to_owned(),
        version: version.to_owned(),
        license: None,
        origin: origin.or_else(|| scan.origin(path)),
        path: path.as_bytes().to_vec(),
    })
}

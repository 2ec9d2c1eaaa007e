//! dpkg's database (deb-control(5), dpkg-query(1)): `/var/lib/dpkg/status`, or, in images without
//! dpkg, one file for each package in `/var/lib/dpkg/status.d`.

use std::io;

use super::database::{self, Format, Installed, Paragraph, take_first, value};
use super::scan::Scan;

/// The path of dpkg's database.
pub const DPKG_DATABASE: &str = "/var/lib/dpkg/status";

const FOLDER: &str = "/var/lib/dpkg";
/// The directory with one file for each package, in images without dpkg.
pub(super) const FILES: &str = "/var/lib/dpkg/status.d";
/// The limit is ten times the size of a desktop's database.
const STATUS: Format = Format {
    limit: 64 << 20,
    kind: ("deb", "debian"),
    fields: ["Package", "Version", "Architecture", "", "Maintainer", "Installed-Size"],
    // KiB, by deb-control(5).
    unit: 1 << 10,
    take,
    is_installed,
    files: lists,
};
const ONE: Format = Format { limit: 1 << 20, ..STATUS };

/// Reads the database of a component.
pub(super) fn read(scan: &mut Scan<'_, '_>, installed: &Installed<'_>) -> io::Result<()> {
    database::read(scan, installed, DPKG_DATABASE, &STATUS)?;
    let names = scan.names(&installed.root.databases, FILES).into_iter();
    names
        .filter(|it| is_file(it))
        .try_for_each(|name| database::read(scan, installed, &format!("{FILES}/{name}"), &ONE))
}

/// Returns whether a file in [`FILES`] describes a package. The directory also has lists of digests of the packages'
/// files.
pub(super) fn is_file(name: &str) -> bool {
    !name.ends_with(".md5sums")
}

fn take<'t>(paragraph: &mut Paragraph<'t>, name: &'t str, value: &'t str) {
    take_first(
        &["Package", "Status", "Version", "Architecture", "Maintainer", "Installed-Size"],
        paragraph,
        name,
        value,
    );
}

/// The states of removed packages (dpkg(1), "Package states"). `config-files`: the configuration files are still present.
const ABSENT: [&str; 2] = ["not-installed", "config-files"];

/// Returns whether the files of a package are present, even if it is not configured. Packages in `status.d` have no
/// status, and their files are present.
fn is_installed(paragraph: &Paragraph<'_>) -> bool {
    let state = value(paragraph, "Status").and_then(|it| it.split_whitespace().last());
    state.is_none_or(|state| !ABSENT.contains(&state))
}

/// Returns the possible paths of the list of files that dpkg writes when it unpacks a package.
fn lists(paragraph: &Paragraph<'_>) -> Vec<String> {
    let [name, arch] =
        ["Package", "Architecture"].map(|it| value(paragraph, it).unwrap_or_default());
    vec![format!("{FOLDER}/info/{name}.list"), format!("{FOLDER}/info/{name}:{arch}.list")]
}

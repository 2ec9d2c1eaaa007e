//! Notes package databases that are not read, so that readers of an SBOM know that it lacks their packages.

use super::root::Root;
use super::scan::Scan;

/// The paths of the databases, and the names of their package managers.
const DATABASES: [(&str, &str); 12] = [
    ("/usr/lib/sysimage/rpm/rpmdb.sqlite", "rpm"),
    ("/usr/lib/sysimage/rpm/Packages.db", "rpm"),
    ("/usr/lib/sysimage/rpm/Packages", "rpm"),
    ("/var/lib/rpm/rpmdb.sqlite", "rpm"),
    ("/var/lib/rpm/Packages.db", "rpm"),
    ("/var/lib/rpm/Packages", "rpm"),
    ("/nix/var/nix/db/db.sqlite", "Nix"),
    ("/var/db/pkg", "Portage"),
    ("/var/db/xbps", "XBPS"),
    ("/var/lib/pkgtools/packages", "pkgtools"),
    ("/usr/lib/opkg/status", "opkg"),
    ("/var/lib/opkg/status", "opkg"),
];

/// Notes the databases of a component that are not read. A database with two paths is noted once.
pub(super) fn note(scan: &mut Scan<'_, '_>, root: &Root) {
    let mut found = Vec::new();
    for (path, manager) in DATABASES {
        let Some(id) = scan.find(root.files(), path) else { continue };
        if !found.contains(&id) {
            let reason = format!("the packages of {manager} are not read");
            scan.note(&format!("{}{path}", root.files()), &reason);
            found.push(id);
        }
    }
}

//! Files that describe a whole system, so that either image's file is wrong for the merged root.
//!
//! A pattern with a star never matches these files. A user who knows that a wrong file does no harm in this box can
//! declare a policy for its exact path.

use std::fmt;

use box_inspect::sbom::{APK_DATABASES, DPKG_DATABASE};

/// A file that only a policy with its exact path decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemFile {
    /// The database of the package manager with this name.
    Packages(&'static str),
    /// The cache of the dynamic loader.
    LoaderCache,
}

/// The paths of such files: [dpkg(1)](https://man7.org/linux/man-pages/man1/dpkg.1.html); apk-tools 2 and 3; rpm's
/// `%_dbpath` with each of its backends; [ld.so(8)](https://man7.org/linux/man-pages/man8/ld.so.8.html).
const FILES: [(&str, SystemFile); 11] = [
    (DPKG_DATABASE, SystemFile::Packages("dpkg")),
    (APK_DATABASES[0], SystemFile::Packages("apk")),
    (APK_DATABASES[1], SystemFile::Packages("apk")),
    (APK_DATABASES[2], SystemFile::Packages("apk")),
    ("/var/lib/rpm/Packages", SystemFile::Packages("rpm")),
    ("/var/lib/rpm/Packages.db", SystemFile::Packages("rpm")),
    ("/var/lib/rpm/rpmdb.sqlite", SystemFile::Packages("rpm")),
    ("/usr/lib/sysimage/rpm/Packages", SystemFile::Packages("rpm")),
    ("/usr/lib/sysimage/rpm/Packages.db", SystemFile::Packages("rpm")),
    ("/usr/lib/sysimage/rpm/rpmdb.sqlite", SystemFile::Packages("rpm")),
    ("/etc/ld.so.cache", SystemFile::LoaderCache),
];

/// Returns the kind of system file at a path.
pub(super) fn system_file(path: &[u8]) -> Option<SystemFile> {
    FILES.iter().find(|(file, _)| file.as_bytes() == path).map(|(_, kind)| *kind)
}

impl fmt::Display for SystemFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packages(manager) => write!(
                f,
                "the database of {manager} lists the packages of one image only, and two \
                 cannot be combined: programs that install, remove or scan packages would be misled. Layout \
                 \"split\" keeps both. If nothing in the box asks {manager}, name the file itself \
                 in a `conflict`; no pattern with a star decides it. The box's SBOM {}",
                if *manager == "rpm" {
                    "has no rpm packages"
                } else {
                    "lists both images' packages"
                }
            ),
            Self::LoaderCache => f.write_str(
                "the loader's cache lists the libraries of one image only. With `drop`, programs \
                 find libraries in the loader's own directories (/lib, /usr/lib), and no longer in \
                 those that only /etc/ld.so.conf names. Name the file itself in a `conflict`; no \
                 pattern with a star decides it",
            ),
        }
    }
}

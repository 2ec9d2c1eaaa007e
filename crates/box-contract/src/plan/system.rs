//! The directories of a component's system, which [`SystemDirectories::ReadOnly`](super::SystemDirectories::ReadOnly)
//! makes read-only.

use crate::rules::{is_inside, resolved_parts};

/// The directories at the top of a root that are parts of the operating system: programs, libraries, configuration, the
/// kernel and added software. The databases of apk (`/lib/apk`) and of newer versions of rpm (`/usr/lib/sysimage/rpm`) are
/// inside them.
///
/// With [`SystemDirectories::ReadOnly`](super::SystemDirectories::ReadOnly), the root directory itself is read-only,
/// too. So a symbolic link such as `/bin`, and a missing directory such as `/opt`, cannot be replaced or made.
pub const SYSTEM_DIRECTORIES: [&str; 10] =
    ["/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/usr"];

/// The databases of package managers that are in none of the [`SYSTEM_DIRECTORIES`].
pub const PACKAGE_DATABASES: [&str; 4] =
    ["/var/lib/apt", "/var/lib/dpkg", "/var/lib/pacman", "/var/lib/rpm"];

/// Returns the part of a read-only system in which `path` is: one of the [`SYSTEM_DIRECTORIES`] or of the
/// [`PACKAGE_DATABASES`], or `/` for the root directory itself. Returns `None` if `path` is elsewhere, or on one of the
/// mounts at `mount_points`. The paths must be absolute. `path` is resolved as text: symbolic links are not followed.
pub fn system_part<'m>(
    path: &str,
    mut mount_points: impl Iterator<Item = &'m str>,
) -> Option<&'static str> {
    let path = format!("/{}", resolved_parts(path).join("/"));
    let mut parts = SYSTEM_DIRECTORIES.into_iter().chain(PACKAGE_DATABASES);
    let part = if path == "/" { Some("/") } else { parts.find(|it| is_inside(&path, it)) };
    part.filter(|_| !mount_points.any(|it| is_inside(&path, it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_system_are_known() {
        let part = |path| system_part(path, ["/opt/data", "/srv"].into_iter());
        for (path, expected) in [
            ("/", Some("/")),
            ("/usr", Some("/usr")),
            ("/usr/local/bin", Some("/usr")),
            ("//srv/../etc/.", Some("/etc")),
            ("/usr/..", Some("/")),
            ("/opt", Some("/opt")),
            ("/opt/database", Some("/opt")),
            ("/var/lib/dpkg/info", Some("/var/lib/dpkg")),
            ("/opt/data", None),
            ("/opt/data/below", None),
            ("/usrx", None),
            ("/var/lib", None),
            ("/srv", None),
            ("/home/me", None),
        ] {
            assert_eq!(part(path), expected, "{path}");
        }
    }
}

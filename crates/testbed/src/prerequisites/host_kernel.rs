//! The virtual host for tests: its kernel, and the programs of busybox.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use virtual_host::{HostKernel, VirtualHost, kernel, needs_loader};

use super::apt::with_fresh_lists;
use super::{Package, Say, lock};
use crate::lean_kernel::source;
use crate::{KitError, Result, Workspace, elf, program};

/// Returns the virtual host's kernel, from Debian. If it is missing, it is downloaded into the build output first.
///
/// # Errors
/// The kernel cannot be downloaded or prepared.
pub fn host_kernel(workspace: &Workspace, say: Say<'_>) -> Result<HostKernel> {
    let cache = workspace.target("vmhost");
    let _lock = lock(&cache)?;
    if let Some(kernel) = HostKernel::find(&cache)? {
        return Ok(kernel);
    }
    let package = package(say)?;
    warning_of(&package).iter().for_each(|it| say(it));
    say(&format!("fetching the virtual host's kernel: apt-get download {package}"));
    let fetched = with_fresh_lists(say, || Ok(kernel::fetch(&package, &cache)?))?;
    fetched.warning().into_iter().for_each(say);
    Ok(fetched)
}

/// Returns the name of the newest kernel package. Refreshes apt's lists if they have only another version than the tests are made
/// with: the lists may be older than the sources.
fn package(say: Say<'_>) -> Result<String> {
    let newest = || Ok(kernel::newest_package()?);
    let tested = || {
        let name: String = newest()?;
        warning_of(&name).map_or(Ok(name), |it| Err(KitError::malformed("apt's lists", it)))
    };
    with_fresh_lists(say, tested).or_else(|_| newest())
}

/// Returns a warning for the user about a kernel package of another version than the lean kernel, with which the tests are made. Without
/// its security updates, Debian 12 has only an older one.
fn warning_of(package: &str) -> Option<String> {
    let version = source::PACKAGE.strip_prefix("linux-source-")?;
    let is_it = package.starts_with(&format!("linux-image-{version}."));
    (!is_it).then(|| {
        format!(
            "{package} is not Linux {version}, and some tests fail with an older kernel: add bookworm-security to apt's sources, remove target/vmhost, and run this again"
        )
    })
}

/// Adds busybox under all its names, and `/etc/passwd`, `/etc/group` and `/etc/hosts`, to a virtual host, for scripts.
///
/// # Errors
/// busybox is missing, or its directory cannot be written.
pub fn with_busybox(host: VirtualHost, workspace: &Workspace) -> Result<VirtualHost> {
    let folder = workspace.target("vmhost/userland");
    let _lock = lock(&workspace.target("vmhost"))?;
    if !folder.exists() {
        let draft = workspace.target("vmhost/userland.new");
        if draft.exists() {
            fs::remove_dir_all(&draft).map_err(KitError::file("remove", &draft))?;
        }
        write_userland(&draft)?;
        fs::rename(&draft, &folder).map_err(KitError::file("rename", &draft))?;
    }
    Ok(host.file(folder, "/"))
}

/// Adds a program to a virtual host, with its shared libraries if it is dynamic.
///
/// # Errors
/// The program cannot be read, or `ldd` refuses it.
pub fn with_program(host: VirtualHost, source: &Path, guest: &str) -> Result<VirtualHost> {
    let host = host.file(source, guest);
    let dynamic = source.is_file()
        && needs_loader(&fs::read(source).map_err(KitError::file("read", source))?);
    if !dynamic {
        return Ok(host);
    }
    let libraries = elf::libraries(source)?;
    Ok(libraries.into_iter().fold(host, |host, path| host.file(path.clone(), path)))
}

fn write_userland(folder: &Path) -> Result<()> {
    let busybox = Package::Busybox.path()?;
    for directory in ["bin", "etc"] {
        let path = folder.join(directory);
        fs::create_dir_all(&path).map_err(KitError::file("make", &path))?;
    }
    let write = || {
        let own = folder.join("bin/busybox");
        fs::copy(&busybox, &own)?;
        fs::set_permissions(&own, Permissions::from_mode(0o755))?;
        fs::write(folder.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::write(folder.join("etc/group"), "root:x:0:\n")?;
        fs::write(folder.join("etc/hosts"), "127.0.0.1 localhost\n")
    };
    write().map_err(KitError::file("write", folder))?;
    let names = program::run(Command::new(&busybox).arg("--list"))?;
    for name in String::from_utf8_lossy(&names).lines().filter(|name| *name != "busybox") {
        let path = folder.join("bin").join(name);
        symlink("/bin/busybox", &path).map_err(KitError::file("make", &path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_is_said() {
        let older = warning_of("linux-image-6.1.0-56-cloud-amd64").unwrap();
        assert!(older.starts_with("linux-image-6.1.0-56-cloud-amd64 is not Linux 6.12"), "{older}");
        assert_eq!(warning_of("linux-image-6.12.93+deb12-cloud-amd64"), None);
    }
}

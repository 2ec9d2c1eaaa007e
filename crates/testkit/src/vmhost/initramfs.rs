//! The initramfs of the emulated machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::VirtualHost;
use super::cpio::Archive;
use super::elf;
use crate::{KitError, Result, program};

const INIT: &str = include_str!("init.sh");
const MAIN: &str = include_str!("main.sh");
const PATIENTLY: &str = include_str!("patiently.sh");
/// Directories that are mount points in the init, or that programs expect.
const DIRECTORIES: [&str; 8] =
    ["dev", "proc", "sys", "tmp", "run", "root", "usr/bin", "usr/local/bin"];

/// Builds the archive: busybox, modules, the given files with their libraries, and the command.
pub(super) fn build(host: &VirtualHost, command: &[String], live: bool) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    for directory in DIRECTORIES {
        archive.dir(directory);
    }
    archive.file("init", 0o755, INIT.as_bytes());
    archive.file("vmhost/main", 0o644, MAIN.as_bytes());
    archive.file("usr/local/bin/patiently", 0o755, PATIENTLY.as_bytes());
    archive.file("vmhost/command", 0o644, quoted(command).as_bytes());
    archive.file("vmhost/disks", 0o644, disk_list(host).as_bytes());
    if live {
        archive.file("vmhost/live", 0o644, &[]);
    }
    for (source, guest) in &host.files {
        let source = fs::canonicalize(source).map_err(KitError::file("find", source))?;
        add_tree(&mut archive, &source, guest)?;
    }
    for module in host.kernel.modules()? {
        let name = module.file_name().unwrap_or_default().to_string_lossy();
        archive.file(&format!("vmhost/modules/{name}"), 0o644, &read(&module)?);
    }
    add_system(&mut archive)?;
    Ok(archive.finish())
}

/// Adds busybox under all its names, and the users. Given files of the same names win.
fn add_system(archive: &mut Archive) -> Result<()> {
    let busybox = program::find("busybox").ok_or_else(|| KitError::Missing {
        program: "busybox".to_owned(),
        remedy: "install it: apt-get install busybox-static".to_owned(),
    })?;
    let bytes = read(&busybox)?;
    if elf::is_dynamic(&bytes) {
        let why = "it is not static; install busybox-static: apt-get install busybox-static";
        return Err(KitError::malformed(busybox.display().to_string(), why));
    }
    archive.file("bin/busybox", 0o755, &bytes);
    let names = program::run(Command::new(&busybox).arg("--list"))?;
    for name in String::from_utf8_lossy(&names).lines() {
        archive.symlink(&format!("bin/{name}"), "/bin/busybox");
    }
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n");
    archive.file("etc/group", 0o644, b"root:x:0:\n");
    archive.file("etc/hosts", 0o644, b"127.0.0.1 localhost\n");
    Ok(())
}

/// Lists for the init where each disk belongs: number, kind and path.
fn disk_list(host: &VirtualHost) -> String {
    let line = |(number, (source, guest)): (usize, &(PathBuf, String))| {
        format!("{number} {} {guest}\n", if source.is_dir() { "dir" } else { "file" })
    };
    host.disks.iter().enumerate().map(line).collect()
}

fn add_tree(archive: &mut Archive, source: &Path, guest: &str) -> Result<()> {
    let kind = fs::symlink_metadata(source).map_err(KitError::file("read", source))?.file_type();
    if kind.is_dir() {
        archive.dir(guest);
        for child in sorted_children(source)? {
            let name = child.file_name().unwrap_or_default().to_string_lossy().into_owned();
            add_tree(archive, &child, &format!("{guest}/{name}"))?;
        }
        return Ok(());
    }
    if kind.is_symlink() {
        let target = fs::read_link(source).map_err(KitError::file("read", source))?;
        archive.symlink(guest, &target.to_string_lossy());
        return Ok(());
    }
    add_file(archive, source, guest)
}

/// Adds a file and, where it is a dynamic program, its libraries under their own paths.
fn add_file(archive: &mut Archive, source: &Path, guest: &str) -> Result<()> {
    let bytes = read(source)?;
    let mode = fs::metadata(source).map_err(KitError::file("read", source))?.permissions().mode();
    archive.file(guest, mode & 0o7777, &bytes);
    if elf::is_dynamic(&bytes) {
        for library in elf::libraries(source)? {
            let content = read(Path::new(&library))?;
            archive.file(&library, 0o755, &content);
        }
    }
    Ok(())
}

fn sorted_children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(KitError::file("list", folder))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(KitError::file("read", path))
}

/// Writes a command for sh so that no character of a word has a meaning.
fn quoted(command: &[String]) -> String {
    let words: Vec<_> =
        command.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    format!("exec {}\n", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reaches_its_program_unchanged() {
        let words = ["printf", "%s|", "it's", "$HOME `id`", "a\nb", "", "\\"].map(str::to_owned);
        let output = program::run(Command::new("sh").args(["-c", &quoted(&words)])).unwrap();
        assert_eq!(output, b"it's|$HOME `id`|a\nb||\\|");
    }
}

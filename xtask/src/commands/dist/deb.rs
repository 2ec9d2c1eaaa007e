//! The Debian package of a release: the files of its archive, below `/usr`.
//!
//! A package is an archive in the format of ar with the version of the format, a tar archive with the package's metadata, and a
//! tar archive with its files: [deb(5)](https://man7.org/linux/man-pages/man5/deb.5.html). This module writes it itself. `cargo-deb`
//! would be one more program to install for each release, and would need a list of the files of an installation in a
//! `Cargo.toml`, besides the one in [`install`]. `dpkg-deb --build` gives other bytes with each version of dpkg.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use host_fs::own::{INSTALLED_DOCUMENTS, INSTALLED_KERNEL};
use testbed::lean_kernel::LeanKernel;
use testbed::{KitError, Result};

use super::archive::{self, compressor};
use super::{VERSION, install};

/// The architecture of the programs, as Debian names it.
const ARCHITECTURE: &str = "amd64";
/// The maintainer, which every package has to name, with an address. The project has none: the one here belongs to nobody
/// ([RFC 2606](https://www.rfc-editor.org/rfc/rfc2606)).
const MAINTAINER: &str = "The authors of boxbuild <authors@boxbuild.invalid>";
/// The time of the entry in Debian's changelog, which must have one: that of the files.
const DATE: &str = "Tue, 01 Jan 1980 00:00:00 +0000";
/// The directory of zsh's completions in an archive, and in a Debian package.
const ZSH: [&str; 2] = ["share/zsh/site-functions", "share/zsh/vendor-completions"];

/// Returns the name of the package's file.
pub(super) fn file_name() -> String {
    format!("boxbuild_{VERSION}_{ARCHITECTURE}.deb")
}

/// Writes the package of an installation below `root` to `to`. The bytes depend only on the installation and the kernel.
///
/// # Errors
/// A file cannot be read or written.
pub(super) fn write(root: &Path, kernel: &LeanKernel, to: &Path) -> Result<()> {
    let tree = tempfile::tempdir().map_err(KitError::file("make", &std::env::temp_dir()))?;
    let [control, data] = ["control", "data"].map(|name| tree.path().join(name));
    stage(root, &data.join("usr"))?;
    document(kernel, &data.join("usr").join(INSTALLED_DOCUMENTS))?;
    put(&control.join("control"), fields(&data)?.as_bytes())?;
    let pack = |tree: &Path| archive::pack(tree, "", Vec::new());
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", pack(&control)?),
        ("data.tar.gz", pack(&data)?),
    ];
    let write = || -> io::Result<()> {
        let mut file = File::create(to)?;
        file.write_all(b"!<arch>\n")?;
        members.iter().try_for_each(|(name, bytes)| append(&mut file, name, bytes))
    };
    write().map_err(KitError::file("write", to))
}

/// Copies an installation to `to`, each file to the path that Debian has for it.
fn stage(root: &Path, to: &Path) -> Result<()> {
    for path in install::sorted(root)?.iter().filter(|it| it.is_file()) {
        let inside = path.strip_prefix(root).unwrap_or(path);
        if inside.starts_with("share/man") {
            put_compressed(path, &to.join(with_gz(inside)))?;
        } else if !inside.ends_with("LICENSE") {
            let inside = inside
                .strip_prefix(ZSH[0])
                .map_or(inside.to_owned(), |it| Path::new(ZSH[1]).join(it));
            let mode =
                fs::metadata(path).map_err(KitError::file("read", path))?.permissions().mode();
            install::put_file(path, &to.join(inside), mode & 0o777)?;
        }
    }
    Ok(())
}

fn with_gz(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".gz");
    name.into()
}

/// Compresses a manual page, as Debian demands.
fn put_compressed(from: &Path, to: &Path) -> Result<()> {
    let text = fs::read(from).map_err(KitError::file("read", from))?;
    put(to, &compressed(&text).map_err(KitError::file("compress", from))?)
}

fn compressed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = compressor(Vec::new(), Compression::best());
    compressor.write_all(bytes)?;
    compressor.finish()
}

/// Writes the files about the package that Debian demands: the licences, and a changelog in Debian's form.
fn document(kernel: &LeanKernel, to: &Path) -> Result<()> {
    put(&to.join("copyright"), copyright(kernel).as_bytes())?;
    let changelog = format!(
        "boxbuild ({VERSION}) unstable; urgency=medium\n\n  * CHANGELOG.md in this directory lists the changes of this version.\n\n \
         -- {MAINTAINER}  {DATE}\n"
    );
    let path = to.join("changelog.gz");
    put(&path, &compressed(changelog.as_bytes()).map_err(KitError::file("compress", &path))?)
}

/// Returns the file `copyright`, in the
/// [machine-readable format](https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/).
fn copyright(kernel: &LeanKernel) -> String {
    let about = &kernel.about;
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: boxbuild\n\
         Comment: The SPDX document of the release lists the crates in the programs, with their licences.\n\n\
         Files: *\n\
         Copyright: 2026, the authors of boxbuild\n\
         License: Apache-2.0\n \
         /usr/share/common-licenses/Apache-2.0 has the text of the licence.\n\n\
         Files: usr/{INSTALLED_KERNEL}\n\
         Copyright: 1991, Linus Torvalds and the authors of Linux\n\
         License: GPL-2\n \
         /usr/share/common-licenses/GPL-2 has the text of the licence.\n\
         Comment: Compiled by {}\n \
         from Debian's source package {}\n \
         (sha256 {})\n \
         with the configuration and the patches in the directory kernel of boxbuild's sources.\n",
        about.compiler, about.source, about.source_sha256
    )
}

/// Returns the file `control`: the metadata of the package with the files below `data`.
fn fields(data: &Path) -> Result<String> {
    let mut bytes = 0;
    // The size of a directory depends on the file system.
    for path in install::sorted(data)?.iter().filter(|it| it.is_file()) {
        bytes += fs::metadata(path).map_err(KitError::file("read", path))?.len();
    }
    let kibibytes = bytes.div_ceil(1024);
    let mut text = format!(
        "Package: boxbuild\nVersion: {VERSION}\nArchitecture: {ARCHITECTURE}\nMaintainer: {MAINTAINER}\n"
    );
    // Writing to a string cannot fail.
    let _ = write!(text, "Installed-Size: {kibibytes}\nSection: utils\nPriority: optional\n");
    // The network of boxes that have one, and boxes on hosts without KVM.
    text += "Suggests: passt, qemu-system-x86\n";
    text += "Description: build and run AI agents in microVMs\n \
             boxbuild builds a box from a Boxfile: everything that one microVM boots,\n \
             with the same bytes on every host. boxlaunch boots a box in a virtual\n \
             machine of its own.\n";
    Ok(text)
}

/// Appends a member to an archive in the format of ar.
fn append(file: &mut File, name: &str, bytes: &[u8]) -> io::Result<()> {
    // Name, time, user, group, mode and size.
    writeln!(file, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, "100644", bytes.len())?;
    file.write_all(bytes)?;
    if bytes.len() % 2 == 1 { file.write_all(b"\n") } else { Ok(()) }
}

fn put(to: &Path, mut bytes: &[u8]) -> Result<()> {
    install::put(to, 0o644, |file| io::copy(&mut bytes, file))
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use testbed::lean_kernel::About;
    use testbed::program;

    use super::*;

    /// Installs a package with dpkg below `root`, a directory without anything else, and starts the programs there: boxlaunch with
    /// `root` as its root directory.
    pub(in super::super) fn install(package: &Path, root: &Path) {
        let dpkg = root.join("var/lib/dpkg");
        for directory in ["info", "updates", "triggers"] {
            fs::create_dir_all(dpkg.join(directory)).unwrap();
        }
        fs::write(dpkg.join("status"), "").unwrap();
        let call = |program: &str, arguments: &[&str]| {
            let output = program::run(Command::new(program).args(arguments)).unwrap();
            String::from_utf8(output).unwrap()
        };
        let package = package.to_str().unwrap();
        call("dpkg", &[&format!("--root={}", root.display()), "--install", package]);
        let root = root.to_str().unwrap();
        // The boxbuild of a release is static, too; the one of a test run needs the libraries of this host.
        let boxbuild = call(&format!("{root}/usr/bin/boxbuild"), &["--version"]);
        let boxlaunch = call("chroot", &[root, "/usr/bin/boxlaunch", "--version"]);
        let front = call("chroot", &[root, "/usr/bin/box", "--version"]);
        for (name, version) in [("boxbuild", boxbuild), ("boxlaunch", boxlaunch), ("box", front)] {
            assert_eq!(version, format!("{name} {VERSION}\n"));
        }
        assert_eq!(call("dpkg-deb", &["--field", package, "Version"]), format!("{VERSION}\n"));
        let listed = call("dpkg-deb", &["--contents", package]);
        for line in [
            "usr/share/man/man1/boxbuild.1.gz",
            "usr/share/man/man1/box.1.gz",
            "usr/share/bash-completion/completions/box",
            "usr/lib/boxbuild/lean-kernel",
            "usr/lib/systemd/system/boxbuild@.service",
        ] {
            let line = listed.lines().find(|it| it.ends_with(line)).unwrap();
            assert!(
                line.starts_with("-rw-r--r-- root/root ") && line.contains(" 1980-01-01 "),
                "{line}"
            );
        }
    }

    /// Writes a package of a few files, made in an order of its own.
    fn package(names: [&str; 5], to: &Path) {
        let root = tempfile::tempdir().unwrap();
        for name in names {
            let mode = if name.starts_with("bin/") { 0o755 } else { 0o644 };
            install::put(&root.path().join(name), mode, |file| {
                io::copy(&mut "text".as_bytes(), file)
            })
            .unwrap();
        }
        let about = About {
            source: "linux-source-6.12 6.12.1".to_owned(),
            source_sha256: "abcd".to_owned(),
            compiler: "gcc 12; ld 2".to_owned(),
            sha256: "ef01".to_owned(),
        };
        let kernel = LeanKernel { directory: root.path().to_owned(), about };
        write(root.path(), &kernel, to).unwrap();
    }

    #[test]
    fn dpkg_reads_a_package_and_debian_has_its_files_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let mut names = [
            "bin/boxbuild",
            "share/doc/boxbuild/LICENSE",
            "share/doc/boxbuild/docs/a.md",
            "share/man/man1/a.1",
            "share/zsh/site-functions/_a",
        ];
        package(names, &at("one.deb"));
        names.reverse();
        package(names, &at("other.deb"));
        assert_eq!(fs::read(at("one.deb")).unwrap(), fs::read(at("other.deb")).unwrap());
        let call = |arguments: &[&str]| {
            let mut dpkg = Command::new("dpkg-deb");
            dpkg.arg(arguments[0]).arg(at("one.deb")).args(&arguments[1..]);
            String::from_utf8(program::run(&mut dpkg).unwrap()).unwrap()
        };
        let expected = format!("Package: boxbuild\nVersion: {VERSION}\nArchitecture: amd64\n");
        assert_eq!(call(&["--field", "Package", "Version", "Architecture"]), expected);
        let listed = call(&["--contents"]);
        let files = listed.lines().filter(|it| it.starts_with('-'));
        let files: Vec<_> = files.filter_map(|it| it.split(' ').next_back()).collect();
        let below = [
            "bin/boxbuild",
            "share/doc/boxbuild/changelog.gz",
            "share/doc/boxbuild/copyright",
            "share/doc/boxbuild/docs/a.md",
            "share/man/man1/a.1.gz",
            "share/zsh/vendor-completions/_a",
        ];
        assert_eq!(files, below.map(|it| format!("usr/{it}")));
        assert!(
            listed.lines().all(|it| it.contains(" root/root ") && it.contains(" 1980-01-01 ")),
            "{listed}"
        );
        program::run(Command::new("dpkg-deb").arg("-x").arg(at("one.deb")).arg(at("out"))).unwrap();
        let copyright = fs::read_to_string(at("out/usr/share/doc/boxbuild/copyright")).unwrap();
        assert!(copyright.contains("\nComment: Compiled by gcc 12; ld 2\n from"), "{copyright}");
        let page =
            program::run(Command::new("gzip").arg("-dc").arg(at("out/usr/share/man/man1/a.1.gz")));
        assert_eq!(page.unwrap(), b"text");
    }

    #[test]
    fn a_member_has_an_even_size() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive");
        let mut file = File::create(&path).unwrap();
        append(&mut file, "a", b"abc").unwrap();
        append(&mut file, "b", b"abcd").unwrap();
        let expected = "a               0           0     0     100644  3         `\nabc\n\
                        b               0           0     0     100644  4         `\nabcd";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    }
}

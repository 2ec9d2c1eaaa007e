//! `cargo xtask dist`: makes the files of a release.
//!
//! A release has an archive with the programs, a Debian package of the same files, packages for Python and Node.js with the
//! programs, a bill of materials, a file with the checksums
//! of all, and notes: the text that a page for downloads shows. The same sources and the same compilers give the same bytes, in every directory and at every time.
//! With a key, it has a signature of the checksums, too.

mod archive;
mod bill;
#[cfg(test)]
mod ci;
mod deb;
mod npm;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use host_fs::own::INSTALLED_KERNEL;
use testbed::lean_kernel::{self, LeanKernel};
use testbed::prerequisites::{Package, TypeScript, musl_target, packages, typescript};
use testbed::{Artefacts, KitError, Result, Workspace, digest, program};
use tool_output::{cargo, say};

use super::{Outcome, install};

/// The version of the programs, which all packages of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The platform of the programs, in the archive's name.
const PLATFORM: &str = "x86_64-linux";
/// The directory with the notes of each version.
const NOTES: &str = "docs/releases";
/// The file with the checksums, in the format of
/// [sha256sum(1)](https://man7.org/linux/man-pages/man1/sha256sum.1.html).
const CHECKSUMS: &str = "SHA256SUMS";
/// The file with the signature of [`CHECKSUMS`]: 64 bytes with Ed25519, DER with ECDSA.
const SIGNATURE: &str = "SHA256SUMS.sig";

/// The destination.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The directory for the files of the release [default: target/dist]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Also sign SHA256SUMS, with this private key: Ed25519 or ECDSA, in a PEM file. Needs openssl
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let output = options.output.clone().unwrap_or_else(|| workspace.target("dist"));
    if options.key.is_some() {
        say::watch(|| packages(&[Package::Openssl], &mut say::note))?;
    }
    say::watch(|| musl_target(&mut say::note))?;
    let kernel = say::watch(|| lean_kernel::build(&workspace, &mut say::note))?;
    let compiler = say::watch(|| typescript(&workspace, &mut say::note))?;
    say::step("compiling", || compile(&workspace))?;
    let programs = Artefacts::locate_release(&workspace);
    let from = (&programs, &kernel, &compiler);
    let mut files = say::step("packing", || make(&workspace, from, &output))?;
    let signature = output.join(SIGNATURE);
    match &options.key {
        Some(key) => {
            sign(&output.join(CHECKSUMS), key, &signature)?;
            files.push(signature);
        }
        // One of an earlier run is of other checksums.
        None => drop(fs::remove_file(signature)),
    }
    for file in files {
        say::result(&file.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}

fn compile(workspace: &Workspace) -> Result<()> {
    cargo::run(&mut Artefacts::release_builder_build(workspace))?;
    cargo::build_boxlaunch(workspace)?;
    cargo::run(&mut Artefacts::init_build(workspace))
}

/// Writes the files of the release from programs that are compiled, and returns their paths.
fn make(
    workspace: &Workspace,
    (programs, kernel, compiler): (&Artefacts, &LeanKernel, &TypeScript),
    output: &Path,
) -> Result<Vec<PathBuf>> {
    let name = format!("boxbuild-{VERSION}-{PLATFORM}");
    let root = tempfile::tempdir().map_err(KitError::file("make", &std::env::temp_dir()))?;
    install::install(workspace, programs, root.path())?;
    install::put_file(&kernel.elf(), &root.path().join(INSTALLED_KERNEL), 0o644)?;
    fs::create_dir_all(output).map_err(KitError::file("make", output))?;
    let archive = output.join(format!("{name}.tar.gz"));
    archive::write(root.path(), &name, &archive)?;
    let package = output.join(deb::file_name());
    deb::write(root.path(), kernel, &package)?;
    let wheel = wheel::write(workspace, root.path(), output)?;
    let npm = npm::write((workspace, compiler), root.path(), output)?;
    let bill = output.join(format!("{name}.spdx.json"));
    bill::write(workspace, kernel, &bill)?;
    let sums = output.join(CHECKSUMS);
    write(&sums, &checksums(&[&archive, &package, &wheel, &npm, &bill])?)?;
    let notes = output.join(format!("boxbuild-{VERSION}-notes.md"));
    install::put_file(&workspace.path(&notes_of(VERSION)), &notes, 0o644)?;
    Ok(vec![archive, package, wheel, npm, bill, sums, notes])
}

/// Returns the path of the notes of a version in the repository.
fn notes_of(version: &str) -> String {
    format!("{NOTES}/{version}.md")
}

/// Returns the lines of [`CHECKSUMS`]: the sha256 and the name of each file.
fn checksums(files: &[&Path]) -> Result<String> {
    let line = |file: &&Path| -> Result<String> {
        let name = file.file_name().unwrap_or_default().display();
        Ok(format!("{}  {name}\n", digest::of_file(file)?.hex()))
    };
    files.iter().map(line).collect()
}

/// Signs a file with a private key in a PEM file.
///
/// # Errors
/// openssl is missing, or refuses the key.
fn sign(file: &Path, key: &Path, signature: &Path) -> Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["pkeyutl", "-sign", "-rawin", "-inkey"]).arg(key);
    program::run(openssl.arg("-in").arg(file).arg("-out").arg(signature)).map(drop)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(KitError::file("write", path))
}

#[cfg(test)]
mod tests {
    use box_contract::KernelName;
    use host_fs::own::{INSTALLED_DOCUMENTS, VARIABLES};
    use serde_json::Value;

    use super::*;

    /// Makes a release of the tests' programs below `output`.
    pub(super) fn made(output: &Path) -> Vec<PathBuf> {
        let workspace = Workspace::find();
        let programs = Artefacts::build(&workspace).unwrap();
        let kernel = lean_kernel::build(&workspace, &mut |_| ()).unwrap();
        let compiler = typescript(&workspace, &mut |_| ()).unwrap();
        make(&workspace, (&programs, &kernel, &compiler), output).unwrap()
    }

    /// Runs a command in a directory, with a home of its own, and returns its standard output.
    fn run(command: &mut Command, directory: &Path) -> Vec<u8> {
        let home = directory.join("home");
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.current_dir(directory).env("HOME", &home);
        program::run(command).unwrap()
    }

    #[test]
    fn the_page_about_installing_names_the_files_of_this_version() {
        let page = fs::read_to_string(Workspace::find().path("docs/installing.md")).unwrap();
        let notes = fs::read_to_string(Workspace::find().path(&notes_of(VERSION))).unwrap();
        for file in [
            format!("boxbuild-{VERSION}-{PLATFORM}.tar.gz"),
            format!("boxbuild-{VERSION}-{PLATFORM}.spdx.json"),
            deb::file_name(),
            wheel::file_name(),
            npm::file_name(),
        ] {
            assert!(page.contains(&file), "{file}");
            assert!(notes.contains(&file), "{file}");
        }
        assert!(notes.lines().count() < 70, "the notes are longer than a screen and a half");
        let changes = fs::read_to_string(Workspace::find().path("CHANGELOG.md")).unwrap();
        assert!(changes.contains(&format!("\n## [{VERSION}] - ")), "{VERSION}");
    }

    #[test]
    fn a_signature_is_of_these_checksums_and_by_this_key() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let openssl = |line: &str| {
            let mut openssl = Command::new("openssl");
            program::run(openssl.args(line.split(' ')).current_dir(directory.path()))
        };
        // The command of docs/installing.md.
        let verify = "pkeyutl -verify -rawin -pubin -inkey release.pub -in SHA256SUMS -sigfile SHA256SUMS.sig";
        let page = fs::read_to_string(Workspace::find().path("docs/installing.md")).unwrap();
        assert!(page.contains(verify), "{verify}");
        for algorithm in ["ed25519", "EC -pkeyopt ec_paramgen_curve:P-256"] {
            openssl(&format!("genpkey -algorithm {algorithm} -out release.key")).unwrap();
            openssl("pkey -in release.key -pubout -out release.pub").unwrap();
            write(&at(CHECKSUMS), "00  a\n").unwrap();
            sign(&at(CHECKSUMS), &at("release.key"), &at(SIGNATURE)).unwrap();
            openssl(verify).unwrap();
            write(&at(CHECKSUMS), "01  a\n").unwrap();
            assert!(openssl(verify).is_err(), "other checksums");
            write(&at(CHECKSUMS), "00  a\n").unwrap();
            openssl("genpkey -algorithm ed25519 -out other.key").unwrap();
            openssl("pkey -in other.key -pubout -out release.pub").unwrap();
            assert!(openssl(verify).is_err(), "another key");
        }
        assert!(sign(&at(CHECKSUMS), &at(CHECKSUMS), &at(SIGNATURE)).is_err(), "no key");
    }

    #[test]
    #[ignore = "needs the lean kernel: cargo xtask test --landing"]
    fn a_release_is_the_same_bytes_and_builds_a_box_without_setup() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        let [one, other] = ["one", "other"].map(|name| made(&at(name)));
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(
                digest::of_file(one).unwrap(),
                digest::of_file(other).unwrap(),
                "{}",
                one.display()
            );
        }
        run(Command::new("sha256sum").args(["--check", CHECKSUMS]), &at("one"));
        fs::create_dir(at("installed")).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&one[0]).args(["-C", "installed", "--strip-components=1"]);
        run(&mut tar, directory.path());
        deb::tests::install(&one[1], &at("debian"));
        let agent = Artefacts::locate(&Workspace::find(), testbed::Profile::Dev).hello_agent;
        for (checkout, programs) in [("a", "installed/bin"), ("b", "debian/usr/bin")] {
            let checkout = at(checkout);
            fs::create_dir(&checkout).unwrap();
            fs::copy(&agent, checkout.join("agent")).unwrap();
            fs::write(checkout.join("Boxfile"), "box \"b\"\nagent { binary \"agent\"; }\n")
                .unwrap();
            let boxbuild = || Command::new(at(programs).join("boxbuild"));
            run(boxbuild().args(["build", "--store", "store"]), &checkout);
            let arguments = ["inspect", "b.box", "--json", "--store", "store"];
            let shown = run(boxbuild().args(arguments), &checkout);
            let shown: Value = serde_json::from_slice(&shown).unwrap();
            let version = shown["kernel_version"].as_str().unwrap();
            assert!(KernelName::is_lean(version), "{programs}: {version}");
        }
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--no-deps",
            "--target",
            "python",
        ]);
        run(pip.arg(&one[2]), directory.path());
        let build = "import boxbuild; print(boxbuild.build('a/Boxfile', options=['--store', 'new'])['box'])";
        let mut python = Command::new("python3");
        python.args(["-c", build]).env("PYTHONPATH", at("python")).env("PATH", "/usr/bin:/bin");
        let built = String::from_utf8(run(&mut python, directory.path())).unwrap();
        assert!(built.starts_with("sha256:"), "{built}");
        fs::create_dir_all(at("node_modules/boxbuild")).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-xzf").arg(&one[3]).args(["-C", "node_modules/boxbuild", "--strip-components=1"]);
        run(&mut tar, directory.path());
        let build = "import('boxbuild').then(async it => console.log((await it.build('a/Boxfile', { options: ['--store', 'new'] })).box))";
        let mut node = typescript(&Workspace::find(), &mut |_| ()).unwrap().node();
        node.args(["-e", build]).env("PATH", "/usr/bin:/bin");
        assert_eq!(String::from_utf8(run(&mut node, directory.path())).unwrap(), built);
        for page in ["README.md", "docs/trust.md", &notes_of(VERSION)] {
            assert!(at("installed").join(INSTALLED_DOCUMENTS).join(page).is_file(), "{page}");
        }
    }
}

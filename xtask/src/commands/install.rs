//! `cargo xtask install`: builds the programs and installs them for a user.

use std::env;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use host_fs::own::{INSTALLED_DOCUMENTS, INSTALLED_INIT};
use tempfile::NamedTempFile;
use testbed::prerequisites::{musl_target, pip};
use testbed::{Artefacts, KitError, Profile, Result, Workspace, program};
use tool_output::{cargo, say};

use super::Outcome;

/// Each shell's directory for completions, below a root such as /usr or ~/.local, and the prefix and suffix of the file's name
/// there. For example, zsh reads the completions of boxbuild from `_boxbuild`.
const COMPLETIONS: [(&str, &str, &str, &str); 3] = [
    ("bash", "share/bash-completion/completions", "", ""),
    ("zsh", "share/zsh/site-functions", "_", ""),
    ("fish", "share/fish/vendor_completions.d", "", ".fish"),
];

/// The directory for manual pages, below a root.
const PAGES: &str = "share/man/man1";
/// The documents of the repository that each installation has, with all pages of a directory. Their links to each other work.
const COPIED: [&str; 6] =
    ["LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "Boxfile.example", "docs"];
/// The directory of systemd's units, in the repository and in an installation. systemd reads those below /usr and /usr/local.
const UNITS: [&str; 2] = ["launcher/systemd", "lib/systemd/system"];
/// The destination.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The directory for bin, lib and share [default: ~/.local]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let root = root(options.root.as_deref())?;
    say::watch(|| {
        musl_target(&mut say::note)?;
        pip(&mut say::note)
    })?;
    say::note("compiling boxbuild, boxlaunch and box-init; minutes the first time");
    say::step("compiling", || compile(&workspace))?;
    say::step("installing", || {
        install(&workspace, &Artefacts::locate(&workspace, Profile::Release), &root)
    })?;
    let boxbuild = root.join("bin/boxbuild");
    let kernel =
        say::step("boxbuild setup", || program::run(Command::new(&boxbuild).arg("setup")))?;
    say::result(&format!("{}{}", installed(&root), String::from_utf8_lossy(&kernel).trim_end()));
    if !is_in_path(&root.join("bin"), env::var_os("PATH")) {
        let bin = root.join("bin");
        say::note(&format!("{0} is not in PATH; add it: export PATH=\"{0}:$PATH\"", bin.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the absolute path of the destination directory.
fn root(named: Option<&Path>) -> Result<PathBuf> {
    let root = match named {
        Some(root) => root.to_owned(),
        None => env::home_dir().unwrap_or_default().join(".local"),
    };
    std::path::absolute(&root).map_err(KitError::file("find", &root))
}

fn compile(workspace: &Workspace) -> Result<()> {
    cargo::run(&mut Artefacts::builder_build(workspace, Profile::Release))?;
    cargo::build_boxlaunch(workspace)?;
    cargo::run(&mut Artefacts::init_build(workspace))
}

/// Installs the programs, their manual pages and completions, systemd's units, and the documents of the repository below `root`.
pub(super) fn install(workspace: &Workspace, artefacts: &Artefacts, root: &Path) -> Result<()> {
    // box-init is installed first, so that a new boxbuild never finds an old box-init.
    put_program(&artefacts.box_init, &root.join(INSTALLED_INIT))?;
    put_program(&artefacts.boxlaunch, &root.join("bin/boxlaunch"))?;
    put_program(&artefacts.boxbuild, &root.join("bin/boxbuild"))?;
    put_program(&artefacts.front, &root.join("bin/box"))?;
    for (program, name) in [(&artefacts.boxbuild, "boxbuild"), (&artefacts.boxlaunch, "boxlaunch")]
    {
        program::run(Command::new(program).args(["man", "--output"]).arg(root.join(PAGES)))?;
        complete(program, name, root)?;
    }
    put_file(&workspace.path("front/box.1"), &root.join(PAGES).join("box.1"), 0o644)?;
    // `box` asks the boxlaunch beside it.
    complete(&root.join("bin/box"), "box", root)?;
    let [from, to] = [workspace.path(UNITS[0]), root.join(UNITS[1])];
    put_tree(&from, &to)?;
    COPIED.iter().try_for_each(|it| put_document(workspace, it, root))
}

/// Copies a document of the repository, or all files below a directory, to the documents of the installation below `root`.
fn put_document(workspace: &Workspace, document: &str, root: &Path) -> Result<()> {
    let (from, to) = (workspace.path(document), root.join(INSTALLED_DOCUMENTS).join(document));
    if from.is_dir() { put_tree(&from, &to) } else { put_file(&from, &to, 0o644) }
}

/// Copies all files below a directory.
fn put_tree(from: &Path, to: &Path) -> Result<()> {
    let files = sorted(from)?;
    files.iter().filter(|it| it.is_file()).try_for_each(|file| {
        let inside = file.strip_prefix(from).unwrap_or(file);
        put_file(file, &to.join(inside), 0o644)
    })
}

/// Returns the paths of all entries below a directory, each directory before its entries.
pub(super) fn sorted(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = || -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    };
    let mut entries = listed().map_err(KitError::file("read", directory))?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        let is_directory = entry.is_dir();
        all.push(entry.clone());
        if is_directory {
            all.extend(sorted(&entry)?);
        }
    }
    Ok(all)
}

/// Has a program generate its completions, and installs them below `root`.
fn complete(program: &Path, name: &str, root: &Path) -> Result<()> {
    for (shell, folder, before, after) in COMPLETIONS {
        let text = program::run(Command::new(program).args(["completions", shell]))?;
        let to = root.join(folder).join(format!("{before}{name}{after}"));
        put(&to, 0o644, |file| io::copy(&mut text.as_slice(), file))?;
    }
    Ok(())
}

fn put_program(from: &Path, to: &Path) -> Result<()> {
    put_file(from, to, 0o755)
}

/// Copies a file to `to`, with the permissions `mode`.
pub(super) fn put_file(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let mut content = File::open(from).map_err(KitError::file("open", from))?;
    put(to, mode, |file| io::copy(&mut content, file))
}

/// Writes a file next to its destination and renames it, so that a running program keeps its old file.
pub(super) fn put(
    to: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<u64>,
) -> Result<()> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(KitError::file("make", folder))?;
    let mut draft = NamedTempFile::new_in(folder).map_err(KitError::file("write to", folder))?;
    write(draft.as_file_mut()).map_err(KitError::file("write", to))?;
    let permissions = Permissions::from_mode(mode);
    draft.as_file().set_permissions(permissions).map_err(KitError::file("make readable", to))?;
    draft.persist(to).map_err(|failed| KitError::file("write", to)(failed.error)).map(drop)
}

fn installed(root: &Path) -> String {
    let lines = ["bin/box", "bin/boxbuild", "bin/boxlaunch", INSTALLED_INIT]
        .map(|it| format!("installed {}\n", root.join(it).display()));
    lines.concat()
}

/// Returns whether a directory is in `PATH`.
fn is_in_path(directory: &Path, path: Option<std::ffi::OsString>) -> bool {
    path.is_some_and(|path| env::split_paths(&path).any(|it| it == directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_runs_keeps_its_bytes() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("bin/program");
        put(&to, 0o755, |file| io::copy(&mut b"old".as_slice(), file)).unwrap();
        let mut running = File::open(&to).unwrap();
        put(&to, 0o755, |file| io::copy(&mut b"new".as_slice(), file)).unwrap();
        assert_eq!(io::read_to_string(&mut running).unwrap(), "old");
        assert_eq!(fs::read(&to).unwrap(), b"new");
        assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_dir(to.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_outside_of_path_is_noticed() {
        let bin = Path::new("/home/user/.local/bin");
        assert!(is_in_path(bin, Some("/usr/bin:/home/user/.local/bin/".into())));
        assert!(!is_in_path(bin, Some("/usr/bin".into())));
        assert!(!is_in_path(bin, None));
    }

    #[test]
    fn a_root_is_absolute() {
        assert!(root(Some(Path::new("here"))).unwrap().is_absolute());
        assert!(root(None).unwrap().ends_with(".local"));
    }
}

//! The package of sdk/typescript for npm, with the programs of the release inside.

use std::path::{Path, PathBuf};

use testbed::prerequisites::TypeScript;
use testbed::{KitError, Result, Workspace};

use super::{archive, install};

/// The programs and files of an installation that the package has, at the same paths.
const PROGRAMS: [&str; 5] = [
    "bin/box",
    "bin/boxbuild",
    "bin/boxlaunch",
    "lib/boxbuild/box-init",
    host_fs::own::INSTALLED_KERNEL,
];
/// The files of the sources that the package has as they are.
const AS_THEY_ARE: [&str; 2] = ["package.json", "README.md"];
/// The directory of the compiled modules, without tests and examples.
const MODULES: &str = "dist/src";

/// Returns the name of the package's file.
pub(super) fn file_name() -> String {
    format!("boxbuild-{}-npm-x86_64-linux.tgz", super::VERSION)
}

/// Writes the package from an installation into a directory, and returns its path. Its files are below `package/`, as npm wants them.
pub(super) fn write(
    (workspace, compiler): (&Workspace, &TypeScript),
    installed: &Path,
    output: &Path,
) -> Result<PathBuf> {
    let scratch = || tempfile::tempdir().map_err(KitError::file("make", &std::env::temp_dir()));
    let (compiled, root) = (scratch()?, scratch()?);
    compiler.compile(workspace, compiled.path())?;
    let sources = workspace.path("sdk/typescript");
    for name in AS_THEY_ARE {
        install::put_file(&sources.join(name), &root.path().join(name), 0o644)?;
    }
    for name in PROGRAMS {
        let mode = if name == host_fs::own::INSTALLED_KERNEL { 0o644 } else { 0o755 };
        install::put_file(&installed.join(name), &root.path().join(name), mode)?;
    }
    let modules = compiled.path().join(MODULES);
    for path in install::sorted(&modules)?.into_iter().filter(|it| it.is_file()) {
        let to = root.path().join(MODULES).join(path.strip_prefix(&modules).unwrap_or(&path));
        install::put_file(&path, &to, 0o644)?;
    }
    let package = output.join(file_name());
    archive::write(root.path(), "package", &package)?;
    Ok(package)
}

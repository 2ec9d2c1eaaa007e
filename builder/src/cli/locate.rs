//! Finding what the command line does not name: the store, the init, the kernel.

use std::env;
use std::path::{Path, PathBuf};

use box_image::ErrorCode;
use boxfile_spec::Boxfile;

use super::failure::Failure;

/// Where distributions install shared libraries.
const LIBRARY_DIRECTORIES: [&str; 6] = [
    "/usr/local/lib64",
    "/usr/local/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib",
    "/opt/homebrew/lib",
];
const KERNEL_LIBRARY: &str = "libkrunfw.so.5";

/// Refuses an output in the directory of a box, or of any other OCI image layout, which would hold
/// something foreign then.
pub(crate) fn check_output(output: &Path) -> Result<(), Failure> {
    let mut above = output.ancestors().skip(1);
    let Some(nearest) = above.find_map(|it| Path::new(".").join(it).canonicalize().ok()) else {
        return Ok(());
    };
    let Some(layout) = nearest.ancestors().find(|it| box_layout::is_layout(it)) else {
        return Ok(());
    };
    let (output, layout) = (output.display(), layout.display());
    let message = format!("{output} is in {layout}, an OCI image layout, which holds nothing else");
    Err(Failure::new((ErrorCode::OutputExists, "name another place with --output"), message))
}

/// Returns the directory of the store.
pub(crate) fn store(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named
        .map(Path::to_owned)
        .or_else(|| path("BOXBUILD_STORE"))
        .or_else(|| xdg("XDG_CACHE_HOME").map(|cache| cache.join("boxbuild")))
        .or_else(|| path("HOME").map(|home| home.join(".cache/boxbuild")))
        .ok_or_else(|| {
            let help = "name one with --store, or set HOME";
            Failure::new((ErrorCode::StoreInvalid, help), "no directory for the store")
        })
}

/// Returns the directory of the user's configuration.
pub(crate) fn config_home() -> Option<PathBuf> {
    xdg("XDG_CONFIG_HOME").or_else(|| path("HOME").map(|home| home.join(".config")))
}

/// Returns the directory in a variable of the XDG Base Directory specification, which says to ignore
/// one that is relative.
pub(crate) fn xdg(name: &str) -> Option<PathBuf> {
    path(name).filter(|directory| directory.is_absolute())
}

/// Returns the path in an environment variable, unless it is empty.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the init: as named, or beside this program.
pub(crate) fn init(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let program = env::current_exe().unwrap_or_default();
    let directory = program.parent().unwrap_or(Path::new("/"));
    let places = [directory.join("box-init"), directory.join("../lib/boxbuild/box-init")];
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let help =
            "name it with --init PATH or BOXBUILD_INIT; it is built by\ncargo xtask box-init";
        Failure::new((ErrorCode::InitNotFound, help), "box-init is not beside boxbuild")
    })
}

/// Returns the kernel: as the Boxfile names it, as named on the command line, or as installed.
pub(crate) fn kernel(
    named: Option<&Path>,
    boxfile: &Boxfile,
    base: &Path,
) -> Result<PathBuf, Failure> {
    let declared = boxfile.kernel.as_ref().and_then(|kernel| kernel.path.as_ref());
    if let Some(path) = declared {
        return Ok(base.join(&path.value));
    }
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let places = LIBRARY_DIRECTORIES.iter().map(|it| Path::new(it).join(KERNEL_LIBRARY));
    places.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let help = "install your distribution's libkrunfw, or name its libkrunfw.so.5 with \
                    --kernel PATH or BOXBUILD_KERNEL";
        let message = "no guest kernel: libkrunfw is not installed";
        Failure::new((ErrorCode::KernelNotFound, help), message)
    })
}

/// Returns a box's name made of the current directory's.
pub(crate) fn directory_name() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    boxfile_spec::intended_name(&name).unwrap_or_else(|| "my-agent".to_owned())
}

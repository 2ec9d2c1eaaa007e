//! Finding what the command line does not name: the store, the user's directories.

use std::env;
use std::path::{Path, PathBuf};

use box_cache::Store;
use box_image::ErrorCode;
use host_fs::{named_path, own};

use super::failure::Failure;
use super::terminal;

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
    own::store(named, |name| env::var_os(name)).ok_or_else(|| {
        let help = "name one with --store, or set HOME";
        Failure::new((ErrorCode::StoreInvalid, help), "no directory for the store")
    })
}

/// Opens the store, and says so if that has to wait for another process.
pub(crate) fn open_store(directory: &Path) -> Result<Store, Failure> {
    let store = directory.display();
    let text = format!("waiting for another boxbuild that uses the store {store}");
    Ok(Store::open_waiting(directory, || terminal::note(&text))?)
}

/// Returns the directory of the virtual host's kernels.
pub(crate) fn host_kernels() -> Result<PathBuf, Failure> {
    let cache = virtual_host::kernel::cache(|name| env::var_os(name));
    let help = "set HOME or XDG_CACHE_HOME";
    cache
        .ok_or_else(|| Failure::new((ErrorCode::Usage, help), "no directory for the user's caches"))
}

/// Returns the path in an environment variable, unless it is empty.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    named_path(env::var_os(name))
}

/// Returns a box's name made of the current directory's.
pub(crate) fn directory_name() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    boxfile_spec::intended_name(&name).unwrap_or_else(|| "my-agent".to_owned())
}

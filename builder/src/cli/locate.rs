//! Finds directories that the command line does not name.

use std::env;
use std::path::PathBuf;

use box_contract::ErrorCode;

use super::failure::Failure;

/// Returns the directory of the virtual host's kernels.
pub(crate) fn host_kernels() -> Result<PathBuf, Failure> {
    let cache = virtual_host::kernel::cache(|name| env::var_os(name));
    let help = "set HOME or XDG_CACHE_HOME";
    cache
        .ok_or_else(|| Failure::new((ErrorCode::Usage, help), "no directory for the user's caches"))
}

/// Returns a name for a box from the name of the working directory.
pub(crate) fn directory_name() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    diagnostics::names::intended_name(&name).unwrap_or_else(|| "my-agent".to_owned())
}

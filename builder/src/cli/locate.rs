//! Finding what the command line does not name: the user's directories.

use std::env;
use std::path::{Path, PathBuf};

use box_contract::ErrorCode;

use super::failure::Failure;

/// Refuses an output in the directory of a box, or of any other OCI image layout, which would hold
/// something foreign then.
pub(crate) fn check_output(output: &Path) -> Result<(), Failure> {
    let Some(layout) = box_layout::layout_above(output) else { return Ok(()) };
    let (output, layout) = (output.display(), layout.display());
    let message = format!("{output} is in {layout}, an OCI image layout, which holds nothing else");
    Err(Failure::new((ErrorCode::OutputExists, "name another place with --output"), message))
}

/// Returns the directory of the virtual host's kernels.
pub(crate) fn host_kernels() -> Result<PathBuf, Failure> {
    let cache = virtual_host::kernel::cache(|name| env::var_os(name));
    let help = "set HOME or XDG_CACHE_HOME";
    cache
        .ok_or_else(|| Failure::new((ErrorCode::Usage, help), "no directory for the user's caches"))
}

/// Returns a box's name made of the current directory's.
pub(crate) fn directory_name() -> String {
    let directory = env::current_dir().unwrap_or_default();
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    diagnostics::names::intended_name(&name).unwrap_or_else(|| "my-agent".to_owned())
}

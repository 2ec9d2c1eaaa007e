//! The choice of the virtual host's kernel.

use std::path::Path;

use super::{HostKernel, fetch, newest_package, prepare_package};
use crate::Result;

/// Returns the kernel from `named`, the file of a package, prepared by [`prepare_package`]. If `named` is `None`, returns the
/// kernel in the cache directory, or fetches the newest kernel. `before` is called with the command for fetching before it runs.
///
/// # Errors
/// The errors of [`prepare_package`], [`HostKernel::find`], [`newest_package`] and [`fetch`].
pub fn choose(named: Option<&Path>, cache: &Path, before: impl FnOnce(&str)) -> Result<HostKernel> {
    if let Some(file) = named {
        return prepare_package(file, cache);
    }
    if let Some(kernel) = HostKernel::find(cache)? {
        return Ok(kernel);
    }
    let package = newest_package()?;
    before(&format!("apt-get download {package}"));
    fetch(&package, cache)
}

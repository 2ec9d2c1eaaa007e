//! Which kernel a run takes.

use std::path::Path;

use super::{HostKernel, fetch, newest_package, prepare_package};
use crate::Result;

/// Returns the kernel in a named package's file, prepared as by [`prepare_package`]; else the one that a cache directory has; else
/// fetches the newest, and then `before` gets the command that does so as soon as its package is known.
///
/// # Errors
/// As for [`prepare_package`], [`HostKernel::find`], [`newest_package`] and [`fetch`].
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

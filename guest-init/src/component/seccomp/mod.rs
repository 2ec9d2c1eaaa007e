//! The system call filter of workloads ([seccomp(2)](https://man7.org/linux/man-pages/man2/seccomp.2.html)).
//!
//! The filter is an allow list. A call that is not in the table, such as a call of a later Linux, fails as on a kernel
//! that does not have it. [`table`] is the list, and [`program`] makes the filter from it.

pub(crate) mod calls;
mod program;
mod ranges;
mod reasons;
pub(crate) mod table;

use crate::error::{InitError, Step as _};
use crate::sys;

/// Installs the filter for this process and its descendants. Requires `no_new_privs`.
///
/// # Errors
/// The kernel's error.
pub(crate) fn install() -> Result<(), InitError> {
    sys::install_filter(&program::PROGRAM).step("install the system call filter")
}

#[cfg(test)]
mod tests;

//! The system call filter of workloads: which calls of the kernel a program in a component can make.
//!
//! It is a list of what is allowed: a call that the table does not name, such as one of a later Linux, is answered as
//! by a kernel without it. [`table`] says which, and [`program`] makes the filter of it.

pub(crate) mod calls;
mod program;
mod ranges;
mod reasons;
pub(crate) mod table;

use crate::error::{InitError, Step as _};
use crate::sys;

/// Filters the system calls of this process from here on. Needs `no_new_privs`.
///
/// # Errors
/// The kernel's.
pub(crate) fn install() -> Result<(), InitError> {
    sys::install_filter(&program::PROGRAM).step("install the system call filter")
}

#[cfg(test)]
mod tests;

//! The virtual machine: its size, its kernel, and what its start may take.

pub(super) mod budget;
pub(super) mod kernel;
pub(super) mod vm;

//! Errors of the agent's program.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use host_fs::FileError;

use super::MAX_BINARY;

/// Errors of the agent's program. A `name` is the file's path or URL.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BinaryError {
    /// The path starts at the root, where every machine has something else.
    #[error("{} is an absolute path", .0.display())]
    Absolute(PathBuf),
    /// The path leads out of the checkout.
    #[error("{} leads out of the checkout", .0.display())]
    Outside(PathBuf),
    /// The file has more bytes than a binary may.
    #[error("{name} has more than {} MiB", MAX_BINARY >> 20)]
    TooLarge { name: String },
    /// The file cannot be read, or cannot be copied to the store.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a program that the box can start.
    #[error("{name} is not a program that the box can start")]
    Program { name: String, source: ProgramError },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Why a file is not a program that a box can start.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum ProgramError {
    /// It is something else.
    #[error("it is {0}")]
    NotAProgram(&'static str),
    /// It is a file of another system, or one that has to be unpacked first.
    #[error("it is {0}")]
    Foreign(&'static str),
    /// The checkout has no content for it.
    #[error("it is {}", oci_image::LFS_POINTER)]
    LfsPointer,
    /// It is for another processor.
    #[error("it is a program for {found}, but the box is for {expected}")]
    WrongMachine { expected: String, found: String },
    /// It is an ELF file that Linux does not start.
    #[error("it is an ELF file that Linux does not start: {0}")]
    Elf(&'static str),
    /// It is a script; what is wrong is said about its first line.
    #[error("it is a script, but its first line {0}")]
    Script(&'static str),
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
}

//! Errors of the agent's program.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;
use host_fs::FileError;

use super::MAX_BINARY;

/// Errors of the agent's program. `name` is the file's path or URL.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields of a variant are named by its message")]
pub enum BinaryError {
    /// The path is absolute. The same path is another file on another host.
    #[error("{} is an absolute path", .0.display())]
    Absolute(PathBuf),
    /// The path leads out of the checkout.
    #[error("{} leads out of the checkout", .0.display())]
    Outside(PathBuf),
    /// The file exceeds the maximum size of a binary.
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
    /// The file is no program, but for example a text or a shared library.
    #[error("it is {0}")]
    NotAProgram(&'static str),
    /// The file is of a known kind that Linux does not start: a program for another operating system, an archive, a web
    /// page, or a script after a byte order mark.
    #[error("it is {0}")]
    Foreign(&'static str),
    /// The file is a Git LFS pointer: the checkout lacks the content.
    #[error("it is {}", oci_image::LFS_POINTER)]
    LfsPointer,
    /// The program is for another processor.
    #[error("it is a program for {found}, but the box is for {expected}")]
    WrongMachine { expected: String, found: String },
    /// The file is an ELF file that Linux does not start.
    #[error("it is an ELF file that Linux does not start: {0}")]
    Elf(&'static str),
    /// The file is a script that Linux does not start. The text describes the script's first line.
    #[error("it is a script, but its first line {0}")]
    Script(&'static str),
    /// The file cannot be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
}

//! Why a file is no agent.

use std::io;
use std::path::PathBuf;

use box_cache::StoreError;

use super::{BINARY_MAX, Machine};

/// Why a file cannot be a box's agent.
#[derive(Debug, thiserror::Error)]
pub enum BinaryError {
    /// The path starts at the root, where every machine has something else.
    #[error("{} is an absolute path", .0.display())]
    Absolute(PathBuf),
    /// The path leads out of the checkout.
    #[error("{} leads out of the checkout", .0.display())]
    Outside(PathBuf),
    /// A directory, device, socket or pipe.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// The file has more bytes than a binary may.
    #[error("{name} has more than {} MiB", BINARY_MAX >> 20)]
    TooLarge {
        /// The file's path or URL.
        name: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is no program that the box can start.
    #[error("{name} is no program that the box can start")]
    Program {
        /// The file's path or URL.
        name: String,
        /// Why not.
        source: ProgramError,
    },
    /// The copy in the store cannot be written or read.
    #[error("the copy of {name} in the store cannot be written or read")]
    Copy {
        /// The file's path or URL.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Why a file is no program that a box can start.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is something else.
    #[error("it is {0}")]
    NotAProgram(&'static str),
    /// It is for another processor.
    #[error("it is a program for {found}, but the box is for {expected}")]
    WrongMachine {
        /// The box's processor.
        expected: Machine,
        /// The program's.
        found: String,
    },
    /// It is an ELF file that Linux does not start.
    #[error("it is an ELF file that Linux does not start: {0}")]
    Malformed(&'static str),
    /// It is a script whose first line does not work.
    #[error("it is a script, but its first line {0}")]
    Script(&'static str),
    /// It cannot be read.
    #[error("it cannot be read")]
    Read(#[from] io::Error),
}

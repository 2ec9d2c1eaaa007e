//! The request for a build.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use box_contract::Platform;
use box_digest::Blake3Digest;
use boxfile_spec::Boxfile;
use diagnostics::Span;
use download::fetch::FetchOptions;
use host_fs::checkout::Bounds;
use oci_image::Remote;

use crate::BuildError;
use crate::project::Pins;

/// A box to build, and its inputs.
#[derive(Debug)]
pub struct Request<'a> {
    /// The Boxfile to build, with the chosen profile applied.
    pub boxfile: &'a Boxfile,
    /// The base directory of the Boxfile's relative paths.
    pub base: &'a Path,
    /// The bounds of the checkout. Files outside it are not read.
    pub checkout: Bounds,
    /// The platform to build for.
    pub platform: Platform,
    /// The pins of the lock.
    pub pins: Pins<'a>,
    /// The options of downloads.
    pub fetch: FetchOptions,
    /// The access to registries. With `None`, no registry is used.
    pub remote: Option<&'a dyn Remote>,
    /// The init: a static program.
    pub init: InputFile,
    /// The kernel: a libkrunfw library or an ELF kernel.
    pub kernel: InputFile,
    /// Identifies the builder program, so that another version does not reuse its results.
    pub builder: Blake3Digest,
}

impl Request<'_> {
    /// Checks that this version can build for the platform.
    ///
    /// # Errors
    /// [`BuildError::Platform`].
    pub fn check_platform(&self) -> Result<(), BuildError> {
        if self.platform == Platform::BUILT {
            return Ok(());
        }
        Err(BuildError::Platform { platform: self.platform })
    }
}

/// The file of the init or of the kernel, and the source of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFile {
    /// The path of the file on the host.
    pub path: PathBuf,
    /// The source of the path.
    pub named_by: NamedBy,
}

impl InputFile {
    /// Returns a file that was found at its installed path.
    pub fn found(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), named_by: NamedBy::Nothing }
    }
}

/// Describes the file in an error: `nope, which --init names`.
impl fmt::Display for InputFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.named_by {
            NamedBy::Option(name) | NamedBy::Variable(name) => write!(f, ", which {name} names"),
            NamedBy::Boxfile(_) | NamedBy::Nothing => Ok(()),
        }
    }
}

/// The source of the path of an [`InputFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// An option of the command line.
    Option(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// The Boxfile, at this span.
    Boxfile(Span),
    /// No source: the file was found at its installed path.
    Nothing,
}

impl NamedBy {
    /// Returns the span in the Boxfile that names the path.
    pub const fn span(self) -> Option<Span> {
        match self {
            Self::Boxfile(span) => Some(span),
            _ => None,
        }
    }
}

/// The kind of an [`InputFile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// The guest kernel.
    Kernel,
    /// PID 1 of the guest.
    Init,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Init => "init",
        })
    }
}

/// The init or the kernel cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the {kind} {file}")]
#[allow(missing_docs, reason = "the fields are named by the message")]
pub struct InputError {
    pub kind: InputKind,
    pub file: InputFile,
    pub source: io::Error,
}

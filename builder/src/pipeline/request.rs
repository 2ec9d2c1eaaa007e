//! The request that a build answers.

use std::path::{Path, PathBuf};

use box_digest::Blake3Digest;
use boxfile_spec::{Boxfile, Platform, Span};
use download::fetch::FetchOptions;
use oci_image::Remote;

use crate::BuildError;
use crate::project::Pins;

/// A box to build, and its inputs.
#[derive(Debug)]
pub struct Request<'a> {
    /// The declaration.
    pub boxfile: &'a Boxfile,
    /// The directory that the Boxfile's relative paths start from.
    pub base: &'a Path,
    /// The directory that what belongs to the checkout must lie in.
    pub checkout: PathBuf,
    /// The platform to build for.
    pub platform: Platform,
    /// The pins of the lock.
    pub pins: Pins<'a>,
    /// How files are downloaded.
    pub fetch: FetchOptions,
    /// How registries are asked for images; `None` to ask none.
    pub remote: Option<&'a dyn Remote>,
    /// The init: a static program.
    pub init: &'a Path,
    /// The kernel: a libkrunfw library or an ELF kernel.
    pub kernel: PathBuf,
    /// Identifies the builder program, so that another one does not take this one's results.
    pub builder: Blake3Digest,
}

impl Request<'_> {
    /// Returns where the Boxfile names the kernel's file, if it does.
    pub(super) fn kernel_span(&self) -> Option<Span> {
        Some(self.boxfile.kernel.as_ref()?.path.as_ref()?.span)
    }

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

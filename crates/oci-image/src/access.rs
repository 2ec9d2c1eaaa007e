//! How images are reached.

use std::path::Path;

use box_cache::Store;
use oci_registry::Repository;

use super::error::SourceError;
use super::registry::{Remote, Repo};

/// What is needed to get at images.
#[derive(Debug, Clone, Copy)]
pub struct Access<'a> {
    /// The directory that relative paths start from.
    pub base: &'a Path,
    /// What is needed for images of registries; nothing where they are not read.
    pub registries: Option<Registries<'a>>,
}

/// What is needed to get at images of registries.
#[derive(Debug, Clone, Copy)]
pub struct Registries<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// How registries are asked.
    pub remote: &'a dyn Remote,
    /// Whether no network may be touched.
    pub offline: bool,
}

impl Access<'_> {
    pub(super) fn repo<'r>(&'r self, repository: &'r Repository) -> Result<Repo<'r>, SourceError> {
        let registries = self.registries.ok_or_else(|| SourceError::NotAsked {
            place: format!("docker://{}/{}", repository.host(), repository.name()),
            what: "the image".to_owned(),
        })?;
        Ok(Repo { repository, registries })
    }
}

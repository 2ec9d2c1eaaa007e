//! The names in requests: repositories, tags and references.

use std::fmt;

use box_contract::docker_name::registry_host;
use box_contract::rules::{REGISTRY_FORM, REPOSITORY_FORM, TAG_FORM, is_repository, is_tag};
use box_contract::{DEFAULT_TAG, RemoteName};
use box_digest::Digest;

use crate::error::RegistryError;

/// A repository of a registry, such as `registry.example.org/team/app`.
///
/// The host and the name are checked, so that a request cannot reach another server, or a path outside of the repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Repository {
    host: String,
    name: String,
}

/// A tag: at most 128 letters, digits, `_`, `.` and `-` (OCI distribution-spec,
/// [Pulling manifests](https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md#pulling-manifests)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

/// A reference to a manifest of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// The manifest to which a tag points now.
    Tag(Tag),
    /// The manifest with this digest.
    Digest(Digest),
}

impl Repository {
    /// Makes a repository. The host may have a port, and is normalized by [`registry_host`].
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn new(host: &str, name: &str) -> Result<Self, RegistryError> {
        let host = registry_host(host).ok_or_else(|| wrong(host, REGISTRY_FORM))?;
        if !is_repository(name) {
            return Err(wrong(name, REPOSITORY_FORM));
        }
        Ok(Self { host, name: name.to_owned() })
    }

    /// Returns the repository of a box.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn of(name: &RemoteName) -> Result<Self, RegistryError> {
        Self::new(&name.host, &name.repository)
    }

    /// Returns the registry's host, with its port if it has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the repository's name, without the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the repository of a mirror with the same content. `prefix` is added before the name if it is not empty.
    pub(super) fn mirrored(&self, host: &str, prefix: &str) -> Self {
        let name =
            if prefix.is_empty() { self.name.clone() } else { format!("{prefix}/{}", self.name) };
        Self { host: host.to_owned(), name }
    }
}

impl Tag {
    /// Makes a tag, if `text` is a valid one.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn new(text: &str) -> Result<Self, RegistryError> {
        if is_tag(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(wrong(text, TAG_FORM))
    }
}

impl Reference {
    /// Returns the reference with which a box is looked up: its tag, or else its digest. The tag comes first because a registry
    /// finds nothing by the digest of a box.
    ///
    /// # Errors
    /// [`RegistryError::Name`].
    pub fn of(name: &RemoteName) -> Result<Self, RegistryError> {
        match (&name.tag, name.digest) {
            (None, Some(digest)) => Ok(Self::Digest(digest)),
            (tag, _) => Ok(Self::Tag(Tag::new(tag.as_deref().unwrap_or(DEFAULT_TAG))?)),
        }
    }
}

fn wrong(text: &str, reason: &'static str) -> RegistryError {
    RegistryError::Name { text: text.to_owned(), reason }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl fmt::Display for Reference {
    /// Writes the tag or the digest, as it follows `manifests/` in a request's path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(Tag(tag)) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_taken() {
        for (host, name, expected) in [
            ("docker.io", "library/debian", "docker.io/library/debian"),
            ("Registry.Example.ORG:5000", "a/b_c.d-e/f", "registry.example.org:5000/a/b_c.d-e/f"),
            ("registry.example.org:443", "app", "registry.example.org:443/app"),
            ("127.0.0.1:5000", "app", "127.0.0.1:5000/app"),
            ("[::1]:5000", "app", "[::1]:5000/app"),
            ("index.docker.io", "library/debian", "docker.io/library/debian"),
        ] {
            assert_eq!(Repository::new(host, name).unwrap().to_string(), expected);
        }
        assert_eq!(Reference::Tag(Tag::new("v1.0_a-b").unwrap()).to_string(), "v1.0_a-b");
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for host in ["", "a b", "user@host", "host/path", "host?x", "127.1", "host:99999"] {
            assert!(Repository::new(host, "app").is_err(), "{host:?}");
        }
        let long = "a".repeat(256);
        for name in
            ["", "/a", "a/", "a//b", "..", "a/../b", "a/.", "A", "a?b", "a%2e", "a b", &long]
        {
            assert!(Repository::new("host.example.org", name).is_err(), "{name:?}");
        }
        for tag in ["", ".a", "-a", "a/b", "a?b", "a b", "..", &long] {
            assert!(Tag::new(tag).is_err(), "{tag:?}");
        }
    }
}

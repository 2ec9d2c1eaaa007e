//! Which repositories a rule matches.

use std::cmp::Reverse;
use std::fmt;

use box_contract::DockerName;
use box_contract::docker_name::{HUB, HUB_LIBRARY, registry_identity};
use box_contract::rules::is_repository;

/// The end of a pattern that matches everything below a prefix.
const BELOW: &str = "/*";

/// A repository, or all repositories below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The registry, in the one form of all its spellings: see [`registry_identity`].
    host: String,
    /// The repository; or else the prefix, without its final slash, which is empty for the whole registry.
    path: String,
    is_prefix: bool,
}

impl Pattern {
    /// Parses `HOST/REPOSITORY`, `HOST/PREFIX/*` or `HOST/*`. The host is not optional.
    ///
    /// # Errors
    /// A description of the fault and advice.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (path, is_prefix) = text.strip_suffix(BELOW).map_or((text, false), |it| (it, true));
        if path.contains('*') {
            return Err("`*` stands only at the end, after a `/`".to_owned());
        }
        if path.contains('@') {
            return Err("a repository has no digest".to_owned());
        }
        let (host, rest) = path.split_once('/').unwrap_or((path, ""));
        if !host.contains(['.', ':']) && host != "localhost" {
            return Err(format!("it does not begin with a registry, such as in {HUB}/{text}"));
        }
        let host = registry_identity(host).ok_or("its registry is not HOST or HOST:PORT")?;
        let is_whole = rest.is_empty() && is_prefix && !path.contains('/');
        if rest.contains(':') {
            return Err("a repository has no tag".to_owned());
        }
        if !is_whole && !is_repository(rest) {
            return Err("it is not HOST/REPOSITORY, HOST/PREFIX/* or HOST/*".to_owned());
        }
        let path = if is_prefix { rest.to_owned() } else { repository(&host, rest) };
        Ok(Self { host, path, is_prefix })
    }

    /// Returns whether the pattern matches a repository. Both parts are in their canonical forms.
    pub(super) fn matches(&self, host: &str, repository: &str) -> bool {
        let below = || {
            let rest = repository.strip_prefix(&self.path);
            self.path.is_empty() || rest.is_some_and(|it| it.starts_with('/'))
        };
        self.host == host && if self.is_prefix { below() } else { self.path == repository }
    }

    /// Returns a key that sorts more specific patterns before others: repositories, then longer prefixes.
    pub(super) fn order(&self) -> impl Ord + use<> {
        (self.is_prefix, Reverse(self.path.len()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.path.is_empty() { "" } else { "/" };
        let below = if self.is_prefix { BELOW } else { "" };
        write!(f, "{}{slash}{}{below}", self.host, self.path)
    }
}

/// Returns the full form of a repository's name, which Docker Hub abbreviates.
fn repository(host: &str, name: &str) -> String {
    let library = if host == HUB && !name.contains('/') { HUB_LIBRARY } else { "" };
    format!("{library}{name}")
}

/// Returns the canonical registry and repository of a name. `None` if its registry is malformed.
pub(super) fn canonical(name: &str) -> Option<(String, String)> {
    let name = DockerName::parse(name)?;
    let host = registry_identity(&name.host)?;
    let repository = repository(&host, &name.repository);
    Some((host, repository))
}

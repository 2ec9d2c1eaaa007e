//! The names of images, as docker reads them.

use crate::rules::is_label;

/// The registry of a name that has none.
const DEFAULT_HOST: &str = "docker.io";

/// The tag of a name that has neither a tag nor a digest.
pub const DEFAULT_TAG: &str = "latest";

/// A name in its full form: `debian:13` is `library/debian` of `docker.io`, with the tag `13`.
#[derive(Debug, PartialEq, Eq)]
pub struct DockerName<'t> {
    /// The registry's host, perhaps with a port.
    pub host: &'t str,
    /// The repository, not yet checked: see [`is_repository`](crate::rules::is_repository).
    pub repository: String,
    /// The tag, not yet checked: see [`is_tag`](crate::rules::is_tag).
    pub tag: Option<&'t str>,
}

impl<'t> DockerName<'t> {
    /// Reads a name without a digest, by the rules of docker's reference grammar.
    pub fn parse(text: &'t str) -> Self {
        let (path, tag) = match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (text, None),
        };
        let (host, name) = match path.split_once('/') {
            Some((first, name)) if is_registry_host(first) => (first, name),
            _ => (DEFAULT_HOST, path),
        };
        let library = if host == DEFAULT_HOST && !name.contains('/') { "library/" } else { "" };
        Self { host, repository: format!("{library}{name}"), tag }
    }
}

/// Returns whether the first part of a name is a registry's host and not part of the repository: it
/// has a dot or a port, or is `localhost`.
fn is_registry_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let named = host == "localhost" || host.contains('.') || port.is_some();
    named && host.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed() {
        for (text, host, repository, tag) in [
            ("debian", "docker.io", "library/debian", None),
            ("debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/library/debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/debian", "docker.io", "library/debian", None),
            ("team/app", "docker.io", "team/app", None),
            ("localhost/app", "localhost", "app", None),
            ("localhost:5000/app", "localhost:5000", "app", None),
            ("registry.example.org/a/b:v1", "registry.example.org", "a/b", Some("v1")),
        ] {
            let expected = DockerName { host, repository: repository.to_owned(), tag };
            assert_eq!(DockerName::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn hosts_of_registries() {
        for host in ["localhost", "example.com", "a:5000", "10.0.0.1", "a.b:65535"] {
            assert!(is_registry_host(host), "{host}");
        }
        for part in ["library", "a:65536", "a..b", "", "a.b:x"] {
            assert!(!is_registry_host(part), "{part}");
        }
    }
}

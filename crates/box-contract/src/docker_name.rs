//! Parses image names by Docker's [reference grammar](https://pkg.go.dev/github.com/distribution/reference).

use std::net::Ipv6Addr;

use crate::rules::host_and_port;

/// Docker Hub, the default registry.
pub const HUB: &str = "docker.io";
/// The older name of [`HUB`]. Docker's credential store still uses it.
pub const HUB_INDEX: &str = "index.docker.io";
/// The prefix of a one-part repository name on [`HUB`].
pub const HUB_LIBRARY: &str = "library/";
/// The server of [`HUB`]'s registry API.
pub const HUB_SERVER: &str = "registry-1.docker.io";
/// The server that issues tokens for [`HUB`].
pub const HUB_REALM: &str = "auth.docker.io";

/// The default tag of a name with neither a tag nor a digest.
pub const DEFAULT_TAG: &str = "latest";

/// An image name in its full form. For example, `debian:13` is the repository `library/debian` of `docker.io` with the
/// tag `13`.
#[derive(Debug, PartialEq, Eq)]
pub struct DockerName<'t> {
    /// The registry's host with an optional port, as [`registry_host`] returns it.
    pub host: String,
    /// The repository, not validated: see [`is_repository`](crate::rules::is_repository).
    pub repository: String,
    /// The tag, not validated: see [`is_tag`](crate::rules::is_tag).
    pub tag: Option<&'t str>,
}

impl<'t> DockerName<'t> {
    /// Parses a name without a digest. Returns `None` if the part before the first `/` has a dot or a colon, so that it
    /// must be a host, but is malformed.
    ///
    /// # Examples
    /// ```
    /// use box_contract::DockerName;
    ///
    /// let name = DockerName::parse("debian:13").unwrap();
    /// assert_eq!((&*name.host, &*name.repository, name.tag), ("docker.io", "library/debian", Some("13")));
    /// assert!(DockerName::parse("-a.example:5000/app").is_none());
    /// ```
    pub fn parse(text: &'t str) -> Option<Self> {
        let (path, tag) = match text.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (text, None),
        };
        let is_host =
            |part: &str| part.contains(['.', ':']) || part.eq_ignore_ascii_case("localhost");
        let (host, name) = match path.split_once('/') {
            Some((first, name)) if is_host(first) => (registry_host(first)?, name),
            _ => (HUB.to_owned(), path),
        };
        let library = if host == HUB && !name.contains('/') { HUB_LIBRARY } else { "" };
        Some(Self { repository: format!("{library}{name}"), host, tag })
    }
}

/// Returns the canonical spelling of a registry's `HOST` or `HOST:PORT`: in lower case, with [`HUB`] for each name of
/// Docker Hub. Returns `None` if the text is malformed.
pub fn registry_host(text: &str) -> Option<String> {
    let host = host_and_port(text)?;
    Some(if [HUB_INDEX, HUB_SERVER].contains(&&*host) { HUB.to_owned() } else { host })
}

/// Further names of the servers of [`HUB`]. Requests go to the server that is named.
const HUB_OTHERS: [&str; 2] = ["registry.docker.io", "registry.hub.docker.com"];
/// The port of HTTPS, which a registry's name may leave out.
const DEFAULT_PORT: &str = ":443";

/// Returns one text for all spellings of a registry's `HOST` or `HOST:PORT`, to compare registries: [`registry_host`] without the
/// default port 443, with one form of each address, and with [`HUB`] for each of its servers. Returns `None` if the text is malformed.
///
/// Only the spelling counts. Two names that DNS leads to one server are two registries, and so are `localhost`, `127.0.0.1` and
/// `[::1]`. A request needs the name as it was written: credentials and settings are kept for it.
///
/// # Examples
/// ```
/// use box_contract::docker_name::registry_identity;
///
/// assert_eq!(registry_identity("GHCR.io:443").as_deref(), Some("ghcr.io"));
/// assert_eq!(registry_identity("registry-1.docker.io:443").as_deref(), Some("docker.io"));
/// assert_eq!(registry_identity("ghcr.io."), None);
/// ```
pub fn registry_identity(text: &str) -> Option<String> {
    let host = registry_host(text)?;
    let host = registry_host(host.strip_suffix(DEFAULT_PORT).unwrap_or(&host))?;
    if HUB_OTHERS.contains(&&*host) {
        return Some(HUB.to_owned());
    }
    let Some((address, port)) = host.strip_prefix('[').and_then(|it| it.split_once(']')) else {
        return Some(host);
    };
    let address = address.parse::<Ipv6Addr>().ok()?;
    // An IPv4 address in the form of IPv6, such as ::ffff:127.0.0.1, is the IPv4 address.
    let ipv4 = address.to_ipv4_mapped().map(|it| format!("{it}{port}"));
    Some(ipv4.unwrap_or_else(|| format!("[{address}]{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_registry_has_one_identity() {
        for (identity, spellings) in [
            ("ghcr.io", &["ghcr.io", "GHCR.IO", "ghcr.io:443", "Ghcr.io:443"][..]),
            ("ghcr.io:444", &["ghcr.io:444"]),
            ("ghcr.io:80", &["ghcr.io:80"]),
            (
                "docker.io",
                &[
                    "docker.io",
                    "Index.Docker.io",
                    "registry-1.docker.io",
                    "index.docker.io:443",
                    "registry.docker.io",
                    "Registry.hub.docker.com:443",
                ],
            ),
            ("localhost:5000", &["localhost:5000", "LOCALHOST:5000"]),
            (
                "127.0.0.1:5000",
                &["127.0.0.1:5000", "[::ffff:127.0.0.1]:5000", "[::ffff:7f00:1]:5000"],
            ),
            ("[::1]:5000", &["[::1]:5000", "[0:0:0:0:0:0:0:1]:5000", "[0000::0001]:5000"]),
            ("[::1]", &["[::1]", "[::1]:443", "[0::1]:443"]),
            ("[fd00::a]", &["[FD00::A]", "[fd00:0::000a]:443"]),
        ] {
            for text in spellings {
                assert_eq!(registry_identity(text).as_deref(), Some(identity), "{text}");
            }
        }
        // A port cannot hide behind another one, and no other text is taken for the same host.
        for text in [
            "ghcr.io.",
            "ghcr.io.:443",
            "ghcr.io:0443",
            "ghcr.io:443:443",
            "ghcr.io:",
            "127.1",
            "0x7f.1",
            "[::1%lo]",
        ] {
            assert_eq!(registry_identity(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_completed() {
        for (text, host, repository, tag) in [
            ("debian", "docker.io", "library/debian", None),
            ("debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/library/debian:13", "docker.io", "library/debian", Some("13")),
            ("docker.io/debian", "docker.io", "library/debian", None),
            ("Index.Docker.io/debian", "docker.io", "library/debian", None),
            ("registry-1.docker.io/team/app", "docker.io", "team/app", None),
            ("team/app", "docker.io", "team/app", None),
            ("localhost/app", "localhost", "app", None),
            ("localhost:5000/app", "localhost:5000", "app", None),
            ("[::1]:5000/app:v1", "[::1]:5000", "app", Some("v1")),
            ("Registry.Example.org/a/b:v1", "registry.example.org", "a/b", Some("v1")),
        ] {
            let expected =
                DockerName { host: host.to_owned(), repository: repository.to_owned(), tag };
            assert_eq!(DockerName::parse(text), Some(expected), "{text}");
        }
        for text in ["a..b/app", "a:0/app", "127.1/app", ".a/app", "a_b.example.org/app"] {
            assert_eq!(DockerName::parse(text), None, "{text}");
        }
    }
}

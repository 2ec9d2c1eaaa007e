//! `registries.toml`: mirrors, plain http, and whom to trust for a registry.
//!
//! ```toml
//! [registry."registry.example.org"]
//! mirrors = ["mirror.example.org/cache"]
//! auth-realm = ["auth.example.org"]
//! ca-file = "/etc/ssl/company.pem"
//!
//! [registry."localhost:5000"]
//! plain-http = true
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use box_image::docker_name::{HUB, HUB_REALM, HUB_SERVER, registry_host};
use box_image::rules::{host_and_port, is_repository};
use download::http::RemoteUrl;
use serde::Deserialize;

/// Settings for some registries.
#[derive(Debug, Clone, Default)]
pub struct RegistryConfig {
    hosts: BTreeMap<String, Host>,
}

/// Why a text is no [`RegistryConfig`]: the line or the table, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

/// The settings of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) mirrors: Vec<Mirror>,
    pub(super) plain_http: bool,
    /// The servers, as in [`RemoteUrl::host`], that may give tokens for it.
    pub(super) realms: Vec<String>,
    pub(super) ca_file: Option<PathBuf>,
}

/// A server that has a registry's content, perhaps below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) host: String,
    /// Empty without a prefix.
    pub(super) prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    registry: BTreeMap<String, Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    #[serde(default)]
    mirrors: Vec<String>,
    #[serde(default)]
    plain_http: bool,
    #[serde(default)]
    auth_realm: Vec<String>,
    ca_file: Option<PathBuf>,
}

impl RegistryConfig {
    /// Reads the text of a `registries.toml`.
    ///
    /// # Errors
    /// [`ConfigError`]: also for keys that there are not.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|it| *it == b'\n').count();
            ConfigError(format!("line {line}: {}", error.message()))
        })?;
        let mut hosts = BTreeMap::new();
        for (name, table) in file.registry {
            let host =
                registry_host(&name).ok_or_else(|| wrong(&name, &name, "HOST or HOST:PORT"))?;
            if hosts.insert(host, table.checked(&name)?).is_some() {
                return Err(in_table(&name, "there is another table for the same registry"));
            }
        }
        Ok(Self { hosts })
    }

    /// Returns what is known about a registry.
    pub(super) fn host(&self, host: &str) -> Host {
        let mut found = self.hosts.get(host).cloned().unwrap_or_default();
        if host == HUB {
            found.realms.push(HUB_REALM.to_owned());
        }
        found
    }
}

impl Table {
    fn checked(self, registry: &str) -> Result<Host, ConfigError> {
        let mirror = |text: &String| {
            mirror(text).ok_or_else(|| wrong(registry, text, "a mirror: HOST or HOST/PREFIX"))
        };
        let realm = |text: &String| {
            let host = host_and_port(text);
            let url = host.and_then(|host| format!("https://{host}/").parse::<RemoteUrl>().ok());
            url.map(|url| url.host()).ok_or_else(|| wrong(registry, text, "a realm's HOST"))
        };
        if let Some(path) = self.ca_file.as_ref().filter(|path| !path.is_absolute()) {
            return Err(in_table(registry, &format!("ca-file {path:?} is not absolute")));
        }
        Ok(Host {
            mirrors: self.mirrors.iter().map(mirror).collect::<Result<_, _>>()?,
            plain_http: self.plain_http,
            realms: self.auth_realm.iter().map(realm).collect::<Result<_, _>>()?,
            ca_file: self.ca_file,
        })
    }
}

/// Returns the server that has a registry's content.
pub(super) fn server(host: &str) -> &str {
    if host == HUB { HUB_SERVER } else { host }
}

fn mirror(text: &str) -> Option<Mirror> {
    let (host, prefix) = text.split_once('/').map_or((text, None), |(host, it)| (host, Some(it)));
    let host = registry_host(host)?;
    prefix.is_none_or(is_repository).then(|| {
        let prefix = prefix.unwrap_or_default().to_owned();
        Mirror { host, prefix }
    })
}

fn wrong(registry: &str, text: &str, what: &'static str) -> ConfigError {
    in_table(registry, &format!("{text:?} is not {what}"))
}

fn in_table(registry: &str, why: &str) -> ConfigError {
    ConfigError(format!("[registry.{registry:?}]: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_said() {
        let config = RegistryConfig::parse(
            r#"
            [registry."Registry.example.org"]
            mirrors = ["mirror.example.org", "cache.example.org:8443/hub/x"]
            auth-realm = ["auth.example.org:443"]
            ca-file = "/etc/ssl/company.pem"
            [registry."localhost:5000"]
            plain-http = true
            "#,
        )
        .unwrap();
        let mirror = |host: &str, prefix: &str| Mirror { host: host.into(), prefix: prefix.into() };
        let expected = Host {
            mirrors: vec![
                mirror("mirror.example.org", ""),
                mirror("cache.example.org:8443", "hub/x"),
            ],
            plain_http: false,
            realms: vec!["auth.example.org".to_owned()],
            ca_file: Some("/etc/ssl/company.pem".into()),
        };
        assert_eq!(config.host("registry.example.org"), expected);
        assert!(config.host("localhost:5000").plain_http);
        for other in ["localhost", "127.0.0.1:5000", "example.org"] {
            assert_eq!(config.host(other), Host::default(), "https, and nobody else is trusted");
        }
    }

    #[test]
    fn the_default_registry_is_known() {
        let config = RegistryConfig::parse("").unwrap();
        assert_eq!(server("docker.io"), "registry-1.docker.io");
        assert_eq!(config.host("docker.io").realms, [HUB_REALM]);
        assert_eq!(server("registry.example.org"), "registry.example.org");
        let more = "[registry.\"index.docker.io\"]\nauth-realm = [\"auth.example.org\"]";
        let config = RegistryConfig::parse(more).unwrap();
        assert_eq!(config.host("docker.io").realms, ["auth.example.org", HUB_REALM]);
    }

    #[test]
    fn mistakes_are_named() {
        let said = |text: &str| RegistryConfig::parse(text).unwrap_err().to_string();
        let table = |line: &str| said(&format!("[registry.\"a.example.org\"]\n{line}"));
        let fields = "`mirrors`, `plain-http`, `auth-realm`, `ca-file`";
        let unknown = format!("line 2: unknown field `mirror`, expected one of {fields}");
        assert_eq!(table("mirror = []"), unknown);
        assert_eq!(
            table("plain-http = 1"),
            "line 2: invalid type: integer `1`, expected a boolean"
        );
        assert_eq!(table("plain-http"), "line 2: key with no value, expected `=`");
        for (line, what) in [
            (r#"mirrors = ["https://m.example.org"]"#, "a mirror: HOST or HOST/PREFIX"),
            (r#"mirrors = ["m.example.org/../x"]"#, "a mirror: HOST or HOST/PREFIX"),
            (r#"auth-realm = ["m.example.org/token"]"#, "a realm's HOST"),
        ] {
            let text = line.split(['[', ']']).nth(1).unwrap();
            let expected = format!("[registry.\"a.example.org\"]: {text} is not {what}");
            assert_eq!(table(line), expected);
        }
        let relative = "[registry.\"a.example.org\"]: ca-file \"ca.pem\" is not absolute";
        assert_eq!(table("ca-file = \"ca.pem\""), relative);
        let url = "[registry.\"https://a.example.org\"]";
        let expected = format!("{url}: \"https://a.example.org\" is not HOST or HOST:PORT");
        assert_eq!(said(url), expected);
        let twice = "[registry.\"a\"]: there is another table for the same registry";
        assert_eq!(said("[registry.a]\n[registry.A]"), twice);
        let registries = "line 1: unknown field `registries`, expected `registry`";
        assert_eq!(said("[registries]"), registries);
    }
}

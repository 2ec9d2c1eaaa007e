//! `registries.toml`: mirrors, plain HTTP, trusted realms and certificates of registries.
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
use std::ops::Range;
use std::path::PathBuf;

use box_contract::docker_name::{HUB, HUB_REALM, HUB_SERVER, registry_host};
use box_contract::rules::{host_and_port, is_repository};
use download::http::RemoteUrl;
use safe_text::secrets::MASK;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The help for a user name or password in the file.
const LOGIN: &str =
    "no user or password is in this file: `docker login` and `podman login` keep them";

/// Settings for some registries.
#[derive(Debug, Clone, Default)]
pub struct RegistryConfig {
    hosts: BTreeMap<String, Host>,
}

/// An error in the text of a [`RegistryConfig`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// The message, as a sentence without a secret.
    pub message: String,
    /// The byte range of the error in the text.
    pub span: Range<usize>,
    /// Advice on what to write instead.
    pub help: Option<String>,
    /// Whether the bytes of `span` may contain a password, and must not be shown.
    pub is_secret: bool,
}

/// The settings of one registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) mirrors: Vec<Mirror>,
    pub(super) plain_http: bool,
    /// The hosts, as in [`RemoteUrl::host`], that may issue tokens for the registry.
    pub(super) realms: Vec<String>,
    pub(super) ca_file: Option<PathBuf>,
}

/// A server with a copy of a registry's content, such as `mirror.example.org/cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mirror {
    pub(super) host: String,
    /// The part of the path before a repository's name, such as `cache`. Empty if there is none.
    pub(super) prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    registry: BTreeMap<Spanned<String>, Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    #[serde(default)]
    mirrors: Vec<Spanned<String>>,
    #[serde(default)]
    plain_http: bool,
    #[serde(default)]
    auth_realm: Vec<Spanned<String>>,
    ca_file: Option<Spanned<PathBuf>>,
}

impl RegistryConfig {
    /// Reads the text of a `registries.toml`.
    ///
    /// # Errors
    /// [`ConfigError`]. An unknown key is an error too.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        check_quotes(text)?;
        let file: File = toml::from_str(text).map_err(malformed)?;
        let mut hosts = BTreeMap::new();
        for (name, table) in file.registry {
            let host = registry_host(name.get_ref());
            let host = host.ok_or_else(|| wrong(&name, "HOST or HOST:PORT"))?;
            if hosts.insert(host, table.checked()?).is_some() {
                return Err(error(&name, "there is another table for the same registry"));
            }
        }
        Ok(Self { hosts })
    }

    /// Returns the settings of a registry. For Docker Hub, its realm is always included.
    pub(super) fn host(&self, host: &str) -> Host {
        let mut found = self.hosts.get(host).cloned().unwrap_or_default();
        if host == HUB {
            found.realms.push(HUB_REALM.to_owned());
        }
        found
    }
}

impl Table {
    fn checked(self) -> Result<Host, ConfigError> {
        let mirror = |text: &Spanned<String>| {
            mirror(text.get_ref()).ok_or_else(|| wrong(text, "a mirror: HOST or HOST/PREFIX"))
        };
        let realm = |text: &Spanned<String>| {
            let host = host_and_port(text.get_ref());
            let url = host.and_then(|host| format!("https://{host}/").parse::<RemoteUrl>().ok());
            url.map(|url| url.host()).ok_or_else(|| wrong(text, "a realm: HOST or HOST:PORT"))
        };
        if let Some(path) = self.ca_file.as_ref().filter(|path| !path.get_ref().is_absolute()) {
            return Err(error(path, "`ca-file` is not an absolute path"));
        }
        Ok(Host {
            mirrors: self.mirrors.iter().map(mirror).collect::<Result<_, _>>()?,
            plain_http: self.plain_http,
            realms: self.auth_realm.iter().map(realm).collect::<Result<_, _>>()?,
            ca_file: self.ca_file.map(Spanned::into_inner),
        })
    }
}

/// Returns the server of a registry. Docker Hub's differs from its name: `docker.io` is `registry-1.docker.io`.
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

/// Rejects a table such as `[registry.docker.io]`, which TOML reads as a table `io` in a table `docker`.
fn check_quotes(text: &str) -> Result<(), ConfigError> {
    let Ok(file) = DeTable::parse(text) else { return Ok(()) };
    let Some(DeValue::Table(registries)) = file.get_ref().get("registry").map(Spanned::get_ref)
    else {
        return Ok(());
    };
    for (key, value) in registries {
        let (mut name, mut end, mut inner) = (key.get_ref().to_string(), key.span().end, value);
        while let DeValue::Table(table) = inner.get_ref()
            && let Some((key, value)) = table.iter().find(|it| it.1.get_ref().is_table())
        {
            name = format!("{name}.{}", key.get_ref());
            (end, inner) = (key.span().end, value);
        }
        if end != key.span().end {
            let message = format!("the name of the registry {name} is not in quotes");
            let help = Some(format!("write [registry.{name:?}]"));
            let span = key.span().start..end;
            return Err(ConfigError { message, span, help, is_secret: false });
        }
    }
    Ok(())
}

/// Returns the error of a text that is not TOML, has an unknown key, or has a value of the wrong type. The TOML parser's message
/// repeats the value, so the text before an `@` is masked.
fn malformed(error: toml::de::Error) -> ConfigError {
    let message = error.message().replace("a sequence", "a list, such as [\"a.example.org\"]");
    let message = message.replace("a boolean", "true or false");
    let parts = message.rsplit_once('@');
    let masked = parts.map(|(user, host)| format!("{}{MASK}@{host}", up_to_quote(user)));
    ConfigError {
        is_secret: masked.is_some(),
        help: masked.as_ref().map(|_| LOGIN.to_owned()),
        message: masked.unwrap_or(message),
        span: error.span().unwrap_or_default(),
    }
}

/// Returns the text up to and including its first quote.
fn up_to_quote(text: &str) -> &str {
    text.find('"').map_or("", |at| &text[..=at])
}

/// Returns the error of a malformed value. The text before an `@` is masked: it is a user name, often with a password.
fn wrong(text: &Spanned<String>, what: &'static str) -> ConfigError {
    let Some((_, host)) = text.get_ref().rsplit_once('@') else {
        return error(text, &format!("{:?} is not {what}", text.get_ref()));
    };
    let message = format!("{:?} is not {what}", format!("{MASK}@{host}"));
    ConfigError { help: Some(LOGIN.to_owned()), is_secret: true, ..error(text, &message) }
}

fn error<T>(place: &Spanned<T>, message: &str) -> ConfigError {
    let (message, span) = (message.to_owned(), place.span());
    ConfigError { message, span, help: None, is_secret: false }
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

    /// Returns the error of a text, and the text at the error's span.
    fn error_in(text: &str) -> String {
        let ConfigError { message, span, help, is_secret } =
            RegistryConfig::parse(text).unwrap_err();
        let help = help.map(|it| format!("; {it}")).unwrap_or_default();
        let marked = if is_secret { "(secret)" } else { &text[span] };
        format!("{marked}: {message}{help}")
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let found = [
            "mirror = []",
            "plain-http = 1",
            "plain-http",
            r#"mirrors = "m.example.org""#,
            r#"mirrors = ["https://m.example.org"]"#,
            r#"mirrors = ["m.example.org/../x"]"#,
            r#"auth-realm = ["m.example.org/token"]"#,
            r#"ca-file = "ca.pem""#,
        ]
        .map(|line| error_in(&format!("[registry.\"a.example.org\"]\n{line}")));
        insta::assert_snapshot!(found.join("\n"), @r#"
        mirror: unknown field `mirror`, expected one of `mirrors`, `plain-http`, `auth-realm`, `ca-file`
        1: invalid type: integer `1`, expected true or false
        : key with no value, expected `=`
        "m.example.org": invalid type: string "m.example.org", expected a list, such as ["a.example.org"]
        "https://m.example.org": "https://m.example.org" is not a mirror: HOST or HOST/PREFIX
        "m.example.org/../x": "m.example.org/../x" is not a mirror: HOST or HOST/PREFIX
        "m.example.org/token": "m.example.org/token" is not a realm: HOST or HOST:PORT
        "ca.pem": `ca-file` is not an absolute path
        "#);
        let found = [
            "[registry.\"https://a.example.org\"]",
            "[registry.a]\n[registry.A]",
            "[registries]",
            "[registry.docker.io]\nplain-http = true",
            "[registry.registry.example.org]",
        ]
        .map(error_in);
        insta::assert_snapshot!(found.join("\n"), @r#"
        "https://a.example.org": "https://a.example.org" is not HOST or HOST:PORT
        a: there is another table for the same registry
        registries: unknown field `registries`, expected `registry`
        docker.io: the name of the registry docker.io is not in quotes; write [registry."docker.io"]
        registry.example.org: the name of the registry registry.example.org is not in quotes; write [registry."registry.example.org"]
        "#);
    }

    /// Users copy such entries from the URL of a proxy.
    #[test]
    fn a_password_in_front_of_a_host_is_not_repeated() {
        let found = [
            "[registry.\"me:canary@a.example.org\"]",
            "[registry.\"a.example.org\"]\nmirrors = [\"me:c@nary@m.example.org\"]",
            "[registry.\"a.example.org\"]\nmirrors = \"me:canary@m.example.org\"",
            "[registry.\"a.example.org\"]\nauth-realm = [\"canary@m.example.org\"]",
            "[registry.\"a.example.org\"]\nplain-http = \"canary@m.example.org\"",
        ]
        .map(error_in);
        insta::assert_snapshot!(found.join("\n"), @r#"
        (secret): "****@a.example.org" is not HOST or HOST:PORT; no user or password is in this file: `docker login` and `podman login` keep them
        (secret): "****@m.example.org" is not a mirror: HOST or HOST/PREFIX; no user or password is in this file: `docker login` and `podman login` keep them
        (secret): invalid type: string "****@m.example.org", expected a list, such as ["a.example.org"]; no user or password is in this file: `docker login` and `podman login` keep them
        (secret): "****@m.example.org" is not a realm: HOST or HOST:PORT; no user or password is in this file: `docker login` and `podman login` keep them
        (secret): invalid type: string "****@m.example.org", expected true or false; no user or password is in this file: `docker login` and `podman login` keep them
        "#);
    }
}

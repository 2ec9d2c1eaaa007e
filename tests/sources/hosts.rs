//! Tests that all parsers of `HOST` and `HOST:PORT` follow the same rule.

use box_contract::ImageRef;
use diagnostics::Source;
use download::http::RemoteUrl;
use oci_registry::{RegistryConfig, Repository};

/// Hosts, and the normalized form that every parser of a registry's host returns. `None`: the host is malformed.
const HOSTS: [(&str, Option<&str>); 24] = [
    ("example.org", Some("example.org")),
    ("Example.ORG:5000", Some("example.org:5000")),
    ("localhost", Some("localhost")),
    ("LOCALHOST:80", Some("localhost:80")),
    ("host:65535", Some("host:65535")),
    ("10.0.0.1:5000", Some("10.0.0.1:5000")),
    ("[::1]:5000", Some("[::1]:5000")),
    ("[2001:DB8::1]", Some("[2001:db8::1]")),
    ("docker.io", Some("docker.io")),
    ("Index.docker.io", Some("docker.io")),
    ("registry-1.docker.io", Some("docker.io")),
    ("a..b", None),
    (".a", None),
    ("a.", None),
    ("-a.b", None),
    ("a_b.c", None),
    ("127.1", None),
    ("0x7f.1", None),
    ("a.b:", None),
    ("a.b:0", None),
    ("a.b:080", None),
    ("a.b:65536", None),
    ("[::1", None),
    ("[::g]:80", None),
];

/// Parses a Boxfile whose agent's declaration contains `agent`.
fn read(agent: &str) -> Option<boxfile_spec::Boxfile> {
    let text = format!("box b\nagent {{\n{agent}\n}}\n");
    boxfile_spec::read(Source::new("Boxfile", text), None, |_| Err(String::new())).boxfile
}

fn of_an_image(host: &str) -> Option<String> {
    match read(&format!("image \"{host}/app\""))?.agent.component.image?.value {
        ImageRef::Registry { host, .. } => Some(host),
        _ => None,
    }
}

#[test]
fn every_reader_has_one_rule_for_hosts() {
    for (host, kept) in HOSTS {
        assert_eq!(of_an_image(host).as_deref(), kept, "the language, {host}");
        let repository = Repository::new(host, "app").ok();
        assert_eq!(repository.as_ref().map(Repository::host), kept, "the client, {host}");
        let table = format!("[registry.{host:?}]\nmirrors = [{host:?}]\nauth-realm = [{host:?}]");
        assert_eq!(
            RegistryConfig::parse(&table).is_ok(),
            kept.is_some(),
            "registries.toml, {host}"
        );
        let url = format!("https://{host}/agent");
        let binary = format!("binary {url:?} sha256=\"{}\"", "0".repeat(64));
        assert_eq!(read(&binary).is_some(), kept.is_some(), "a URL, {host}");
        // The download must use the same host that was checked.
        if kept.is_some() {
            let asked = url.parse::<RemoteUrl>().unwrap().host();
            assert_eq!(asked, host.to_ascii_lowercase());
        }
    }
}

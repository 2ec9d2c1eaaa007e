//! Mirrors are tried before the registry, are trusted no more than other servers, and get no credentials of the registry.

use std::sync::Arc;

use test_server::{Request, Server};

use super::pull::pull;
use super::stage::{Plan, manifest, not_found, quick};
use super::*;

/// Starts a mirror that has the image, except for the paths that `deed` answers.
fn mirror(
    prefix: &'static str,
    deed: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static,
) -> Server {
    let image = Arc::new(Image::with(|_| ()));
    Server::start(Identity::None, |_| {
        move |request: &Request| {
            let path = request.path().replacen(&format!("/v2/{prefix}"), "/v2/", 1);
            deed(&path).unwrap_or_else(|| {
                if path.contains("/manifests/") {
                    manifest(&image.manifest)
                } else if path == image.layer_path() {
                    file(&image.layer)
                } else {
                    file(&image.config)
                }
            })
        }
    })
}

/// Sets a stage whose registry has these mirrors.
fn mirrored(mirrors: Vec<Server>, prefix: &str) -> Stage {
    let hosts: Vec<_> = mirrors.iter().map(|it| format!("{}{prefix}", it.host())).collect();
    let tables =
        mirrors.iter().map(|it| format!("[registry.\"{}\"]\nplain-http = true\n", it.host()));
    let config = format!("mirrors = {hosts:?}\n{}", tables.collect::<String>());
    Plan { foreign: mirrors, config, ..Plan::new() }.set()
}

fn pulled(stage: &Stage) -> Result<(), PullError> {
    let outcome = pull(&stage.client(quick()), stage);
    let requests = stage.foreign.iter().flat_map(Server::requests);
    assert!(requests.into_iter().all(|it| it.header("authorization").is_none()), "a secret");
    outcome
}

#[test]
fn a_mirror_is_asked_in_the_place_of_the_registry() {
    let stage = mirrored(vec![mirror("", |_| None)], "");
    pulled(&stage).unwrap();
    assert_eq!(stage.foreign[0].requests().len(), 4);
    assert!(stage.registry.requests().is_empty());
}

#[test]
fn a_mirror_may_have_the_repository_below_a_prefix() {
    let stage = mirrored(vec![mirror("hub/cache/", |_| None)], "/hub/cache");
    pulled(&stage).unwrap();
    assert!(stage.foreign[0].requests()[0].head.starts_with("GET /v2/hub/cache/app/manifests/v1 "));
    assert!(stage.registry.requests().is_empty());
}

#[test]
fn the_registry_serves_what_mirrors_lack() {
    let nothing = mirror("", |_| Some(not_found()));
    let liar = mirror("", |path| path.contains("/blobs/").then(|| file(b"wrong")));
    let asks = mirror("", |_| Some(stage::unauthorized("Basic realm=\"please\"")));
    let busy = mirror("", |_| Some(reply("503 Service Unavailable", &["Content-Length: 0"], b"")));
    let stage = mirrored(vec![nothing, asks, busy, liar], "");
    pulled(&stage).unwrap();
    assert!(!stage.asked(&stage.image.layer_path()).is_empty());
    assert!(stage.stored().contains(&digest(&stage.image.layer).hex()));
    assert_eq!(stage.stored().len(), 2);
}

#[test]
fn a_tag_that_only_the_mirror_has_is_found() {
    let stage = mirrored(vec![mirror("", |_| None)], "");
    let registry = stage.client(quick());
    let tag = Reference::Tag(Tag::new("only-there").unwrap());
    let found = registry.manifest(&stage.repository(), &tag).unwrap();
    assert_eq!(found.digest, digest(&stage.image.manifest));
}

#[test]
fn when_all_fail_all_are_named() {
    let stage = mirrored(vec![mirror("", |_| Some(not_found()))], "");
    let registry = stage.client(quick());
    let tag = Reference::Tag(Tag::new("v2").unwrap());
    let error = registry.manifest(&stage.repository(), &tag).unwrap_err();
    let (mirror, host) = (stage.foreign[0].host(), stage.registry.host());
    let text = format!(
        "mirror {mirror}: registry {mirror} has no app with the tag \"v2\"; \
         registry {host}: registry {host} has no app with the tag \"v2\""
    );
    assert_eq!(safe_text::with_causes(&error), text);
}

#[test]
fn the_default_registry_has_a_server_of_its_own() {
    let config = "[registry.\"docker.io\"]\nmirrors = [\"mirror.example.org/hub\"]";
    let config = RegistryConfig::parse(config).unwrap();
    let registry = Registry::new(Options { config, ..quick() });
    let repository = Repository::new("docker.io", "library/debian").unwrap();
    let servers = registry.servers(&repository).unwrap();
    let asked: Vec<_> = servers.iter().map(|it| it.server.url("").unwrap().to_string()).collect();
    let hub = "https://registry-1.docker.io/v2/library/debian/";
    assert_eq!(asked, ["https://mirror.example.org/v2/hub/library/debian/", hub]);
    // The mirror is another host, so Docker Hub's realm is not trusted for it.
    assert_eq!(servers[0].server.host.realms, [""; 0]);
    assert_eq!(servers[1].server.host.realms, ["auth.docker.io"]);
}

#[test]
fn a_store_error_is_not_retried_on_another_server() {
    let stage = mirrored(vec![mirror("", |_| None)], "");
    let registry = stage.client(quick());
    let blobs = [(digest(&stage.image.layer), 17)];
    std::fs::remove_dir_all(stage.store_path().join("tmp")).unwrap();
    let error = registry.fetch_blobs(&stage.repository(), &blobs, &stage.store).unwrap_err();
    assert!(matches!(error, RegistryError::Download(DownloadError::Store(_))), "{error}");
    assert!(stage.registry.requests().is_empty());
}

//! Tests with a registry that needs no password.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use download::http::HttpError;
use download::{DownloadError, NetworkOptions, Policy};
use oci_registry::{Options, Reference, Registry, RegistryConfig, RegistryError, Repository};
use serde_json::Value;

use crate::pushed::{NAME, Pushed, TAG, parts, tagged};

#[test]
fn an_image_comes_as_it_was_pushed() {
    let pushed = Pushed::open();
    let pieces = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&pieces);
    let mut options = pushed.options();
    options.network.progress = Some(Arc::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    let manifest = pushed.pull(options, TAG).unwrap();
    assert_eq!(manifest.media_type, Some("application/vnd.oci.image.manifest.v1+json"));
    assert!(pieces.load(Ordering::Relaxed) > 2, "a large layer comes in pieces");
    pushed.push_plain("plain");
    pushed.pull(pushed.options(), "plain").unwrap();
}

#[test]
fn an_index_leads_to_its_images() {
    let pushed = Pushed::open();
    pushed.push_index("all");
    let registry = Registry::new(pushed.options());
    let index = registry.manifest(&pushed.repository(), &tagged("all")).unwrap();
    assert_eq!(index.media_type, Some("application/vnd.oci.image.index.v1+json"));
    assert_eq!(index.bytes, pushed.blob(&index.digest));
    let document: Value = serde_json::from_slice(&index.bytes).unwrap();
    let images = document["manifests"].as_array().unwrap();
    assert_eq!(images.len(), 2);
    for image in images {
        let digest = image["digest"].as_str().unwrap().parse().unwrap();
        let found = registry.manifest(&pushed.repository(), &Reference::Digest(digest)).unwrap();
        assert_eq!(found.digest, digest);
        assert_eq!(parts(&found).1.len(), 2);
    }
}

#[test]
fn what_is_not_there_is_named() {
    let pushed = Pushed::open();
    let registry = Registry::new(pushed.options());
    let host = pushed.registry.host();
    let error = registry.manifest(&pushed.repository(), &tagged("v2")).unwrap_err();
    let text = format!("registry {host} has no {NAME} with the tag \"v2\"");
    assert_eq!(error.to_string(), text);
    let other = Repository::new(&host, "nobody/nothing").unwrap();
    let error = registry.manifest(&other, &tagged(TAG)).unwrap_err();
    assert!(matches!(error, RegistryError::NotFound { .. }), "{error}");
    // The registry does not serve one repository's blobs from another repository.
    let (_, layers) = parts(&registry.manifest(&pushed.repository(), &tagged(TAG)).unwrap());
    let error = registry.fetch_blobs(&other, &layers, &pushed.store).unwrap_err();
    assert!(matches!(error, RegistryError::NotFound { .. }), "{error}");
}

#[test]
fn plain_http_must_be_configured_also_on_this_machine() {
    let pushed = Pushed::open();
    let options = Options {
        config: RegistryConfig::default(),
        network: NetworkOptions {
            policy: Policy { tries: 1, ..Policy::default() },
            ..NetworkOptions::default()
        },
        ..pushed.options()
    };
    let error = pushed.pull(options, TAG).unwrap_err();
    // On a host without CA certificates the client fails before it sends a request.
    let refused = matches!(
        error,
        RegistryError::NotTls { .. }
            | RegistryError::Download(DownloadError::Http(HttpError::NoRoots { .. }))
    );
    assert!(refused, "{error}");
}

#[test]
fn a_mirror_stands_in_for_the_registry() {
    let pushed = Pushed::open();
    let host = pushed.registry.host();
    let config = format!(
        "[registry.\"registry.invalid\"]\nmirrors = [\"{host}/team\"]\n\
         [registry.\"{host}\"]\nplain-http = true"
    );
    let config = RegistryConfig::parse(&config).unwrap();
    let registry = Registry::new(Options { config, ..pushed.options() });
    let there = Repository::new("registry.invalid", "app").unwrap();
    let manifest = registry.manifest(&there, &tagged(TAG)).unwrap();
    let (_, layers) = parts(&manifest);
    registry.fetch_blobs(&there, &layers, &pushed.store).unwrap();
}

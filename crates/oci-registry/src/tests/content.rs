//! Content that does not match its digest, size or type.

use serde_json::json;
use test_server::Server;

use super::harness::{fails, is, succeeds};
use super::pull::pull;
use super::stage::{Plan, manifest, quick};
use super::*;

/// Answers with another body of the same length.
fn changed(bytes: &[u8]) -> Reply {
    file(&bytes.iter().map(|byte| byte ^ 1).collect::<Vec<_>>())
}

/// Answers with one chunk, so that no header has the length of the whole body.
fn chunked(bytes: &[u8]) -> Reply {
    let body = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n0\r\n\r\n"].concat();
    reply("200 OK", &["Transfer-Encoding: chunked"], &body)
}

/// Plans another answer for the layer.
fn layer(answer: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Plan {
    let image = Image::with(|_| ());
    let bytes = image.layer.clone();
    Plan::new().at(&image.layer_path(), move |_| Some(answer(&bytes)))
}

/// Plans another answer for the config.
fn config(answer: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Plan {
    let image = Image::with(|_| ());
    let bytes = image.config.clone();
    Plan::new().at(&image.config_path(), move |_| Some(answer(&bytes)))
}

/// Plans another answer for the tag's manifest.
fn tagged(answer: impl Fn(&[u8]) -> Reply + Send + Sync + 'static) -> Plan {
    let bytes = Image::with(|_| ()).manifest;
    Plan::new().at("/v2/app/manifests/v1", move |_| Some(answer(&bytes)))
}

/// Answers with a text that is no manifest, without a media type.
fn page(text: &'static str) -> Plan {
    tagged(move |_| reply("200 OK", &[&length(text.len())], text.as_bytes()))
}

/// Answers with the manifest under another media type.
fn typed(media_type: &'static str) -> Plan {
    tagged(move |bytes| {
        let kind = format!("Content-Type: {media_type}");
        reply("200 OK", &[&kind, &length(bytes.len())], bytes)
    })
}

/// Answers with the manifest, and this digest in a header.
fn named(digest: &'static str) -> Plan {
    tagged(move |bytes| {
        let header = format!("Docker-Content-Digest: {digest}");
        let kind = "Content-Type: application/vnd.oci.image.manifest.v1+json";
        reply("200 OK", &[kind, &header, &length(bytes.len())], bytes)
    })
}

/// Plans an image whose layer has another digest in the manifest.
fn layer_named(digest: &'static str) -> Plan {
    let image = Image::with(|manifest| manifest["layers"][0]["digest"] = digest.into());
    Plan { image, ..Plan::new() }
}

/// Plans an image whose layer has another size in the manifest.
fn layer_sized(size: u64) -> Plan {
    let image = Image::with(|manifest| manifest["layers"][0]["size"] = size.into());
    Plan { image, ..Plan::new() }
}

const UPPER: &str = "sha256:E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
const OTHER: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
/// The size of the layer.
const LAYER: u64 = 17;
const NO_HEX: &str = "it names a digest without 64 lower-case hexadecimal digits";
const NO_MANIFEST: &str = "its media type is not that of a manifest or an index";
const COMPRESSED: &str = "it is compressed, which was not asked for";
const UNKNOWN: &str = "it names a digest of an unknown algorithm; sha256 is known";

/// Returns whether a malformed digest was rejected before a request with it was sent.
fn refused_digest(outcome: &Result<(), PullError>, stage: &Stage) -> bool {
    let asked = stage.registry.requests().iter().any(|it| it.path().contains("/blobs/"));
    matches!(outcome, Err(PullError::Digest(_))) && !asked
}

/// Returns an index with one entry, for the manifest `child`.
fn index(child: &[u8]) -> Vec<u8> {
    let entry = json!({ "digest": digest(child), "size": child.len() });
    json!({ "schemaVersion": 2, "manifests": [entry] }).to_string().into_bytes()
}

/// Answers with one more header.
fn with(header: &str, bytes: &[u8]) -> Reply {
    reply("200 OK", &[header, &length(bytes.len())], bytes)
}

/// Answers with an index.
fn document(bytes: &[u8]) -> Reply {
    with("Content-Type: application/vnd.oci.image.index.v1+json", bytes)
}

/// Answers with a manifest, without a digest header.
fn document_of_an_image(bytes: &[u8]) -> Reply {
    with("Content-Type: application/vnd.oci.image.manifest.v1+json; charset=utf-8", bytes)
}

/// Returns `{` and enough blanks for a manifest that is too large.
fn huge() -> Vec<u8> {
    let mut bytes = vec![b' '; usize::try_from(MAX_MANIFEST).unwrap()];
    bytes[0] = b'{';
    bytes.push(b'}');
    bytes
}

cases! {
    an_honest_registry: Plan::new() => |outcome, stage| {
        // The manifest is requested by tag and by digest. All requests are GETs, and none is superfluous.
        let requests = stage.registry.requests();
        let gets = requests.iter().filter(|it| it.head.starts_with("GET ")).count();
        outcome.is_ok() && (gets, requests.len()) == (6, 6)
    };
    a_manifest_of_another_digest: {
        let image = Image::with(|_| ());
        let path = format!("/v2/app/manifests/{}", digest(&image.manifest));
        let other = Image::with(|manifest| manifest["x"] = 1.into()).manifest;
        Plan::new().at(&path, move |_| Some(document_of_an_image(&other)))
    } => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_config_of_another_digest: config(changed) => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_layer_of_another_digest: layer(changed) => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_layer_of_one_byte_less: layer(|bytes| file(&bytes[1..]))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: LAYER, found: 16, .. }));
    a_layer_of_one_byte_more: layer(|bytes| file(&[bytes, b"+"].concat()))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: LAYER, found: 18, .. }));
    a_layer_whose_named_size_is_one_less: layer_sized(LAYER - 1)
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: 16, found: LAYER, .. }));
    a_layer_whose_named_size_is_one_more: layer_sized(LAYER + 1)
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: 18, found: LAYER, .. }));
    a_layer_with_trailing_bytes: layer(|bytes| chunked(&[bytes, b"trailing"].concat()))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: LAYER, .. }));
    a_layer_that_ends_early_and_says_so: layer(|bytes| chunked(&bytes[..5]))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: LAYER, found: 5, .. }));
    a_config_with_trailing_bytes: config(|bytes| chunked(&[bytes, b"trailing"].concat()))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: 2, .. }));
    a_config_of_one_byte_less: config(|bytes| file(&bytes[1..]))
        => fails!(RegistryError::Download(DownloadError::WrongSize { expected: 2, found: 1, .. }));
    a_layer_in_chunks: layer(chunked) => succeeds;
    a_header_with_another_digest: named(OTHER) => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_header_with_an_upper_case_digest: named(UPPER)
        => fails!(RegistryError::Response { reason: NO_HEX, .. });
    a_header_with_a_path: named("../../../etc/passwd")
        => fails!(RegistryError::Response { reason: UNKNOWN, .. });
    a_header_of_another_algorithm: named("sha512:e3b0")
        => fails!(RegistryError::Response { reason: UNKNOWN, .. });
    a_header_that_repeats_the_token: named(TOKEN) => fails!(RegistryError::Response { .. });
    a_type_that_repeats_the_token: {
        tagged(|bytes| with("Content-Type: canary-token", bytes))
    } => fails!(RegistryError::Response { reason: NO_MANIFEST, .. });
    a_type_that_no_manifest_has: typed("image/png")
        => fails!(RegistryError::Response { reason: NO_MANIFEST, .. });
    a_type_of_any_document: typed("application/json; charset=utf-8") => succeeds;
    a_type_of_any_file: typed("application/octet-stream") => succeeds;
    a_type_of_any_text: typed("text/plain") => succeeds;
    a_type_of_a_page: typed("text/html; charset=utf-8")
        => fails!(RegistryError::NotARegistry { found: "an HTML page", .. });
    a_page_without_a_type: page("\u{feff}\n<!DOCTYPE html><title>Blocked</title>")
        => fails!(RegistryError::NotARegistry { found: "an HTML page", .. });
    a_text_in_the_place_of_a_manifest: page("Access denied")
        => fails!(RegistryError::NotARegistry { found: "not JSON", .. });
    nothing_in_the_place_of_a_manifest: page("")
        => fails!(RegistryError::NotARegistry { found: "empty", .. });
    a_page_in_the_place_of_a_layer: layer(|_| with("Content-Type: text/html", b"<html>"))
        => fails!(RegistryError::NotARegistry { found: "an HTML page", .. });
    no_type: tagged(file) => succeeds;
    no_header_with_a_digest: tagged(document_of_an_image) => succeeds;
    a_layer_with_an_upper_case_digest: layer_named(UPPER) => refused_digest;
    a_layer_with_a_path_for_a_digest: layer_named("sha256:../../../../etc/passwd")
        => refused_digest;
    a_layer_of_another_algorithm: layer_named("sha512:e3b0") => refused_digest;
    a_huge_manifest: tagged(|_| manifest(&huge()))
        => fails!(RegistryError::Download(DownloadError::TooLarge { limit: MAX_MANIFEST, .. }));
    a_huge_manifest_in_chunks: tagged(|_| chunked(&huge()))
        => fails!(RegistryError::Download(DownloadError::TooLarge { limit: MAX_MANIFEST, .. }));
    a_compressed_bomb: tagged(|bytes| with("Content-Encoding: gzip", bytes))
        => fails!(RegistryError::Response { reason: COMPRESSED, .. });
    an_index_that_leads_to_itself: {
        // No index can contain its own digest. A registry can only pretend that one does.
        let outer = index(b"inner");
        let inner = format!("/v2/app/manifests/{}", digest(b"inner"));
        let own = format!("/v2/app/manifests/{}", digest(&outer));
        Plan::new().deed(move |path, _, _| {
            [&*inner, &*own, "/v2/app/manifests/v1"].contains(&path).then(|| document(&outer))
        })
    } => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_tag_that_moved: {
        // A second request for the tag returns another image.
        let moved = Image::with(|manifest| manifest["moved"] = true.into()).manifest;
        Plan::new().deed(move |path, _, _| {
            (path.contains("/manifests/") && !path.ends_with("/v1")).then(|| manifest(&moved))
        })
    } => fails!(RegistryError::Download(DownloadError::WrongDigest { .. }));
    a_layer_that_another_server_has: {
        let foreign = Server::start(Identity::None, |_| |_: &_| file(b"the layer's bytes"));
        let url = foreign.url("/layer");
        let image = Image::with(|manifest| manifest["layers"][0]["urls"] = json!([url]));
        let path = image.layer_path();
        let plan = Plan { image, foreign: vec![foreign], ..Plan::new() };
        plan.at(&path, |_| Some(stage::not_found()))
    } => |outcome, stage| {
        stage.foreign[0].requests().is_empty()
            && is!(outcome, RegistryError::NotFound { .. })
    };
}

#[test]
fn what_is_something_else_is_never_reported_as_whole() {
    let stage = layer(changed).set();
    let (options, seen) = watched(stage.options(quick()));
    let registry = Registry::new(options);
    pull(&registry, &stage).unwrap_err();
    let layer = digest(&stage.image.layer);
    let whole = |it: &Progress| it.digest == layer && it.total == Some(it.received);
    assert!(!seen.lock().unwrap().iter().any(whole));
}

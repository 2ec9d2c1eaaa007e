//! Tests that push boxes to registries that behave like GitLab and others, and pull them again byte for byte.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use box_cache::Store;
use box_registry::{Form, plan};
use download::{NetworkOptions, Policy};
use oci_registry::{Options, Reference, RegistryConfig, Repository, Tag};
use serde_json::json;
use test_server::registry::{Deed, Rules};
use test_server::{Early, Request, likes, reply};

use crate::host::{Host, NAME, TAG, check, compare};

/// Pushes and pulls a box, and checks the requests. `form` is the expected form in the registry.
fn there_and_back(name: &str, rules: Rules, form: &str) {
    let host = Host::new(rules);
    let first = host.pushed();
    assert_eq!(first["form"], form, "{name}");
    let pulled = host.pulled("store");
    assert_eq!((&pulled["box"], &pulled["blobs"]), (&first["box"], &pulled["fetched"]), "{name}");
    // A second push sends no blob again.
    let before = host.registry.lines().len();
    let again = host.pushed();
    assert_eq!(
        (&again["bytes"], &again["registry_digest"]),
        (&json!(0), &first["registry_digest"])
    );
    let asked = host.registry.lines().split_off(before);
    let (manifests, others): (Vec<_>, Vec<_>) =
        asked.iter().partition(|it| it.contains("/manifests/"));
    assert!(manifests.iter().all(|it| it.starts_with("GET ")), "{name}: {asked:?}");
    assert!(others.iter().all(|it| it.starts_with("GET /token")), "{name}: {asked:?}");
    assert_eq!(host.pulled("store")["fetched"], 0, "{name}");
    // If only the config has changed, only the config is sent.
    host.files.edit_config(|config| config["plan"]["vm"]["memory-mib"] = 512.into());
    let changed = host.pushed();
    assert_eq!(changed["sent"], 1, "{name}: {changed}");
    assert_eq!(host.pulled("store")["fetched"], 1, "{name}");
    let lines = host.registry.lines();
    assert!(!lines.iter().any(|it| it.starts_with("PATCH")), "{name}");
    // A registry that does not know the list of attachments is no obstacle.
    let listed: Vec<_> = lines.iter().filter(|it| it.contains("/referrers/")).collect();
    assert!(!listed.is_empty() && listed.iter().all(|it| it.starts_with("GET ")), "{name}");
    for request in host.registry.stored() {
        assert_eq!(request.header("authorization"), None, "{name}: {}", request.head);
    }
}

#[test]
fn a_registry_like_gitlabs_gets_an_image() {
    there_and_back("GitLab", likes::gitlab(), "image");
}

#[test]
fn a_registry_like_quay_gets_an_image_and_its_object_store_no_token() {
    there_and_back("Quay", likes::quay(), "image");
}

#[test]
fn a_registry_like_githubs_gets_the_artifact_and_another_host_no_token() {
    there_and_back("GHCR", likes::ghcr(), "artifact");
}

#[test]
fn a_registry_like_amazons_gets_an_image() {
    there_and_back("ECR", likes::ecr(), "image");
}

#[test]
fn a_refusal_without_a_reason_leads_to_an_image() {
    there_and_back("415", likes::terse(), "image");
}

#[test]
fn a_registry_without_head_and_ranges_is_enough() {
    there_and_back("plainest", likes::plainest(), "artifact");
}

#[test]
fn an_overloaded_registry_is_given_time() {
    there_and_back("overloaded", likes::overloaded(), "artifact");
}

/// Expires the token after `left` requests, for each number from 1 to 30.
#[test]
fn tokens_may_end_at_any_moment() {
    // The first request for each blob gets no answer, and one answer breaks after 700 bytes. The token may have expired when the
    // client asks for the missing bytes.
    let breaks = |request: &Request, before: usize| {
        let is_blob = request.method() == "GET" && request.path().contains("/blobs/");
        (is_blob && before == 0).then(|| Early { after: 0, reply: Vec::new() })
    };
    let ends = |host: &Host, left: usize| host.registry.with(|held| held.token_left = left);
    let has_ended = |host: &Host| host.registry.with(|held| held.token_left == 0);
    let (mut pushes, mut pulls) = (0, 0);
    for left in 1..=30 {
        let (cut, deed) = (Some(Arc::new(AtomicUsize::new(700))), Some(Box::new(breaks) as Deed));
        let host = Host::new(Rules { closed: true, cut, deed, ..Rules::default() });
        ends(&host, left);
        host.pushed();
        pushes += usize::from(has_ended(&host));
        // A pull makes fewer requests, and pauses after each broken one, so it is tried with fewer numbers.
        if left <= 9 {
            ends(&host, left);
            host.pulled("store");
            pulls += usize::from(has_ended(&host));
        }
    }
    assert!(pushes > 20 && pulls > 6, "{pushes} pushes and {pulls} pulls");
}

/// Cuts a blob once at each tenth byte. The registry then sends the remaining bytes or, without ranges, all bytes again.
#[test]
fn a_blob_may_be_cut_anywhere() {
    for ignores_ranges in [false, true] {
        let at = Arc::new(AtomicUsize::new(usize::MAX));
        let rules = Rules { ignores_ranges, cut: Some(Arc::clone(&at)), ..Rules::default() };
        let host = Host::with_box(rules);
        let largest = host.registry.with(|held| held.blobs.values().map(Vec::len).max().unwrap());
        let segment = host.files.manifest().layers.into_iter().find(|it| it.role() == "segment");
        let segment = segment.unwrap().digest;
        // Without ranges the transfer restarts wherever it was cut, so each hundredth byte is enough.
        for cut in (0..largest).step_by(if ignores_ranges { 100 } else { 10 }) {
            at.store(cut, Ordering::SeqCst);
            fs::remove_file(host.path("store/blobs").join(segment.hex())).ok();
            fetch(&host, "store");
            assert_eq!(at.load(Ordering::SeqCst), usize::MAX, "it was cut after {cut} bytes");
            compare(&host.files, &host.path("store"));
        }
        assert!(largest > 2000, "many places: {largest}");
        for cut in [0, 1, 700, 1999] {
            at.store(cut, Ordering::SeqCst);
            host.pulled(&format!("command-{cut}"));
            assert_eq!(at.load(Ordering::SeqCst), usize::MAX, "it was cut after {cut} bytes");
        }
    }
}

/// Pulls in this process, with retries after 1 ms.
fn fetch(host: &Host, store: &str) {
    let config = format!("[registry.\"{}\"]\nplain-http = true", host.registry.host());
    let config = RegistryConfig::parse(&config).unwrap();
    let policy = Policy { backoff: Duration::from_millis(1), ..Policy::default() };
    let network = NetworkOptions { policy, ..NetworkOptions::default() };
    let client = oci_registry::Registry::new(Options { config, network, ..Options::default() });
    let repository = Repository::new(&host.registry.host(), NAME).unwrap();
    let store = Store::open(&host.path(store)).unwrap();
    let tag = Reference::Tag(Tag::new(TAG).unwrap());
    let plan = plan(&client, &repository, &tag, &store).unwrap();
    assert_eq!(plan.remote.form, Form::Artifact);
    plan.fetch(&client, &store).unwrap();
}

/// Returns how often the blob `digest` was requested.
fn count(fetched: &[String], digest: &str) -> usize {
    fetched.iter().filter(|it| it.starts_with(digest)).count()
}

#[test]
fn wrong_bytes_get_no_name_and_are_mended() {
    let host = Host::with_box(Rules::default());
    let (key, right) = host.registry.with(|held| {
        let largest = held.blobs.iter().max_by_key(|it| it.1.len()).unwrap();
        (largest.0.clone(), largest.1.clone())
    });
    let put = |bytes: Vec<u8>| host.registry.with(|held| held.blobs.insert(key.clone(), bytes));
    let mut changed = right.clone();
    changed[right.len() / 2] ^= 1;
    let longer = [&right[..], b"x"].concat();
    for (at, wrong) in [changed, longer, right[..100].to_vec(), Vec::new()].into_iter().enumerate()
    {
        put(wrong);
        let store = format!("store-{at}");
        let output = host.fails(&mut host.pull(&store));
        assert!(output.contains(&key.1), "{output}");
        assert!(leftovers(&host, &store).is_empty(), "{output}");
        let before = host.fetched();
        let held = check(&host.path(&store));
        put(right.clone());
        let report = host.pulled(&store);
        let number = |name: &str| usize::try_from(report[name].as_u64().unwrap()).unwrap();
        let all = number("blobs") + 1;
        assert_eq!(number("fetched"), all - held - 1, "{output}");
        assert_eq!(count(&host.fetched()[before.len()..], &key.1), 1);
    }
}

/// Returns the entries in a store's `tmp` and `locks` directories.
pub(crate) fn leftovers(host: &Host, store: &str) -> Vec<fs::DirEntry> {
    let folders = ["tmp", "locks"].map(|it| host.path(store).join(it));
    folders.iter().flat_map(|it| fs::read_dir(it).unwrap()).map(Result::unwrap).collect()
}

#[test]
fn a_digest_that_lies_ends_a_push_and_a_pull() {
    let host = Host::new(Rules::default());
    let lies = |lies| host.registry.with(|held| held.lies = lies);
    lies(true);
    let output = host.fails(&mut host.push(&host.files));
    assert!(output.contains("another digest"), "{output}");
    assert!(host.registry.with(|held| held.manifests.is_empty()), "it has no tag");
    lies(false);
    host.pushed();
    lies(true);
    let output = host.fails(&mut host.pull("store"));
    assert!(output.contains("digest"), "{output}");
    assert_eq!(check(&host.path("store")), 0);
    lies(false);
    host.pulled("store");
}

/// The registry gives answers that no client can use. The client's error names the fault.
#[test]
fn what_no_client_can_use_is_named() {
    let post = |line: &'static str, headers: &'static [&'static str]| {
        let deed = move |request: &Request, _: usize| {
            let reply = reply(line, &[headers, &["Content-Length: 0"]].concat(), b"");
            (request.method() == "POST").then_some(Early { after: usize::MAX, reply })
        };
        Rules { deed: Some(Box::new(deed)), ..Rules::default() }
    };
    for (rules, expected) in [
        (post("202 Accepted", &[]), "does not say where the bytes go"),
        (post("202 Accepted", &["Location: ftp://127.0.0.1/x"]), "only https and http are"),
        (post("202 Accepted", &["Location: http://a:b@127.0.0.1/x"]), "user name or a password"),
        (post("202 Accepted", &["Location: http://169.254.169.254/x"]), "not followed"),
        (post("429 Too Many Requests", &["Retry-After: 3600"]), "429"),
        (post("403 Forbidden", &[]), "does not allow"),
        (post("413 Payload Too Large", &[]), "too many"),
        (post("200 OK", &[]), "200"),
    ] {
        let host = Host::new(rules);
        let output = host.fails(&mut host.push(&host.files));
        assert!(output.contains(expected), "{expected}: {output}");
        assert!(host.registry.with(|held| held.manifests.is_empty()), "{expected}");
    }
}

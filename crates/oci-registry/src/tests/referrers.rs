//! Referrers, in registries with and without the API.

use std::sync::{Arc, Mutex};
use std::thread;

use box_contract::Descriptor;
use box_contract::manifest::{OCI_INDEX_TYPE, OCI_MANIFEST_TYPE};
use serde_json::{Value, json};
use test_server::registry::{self, Referrers, Rules};
use test_server::{Early, Request, Server};

use super::stage::quick;
use super::*;

const KIND: &str = "application/vnd.example+json";
const SUBJECT: &[u8] = b"the subject";

/// A function that is called before the registry answers.
type Hook = Arc<Mutex<Option<Box<dyn Fn(&str, usize) + Send>>>>;

struct Place {
    registry: Arc<registry::Registry>,
    client: Registry,
}

impl Place {
    fn new(rules: Rules) -> Self {
        let registry = Arc::new(registry::Registry::start(rules));
        let client = client(&registry.host(), "");
        Self { registry, client }
    }

    fn repository(&self) -> Repository {
        Repository::new(&self.registry.host(), "app").unwrap()
    }

    /// Writes referrers with these numbers.
    fn put(&self, numbers: &[u32]) -> Result<(), RegistryError> {
        let all: Vec<_> = numbers.iter().map(|it| referrer(*it)).collect();
        self.client.pusher(&self.repository()).unwrap().put_referrers(&digest(SUBJECT), &all)
    }

    fn list(&self, kind: Option<&str>) -> Result<Vec<Descriptor>, RegistryError> {
        self.listed(kind).map(|it| it.all)
    }

    fn listed(&self, kind: Option<&str>) -> Result<Listed, RegistryError> {
        self.client.referrers(&self.repository(), &digest(SUBJECT), kind)
    }

    /// Returns the requests since the first `before`, without the host and with short names.
    fn lines(&self, before: usize) -> Vec<String> {
        let short =
            |it: String| it.replace(&digest(SUBJECT).to_string(), "SUBJECT").replace(&tag(), "TAG");
        let lines = self.registry.lines().split_off(before).into_iter();
        lines.map(|it| short(it).replace("/v2/app/", "")).collect()
    }

    fn index(&self) -> Value {
        let key = ("app".to_owned(), tag());
        self.registry.with(|held| serde_json::from_slice(&held.manifests[&key].1).unwrap())
    }

    fn set_index(&self, index: &Value) {
        set_index(&self.registry, index);
    }
}

fn set_index(registry: &registry::Registry, index: &Value) {
    registry.with(|held| {
        held.put_manifest("app", &tag(), OCI_INDEX_TYPE, index.to_string().as_bytes())
    });
}

fn client(host: &str, more: &str) -> Registry {
    let config = format!("[registry.\"{host}\"]\nplain-http = true\n{more}");
    let config = RegistryConfig::parse(&config).unwrap();
    Registry::new(Options { config, ..quick() })
}

fn tag() -> String {
    format!("sha256-{}", digest(SUBJECT).hex())
}

/// Returns a manifest about the subject, with its descriptor. Odd numbers have the type [`KIND`].
fn referrer(number: u32) -> (Descriptor, Vec<u8>) {
    let kind = if number % 2 == 1 { KIND } else { "application/vnd.other" };
    let subject = Descriptor::new(OCI_MANIFEST_TYPE, digest(SUBJECT), SUBJECT.len() as u64);
    let annotations = json!({ "number": number.to_string() });
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST_TYPE, "artifactType": kind,
        "subject": subject, "annotations": annotations,
    });
    let bytes = manifest.to_string().into_bytes();
    let mut descriptor = Descriptor::new(OCI_MANIFEST_TYPE, digest(&bytes), bytes.len() as u64);
    descriptor.artifact_type = Some(kind.to_owned());
    descriptor.annotations.insert("number".to_owned(), number.to_string());
    (descriptor, bytes)
}

/// Returns the rules of a registry, which has the subject, and the function that is called before its answers.
fn hooked(rules: Rules) -> (Rules, Hook) {
    let hook = Hook::default();
    let called = Arc::clone(&hook);
    let deed = move |request: &Request, before: usize| {
        let line = format!("{} {}", request.method(), request.path());
        called.lock().unwrap().iter().for_each(|it| it(&line, before));
        None
    };
    (Rules { deed: Some(Box::new(deed)), ..rules }, hook)
}

fn numbers(found: &[Descriptor]) -> Vec<u32> {
    let mut numbers: Vec<_> =
        found.iter().map(|it| it.annotations["number"].parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

/// Registers the subject, because the registry refuses manifests that name missing content.
fn with_subject(place: &Place) {
    place.registry.with(|held| held.put_manifest("app", "v1", OCI_MANIFEST_TYPE, SUBJECT));
}

#[test]
fn a_registry_with_the_api_lists_by_pages() {
    let place = Place::new(Rules { referrers: Referrers::Paged(2), ..Rules::default() });
    with_subject(&place);
    assert_eq!(place.list(None).unwrap(), []);
    place.put(&[1, 2, 3, 4, 5]).unwrap();
    let before = place.registry.lines().len();
    let found = place.list(None).unwrap();
    assert_eq!(numbers(&found), [1, 2, 3, 4, 5]);
    assert!(found.contains(&referrer(3).0), "with its type and annotations");
    assert_eq!(
        place.lines(before),
        ["GET referrers/SUBJECT", "GET referrers/SUBJECT?from=2", "GET referrers/SUBJECT?from=4"]
    );
    assert_eq!(numbers(&place.list(Some(KIND)).unwrap()), [1, 3, 5]);
    assert!(place.lines(0).iter().all(|it| !it.contains("TAG")), "no fallback tag is made");
}

#[test]
fn a_registry_without_the_api_gets_an_index_under_the_fallback_tag() {
    let place = Place::new(Rules::default());
    with_subject(&place);
    assert_eq!(place.list(None).unwrap(), []);
    let before = place.registry.lines().len();
    place.put(&[1, 2]).unwrap();
    let [first, second] = [1, 2].map(|it| format!("PUT manifests/{}", referrer(it).0.digest));
    let expected =
        [&*first, &second, "GET manifests/TAG", "PUT manifests/TAG", "GET manifests/TAG"];
    assert_eq!(place.lines(before), expected);
    assert_eq!(
        place.index(),
        json!({ "schemaVersion": 2, "mediaType": OCI_INDEX_TYPE,
            "manifests": [referrer(1).0, referrer(2).0] })
    );
    // What is there is not written again.
    let before = place.registry.lines().len();
    place.put(&[2]).unwrap();
    assert_eq!(place.lines(before), [&*second, "GET manifests/TAG"]);
    assert_eq!(numbers(&place.list(None).unwrap()), [1, 2]);
    assert_eq!(numbers(&place.list(Some(KIND)).unwrap()), [1]);
}

#[test]
fn entries_and_fields_of_other_writers_stay() {
    let place = Place::new(Rules::default());
    with_subject(&place);
    let other = json!({ "digest": "sha512:00", "platform": { "os": "unknown" }, "data": "e30=" });
    let mut index =
        json!({ "schemaVersion": 2, "annotations": { "a": "b" }, "manifests": [other] });
    place.set_index(&index);
    // The registry of the tests knows no sha512.
    place.registry.with(|held| held.blobs.insert(("app".into(), "sha512:00".into()), Vec::new()));
    place.put(&[1]).unwrap();
    index["manifests"] = json!([other, referrer(1).0]);
    assert_eq!(place.index(), index);
    assert_eq!(numbers(&place.list(None).unwrap()), [1], "what is not sha256 is left out");
    // The tag may have been given to something else.
    place.set_index(&json!({ "schemaVersion": 2, "layers": [] }));
    let error = place.put(&[1]).unwrap_err().to_string();
    assert!(error.ends_with("its fallback tag is not an index"), "{error}");
    assert_eq!(place.list(None).unwrap(), []);
}

#[test]
fn what_another_writer_overwrites_is_written_again() {
    let (rules, hook) = hooked(Rules::default());
    let place = Place::new(rules);
    with_subject(&place);
    place.put(&[1]).unwrap();
    let registry = Arc::clone(&place.registry);
    // Another writer, which has read the index before, replaces it before it is read again.
    let others = json!({ "schemaVersion": 2, "manifests": [referrer(1).0, referrer(3).0] });
    let read = Mutex::new(0);
    *hook.lock().unwrap() = Some(Box::new(move |line, _| {
        let mut read = read.lock().unwrap();
        *read += usize::from(line == format!("GET /v2/app/manifests/{}", tag()));
        if *read == 2 {
            registry.with(|held| held.put_manifest("app", "x", OCI_MANIFEST_TYPE, &referrer(3).1));
            set_index(&registry, &others);
            *read += 1;
        }
    }));
    place.put(&[2]).unwrap();
    assert_eq!(numbers(&place.list(None).unwrap()), [1, 2, 3]);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let place = Place::new(Rules::default());
    with_subject(&place);
    let put = |number| {
        let client = client(&place.registry.host(), "");
        let pusher = client.pusher(&place.repository()).unwrap();
        pusher.put_referrers(&digest(SUBJECT), &[referrer(number)]).unwrap();
    };
    thread::scope(|scope| (0..4).for_each(|it| drop(scope.spawn(move || put(it)))));
    assert_eq!(numbers(&place.list(None).unwrap()), [0, 1, 2, 3]);
}

/// Answers the request for the list of referrers.
fn answering(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Place {
    let deed = move |request: &Request, _: usize| {
        let is_it = request.path().contains("/referrers/");
        is_it.then(|| Early { after: usize::MAX, reply: reply() })
    };
    let place = Place::new(Rules { deed: Some(Box::new(deed)), ..Rules::default() });
    place.set_index(&json!({ "schemaVersion": 2, "manifests": [referrer(1).0] }));
    place
}

#[test]
fn a_server_that_does_not_know_the_api_is_asked_for_the_tag() {
    for status in [
        "400 Bad Request",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "501 Not Implemented",
    ] {
        let place = answering(move || reply(status, &["Content-Length: 0"], b""));
        assert_eq!(numbers(&place.list(None).unwrap()), [1], "{status}");
    }
    let bodies: [&[u8]; 5] = [b"<html>", b"", b"[]", b"{}", br#"{"manifests":{}}"#];
    for body in bodies {
        let place = answering(move || reply("200 OK", &[&length(body.len())], body));
        assert_eq!(numbers(&place.list(None).unwrap()), [1], "{}", String::from_utf8_lossy(body));
    }
    let page = || reply("200 OK", &["Content-Type: text/html", "Content-Length: 2"], b"hi");
    assert_eq!(numbers(&answering(page).list(None).unwrap()), [1]);
    // An empty list is an answer, also as Go writes it.
    let body = br#"{"schemaVersion":2,"manifests":null}"#;
    let place = answering(move || reply("200 OK", &[&length(body.len())], body));
    assert_eq!(place.list(None).unwrap(), []);
}

#[test]
fn a_server_that_fails_is_an_error() {
    let place = answering(|| reply("500 Internal Server Error", &["Content-Length: 0"], b""));
    let error = place.list(None).unwrap_err().to_string();
    let host = place.registry.host();
    let what = format!("the referrers of {host}/app@{}", digest(SUBJECT));
    assert_eq!(error, format!("{host} answers \"500 Internal Server Error\" for {what}"));
    assert_eq!(place.lines(0).len(), 3, "it is asked again");
    let place = answering(|| reply("401 Unauthorized", &["Content-Length: 0"], b""));
    assert!(place.list(None).is_err());
    let gone = client("127.0.0.1:1", "");
    let repository = Repository::new("127.0.0.1:1", "app").unwrap();
    assert!(gone.referrers(&repository, &digest(SUBJECT), None).is_err());
}

#[test]
fn a_list_has_an_end() {
    let paged = |link: &'static str, count: usize| {
        let entries = vec![json!(referrer(1).0); count];
        let body = json!({ "schemaVersion": 2, "manifests": entries }).to_string();
        let headers = [format!("Link: {link}"), length(body.len())];
        let place = answering(move || {
            let headers: Vec<_> = headers.iter().map(|it| &**it).collect();
            reply("200 OK", &headers, body.as_bytes())
        });
        let error = place.listed(None).map(|it| (it.all.len(), it.left_out));
        let error = error.map_err(|it| it.to_string());
        (error.map_err(|it| it.rsplit_once(": ").unwrap().1.to_owned()), place.lines(0).len())
    };
    assert_eq!(paged("</v2/app/referrers/x?from=1>; rel=\"next\"", 1), (Ok((32, 1)), 32));
    let many = MAX_REFERRERS + 1;
    assert_eq!(paged("<?from=1>; rel=next", many), (Ok((MAX_REFERRERS, 31 * many + 2)), 32));
    assert_eq!(paged("nonsense", many), (Ok((MAX_REFERRERS, 1)), 1));
    let (error, count) = paged("<http://127.0.0.1:1/v2/app/referrers/x>; rel=\"next\"", 1);
    assert_eq!((error, count), (Err("its next page is on another server".to_owned()), 1));
    // Few entries may be large.
    let mut large = referrer(1).0;
    large.annotations.insert("large".to_owned(), "x".repeat(3 << 20));
    let body = json!({ "schemaVersion": 2, "manifests": [large] }).to_string();
    let headers = ["Link: <?more>; rel=next".to_owned(), length(body.len())];
    let place = answering(move || reply("200 OK", &[&headers[0], &headers[1]], body.as_bytes()));
    assert_eq!((place.listed(None).unwrap().left_out, place.lines(0).len()), (1, 3));
    assert_eq!(paged("</x>; rel=\"last\"", 3), (Ok((3, 0)), 1));
    assert_eq!(paged("nonsense", 3), (Ok((3, 0)), 1));
}

#[test]
fn a_mirror_answers_if_it_knows_referrers() {
    let place = Place::new(Rules { referrers: Referrers::Paged(9), ..Rules::default() });
    with_subject(&place);
    place.put(&[1]).unwrap();
    let listed = |mirror: &str, registry: &str| {
        let more =
            format!("mirrors = [\"{mirror}\"]\n[registry.\"{mirror}\"]\nplain-http = true\n");
        let repository = Repository::new(registry, "app").unwrap();
        let found = client(registry, &more).referrers(&repository, &digest(SUBJECT), None);
        found.map(|it| numbers(&it.all)).map_err(|it| it.to_string())
    };
    let own = place.registry.host();
    // A mirror with the API, though its list is empty; a mirror without it; a mirror that is down.
    let empty =
        registry::Registry::start(Rules { referrers: Referrers::Paged(9), ..Rules::default() });
    assert_eq!(listed(&empty.host(), &own), Ok(vec![]));
    let lacks = Server::start(Identity::None, |_| {
        |_: &Request| reply("404 Not Found", &["Content-Length: 0"], b"")
    });
    assert_eq!(listed(&lacks.host(), &own), Ok(vec![1]));
    assert_eq!(listed("127.0.0.1:1", &own), Ok(vec![1]));
    // A host that can only reach the mirror.
    assert_eq!(listed(&lacks.host(), "127.0.0.1:1"), Ok(vec![]));
    let error = listed("127.0.0.1:1", "127.0.0.1:2").unwrap_err();
    assert!(error.starts_with("mirror 127.0.0.1:1: "), "{error}");
}

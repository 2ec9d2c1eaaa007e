//! Pushes to a registry that a test can make misbehave.

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use box_contract::manifest::OCI_MANIFEST_TYPE;
use download::Policy;
use download::http::{Content, InMemory};
use test_server::registry::{self, Rules};
use test_server::{Early, Request, Server};

use super::stage::quick;
use super::*;

/// A registry, and a client that pushes to it.
struct Target {
    registry: registry::Registry,
    client: Registry,
}

impl Target {
    fn new(rules: Rules) -> Self {
        Self::with(rules, quick())
    }

    fn with(rules: Rules, options: Options) -> Self {
        let registry = registry::Registry::start(rules);
        let config = format!("[registry.\"{}\"]\nplain-http = true", registry.host());
        let config = RegistryConfig::parse(&config).unwrap();
        Self { client: Registry::new(Options { config, ..options }), registry }
    }

    fn repository(&self, name: &str) -> Repository {
        Repository::new(&self.registry.host(), name).unwrap()
    }

    fn pusher(&self) -> Pusher {
        self.client.pusher(&self.repository("app")).unwrap()
    }

    /// Uploads a blob to `app`.
    fn upload(&self, bytes: &[u8]) -> Result<Uploaded, RegistryError> {
        self.pusher().upload(&digest(bytes), &InMemory(bytes.into()), None)
    }

    /// Returns whether `app` has a blob.
    fn has(&self, bytes: &[u8]) -> bool {
        let key = ("app".to_owned(), digest(bytes).to_string());
        self.registry.with(|held| held.blobs.get(&key).is_some_and(|it| it == bytes))
    }

    /// Returns the methods of the requests.
    fn methods(&self) -> Vec<String> {
        self.registry.requests().iter().map(|it| it.method().to_owned()).collect()
    }
}

/// Answers the first `times` requests of a method after `after` bytes of the body, or after the whole body if it is shorter.
fn deed(
    method: &'static str,
    times: usize,
    after: usize,
    reply: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> Rules {
    let asked = AtomicUsize::new(0);
    let deed = move |request: &Request, _: usize| {
        let is_it = request.method() == method && !request.path().starts_with("/token");
        let before = is_it.then(|| asked.fetch_add(1, Ordering::Relaxed))?;
        (before < times).then(|| Early { after, reply: reply(before) })
    };
    Rules { deed: Some(Box::new(deed)), ..Rules::default() }
}

/// An `after` of [`deed`]: the server answers after it has read the whole body.
const WHOLE: usize = usize::MAX;

fn status(line: &'static str) -> impl Fn(usize) -> Reply + Send + Sync {
    move |_| reply(line, &["Content-Length: 0"], b"")
}

/// Returns more bytes than the buffers of the connection hold.
fn large() -> Vec<u8> {
    b"0123456789abcdef".repeat(750_000)
}

#[test]
fn a_blob_is_sent_with_one_post_and_one_put() {
    let (options, seen) = watched(quick());
    let target = Target::with(Rules::default(), options);
    let blob = large();
    assert_eq!(target.upload(&blob).unwrap(), Uploaded::Sent);
    assert!(target.has(&blob));
    let requests = target.registry.requests();
    assert_eq!(target.methods(), ["POST", "PUT"]);
    assert_eq!(requests[0].path(), "/v2/app/blobs/uploads/");
    assert_eq!(requests[0].header("content-length"), Some("0"));
    let escaped = digest(&blob).to_string().replace(':', "%3A");
    // The client keeps the query of the registry's `Location`.
    let path = format!("/v2/app/blobs/uploads/1?state=a%2Fb&digest={escaped}");
    assert_eq!(requests[1].path(), path);
    assert_eq!(requests[1].header("content-length"), Some(&*blob.len().to_string()));
    assert_eq!(requests[1].header("transfer-encoding"), None);
    let seen = seen.lock().unwrap();
    let (received, total) = (blob.len() as u64, Some(blob.len() as u64));
    assert_eq!(seen.last(), Some(&Progress { digest: digest(&blob), received, total }));
}

#[test]
fn an_empty_blob_and_what_is_there_are_known() {
    let target = Target::new(Rules::default());
    let pusher = target.pusher();
    assert!(!pusher.has_blob(&digest(b""), 0).unwrap());
    assert_eq!(target.upload(b"").unwrap(), Uploaded::Sent);
    assert!(pusher.has_blob(&digest(b""), 0).unwrap());
    let error = pusher.has_blob(&digest(b""), 1).unwrap_err();
    assert!(error.to_string().ends_with("it names another size than the blob's"), "{error}");
    assert_eq!(target.methods(), ["HEAD", "POST", "PUT", "HEAD", "HEAD"]);
}

#[test]
fn a_blob_is_mounted_where_the_registry_can() {
    for (mounts, expected, methods) in
        [(true, Uploaded::Mounted, vec!["POST"]), (false, Uploaded::Sent, vec!["POST", "PUT"])]
    {
        let target = Target::new(Rules { mounts, ..Rules::default() });
        target.registry.with(|held| held.put_blob("base", b"bytes"));
        let (blob, base) = (digest(b"bytes"), target.repository("base"));
        let pusher = target.pusher();
        let content = InMemory(b"bytes"[..].into());
        assert_eq!(pusher.upload(&blob, &content, Some(&base)).unwrap(), expected);
        assert!(target.has(b"bytes"));
        assert_eq!(target.methods(), methods);
        let escaped = blob.to_string().replace(':', "%3A");
        let path = format!("/v2/app/blobs/uploads/?mount={escaped}&from=base");
        assert_eq!(target.registry.requests()[0].path(), path);
    }
}

#[test]
fn a_repository_that_cannot_be_read_is_not_mounted_from() {
    for line in ["403 Forbidden", "404 Not Found", "400 Bad Request"] {
        let target = Target::new(deed("POST", 1, WHOLE, status(line)));
        let (blob, base) = (digest(b"bytes"), target.repository("base"));
        let content = InMemory(b"bytes"[..].into());
        let done = target.pusher().upload(&blob, &content, Some(&base)).unwrap();
        assert_eq!(done, Uploaded::Sent, "{line}");
        assert_eq!(target.methods(), ["POST", "POST", "PUT"], "{line}");
    }
}

/// The realm issues no token if one of the requested scopes is not allowed.
#[test]
fn a_token_that_is_refused_for_another_repository_does_not_end_an_upload() {
    let deed = |request: &Request, _: usize| {
        let is_it = request.path().starts_with("/token") && request.path().contains("base");
        let refused = || reply("403 Forbidden", &["Content-Length: 0"], b"");
        is_it.then(|| Early { after: 0, reply: refused() })
    };
    let rules = Rules { closed: true, deed: Some(Box::new(deed)), ..Rules::default() };
    let target = Target::new(rules);
    let base = target.repository("base");
    for bytes in [&b"one"[..], b"two"] {
        let content = InMemory(bytes.into());
        let done = target.pusher().upload(&digest(bytes), &content, Some(&base)).unwrap();
        assert_eq!(done, Uploaded::Sent);
        assert!(target.has(bytes));
    }
    let asked = target.registry.lines().iter().filter(|line| line.contains("from=base")).count();
    assert_eq!(asked, 1);
}

#[test]
fn another_blob_is_not_mounted() {
    let rules = deed("POST", 9, WHOLE, |_| {
        let other = format!("Docker-Content-Digest: {}", digest(b"other"));
        reply("201 Created", &[&other, "Content-Length: 0"], b"")
    });
    let target = Target::new(rules);
    let (content, base) = (InMemory(b"bytes"[..].into()), target.repository("base"));
    assert!(target.pusher().upload(&digest(b"bytes"), &content, Some(&base)).is_err());
}

#[test]
fn another_registry_and_the_repository_itself_are_not_mounted_from() {
    let target = Target::new(Rules { mounts: true, ..Rules::default() });
    let other = Repository::new("registry.example.org", "app").unwrap();
    for from in [other, target.repository("app")] {
        let content = InMemory(b"bytes"[..].into());
        target.pusher().upload(&digest(b"bytes"), &content, Some(&from)).unwrap();
    }
    assert!(target.registry.lines().iter().all(|line| !line.contains("mount")));
}

#[test]
fn the_token_is_for_what_is_done() {
    let target = Target::new(Rules { closed: true, mounts: true, ..Rules::default() });
    target.registry.with(|held| held.put_blob("base", b"bytes"));
    let base = target.repository("base");
    let content = InMemory(b"bytes"[..].into());
    let done = target.pusher().upload(&digest(b"bytes"), &content, Some(&base)).unwrap();
    assert_eq!(done, Uploaded::Mounted);
    let tagged = Reference::Tag(Tag::new("v1").unwrap());
    assert!(target.client.manifest(&target.repository("app"), &tagged).is_err());
    let lines = target.registry.lines();
    let tokens: Vec<_> = lines.iter().filter(|line| line.contains("/token")).collect();
    assert_eq!(
        tokens,
        [
            "GET /token?scope=repository%3Aapp%3Apull%2Cpush&scope=repository%3Abase%3Apull&service=reg",
            "GET /token?scope=repository%3Aapp%3Apull&service=reg",
        ]
    );
}

#[test]
fn a_busy_registry_is_asked_again_from_the_start() {
    let busy = |_| reply("429 Too Many Requests", &["Retry-After: 0", "Content-Length: 0"], b"");
    for (method, rules, methods) in [
        ("POST", deed("POST", 2, WHOLE, busy), vec!["POST", "POST", "POST", "PUT"]),
        ("PUT", deed("PUT", 1, WHOLE, busy), vec!["POST", "PUT", "POST", "PUT"]),
        // The registry answers before it has read a byte.
        ("PUT", deed("PUT", 1, 0, busy), vec!["POST", "PUT", "POST", "PUT"]),
    ] {
        let target = Target::new(rules);
        assert_eq!(target.upload(&large()).unwrap(), Uploaded::Sent, "{method}");
        assert_eq!(target.methods(), methods);
        assert!(target.has(&large()));
    }
    let target = Target::new(deed("PUT", 9, WHOLE, status("503 Service Unavailable")));
    let error = target.upload(b"bytes").unwrap_err();
    assert!(error.to_string().contains("503 Service Unavailable"), "{error}");
    assert_eq!(target.methods().len(), 2 * 3);
    let hour = |_| reply("429 Too Many Requests", &["Retry-After: 3600", "Content-Length: 0"], b"");
    let target = Target::new(deed("PUT", 9, WHOLE, hour));
    let error = target.upload(b"bytes").unwrap_err();
    assert!(error.to_string().ends_with("and asks to wait 3600 s"), "{error}");
    assert_eq!(target.methods(), ["POST", "PUT"]);
}

/// The connection is cut after each tenth of the blob.
#[test]
fn a_connection_that_is_cut_anywhere_begins_again() {
    let blob = large();
    for tenth in 0..10 {
        let after = blob.len() / 10 * tenth;
        let target = Target::new(deed("PUT", 1, after, |_| Vec::new()));
        assert_eq!(target.upload(&blob).unwrap(), Uploaded::Sent);
        assert_eq!(target.methods(), ["POST", "PUT", "POST", "PUT"]);
        assert!(target.has(&blob), "{tenth}");
    }
    let target = Target::new(deed("PUT", 9, 100, |_| Vec::new()));
    let error = target.upload(&blob).unwrap_err();
    assert!(error.to_string().contains("the connection to "), "{error}");
    assert_eq!(target.methods().len(), 2 * 3);
}

/// A token may expire after the POST, and before or during the PUT.
#[test]
fn a_token_that_ends_during_an_upload_is_replaced() {
    for after in [0, 1_000_000, WHOLE] {
        let held = Arc::new(std::sync::OnceLock::<u16>::new());
        let port = Arc::clone(&held);
        let rules = deed("PUT", 1, after, move |_| {
            let port = port.get().unwrap();
            let challenge = format!(
                "WWW-Authenticate: Bearer realm=\"http://127.0.0.1:{port}/token\",service=\"reg\""
            );
            reply("401 Unauthorized", &[&challenge, "Content-Length: 0"], b"")
        });
        let ends = rules.deed.unwrap();
        let token = Arc::new(AtomicUsize::new(0));
        let (ended, now) = (Arc::clone(&token), Arc::clone(&token));
        let rules = Rules {
            deed: Some(Box::new(move |request, before| {
                if request.path().starts_with("/token") {
                    let number = now.load(Ordering::Relaxed);
                    let body = format!("{{\"token\":\"token-{number}\"}}");
                    return Some(Early { after: 0, reply: file(body.as_bytes()) });
                }
                let early = ends(request, before);
                ended.fetch_add(usize::from(early.is_some()), Ordering::Relaxed);
                early.or_else(|| {
                    let right = format!("Bearer token-{}", ended.load(Ordering::Relaxed));
                    let wrong = request.header("authorization").is_some_and(|it| *it != right);
                    wrong.then(|| Early { after: WHOLE, reply: status("418 Teapot")(0) })
                })
            })),
            ..Rules::default()
        };
        let target = Target::new(rules);
        held.set(target.registry.host().rsplit(':').next().unwrap().parse().unwrap()).unwrap();
        assert_eq!(target.upload(&large()).unwrap(), Uploaded::Sent, "{after}");
        assert!(target.has(&large()));
        assert_eq!(target.methods(), ["POST", "PUT", "GET", "POST", "PUT"], "{after}");
        let requests = target.registry.requests();
        assert_eq!(requests[4].header("authorization"), Some("Bearer token-1"));
    }
}

#[test]
fn credentials_that_are_never_taken_end_an_upload() {
    let rules = deed("PUT", 9, WHOLE, |_| {
        reply(
            "401 Unauthorized",
            &["WWW-Authenticate: Basic realm=\"r\"", "Content-Length: 0"],
            b"",
        )
    });
    let target = Target::new(rules);
    let error = target.upload(b"bytes").unwrap_err();
    assert!(matches!(error, RegistryError::Unauthorized { credentials: None, .. }), "{error}");
    assert_eq!(target.methods(), ["POST", "PUT"]);
}

/// Starts a server that accepts every upload, and a registry whose `Location` header names that server.
fn led(identity: Identity, to: impl Fn(&str) -> String) -> (Server, Target) {
    let taken = |_: &Request| reply("201 Created", &["Content-Length: 0"], b"");
    let foreign = Server::start(identity, |_| taken);
    let at = format!("Location: {}", to(&foreign.host()));
    let target = Target::new(Rules {
        closed: true,
        deed: Some(Box::new(move |request, _| {
            let is_it = request.method() == "POST" && request.header("authorization").is_some();
            let answer = || reply("202 Accepted", &[&at, "Content-Length: 0"], b"");
            is_it.then(|| Early { after: 0, reply: answer() })
        })),
        ..Rules::default()
    });
    (foreign, target)
}

#[test]
fn another_server_gets_the_bytes_and_no_credentials() {
    for identity in [Identity::None, Identity::Valid] {
        let scheme = if matches!(identity, Identity::None) { "http" } else { "https" };
        let (foreign, target) = led(identity, |host| format!("{scheme}://{host}/put?sig=1"));
        assert_eq!(target.upload(&large()).unwrap(), Uploaded::Sent);
        let requests = foreign.requests();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].header("authorization"), None);
        assert!(requests[0].path().starts_with("/put?sig=1&digest=sha256%3A"));
        assert!(requests[0].bytes == large());
    }
}

#[test]
fn no_upload_leads_to_a_forbidden_place() {
    for (to, reason) in [
        ("http://169.254.169.254/latest/", "link-local"),
        ("file:///etc/passwd", "only https and http are"),
        ("http://me:canary-token@127.0.0.1:1/x", "a user name or a password"),
    ] {
        let (_, target) = led(Identity::None, |_| to.to_owned());
        let error = target.upload(b"bytes").unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    }
}

#[test]
fn only_a_redirect_that_keeps_the_method_is_followed() {
    for (line, is_followed) in [("307 Temporary Redirect", true), ("302 Found", false)] {
        let elsewhere = Server::start(Identity::None, |_| {
            |_: &Request| reply("201 Created", &["Content-Length: 0"], b"")
        });
        let to = format!("Location: {}", elsewhere.url("/there"));
        let rules = deed("PUT", 9, WHOLE, move |_| reply(line, &[&to, "Content-Length: 0"], b""));
        let target = Target::new(rules);
        assert_eq!(target.upload(&large()).is_ok(), is_followed, "{line}");
        let seen = elsewhere.requests();
        assert_eq!(seen.len(), usize::from(is_followed));
        assert!(seen.iter().all(|it| it.method() == "PUT" && it.bytes == large()));
    }
}

#[test]
fn refusals_are_named() {
    let coded = |line: &'static str, code: &'static str| move |_| registry::error(line, code);
    let message = [
        deed("POST", 9, WHOLE, coded("403 Forbidden", "DENIED")),
        deed("POST", 9, WHOLE, coded("404 Not Found", "NAME_UNKNOWN")),
        deed("PUT", 9, WHOLE, coded("404 Not Found", "BLOB_UPLOAD_UNKNOWN")),
        deed("PUT", 9, 0, |_| reply("413 Payload Too Large", &["Content-Length: 0"], b"")),
        deed("PUT", 9, WHOLE, coded("400 Bad Request", "DIGEST_INVALID")),
        deed("POST", 9, WHOLE, |_| reply("202 Accepted", &["Content-Length: 0"], b"")),
        deed("PUT", 9, WHOLE, |_| reply("202 Accepted", &["Content-Length: 0"], b"")),
        deed("PUT", 9, WHOLE, |_| {
            let other = format!("Docker-Content-Digest: {}", digest(b"other"));
            reply("201 Created", &[&other, "Content-Length: 0"], b"")
        }),
        deed("POST", 9, WHOLE, |_| reply("201 Created", &["Content-Length: 0"], b"")),
        deed("POST", 9, WHOLE, |_| {
            reply("200 OK", &["Content-Type: text/html", "Content-Length: 2"], b"<h")
        }),
    ]
    .map(|rules| {
        let target = Target::new(rules);
        let error = target.upload(&large()).unwrap_err().to_string();
        error.replace(&target.registry.host(), "HOST").replace(&digest(&large()).hex(), "X")
    });
    insta::assert_snapshot!(message.join("\n"), @r#"
    registry HOST does not allow the upload of the blob sha256:X to HOST/app: it answers DENIED
    registry HOST has no repository app
    registry HOST has no upload of the blob sha256:X to HOST/app any more
    HOST does not take the upload of the blob sha256:X to HOST/app: its 12000000 bytes are too many
    HOST answers "400 Bad Request, DIGEST_INVALID" for the upload of the blob sha256:X to HOST/app
    the registry's response for the upload of the blob sha256:X to HOST/app cannot be used: it does not say where the bytes go
    HOST answers "202 Accepted" for the upload of the blob sha256:X to HOST/app
    the registry's response for the upload of the blob sha256:X to HOST/app cannot be used: it names another digest than that of what was sent
    HOST answers "201 Created" for the upload of the blob sha256:X to HOST/app
    the answer for the upload of the blob sha256:X to HOST/app is an HTML page, which no registry sends
    "#);
}

/// Any other text of a registry could repeat a secret of the request, or write to a terminal.
#[test]
fn an_error_repeats_the_codes_of_the_specification_and_no_other() {
    let refused = |code: &'static str| {
        let coded = move |_: usize| registry::error("403 Forbidden", code);
        let target = Target::new(deed("POST", 9, WHOLE, coded));
        target.upload(&large()).unwrap_err().to_string()
    };
    for code in ["DENIED", "NAME_INVALID", "TAG_INVALID", "UNAUTHORIZED"] {
        assert!(refused(code).ends_with(&format!("it answers {code}")), "{}", refused(code));
    }
    for text in ["CANARY", "denied", "DENIED CANARY", "DENIED_CANARY", "\u{1b}[31mCANARY", ""] {
        let message = refused(text);
        assert!(!message.contains("CANARY") && !message.contains("answers"), "{message}");
    }
}

#[test]
fn a_manifest_is_written_and_read() {
    let target = Target::new(Rules { closed: true, ..Rules::default() });
    let pusher = target.pusher();
    let bytes = b"{\"schemaVersion\":2}";
    let tagged = Reference::Tag(Tag::new("v1").unwrap());
    assert_eq!(pusher.manifest(&tagged).unwrap(), None);
    let named = pusher.put_manifest(&tagged, OCI_MANIFEST_TYPE, bytes).unwrap();
    assert_eq!(named, digest(bytes));
    for reference in [tagged, Reference::Digest(named)] {
        let found = pusher.manifest(&reference).unwrap().unwrap();
        assert_eq!((&*found.bytes, found.media_type), (&bytes[..], Some(OCI_MANIFEST_TYPE)));
    }
}

#[test]
fn what_a_registry_says_of_a_manifest_is_told_apart() {
    let bytes = b"{\"schemaVersion\":2,\"x\":{\"digest\":\"sha256:0\"}}";
    let put = |rules| {
        let target = Target::new(rules);
        let tagged = Reference::Tag(Tag::new("v1").unwrap());
        target.pusher().put_manifest(&tagged, OCI_MANIFEST_TYPE, bytes).unwrap_err()
    };
    let missing = put(Rules::default());
    assert!(missing.is_missing_blob() && !missing.is_refused_kind(), "{missing}");
    let lost = || registry::error("404 Not Found", "BLOB_UNKNOWN");
    assert!(put(deed("PUT", 9, WHOLE, move |_| lost())).is_missing_blob());
    let nowhere = put(deed("PUT", 9, WHOLE, status("404 Not Found")));
    assert!(matches!(nowhere, RegistryError::NotFound { .. }), "{nowhere}");
    let kind = put(Rules { refuses: Some(|_| true), ..Rules::default() });
    assert!(kind.is_refused_kind() && !kind.is_missing_blob(), "{kind}");
    let kind = put(deed("PUT", 9, WHOLE, status("415 Unsupported Media Type")));
    assert!(kind.is_refused_kind(), "{kind}");
    let other = put(deed("PUT", 9, WHOLE, |_| registry::error("400 Bad Request", "TAG_INVALID")));
    assert!(!other.is_refused_kind() && !other.is_missing_blob(), "{other}");
    let large = put(deed("PUT", 9, WHOLE, status("413 Payload Too Large")));
    assert!(matches!(large, RegistryError::TooLarge { size: 45, .. }), "{large}");
    let wrong = put(deed("PUT", 9, WHOLE, |_| {
        let other = format!("Docker-Content-Digest: {}", digest(b"other"));
        reply("201 Created", &[&other, "Content-Length: 0"], b"")
    }));
    assert!(wrong.to_string().ends_with("another digest than that of what was sent"), "{wrong}");
}

/// A file that is shorter than expected (`Some`), or cannot be opened (`None`).
#[derive(Debug)]
struct Broken(Option<Vec<u8>>);

impl Content for Broken {
    fn size(&self) -> u64 {
        1_000_000
    }

    fn open(&self) -> io::Result<Box<dyn Read + Send + Sync>> {
        let bytes = self.0.clone().ok_or(io::ErrorKind::PermissionDenied)?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

#[test]
fn what_cannot_be_read_here_is_not_tried_again() {
    for content in [Broken(None), Broken(Some(vec![1; 300_000]))] {
        let target = Target::new(Rules::default());
        let error = target.pusher().upload(&digest(b""), &content, None).unwrap_err();
        let host = target.registry.host();
        assert_eq!(error.to_string(), format!("the bytes that go to {host} cannot be read"));
        let posts = target.methods().iter().filter(|it| *it == "POST").count();
        assert_eq!(posts, 1);
    }
}

/// The servers: one reads nothing, one reads everything and does not answer, and one sends an answer without an end.
#[test]
fn a_registry_that_does_not_go_on_is_left() {
    let patience = Duration::from_millis(300);
    let policy = Policy { patience, grace: patience, tries: 1, ..Policy::default() };
    let hang = || vec![Step::Hang];
    let endless = || {
        let mut steps = reply("403 Forbidden", &[], b"");
        steps.extend((0..2000).map(|_| Step::Send(vec![b' '; 1 << 10])));
        steps.push(Step::Hang);
        steps
    };
    let silent = move || [reply("403 Forbidden", &["Content-Length: 9"], b"{"), hang()].concat();
    let late = Policy { patience: Duration::from_secs(60), overall_rate: u64::MAX, ..policy };
    let pause = |_| vec![Step::Pause(Duration::from_secs(3))];
    let target = Target::with(deed("PUT", 9, 0, pause), super::with_policy(quick(), late));
    let error = target.upload(&large()).unwrap_err().to_string();
    assert!(error.ends_with("has not taken 12000000 bytes after 0 s"), "{error}");
    for (rules, reason) in [
        (deed("PUT", 9, WHOLE, move |_| silent()), "does not allow"),
        (
            deed("PUT", 9, 0, move |_| vec![Step::Pause(Duration::from_secs(3))]),
            "has taken nothing",
        ),
        (deed("PUT", 9, WHOLE, move |_| hang()), "has not answered"),
        (deed("PUT", 9, WHOLE, move |_| endless()), "does not allow"),
    ] {
        let target = Target::with(rules, super::with_policy(quick(), policy));
        let error = target.upload(&large()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

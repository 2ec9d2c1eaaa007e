//! Services between clients and an API with TLS on the loopback device.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use box_contract::{ComponentName, CredentialPlan, NetworkLimits, ServicePlan};
use egress_rules::{Local, Rule, Rules};
use test_server::{Identity, Reply, Request, Server, Step, reply};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::timeout;

use crate::decision::{Channel, Decision, Verdict};
use crate::{Filter, Resolver, Service};

const KEY: &str = "sk-canary-0123456789";
const LONG: Duration = Duration::from_secs(20);

/// A service, and the decisions about its requests.
struct World {
    service: Arc<Service>,
    decisions: Arc<Mutex<Vec<Decision>>>,
    server: Server,
}

impl World {
    fn new(identity: Identity, answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(identity, answer, |_| {})
    }

    fn with(
        identity: Identity,
        answer: impl Fn(&Request) -> Reply + Send + Sync + 'static,
        change: impl Fn(&mut ServicePlan),
    ) -> Self {
        let server = Server::start(identity, |_| answer);
        let mut plan = ServicePlan {
            name: "model".to_owned(),
            to: format!("https://{}/v1", server.host()),
            component: ComponentName::Agent,
            headers: vec![CredentialPlan {
                name: "authorization".to_owned(),
                secret: "KEY".to_owned(),
                prefix: "Bearer ".to_owned(),
            }],
            allow: vec!["GET /models*".to_owned(), "POST /messages".to_owned()],
            pass: Vec::new(),
            timeout_ms: 20_000,
            env: None,
        };
        change(&mut plan);
        let peer = plan.peer().unwrap();
        let local = Local::of(&peer).into_iter().collect();
        let rule = Rule::try_from(&peer).unwrap();
        let rules = Rules { allow: vec![rule], local, ..Rules::default() };
        let decisions = Arc::<Mutex<Vec<Decision>>>::default();
        let kept = Arc::clone(&decisions);
        let take = move |it| kept.lock().unwrap().push(it);
        let filter = Filter::new(rules, NetworkLimits::default(), Resolver::host(), take);
        let roots = tls_roots::load(Some(&test_server::roots()), None).unwrap();
        let tls = Arc::new(tls_roots::client(roots).unwrap());
        let value = |name: &str| (name == "KEY").then_some(KEY.as_bytes());
        let service = Arc::new(Service::new(&plan, value, filter, tls).unwrap());
        Self { service, decisions, server }
    }

    /// Sends a request, and returns all that the component receives.
    async fn ask(&self, head: &str, body: &str) -> String {
        let (near, mut far) = duplex(4096);
        let served = tokio::spawn(Arc::clone(&self.service).serve(near));
        let length = format!("Content-Length: {}\r\n", body.len());
        let length = if body.is_empty() { "" } else { &length };
        let request = format!("{head}\r\nHost: x\r\nConnection: close\r\n{length}\r\n{body}");
        far.write_all(request.as_bytes()).await.unwrap();
        let mut got = Vec::new();
        timeout(LONG, far.read_to_end(&mut got)).await.unwrap().unwrap();
        served.await.unwrap();
        String::from_utf8(got).unwrap()
    }

    fn last(&self) -> Decision {
        self.decisions.lock().unwrap().last().unwrap().clone()
    }
}

/// Answers with the request itself, as a test server of the internet does.
fn echo(request: &Request) -> Reply {
    let echoed = format!("X-Echo: {}", request.header("authorization").unwrap_or("none"));
    let length = format!("Content-Length: {}", request.head.len());
    reply("200 OK", &[&echoed, &length], request.head.as_bytes())
}

#[tokio::test]
async fn the_api_gets_the_credential_and_the_component_never_does() {
    let world = World::new(Identity::Valid, echo);
    let head = "POST /messages?beta=1 HTTP/1.1\r\nAuthorization: Bearer mine\r\nCookie: a=b\r\nX-Api-Key: mine\r\nX_Api_Key: mine\r\nX-HTTP-Method-Override: DELETE\r\nX-Forwarded-Host: b\r\nRange: bytes=0-9\r\nConnection: authorization\r\nX-Own: 1\r\nAccept-Encoding: gzip";
    let got = world.ask(head, "hello").await;
    let sent = &world.server.requests()[0];
    assert!(sent.head.starts_with("POST /v1/messages?beta=1 HTTP/1.1\r\n"), "{}", sent.head);
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!((sent.header("cookie"), sent.header("x-own")), (None, Some("1")));
    assert_eq!(sent.header("accept-encoding"), Some("identity"));
    for name in ["x-api-key", "X_Api_Key", "x-http-method-override", "x-forwarded-host", "range"] {
        assert_eq!(sent.header(name), None, "{name}");
    }
    assert_eq!(sent.header("host"), Some(world.server.host().as_str()));
    assert_eq!(sent.body, "hello");
    assert!(!got.contains(KEY) && !got.to_lowercase().contains("x-echo"), "{got}");
    assert!(got.contains(&format!("Bearer {}", "*".repeat(KEY.len()))), "{got}");
    let decision = world.last();
    assert_eq!((decision.way, &decision.verdict), (Channel::Service, &Verdict::Allowed));
    let shown = decision.to_string();
    assert!(shown.starts_with("model: POST /messages, status 200 allowed, "), "{shown}");
    assert!(decision.sent > 0 && decision.received > 0);
}

#[tokio::test]
async fn what_no_rule_allows_is_not_sent() {
    let world = World::new(Identity::Valid, echo);
    for (head, status, text) in [
        ("GET /files", 403, "does not allow GET /files; to allow it"),
        ("DELETE /models", 403, "does not allow DELETE /models"),
        ("GET /models/../files", 400, "two ways"),
        ("GET /models/%2e%2e/files", 400, "two ways"),
        ("GET /models%2f..%2ffiles", 400, "two ways"),
        ("GET /models//x", 400, "two ways"),
        ("GET http://other.example/models", 400, "send the path alone"),
        ("GET /models/..;/files", 400, "two ways"),
        ("GET /models?a=b&access_token=mine", 400, "pass \"access_token\""),
        ("GET /models?%6bey=mine", 400, "the query has \"key\""),
        ("GET /models?_method=DELETE", 400, "another method"),
        ("GET /models?%u005fmethod=DELETE", 400, "without two digits"),
        ("GET /models?%+fx=1", 400, "without two digits"),
    ] {
        let got = world.ask(&format!("{head} HTTP/1.1"), "").await;
        assert!(
            got.starts_with(&format!("HTTP/1.1 {status} ")) && got.contains(text),
            "{head}: {got}"
        );
        assert!(matches!(world.last().verdict, Verdict::Denied { .. }), "{head}");
    }
    let rule = world.ask("BREW /* HTTP/1.1", "").await;
    assert!(rule.contains("does not allow BREW /*.") && !rule.contains("add this"), "{rule}");
    let both = "POST /messages HTTP/1.1\r\nTransfer-Encoding: gzip, chunked";
    assert!(world.ask(both, "").await.starts_with("HTTP/1.1 400 "));
    assert_eq!(world.server.requests().len(), 0);
    let all = World::with(Identity::Valid, echo, |plan| plan.allow.clear());
    assert!(all.ask("DELETE /any/thing HTTP/1.1", "").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn an_api_that_is_not_itself_or_leads_elsewhere_is_not_believed() {
    for (identity, text) in
        [(Identity::SelfSigned, "TLS has failed"), (Identity::Expired, "TLS has failed")]
    {
        let world = World::new(identity, echo);
        let got = world.ask("GET /models HTTP/1.1", "").await;
        assert!(got.starts_with("HTTP/1.1 502 ") && got.contains(text), "{got}");
        assert!(matches!(world.last().verdict, Verdict::Failed { .. }));
    }
    let away = World::new(Identity::Valid, |_| {
        reply("307 Temporary Redirect", &["Location: https://elsewhere.example/"], b"")
    });
    let got = away.ask("GET /models HTTP/1.1", "").await;
    assert!(got.starts_with("HTTP/1.1 502 ") && !got.contains("elsewhere"), "{got}");
    let packed =
        World::new(Identity::Valid, |_| reply("200 OK", &["Content-Encoding: gzip"], b"x"));
    assert!(packed.ask("GET /models HTTP/1.1", "").await.contains("compressed"));
}

#[tokio::test]
async fn events_arrive_when_they_are_sent() {
    let event = |text: &str| Step::Send(text.as_bytes().to_vec());
    let world = World::new(Identity::Valid, move |_| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        vec![event(head), event("data: 1\n\n"), Step::Hang]
    });
    let (near, mut far) = duplex(4096);
    let _served = tokio::spawn(Arc::clone(&world.service).serve(near));
    far.write_all(b"GET /models HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut got = String::new();
    while !got.contains("data: 1\n\n") {
        let mut bytes = [0; 512];
        let count = timeout(LONG, far.read(&mut bytes)).await.unwrap().unwrap();
        got += str::from_utf8(&bytes[..count]).unwrap();
    }
    assert!(world.decisions.lock().unwrap().is_empty(), "the request goes on");
}

/// An answer without a length is complete only if the server ends TLS properly.
#[tokio::test]
async fn an_answer_that_is_cut_off_is_not_taken_for_a_whole_one() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole";
    for (end, verdict) in [(None, "allowed"), (Some(Step::Break), "the server disconnected")] {
        let steps: Vec<_> = [Step::Send(head.as_bytes().to_vec())].into_iter().chain(end).collect();
        let world = World::new(Identity::Valid, move |_| steps.clone());
        world.ask("GET /models HTTP/1.1", "").await;
        let shown = world.last().to_string();
        assert!(shown.contains(verdict), "{shown}");
    }
}

#[tokio::test]
async fn a_request_ends_at_its_time_limit() {
    for steps in
        [vec![Step::Hang], vec![Step::Send(b"HTTP/1.1 200 OK\r\n\r\nbegun".to_vec()), Step::Hang]]
    {
        let change = |plan: &mut ServicePlan| plan.timeout_ms = 300;
        let world = World::with(Identity::Valid, move |_| steps.clone(), change);
        world.ask("GET /models HTTP/1.1", "").await;
        let shown = world.last().to_string();
        assert!(shown.contains("the request took too long"), "{shown}");
    }
}

//! The filter behind a proxy of the host: a real one, which resolves names to the loopback device.

use std::io;

use tokio::io::copy_bidirectional;
use tokio::net::TcpSocket;

use super::*;
use crate::proxy::Proxy;

/// A user and a password, and the header for them.
const USER: (&str, &str) = ("a%40b:s3cret", "Proxy-Authorization: Basic YUBiOnMzY3JldA==");

/// The behaviour of a proxy.
#[derive(Debug, Clone, Copy)]
enum Answers {
    /// Connects to the port of the target on the loopback device.
    Connects,
    /// Connects if the request has the header of [`USER`].
    ConnectsUser,
    /// Sends these bytes, and ends the connection.
    With(&'static str),
    /// Sends these bytes with the answer to CONNECT, as a server does that speaks first.
    SpeaksFirst(&'static str),
    Never,
}

/// A proxy that records the requests that it gets.
struct HostProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl HostProxy {
    async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, requests) = (listener.local_addr().unwrap(), Arc::default());
        let proxy = Self { address, requests: Arc::clone(&requests) };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(answer(client, answers, Arc::clone(&requests)));
            }
        });
        proxy
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns settings with this proxy, as `user` and without the hosts of `except`.
    fn setup(&self, user: &str, except: &str) -> Setup {
        let mut setup = Setup::default();
        let proxy = Proxy::parse(&format!("http://{user}{}", self.address)).unwrap();
        setup.settings.proxy = Some(proxy.except(except));
        setup
    }

    /// Starts a filter that resolves each name to these addresses. `None` means that it resolves no names.
    async fn world(&self, addresses: Option<&'static str>) -> World {
        self.setup("", "").resolving(move |_, _| async move { found(addresses) }).await
    }
}

fn found(addresses: Option<&str>) -> io::Result<Vec<IpAddr>> {
    let addresses = addresses.ok_or_else(|| io::Error::other("no such name"))?;
    Ok(addresses.split(' ').map(|it| it.parse().unwrap()).collect())
}

async fn answer(mut client: TcpStream, answers: Answers, requests: Arc<Mutex<Vec<String>>>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).await.unwrap();
        head.extend(byte);
    }
    let request = String::from_utf8(head).unwrap();
    requests.lock().unwrap().push(request.clone());
    let sent = match answers {
        Answers::Connects => None,
        Answers::ConnectsUser if request.contains(USER.1) => None,
        Answers::ConnectsUser => Some("HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n"),
        Answers::With(bytes) => Some(bytes),
        Answers::SpeaksFirst(bytes) => {
            let both = format!("HTTP/1.1 200 OK\r\nVia: x\r\n\r\n{bytes}");
            client.write_all(both.as_bytes()).await.unwrap();
            return sleep(LONG).await;
        }
        Answers::Never => return sleep(LONG).await,
    };
    if let Some(bytes) = sent {
        // The filter may have ended the connection.
        let _ended = client.write_all(bytes.as_bytes()).await;
        return;
    }
    let target = request.split(' ').nth(1).unwrap();
    let port: u16 = target.rsplit(':').next().unwrap().parse().unwrap();
    let server = TcpSocket::new_v4().unwrap().connect(SocketAddr::from(([127, 0, 0, 1], port)));
    let mut server = server.await.unwrap();
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    let _ended = copy_bidirectional(&mut client, &mut server).await;
}

#[tokio::test]
async fn a_name_is_sent_to_the_proxy_whether_the_host_resolves_it_or_not() {
    for addresses in [None, Some("93.184.216.34"), Some("10.0.0.1 93.184.216.34")] {
        let proxy = HostProxy::start(Answers::Connects).await;
        let world = proxy.world(addresses).await;
        let mut client = world.tunnel(GOOD).await;
        echoes(&mut client, b"hello").await;
        drop(client);
        let target = format!("{GOOD}:{}", world.port());
        let expected = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
        assert_eq!(proxy.requests(), [expected]);
        let decision = world.decisions(1).await.remove(0);
        assert_eq!((decision.verdict, decision.address), (Verdict::Allowed, None));
        assert_eq!((decision.sent, decision.received), (5, 5));
        world.reached_no_decoy("the proxy");
    }
}

#[tokio::test]
async fn plain_requests_and_socks_go_through_the_proxy_too() {
    let proxy = HostProxy::start(Answers::Connects).await;
    let mut setup = proxy.setup("", "");
    setup.does = Does::Answer("\r\n\r\n", ok("ok"));
    let world = setup.resolving(|_, _| async { found(None) }).await;
    let answer = world.request("GET http://good.test.example:{port}/x HTTP/1.1\r\nHost: good.test.example:{port}\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    let name = GOOD.as_bytes();
    let length = u8::try_from(name.len()).unwrap();
    let mut client = world.open(ClientKind::Socks);
    client.write_all(&[5, 1, 0]).await.unwrap();
    let request = [&[5, 1, 0, 3, length], name, &world.port().to_be_bytes()].concat();
    client.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 0]);
    assert_eq!(proxy.requests().len(), 2);
}

#[tokio::test]
async fn what_is_not_allowed_never_reaches_the_proxy() {
    for (host, addresses, reason) in [
        ("evil.example", None, "no rule allows"),
        ("denied.wild.example", None, "deny"),
        (GOOD, Some("10.0.0.1"), "10.0.0.1 is not a host of the internet"),
        (GOOD, Some("203.0.113.5"), "the rules deny 203.0.113.0/24"),
        ("127.0.0.2", None, "no rule allows"),
    ] {
        let proxy = HostProxy::start(Answers::Connects).await;
        let world = proxy.world(addresses).await;
        let request = format!("CONNECT {host}:{{port}} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let answer = world.request(&request).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
        let denied = world.denied().await;
        assert!(denied.contains(reason) || reason == "no rule allows", "{host}: {denied}");
        assert_eq!(proxy.requests(), [""; 0], "{host}");
        world.reached_nobody(host);
    }
}

#[tokio::test]
async fn a_user_is_sent_to_the_proxy_and_shown_nowhere() {
    let proxy = HostProxy::start(Answers::ConnectsUser).await;
    let setup = proxy.setup(&format!("{}@", USER.0), "");
    let world = setup.resolving(|_, _| async { found(None) }).await;
    let shown = format!("{:?} {:?}", world.filter, world.filter.settings);
    assert!(!shown.contains("s3cret") && !shown.contains("YUBi"), "{shown}");
    world.serves().await;
    assert!(proxy.requests()[0].contains(USER.1));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_as_the_reason() {
    for (answers, reason) in [
        (Answers::ConnectsUser, "answered 407: it wants a user and a password in its URL"),
        (Answers::With("HTTP/1.1 403 No\r\n\r\nno"), "refused it: it answered 403"),
        (Answers::With("HTTP/1.0 502 Bad\r\n\r\n"), "refused it: it answered 502"),
        (Answers::With(""), "the proxy of this host ended the connection"),
        (Answers::With("HTTP/1.1 200 OK\r\n"), "the proxy of this host ended the connection"),
        (Answers::With("hello\r\n\r\n"), "is not HTTP, or too long"),
        (Answers::Never, "connecting through the proxy of this host took too long"),
    ] {
        let proxy = HostProxy::start(answers).await;
        let world = proxy.world(None).await;
        let request = "CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n";
        let answer = world.request(request).await;
        assert!(answer.starts_with("HTTP/1.1 50") && answer.contains(reason), "{answer}");
        let verdict = world.decisions(1).await.remove(0).verdict;
        let Verdict::Failed { reason: logged } = verdict else { panic!("{verdict:?}") };
        assert!(logged.contains(reason), "{logged}");
        world.reached_nobody(reason);
    }
    let gone = HostProxy { address: ([127, 0, 0, 1], 1).into(), requests: Arc::default() };
    let world = gone.world(None).await;
    let answer =
        world.request("CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(answer.await.contains("could not connect to the proxy of this host: "));
}

#[tokio::test]
async fn an_endless_answer_is_ended() {
    let flood =
        Server::start("127.0.0.1:0", Does::Flood(b"HTTP/1.1 200 OK\r\nA: b".to_vec())).await;
    let proxy = HostProxy { address: flood.address, requests: Arc::default() };
    let world = proxy.world(None).await;
    let request = "CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!(world.request(request).await.contains("is not HTTP, or too long"));
}

#[tokio::test]
async fn bytes_that_follow_the_answer_at_once_are_not_lost() {
    let proxy = HostProxy::start(Answers::SpeaksFirst("SSH-2.0-x\r\n")).await;
    let world = proxy.world(None).await;
    let mut client = world.tunnel(GOOD).await;
    let mut first = [0; 11];
    timeout(LONG, client.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"SSH-2.0-x\r\n");
}

#[tokio::test]
async fn what_the_user_has_consented_to_and_excluded_hosts_are_reached_directly() {
    let proxy = HostProxy::start(Answers::With("HTTP/1.1 403 No\r\n\r\n")).await;
    let world = proxy.world(Some("127.0.0.1")).await;
    world.serves().await;
    let mut client = world.tunnel("127.0.0.1").await;
    echoes(&mut client, b"hello").await;
    let setup = proxy.setup("", "test.example");
    let world = setup.resolving(|_, _| async { found(Some("127.0.0.1")) }).await;
    world.serves().await;
    assert_eq!(proxy.requests(), [""; 0]);
}

/// What a host's name servers say to the names of a test.
#[derive(Debug, Clone, Copy)]
enum Says {
    Nothing,
    NoSuchName,
    NoAddress,
}

#[tokio::test]
async fn a_name_that_the_host_cannot_check_is_refused_if_the_host_resolves_names() {
    for (says, first, status) in [
        (Says::Nothing, None, "504"),
        (Says::Nothing, Some("93.184.216.34"), "504"),
        (Says::NoSuchName, Some("93.184.216.34"), "502"),
        (Says::NoSuchName, Some("10.0.0.1"), "502"),
        (Says::NoSuchName, None, "200"),
        // It is a name of the host's own network, and says nothing about the names of the internet.
        (Says::NoSuchName, Some("127.0.0.1"), "200"),
        (Says::NoAddress, None, "502"),
    ] {
        let proxy = HostProxy::start(Answers::Connects).await;
        let setup = proxy.setup("", "");
        let world = setup
            .resolving(move |name, _| async move {
                match says {
                    _ if name == OTHER => found(first),
                    Says::Nothing => std::future::pending().await,
                    Says::NoSuchName => found(None),
                    Says::NoAddress => Ok(Vec::new()),
                }
            })
            .await;
        let ask = |host| format!("CONNECT {host}:{{port}} HTTP/1.1\r\nConnection: close\r\n\r\n");
        let mut client = world.open(ClientKind::Http);
        client.write_all(world.text(&ask(OTHER)).as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        client.read_exact(&mut answer).await.unwrap();
        let before = proxy.requests().len();
        let mut client = world.open(ClientKind::Http);
        client.write_all(world.text(&ask(GOOD)).as_bytes()).await.unwrap();
        client.read_exact(&mut answer).await.unwrap();
        let expected = format!("HTTP/1.1 {status}");
        assert_eq!(str::from_utf8(&answer).unwrap(), expected, "{says:?} {first:?}");
        let asked = usize::from(status == "200");
        assert_eq!(proxy.requests().len() - before, asked, "{says:?} {first:?}");
    }
}

#[tokio::test]
async fn the_name_of_the_proxy_is_resolved_as_other_names_are() {
    let proxy = HostProxy::start(Answers::Connects).await;
    let mut setup = proxy.setup("", "");
    let url = format!("http://proxy.corp.example:{}", proxy.address.port());
    setup.settings.proxy = Some(Proxy::parse(&url).unwrap());
    let world = setup
        .resolving(
            |name, _| async move { found((name == "proxy.corp.example").then_some("127.0.0.1")) },
        )
        .await;
    // Its name is no name of the internet, so that the second one is still left to the proxy.
    world.serves().await;
    world.serves().await;
    assert_eq!(proxy.requests().len(), 2);
    // A host without name servers takes long to say so, so it is asked once for a name.
    assert_eq!(world.lookups.load(Ordering::Relaxed), 3);
}

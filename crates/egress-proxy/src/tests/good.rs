//! Honest clients and servers.

use egress_rules::Target;

use super::*;

#[tokio::test]
async fn connect_carries_bytes_both_ways_and_half_of_an_end() {
    let world = Setup::default().start().await;
    let mut client = world.tunnel(GOOD).await;
    echoes(&mut client, b"hello").await;
    echoes(&mut client, &[7; 60_000]).await;
    client.write_all(b"last").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, "last");
    let decision = world.decisions(1).await.remove(0);
    assert_eq!(decision.verdict, Verdict::Allowed);
    assert_eq!((decision.sent, decision.received), (60_009, 60_009));
    assert_eq!(decision.host.as_deref(), Some(GOOD));
    assert_eq!(decision.port, Some(world.port()));
    assert_eq!(decision.address, Some("127.0.0.1".parse().unwrap()));
}

#[tokio::test]
async fn a_server_may_end_first() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = Setup::default().start().await;
    world.filter.reload(rules(listener.local_addr().unwrap().port()));
    let target = format!("{GOOD}:{}", listener.local_addr().unwrap().port());
    let mut client = world.open(ClientKind::Direct(Target::parse(&target).unwrap()));
    let accepted = timeout(LONG, listener.accept()).await.expect("a connection");
    let (mut server, _) = accepted.unwrap();
    server.write_all(b"bye").await.unwrap();
    server.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, "bye");
    client.write_all(b"one more").await.unwrap();
    client.shutdown().await.unwrap();
    let mut got = Vec::new();
    server.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"one more");
}

#[tokio::test]
async fn direct_connections_are_those_to_their_target() {
    let world = Setup::default().start().await;
    for host in [GOOD, "127.0.0.1", "a.b.wild.example"] {
        let target = Target::parse(&format!("{host}:{}", world.port())).unwrap();
        let mut client = world.open(ClientKind::Direct(target));
        echoes(&mut client, b"hello").await;
    }
    let decisions = world.decisions(3).await;
    assert!(decisions.iter().all(|it| it.verdict == Verdict::Allowed && it.sent == 5));
    // The request for an address needs no lookup.
    assert_eq!(world.lookups.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn addresses_of_ipv6_are_connected_to() {
    // Skip the test on a host without IPv6.
    if TcpListener::bind("[::1]:0").await.is_err() {
        return;
    }
    let server = Server::start("[::1]:0", Does::Echo).await;
    let world = Setup::default().resolving(async |_, _| Ok(vec!["::1".parse().unwrap()])).await;
    let port = server.address.port();
    let mut allowed = rules(port);
    allowed.allow.push(Rule { peer: Peer::parse("::1").unwrap(), port: Some(port) });
    world.filter.reload(allowed);
    for host in ["[::1]", GOOD] {
        let target = Target::parse(&format!("{host}:{port}")).unwrap();
        echoes(&mut world.open(ClientKind::Direct(target)), b"hello").await;
    }
    let request = [&[5, 1, 0, 5, 1, 0, 4][..], &[0; 15], &[1], &port.to_be_bytes()].concat();
    let mut client = world.open(ClientKind::Socks);
    client.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..4], [5, 0, 5, 0]);
    assert_eq!(server.visits(), 3);
}

#[tokio::test]
async fn a_request_reaches_its_server_without_what_was_for_the_proxy() {
    let world = Setup::http().start().await;
    let mut client = world.open(ClientKind::Http);
    let request = world.text(
        "GET http://good.test.example:{port}/path?q=1 HTTP/1.1\r\nHost: good.test.example:{port}\r\n\
         Accept: */*\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
         Connection: x-secret, keep-alive, upgrade\r\nX-Secret: 1\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\n\
         Connection: X-Other\r\nx-other: 2\r\n\r\n",
    );
    client.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut client).await.ends_with("\r\n\r\nok"));
    let expected = world
        .text("GET /path?q=1 HTTP/1.1\r\nhost: good.test.example:{port}\r\naccept: */*\r\n\r\n");
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines[1..].sort();
        lines
    };
    assert_eq!(sorted(&world.server.got()), sorted(&expected));
}

#[tokio::test]
async fn bodies_are_carried_in_chunks_and_with_a_length() {
    let chunked =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: x-hop\r\nX-Hop: 1\r\n\
        \r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    for (head, body, end) in [
        ("Content-Length: 8\r\n", "body-end", "body-end"),
        ("Transfer-Encoding: chunked\r\n", "4\r\nbody\r\n4\r\n-end\r\n0\r\n\r\n", "0\r\n\r\n"),
    ] {
        let world = Setup::that(Does::Answer(end, chunked.to_vec())).start().await;
        let request = format!(
            "POST http://{GOOD}:{{port}}/ HTTP/1.1\r\n{head}Connection: close\r\n\r\n{body}"
        );
        let answer = world.request(&request).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("abc") && answer.contains("defg"), "{answer}");
        assert!(!answer.to_lowercase().contains("x-hop"), "{answer}");
        let got = world.server.got();
        assert!(got.contains("body") && got.ends_with(end), "{got}");
        let decision = world.decisions(1).await.remove(0);
        assert_eq!(decision.verdict, Verdict::Allowed);
        assert_eq!(decision.sent, got.len() as u64);
        assert_eq!(decision.received, chunked.len() as u64);
    }
}

#[tokio::test]
async fn a_connection_of_a_client_may_have_requests_for_different_servers() {
    let world = Setup::http().start().await;
    let request = |host: &str| {
        format!("GET http://{host}:{{port}}/ HTTP/1.1\r\nHost: {host}:{{port}}\r\n\r\n")
    };
    let answers = world.request(&[request(GOOD), request(OTHER), request(GOOD)].concat()).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 3, "{answers}");
    assert_eq!(world.server.visits(), 3);
    let hosts: Vec<_> = world.decisions(3).await.into_iter().filter_map(|it| it.host).collect();
    assert_eq!(hosts, [GOOD, OTHER, GOOD]);
}

#[tokio::test]
async fn old_clients_and_heads_alone_are_served() {
    let world = Setup::http().start().await;
    let answer = world.request("GET http://good.test.example:{port}/ HTTP/1.0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.0 200 OK") && answer.ends_with("ok"), "{answer}");
    assert!(world.server.got().starts_with("GET / HTTP/1.1\r\n"), "{}", world.server.got());
    let answer = world
        .request("HEAD http://GOOD.test.example.:{port} HTTP/1.1\r\nConnection: close\r\n\r\n")
        .await;
    assert!(answer.contains("content-length: 2") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(world.server.got().contains("HEAD / HTTP/1.1\r\nhost: good.test.example:"));
    let mut client = world.open(ClientKind::Http);
    let request = world.text("CONNECT good.test.example:{port} HTTP/1.0\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    eventually(|| world.server.visits() == 3).await;
    client.write_all(b"\r\n\r\n").await.unwrap();
    client.shutdown().await.unwrap();
    let answer = rest(&mut client).await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn the_resolver_of_the_box_gets_the_ports_of_names() {
    let world = Setup::default().start().await;
    let ports = |name| world.filter.look_up(ComponentName::Agent, name);
    for name in [GOOD, "GOOD.test.example.", "a.wild.example"] {
        assert_eq!(ports(name).unwrap(), [world.port()], "{name}");
    }
    for (name, reason) in [
        ("evil.example", "it is not allowed"),
        ("denied.wild.example", "the rules deny denied.wild.example"),
        ("127.0.0.1", "an address is no name"),
        ("a b", "the host is neither a name nor an address in its usual form"),
    ] {
        assert_eq!(ports(name).unwrap_err().to_string(), reason);
    }
    let decisions = world.decisions(4).await;
    assert!(decisions.iter().all(|it| matches!(it.verdict, Verdict::Denied { .. })));
    let Verdict::Denied { allow, .. } = &decisions[0].verdict else { unreachable!() };
    assert_eq!(allow.as_deref(), Some("allow \"evil.example\""));
    assert_eq!(world.lookups.load(Ordering::Relaxed), 0);
}

//! Requests for targets that are not allowed, by each kind of client.

use super::*;

/// Hosts that no rule allows, and spellings of addresses that some programs accept.
const HOSTS: &[&str] = &[
    "evil.example",
    "test.example",
    "wild.example",
    "denied.wild.example",
    "DENIED.wild.example.",
    "good.test.example.evil.example",
    "localhost",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "2130706433",
    "2130706434",
    "0x7f000002",
    "0x7f.0.0.2",
    "0177.0.0.2",
    "0177.0.0.1",
    "017700000002",
    "127.0.0.01",
    "127.0.0.1.",
    "127.0.0.2.",
    "127.0.0.1.5",
    "0",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1%25lo]",
    "[::1%25lo]",
    "[::1",
    "::1",
    "169.254.169.254",
    "[fd00:ec2::254]",
    "10.0.0.1",
    "192.168.1.1",
    "good.test.example@127.0.0.2",
    "user:password@good.test.example",
    "127.0.0.2#good.test.example",
    "127.0.0.2?good.test.example",
    "good.test.example%00.evil.example",
    "good%2etest.example",
    "%67ood.test.example",
    "good.test.example\0.evil.example",
    "g\u{f6}\u{f6}d.test.example",
    "127\u{3002}0\u{3002}0\u{3002}2",
    "\u{ff11}27.0.0.2",
    "good.test.example\u{200b}",
    "good..test.example",
    ".good.test.example",
    "good.test.example..",
    "*.wild.example",
    "_x.wild.example",
    "good.test.example,evil.example",
    "good.test.example;evil.example",
    "good.test.example\tevil.example",
    "http://good.test.example",
    "",
];

/// Sends a request for each host, and checks that it is refused.
async fn are_refused(form: &'static str) {
    at_once(HOSTS, |host| async move {
        let world = Setup::http().start().await;
        let request = form.replace("{host}", host);
        let answer = world.request(&request).await;
        let status = answer.get(..12).unwrap_or(&answer);
        let is_refused = ["HTTP/1.1 400", "HTTP/1.1 403"].contains(&status);
        assert!(is_refused, "{request:?}: {answer:?}");
        world.reached_nobody(&request);
        assert_eq!(world.lookups.load(Ordering::Relaxed), 0, "{request:?}");
    })
    .await;
}

#[tokio::test]
async fn connect_to_other_hosts_is_refused() {
    are_refused("CONNECT {host}:{port} HTTP/1.1\r\n\r\n").await;
}

#[tokio::test]
async fn requests_for_other_hosts_are_refused() {
    are_refused("GET http://{host}:{port}/ HTTP/1.1\r\n\r\n").await;
}

#[tokio::test]
async fn a_host_of_the_header_alone_is_no_host() {
    // If the proxy used the Host line, this request would be allowed.
    are_refused("GET http://{host}:{port}/ HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n")
        .await;
}

#[tokio::test]
async fn socks_to_other_hosts_is_refused() {
    at_once(HOSTS, |host| async move {
        let world = Setup::default().start().await;
        let length = u8::try_from(host.len()).unwrap();
        let port = world.port().to_be_bytes();
        let request = [&[5, 1, 0, 5, 1, 0, 3, length], host.as_bytes(), &port].concat();
        let answer = world.exchange(ClientKind::Socks, &request).await;
        assert_eq!(answer.as_bytes(), [5, 0, 5, 2, 0, 1, 0, 0, 0, 0, 0, 0], "{host:?}");
        world.reached_nobody(host);
        assert_eq!(world.lookups.load(Ordering::Relaxed), 0, "{host:?}");
        world.denied().await;
    })
    .await;
}

#[tokio::test]
async fn ports_that_are_not_allowed_are_refused() {
    for port in
        ["{decoy}", "80", "443", "22", "0", "", "65536", "-1", "+80", "080", "80a", "99999999999"]
    {
        for host in [GOOD, "127.0.0.1"] {
            for request in ["CONNECT {host}", "GET http://{host}"] {
                let world = Setup::http().start().await;
                let request = request.replace("{host}", &format!("{host}:{port}"));
                let answer = world
                    .request(&format!("{request} HTTP/1.1\r\nConnection: close\r\n\r\n"))
                    .await;
                let is_refused = answer.contains(" 400 ") || answer.contains(" 403 ");
                assert!(is_refused, "{request:?}: {answer:?}");
                world.reached_nobody(&request);
            }
        }
    }
}

#[tokio::test]
async fn direct_connections_to_other_targets_are_closed() {
    for host in ["evil.example", "denied.wild.example", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]"]
    {
        let world = Setup::default().start().await;
        let target = egress_rules::Target::parse(&format!("{host}:{}", world.port())).unwrap();
        assert_eq!(world.exchange(ClientKind::Direct(target), b"").await, "");
        world.denied().await;
        world.reached_nobody(host);
    }
}

#[tokio::test]
async fn who_is_denied_is_told_why_and_what_to_do() {
    let world = Setup::default().start().await;
    let answer =
        world.request("CONNECT db.evil.example:5432 HTTP/1.1\r\nConnection: close\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
    assert!(
        answer.contains("cannot connect to db.evil.example:5432: it is not allowed.\n"),
        "{answer}"
    );
    assert!(answer.ends_with(": allow \"db.evil.example\" port=5432\n"), "{answer}");
    let decision = world.decisions(1).await.remove(0);
    assert_eq!((decision.host.as_deref(), decision.port), (Some("db.evil.example"), Some(5432)));
    let Verdict::Denied { allow, .. } = decision.verdict else { panic!() };
    assert_eq!(allow.as_deref(), Some("allow \"db.evil.example\" port=5432"));
}

#[tokio::test]
async fn a_password_is_not_reported() {
    let world = Setup::http().start().await;
    for request in ["CONNECT ", "GET http://"] {
        let request = format!("{request}user:password@{GOOD}:{{port}} HTTP/1.1\r\n\r\n");
        assert!(world.request(&request).await.starts_with("HTTP/1.1 400"));
    }
    for decision in world.decisions(2).await {
        assert_eq!(decision.host.as_deref(), Some(GOOD));
    }
}

#[tokio::test]
async fn a_redirect_to_the_host_is_not_followed_and_its_target_is_denied() {
    let redirect =
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2/\r\nContent-Length: 0\r\n\r\n";
    let world = Setup::that(Does::Answer("\r\n\r\n", redirect.to_vec())).start().await;
    let answer = world.request(
        "GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\nGET http://127.0.0.2:{port}/ HTTP/1.1\r\n\r\n",
    );
    let answer = answer.await;
    assert!(answer.contains("302 Found") && answer.contains("403 Forbidden"), "{answer}");
    assert_eq!(world.server.visits(), 1);
    world.reached_no_decoy("a redirect");
}

//! HTTP messages that are ambiguous or never end.

use super::*;

/// Sends each request to a new filter. Checks the status of the first answer, and that no server was reached. An empty
/// status means that the connection ends without an answer.
async fn are_answered(rows: Vec<(String, &'static str)>) {
    at_once(rows, |(request, status)| async move {
        let world = Setup::http().start().await;
        let answer = world.request(&request).await;
        let shown: String = request.chars().take(200).collect();
        if status.is_empty() {
            assert_eq!(answer, "", "{shown:?}");
        } else {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{shown:?}: {answer:?}");
        }
        world.reached_nobody(&shown);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_request_to_a_proxy_is_refused() {
    let rows = [
        ("GET / HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n", "400"),
        (
            "GET /http://good.test.example:{port}/ HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n",
            "400",
        ),
        ("OPTIONS * HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n", "400"),
        ("GET good.test.example:{port} HTTP/1.1\r\n\r\n", "400"),
        ("GET https://good.test.example:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET ftp://good.test.example:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET ws://good.test.example:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET file:///etc/passwd HTTP/1.1\r\n\r\n", "400"),
        ("GET http:///path HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT good.test.example HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT http://good.test.example:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT / HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT * HTTP/1.1\r\n\r\n", "400"),
        ("CONNECT good.test.example:{port} HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "400"),
        (
            "CONNECT good.test.example:{port} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "400",
        ),
        ("GET http://good.test.example:{port}/\r\n\r\n", "400"),
        ("GET http://good.test.example:{port}/ HTTP/9.9\r\n\r\n", "400"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
        (" GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n", "400"),
        ("GET\thttp://good.test.example:{port}/\tHTTP/1.1\r\n\r\n", "400"),
        ("GET http://good.test.example:{port}/ x HTTP/1.1\r\n\r\n", "400"),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\x7c\x03\x03", "400"),
    ];
    are_answered(rows.map(|(request, status)| (request.to_owned(), status)).to_vec()).await;
}

#[tokio::test]
async fn a_host_header_that_names_another_server_is_refused() {
    let rows = [
        "evil.example",
        "127.0.0.2:{port}",
        "169.254.169.254",
        "good.test.example",
        "good.test.example:1{port}",
        "other.test.example:{port}",
        "good.test.example:{port}\r\nHost: evil.example",
        "evil.example\r\nHost: good.test.example:{port}",
        "good.test.example:{port}\r\nHost: good.test.example:{port}",
        "good.test.example:{port}, evil.example",
        "user@good.test.example:{port}",
        "good.test.example:{port}/",
        "good.test.example\u{e4}:{port}",
        "",
    ];
    let mut requests = Vec::new();
    for host in rows {
        let request = format!("GET http://{GOOD}:{{port}}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
        requests.push((request, "400"));
        // For CONNECT, clients leave the port out of the Host header.
        if host != GOOD {
            let request = format!("CONNECT {GOOD}:{{port}} HTTP/1.1\r\nHost: {host}\r\n\r\n");
            requests.push((request, "400"));
        }
    }
    are_answered(requests).await;
}

#[tokio::test]
async fn a_host_header_may_leave_out_what_is_known() {
    let world = Setup::http().start().await;
    for head in ["Host: good.test.example\r\n", "Host: GOOD.test.example.:{port}\r\n", ""] {
        let request = format!("CONNECT {GOOD}:{{port}} HTTP/1.1\r\n{head}\r\n");
        let mut client = world.open(ClientKind::Http);
        client.write_all(world.text(&request).as_bytes()).await.unwrap();
        let mut status = [0; 15];
        client.read_exact(&mut status).await.unwrap();
        assert_eq!(status, *b"HTTP/1.1 200 OK");
    }
}

#[tokio::test]
async fn a_body_whose_end_is_not_clear_is_refused() {
    let mut rows = Vec::new();
    for lines in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: five",
        "Content-Length:",
        "Content-Length: 99999999999999999999999999",
        "Content-Length : 5",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: \x0bchunked",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding",
        "X: y\r\n folded",
        "X: y\r\n\tTransfer-Encoding: chunked",
        "X: a\rTransfer-Encoding: chunked",
        "X: a\0b",
        "X\0: a",
        ": a",
    ] {
        let request = format!("POST http://{GOOD}:{{port}}/ HTTP/1.1\r\n{lines}\r\n\r\n0\r\n\r\n");
        rows.push((request, "400"));
    }
    let old = format!(
        "POST http://{GOOD}:{{port}}/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    rows.push((old, "400"));
    are_answered(rows).await;
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let start = format!("GET http://{GOOD}:{{port}}/");
    let line = |length: usize| format!("x: {}\r\n", "y".repeat(length));
    are_answered(vec![
        (format!("{start} HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(65)), "431"),
        (format!("{start} HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000)), "431"),
        (format!("{start} HTTP/1.1\r\n{}\r\n", line(100 << 10)), "431"),
        (format!("{start} HTTP/1.1\r\n{}\r\n", line(2 << 10).repeat(50)), "431"),
        (format!("{start}{}", "a".repeat(1 << 20)), "431"),
        ("a".repeat(1 << 20), "431"),
        (format!("{start} HTTP/1.1\r\n{}", "a".repeat(1 << 20)), "431"),
    ])
    .await;
}

/// Sends a request that hides a second request for a decoy. Returns the answer and the bytes that the server received.
/// The server may be reached once, and the decoy never.
async fn smuggled(request: &str) -> (String, String) {
    let world = Setup::http().start().await;
    let answer = world.request(request).await;
    world.reached_no_decoy(request);
    assert!(world.server.visits() <= 1, "{request:?}");
    let got = world.server.got();
    assert!(got.matches(" HTTP/1.1\r\nhost: ").count() <= 1, "{request:?}: {got:?}");
    (answer, got)
}

const HIDDEN: &str = "GET http://127.0.0.2:{port}/hidden HTTP/1.1\r\n\r\n";

#[tokio::test]
async fn a_body_with_a_length_and_in_chunks_is_one_in_chunks_and_the_last() {
    for lines in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 6",
        "Content-Length: 200\r\nTransfer-Encoding: chunked",
        "Content-Length: 6\r\nContent-Length: 6\r\nTransfer-Encoding: chunked",
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\nContent-Length: 6",
    ] {
        let request =
            format!("POST http://{GOOD}:{{port}}/ HTTP/1.1\r\n{lines}\r\n\r\n0\r\n\r\n{HIDDEN}");
        let (answer, got) = smuggled(&request).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lines:?}: {answer}");
        let lower = got.to_lowercase();
        assert!(
            !lower.contains("content-length: 6") && !lower.contains("content-length: 200"),
            "{got}"
        );
        assert!(!got.contains("hidden"), "{got}");
    }
}

#[tokio::test]
async fn what_is_in_a_body_stays_in_it() {
    let world = Setup::http().start().await;
    let hidden = world.text(HIDDEN);
    let request = format!(
        "POST http://{GOOD}:{{port}}/ HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{hidden}",
        hidden.len()
    );
    let answer = world.request(&request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.reached_no_decoy("a body");
    assert_eq!(world.decisions(1).await.len(), 1);
}

#[tokio::test]
async fn chunks_that_are_none_end_the_connection() {
    for chunk in ["0x5", "-1", "+5", "FFFFFFFFFFFFFFFFF", "g", "", " 5", "5\n", "5;\x01\nhidden"] {
        let request = format!(
            "POST http://{GOOD}:{{port}}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}\r\nhello\r\n{HIDDEN}"
        );
        smuggled(&request).await;
    }
    // The chunk is longer than its declared size.
    let request = format!(
        "POST http://{GOOD}:{{port}}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n{HIDDEN}"
    );
    let (_, got) = smuggled(&request).await;
    assert!(!got.contains("hidden"), "{got}");
}

#[tokio::test]
async fn each_of_many_requests_is_checked() {
    for second in [
        "GET http://127.0.0.2:{port}/ HTTP/1.1\r\n\r\n",
        "GET http://evil.example:{port}/ HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n",
        "CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: good.test.example:{port}\r\n\r\n",
    ] {
        let world = Setup::http().start().await;
        let first = "GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n";
        let answer = world.request(&format!("{first}{second}")).await;
        let statuses: Vec<_> =
            answer.match_indices("HTTP/1.1 ").map(|it| &answer[it.0 + 9..][..1]).collect();
        assert_eq!(statuses, ["2", "4"], "{second:?}: {answer}");
        assert_eq!(world.server.visits(), 1);
        world.reached_no_decoy(second);
        let decisions = world.decisions(2).await;
        assert_eq!(decisions.iter().filter(|it| it.verdict == Verdict::Allowed).count(), 1);
    }
}

#[tokio::test]
async fn what_is_in_a_tunnel_is_for_its_server() {
    for inner in ["CONNECT 127.0.0.2:{port} HTTP/1.1\r\n\r\n", "CONNECT 127.0.0.2:{port}\r\n\r\n"] {
        let world = Setup::default().start().await;
        let inner = world.text(inner);
        let mut client = world.tunnel(GOOD).await;
        echoes(&mut client, inner.as_bytes()).await;
        world.reached_no_decoy(&inner);
        // Checks this also for a request that arrives together with the first one.
        let both = format!("CONNECT {GOOD}:{{port}} HTTP/1.1\r\n\r\n{inner}");
        let mut client = world.open(ClientKind::Http);
        client.write_all(world.text(&both).as_bytes()).await.unwrap();
        let expected = format!("HTTP/1.1 200 OK\r\n\r\n{inner}");
        let mut answer = vec![0; expected.len()];
        client.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), expected);
        world.reached_no_decoy(&inner);
    }
    // No server gets a request for another server.
    let world = Setup::default().start().await;
    let mut client = world.tunnel(GOOD).await;
    client.write_all(world.text(HIDDEN).as_bytes()).await.unwrap();
    assert_eq!(rest(&mut client).await, "");
    world.reached_no_decoy(HIDDEN);
    assert_eq!(world.server.got(), "");
}

#[tokio::test]
async fn an_answer_that_cannot_be_passed_on_is_an_error() {
    let bomb = |line: String, count| format!("HTTP/1.1 200 OK\r\n{}\r\nx", line.repeat(count));
    for answer in [
        "garbage\r\n\r\n".to_owned(),
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        "\0\0\0\0\0\0\0\0".to_owned(),
        "HTTP/1.1 999999 OK\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            .to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\nX\0: z\r\n\r\n".to_owned(),
        bomb("x: y\r\n".to_owned(), 1000),
        bomb(format!("x: {}\r\n", "y".repeat(100 << 10)), 1),
        "H".repeat(1 << 20),
    ] {
        let world =
            Setup::that(Does::Answer("\r\n\r\n", answer.clone().into_bytes())).start().await;
        let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n";
        let found = world.request(request).await;
        let shown = &answer[..answer.len().min(80)];
        assert!(found.starts_with("HTTP/1.1 502"), "{shown:?}: {found:?}");
        let verdict = world.decisions(1).await.remove(0).verdict;
        assert!(matches!(verdict, Verdict::Failed { .. }), "{shown:?}: {verdict:?}");
    }
}

#[tokio::test]
async fn a_server_that_hangs_up_is_said_to_have_done_so() {
    for (does, reason) in [
        (Does::HangUp, "The request has failed: the server disconnected.\n"),
        (Does::Flood(b"\0".to_vec()), "The request has failed: the server's answer is not HTTP"),
    ] {
        let world = Setup::that(does).start().await;
        let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n";
        let found = world.request(request).await;
        assert!(found.starts_with("HTTP/1.1 502") && found.contains(reason), "{found:?}");
    }
}

#[tokio::test]
async fn a_server_that_talks_first_or_without_end_is_an_error() {
    for bytes in ["x", "HTTP/1.1 200 OK\r\nx: ", "x: y\r\n"] {
        let world = Setup::that(Does::Flood(bytes.repeat(1000).into_bytes())).start().await;
        let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n";
        let found = world.request(request).await;
        assert!(found.starts_with("HTTP/1.1 502"), "{bytes:?}: {found:?}");
    }
}

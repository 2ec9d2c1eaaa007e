//! Clients at the TLS port, which must ask for the name of their target.

use egress_rules::Target;

use super::*;

fn list(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// Returns a ClientHello with several names, each in a separate extension.
fn hello(names: &[&str]) -> Vec<u8> {
    let extension = |name: &&str| {
        let name = [&[0][..], &list(name.as_bytes())].concat();
        [&[0, 0][..], &list(&list(&name))].concat()
    };
    let extensions: Vec<u8> = names.iter().flat_map(extension).collect();
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], &list(&extensions)].concat();
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[22, 3, 1][..], &list(&[&[1], &length[1..], &body].concat())].concat()
}

async fn world() -> World {
    Setup { is_tls: true, ..Setup::default() }.start().await
}

fn direct(world: &World, host: &str) -> DuplexStream {
    world.open(ClientKind::Direct(Target::parse(&format!("{host}:{}", world.port())).unwrap()))
}

#[tokio::test]
async fn who_asks_for_the_name_is_served() {
    let world = world().await;
    let bytes = hello(&[GOOD]);
    echoes(&mut world.tunnel(GOOD).await, &bytes).await;
    echoes(&mut direct(&world, GOOD), &bytes).await;
    echoes(&mut direct(&world, "a.wild.example"), &hello(&["A.wild.example"])).await;
    // Sends the message byte by byte, and then more bytes.
    let mut client = world.tunnel(GOOD).await;
    for byte in &bytes {
        client.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut back = vec![0; bytes.len()];
    timeout(LONG, client.read_exact(&mut back)).await.expect("an echo").unwrap();
    assert_eq!(back, bytes);
    echoes(&mut client, b"whatever").await;
    // A rule allows the address itself, so TLS is not required.
    echoes(&mut direct(&world, "127.0.0.1"), b"no TLS at all").await;
}

#[tokio::test]
async fn nothing_of_others_is_sent_on() {
    const OTHER_NAME: &str = "the client asks for another server than it has named";
    const NOT_TLS: &str = "the client does not speak TLS";
    const MALFORMED: &str = "the client's first message is malformed";
    const TOO_LONG: &str = "the client's first message is too long";
    let endless = [&[22, 3, 1, 0x40, 0, 1, 0, 0x3f, 0xf0][..], &vec![7; 30_000]].concat();
    let tiny = [22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 1, 0, 22, 3, 1, 0, 1, 0x3f, 22, 3, 1, 0, 1, 0];
    let tiny = tiny.into_iter().chain([22, 3, 1, 0, 1, 7].into_iter().cycle().take(30_000));
    for (bytes, expected, what) in [
        (hello(&["evil.example"]), OTHER_NAME, "another name"),
        (hello(&[OTHER]), OTHER_NAME, "another name that is allowed"),
        (hello(&[]), OTHER_NAME, "no name"),
        (hello(&["127.0.0.1"]), OTHER_NAME, "an address"),
        (hello(&[GOOD, "evil.example"]), MALFORMED, "two names"),
        (hello(&["evil.example", GOOD]), MALFORMED, "two names the other way"),
        (hello(&["good.test.example\0"]), MALFORMED, "a nul"),
        (hello(&[""]), MALFORMED, "an empty name"),
        (b"GET / HTTP/1.1\r\nHost: good.test.example\r\n\r\n".to_vec(), NOT_TLS, "HTTP"),
        (b"SSH-2.0-OpenSSH_9.9\r\n".to_vec(), NOT_TLS, "SSH"),
        (b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n".to_vec(), NOT_TLS, "CONNECT"),
        (vec![0x80, 46, 1, 3, 1], NOT_TLS, "SSL 2"),
        (endless, TOO_LONG, "a message without end"),
        (tiny.collect(), TOO_LONG, "a message in tiny records"),
    ] {
        let world = world().await;
        let mut tunnel = world.tunnel(GOOD).await;
        let mut direct = direct(&world, GOOD);
        for client in [&mut tunnel, &mut direct] {
            let _ended = client.write_all(&bytes).await;
            assert_eq!(rest(client).await, "", "{what}");
        }
        assert_eq!(world.server.got(), "", "{what}");
        for decision in world.decisions(2).await {
            let Verdict::Denied { reason, allow: None } = decision.verdict else {
                panic!("{what}: {decision:?}");
            };
            assert_eq!(reason, expected, "{what}");
            assert_eq!((decision.sent, decision.received), (0, 0));
        }
    }
}

#[tokio::test]
async fn at_another_port_nobody_asks_for_another_server() {
    const OTHER_NAME: &str = "the client asks for another server than it has named";
    let get = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    for bytes in [hello(&[OTHER]), hello(&["evil.example"]), hello(&[]), get(OTHER)] {
        let world = Setup::default().start().await;
        for client in [&mut world.tunnel(GOOD).await, &mut direct(&world, GOOD)] {
            let _ended = client.write_all(&bytes).await;
            assert_eq!(rest(client).await, "");
        }
        assert_eq!(world.server.got(), "");
        for decision in world.decisions(2).await {
            let Verdict::Denied { reason, allow: None } = decision.verdict else {
                panic!("{decision:?}");
            };
            assert_eq!(reason, OTHER_NAME);
        }
    }
    let world = Setup::default().start().await;
    for bytes in [hello(&[GOOD]), get(GOOD), b"SSH-2.0-x\r\n".to_vec(), b"G".repeat(5000)] {
        echoes(&mut world.tunnel(GOOD).await, &bytes).await;
        echoes(&mut direct(&world, GOOD), &bytes).await;
    }
    // If the target is an address, the name in the message is not checked.
    echoes(&mut direct(&world, "127.0.0.1"), &hello(&[OTHER])).await;
    // Sends the request byte by byte, and ends another one in the middle.
    let mut client = world.tunnel(GOOD).await;
    for byte in get(GOOD) {
        client.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut back = vec![0; get(GOOD).len()];
    timeout(LONG, client.read_exact(&mut back)).await.expect("an echo").unwrap();
    assert_eq!(back, get(GOOD));
    let mut client = world.tunnel(GOOD).await;
    client.write_all(b"GET").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, "GET");
}

#[tokio::test]
async fn a_server_may_speak_first_at_another_port() {
    let world = Setup::that(Does::Flood(b"220 hello\r\n".to_vec())).start().await;
    let mut client = world.tunnel(GOOD).await;
    let mut greeting = [0; 11];
    timeout(LONG, client.read_exact(&mut greeting)).await.expect("a greeting").unwrap();
    assert_eq!(&greeting, b"220 hello\r\n");
}

#[tokio::test]
async fn a_client_has_so_long_for_its_first_message() {
    let world = world().await;
    for bytes in [&hello(&[GOOD])[..30], &[]] {
        let mut client = world.tunnel(GOOD).await;
        client.write_all(bytes).await.unwrap();
        assert_eq!(rest(&mut client).await, "");
        // Sends the same bytes, and then ends the client's stream.
        let mut client = world.tunnel(GOOD).await;
        client.write_all(bytes).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut client).await, "");
    }
    assert_eq!(world.server.got(), "");
    let failed = |it: &Decision| matches!(it.verdict, Verdict::Failed { .. });
    assert!(world.decisions(4).await.iter().all(failed));
}

#[tokio::test]
async fn a_request_without_tls_is_refused_there() {
    let world = world().await;
    let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!(world.request(request).await.starts_with("HTTP/1.1 403"));
    assert_eq!(world.denied().await, "the client does not speak TLS");
    world.reached_nobody(request);
}

#[test]
fn the_port_is_that_of_https() {
    assert_eq!(Settings::default().tls_port, 443);
}

//! Clients and servers that are too slow.

use tokio::net::TcpSocket;

use super::*;

/// Sends a byte every 20 ms until the connection ends, which must be soon.
async fn drips(client: DuplexStream, bytes: &[u8]) {
    let (mut from, mut to) = tokio::io::split(client);
    let dripping = async {
        for byte in bytes.iter().cycle() {
            sleep(Duration::from_millis(20)).await;
            if to.write_all(&[*byte]).await.is_err() {
                return;
            }
        }
    };
    let mut answer = Vec::new();
    let ending = async {
        let _broken = from.read_to_end(&mut answer).await;
    };
    let either = async {
        tokio::select! { () = dripping => {}, () = ending => {} }
    };
    timeout(LONG, either).await.expect("the filter ends the connection");
}

#[tokio::test]
async fn a_client_has_so_long_to_say_where_it_wants_to_go() {
    let start = format!("GET http://{GOOD}/ HTTP/1.1\r\n");
    for (way, first, drip) in [
        (ClientKind::Http, "", "x: y\r\n"),
        (ClientKind::Http, &start, "x: y\r\n"),
        (ClientKind::Http, "", "a"),
        (ClientKind::Socks, "", "\u{5}"),
        (ClientKind::Socks, "\u{5}\u{1}\0\u{5}\u{1}\0\u{3}\u{f0}", "a"),
    ] {
        let world = Setup::http().start().await;
        let mut client = world.open(way.clone());
        client.write_all(first.as_bytes()).await.unwrap();
        drips(client, drip.as_bytes()).await;
        // Repeats the test with a client that sends no more bytes.
        let mut client = world.open(way);
        client.write_all(first.as_bytes()).await.unwrap();
        rest(&mut client).await;
        world.reached_nobody(first);
    }
}

#[tokio::test]
async fn a_client_has_so_long_between_two_requests() {
    let world = Setup::http().start().await;
    let answer = world.request("GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.ends_with("ok"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_byte_stays() {
    let world = Setup::default().start().await;
    let mut client = world.tunnel(GOOD).await;
    sleep(Duration::from_secs(20 * 60)).await;
    echoes(&mut client, b"x").await;
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_connection_with_it() {
    let world = Setup::that(Does::Nothing).start().await;
    let mut client = world.open(ClientKind::Http);
    let request = world.text("GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    eventually(|| world.server.visits() == 1).await;
    drop(client);
    drop(world.tunnel(OTHER).await);
    world.decisions(2).await;
    let all = world.filter.limits.connections as usize;
    eventually(|| world.filter.connections.available_permits() == all).await;
}

#[tokio::test]
async fn a_server_has_so_long_to_accept() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // The server never accepts, so the kernel's backlog fills up.
    let mut waiting = Vec::new();
    let short = Duration::from_millis(200);
    while let Ok(stream) = timeout(short, TcpStream::connect(address)).await {
        waiting.push(stream.unwrap());
    }
    let world = Setup::default().start().await;
    world.filter.reload(rules(address.port()));
    let request =
        format!("CONNECT {GOOD}:{} HTTP/1.1\r\nConnection: close\r\n\r\n", address.port());
    let answer = world.request(&request).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
    let failed = Verdict::Failed { reason: "connecting took too long".to_owned() };
    assert_eq!(world.decisions(1).await[0].verdict, failed);
}

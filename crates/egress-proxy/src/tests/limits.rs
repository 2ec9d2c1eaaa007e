//! Tests the limits of what a box may use of the network.

use egress_rules::Target;
use tokio::time::Instant;

use super::*;

fn limited(limits: NetworkLimits) -> Setup {
    Setup { limits, ..Setup::default() }
}

#[tokio::test]
async fn a_box_has_so_many_connections() {
    let limits = NetworkLimits { connections: 2, ..NetworkLimits::default() };
    let world = limited(limits).start().await;
    let (first, mut second) = (world.tunnel(GOOD).await, world.tunnel(OTHER).await);
    let why = "the box has 2 connections, which is its limit";
    let connect = "CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n";
    let get = "GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n";
    for request in [connect, get] {
        let answer = world.request(request).await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(why), "{answer}");
    }
    let target = Target::parse(&format!("{GOOD}:{}", world.port())).unwrap();
    assert_eq!(world.exchange(ClientKind::Direct(target), b"").await, "");
    let port = world.port().to_be_bytes();
    let socks = [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port].concat();
    assert!(world.exchange(ClientKind::Socks, &socks).await.as_bytes().starts_with(&[5, 0, 5, 1]));
    assert_eq!(world.server.visits(), 2);
    for decision in world.decisions(4).await {
        let denied = Verdict::Denied { reason: why.to_owned(), allow: None };
        assert_eq!(decision.verdict, denied);
    }
    echoes(&mut second, b"hello").await;
    drop(first);
    world.decisions(5).await;
    world.serves().await;
}

#[tokio::test]
async fn a_request_is_one_of_the_connections() {
    let limits = NetworkLimits { connections: 1, ..NetworkLimits::default() };
    let world = Setup { does: Does::Nothing, ..limited(limits) }.start().await;
    let mut client = world.open(ClientKind::Http);
    let request = world.text("GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    eventually(|| world.server.visits() == 1).await;
    assert!(world.request(&request).await.starts_with("HTTP/1.1 503"));
    assert_eq!(world.server.visits(), 1);
}

#[tokio::test]
async fn requests_one_after_another_are_one_connection() {
    let limits = NetworkLimits { connections: 1, ..NetworkLimits::default() };
    let world = Setup { limits, ..Setup::http() }.start().await;
    let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n";
    let answers = world.request(&request.repeat(20)).await;
    assert_eq!(answers.matches("HTTP/1.1 200").count(), 20, "{answers}");
    world.decisions(20).await;
}

#[tokio::test]
async fn clients_that_ask_for_nothing_are_bounded_too() {
    let limits = NetworkLimits { connections: 2, ..NetworkLimits::default() };
    let mut setup = limited(limits);
    setup.settings.request = LONG;
    let world = setup.start().await;
    let mut silent: Vec<_> = (0..66).map(|_| world.open(ClientKind::Http)).collect();
    sleep(Duration::from_millis(50)).await;
    for way in [ClientKind::Http, ClientKind::Socks] {
        assert_eq!(world.exchange(way, b"").await, "");
    }
    for decision in world.decisions(2).await {
        assert!(decision.host.is_none() && matches!(decision.verdict, Verdict::Denied { .. }));
    }
    drop(silent.pop());
    sleep(Duration::from_millis(50)).await;
    world.serves().await;
}

#[tokio::test]
async fn a_box_may_ask_for_so_many_names() {
    let limits = NetworkLimits { names_per_minute: 3, ..NetworkLimits::default() };
    let world = limited(limits).start().await;
    for name in [GOOD, OTHER, GOOD, "1.wild.example", OTHER] {
        world.tunnel(name).await;
    }
    assert_eq!(world.lookups.load(Ordering::Relaxed), 5);
    let why = "the box has asked for 3 names within a minute, which is its limit";
    let request = "CONNECT secret.wild.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n";
    let answer = world.request(request).await;
    assert!(answer.starts_with("HTTP/1.1 429") && answer.contains(why), "{answer}");
    let looked_up = world.filter.look_up(ComponentName::Business, "other-secret.wild.example");
    assert_eq!(looked_up.unwrap_err().to_string(), why);
    assert_eq!(world.lookups.load(Ordering::Relaxed), 5);
    assert!(world.filter.look_up(ComponentName::Business, GOOD).is_ok());
}

#[tokio::test]
async fn names_that_the_box_resolves_count() {
    let limits = NetworkLimits { names_per_minute: 100, ..NetworkLimits::default() };
    let world = limited(limits).start().await;
    let ask = |it| world.filter.look_up(ComponentName::Agent, &format!("{it}.wild.example"));
    assert_eq!((0..10_000).filter(|it| ask(*it).is_ok()).count(), 100);
    let answer =
        world.request("CONNECT x.wild.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert!(answer.await.starts_with("HTTP/1.1 429"));
    assert_eq!(world.lookups.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn what_is_denied_is_never_resolved() {
    let world = Setup::default().start().await;
    let started = Instant::now();
    for number in 0..10_000 {
        let name = format!("{number:060}.{number:060}.evil.example");
        assert!(world.filter.look_up(ComponentName::Agent, &name).is_err());
    }
    let mut answered = 0;
    let request = |number: &i32| {
        let last = if number % 100 == 99 { "Connection: close\r\n" } else { "" };
        format!("CONNECT {number}.evil.example:443 HTTP/1.1\r\n{last}\r\n")
    };
    for numbers in (0..10_000).collect::<Vec<_>>().chunks(100) {
        let requests: String = numbers.iter().map(request).collect();
        // Read the answers, because the filter waits for a client that does not.
        let (mut from, mut to) = tokio::io::split(world.open(ClientKind::Http));
        let mut answers = Vec::new();
        let (sent, read) =
            tokio::join!(to.write_all(requests.as_bytes()), from.read_to_end(&mut answers));
        drop((sent, read));
        answered += String::from_utf8_lossy(&answers).matches("HTTP/1.1 403").count();
    }
    assert_eq!(answered, 10_000);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert_eq!(world.lookups.load(Ordering::Relaxed), 0);
    world.reached_nobody("a name that is denied");
    world.serves().await;
}

#[tokio::test]
async fn so_many_bytes_pass_in_a_second() {
    let limits = NetworkLimits { bytes_per_second: 256 << 10, ..NetworkLimits::default() };
    let world = limited(limits).start().await;
    let (mut first, mut second) = (world.tunnel(GOOD).await, world.tunnel(OTHER).await);
    let started = Instant::now();
    // Two connections in both directions transfer 256 KiB. An eighth of a second's bytes and one buffer for each
    // connection pass at once.
    tokio::join!(echoes(&mut first, &[1; 64 << 10]), echoes(&mut second, &[2; 64 << 10]));
    let elapsed = started.elapsed();
    assert!(elapsed > Duration::from_millis(600), "{elapsed:?}");
    assert!(elapsed < LONG, "{elapsed:?}");
}

#[tokio::test]
async fn what_is_sent_alone_is_paced_too() {
    let limits = NetworkLimits { bytes_per_second: 256 << 10, ..NetworkLimits::default() };
    let world = Setup { does: Does::Nothing, ..limited(limits) }.start().await;
    let mut client = world.tunnel(GOOD).await;
    let started = Instant::now();
    client.write_all(&vec![7; 256 << 10]).await.unwrap();
    client.shutdown().await.unwrap();
    eventually(|| world.server.got().len() == 256 << 10).await;
    assert!(started.elapsed() > Duration::from_millis(600), "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_bytes_of_requests_are_paced_too() {
    let limits = NetworkLimits { bytes_per_second: 256 << 10, ..NetworkLimits::default() };
    let body = "x".repeat(256 << 10);
    let world =
        Setup { does: Does::Answer("\r\n\r\n", ok(&body)), ..limited(limits) }.start().await;
    let started = Instant::now();
    let answer = world.request("GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.ends_with(&body));
    assert!(started.elapsed() > Duration::from_millis(600), "{:?}", started.elapsed());
}

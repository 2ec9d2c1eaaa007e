//! Measures the memory of a box's filter by /proc/self/statm. The test is a separate process, so that nothing else is
//! measured.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use box_contract::{ComponentName, NetworkLimits};
use egress_proxy::{ClientKind, Filter, Resolver};
use egress_rules::{Local, Peer, Rule, Rules, Target};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// The number of connections. This process has both ends of each, so more could exceed its limit of open files.
const CONNECTIONS: u32 = 400;

/// Returns the resident memory, in KiB.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
    pages.expect("pages") * 4
}

#[tokio::test]
async fn attempts_and_connections_take_little_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let rule = |peer| Rule { peer: Peer::parse(peer).unwrap(), port: Some(port) };
    let allow = vec![rule("127.0.0.1"), rule("good.test.example")];
    let local = Local::parse("127.0.0.1").into_iter().collect();
    let rules = Rules { allow, local, ..Rules::default() };
    let limits = NetworkLimits {
        connections: CONNECTIONS,
        bytes_per_second: u64::MAX,
        ..NetworkLimits::default()
    };
    let decisions = Arc::<AtomicUsize>::default();
    let reported = Arc::clone(&decisions);
    let resolver = Resolver::new(async |_| Ok(vec!["127.0.0.1".parse().unwrap()]));
    let filter = Filter::new(rules, limits, resolver, move |_| {
        reported.fetch_add(1, Ordering::Relaxed);
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });

    let attempt = async |host: &str| {
        let (mut client, served) = duplex(4096);
        tokio::spawn(Arc::clone(&filter).serve(ComponentName::Agent, ClientKind::Http, served));
        let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        client.read_exact(&mut status).await.unwrap();
        (client, String::from_utf8_lossy(&status).into_owned())
    };
    assert_eq!(attempt("evil.example").await.1, "HTTP/1.1 403");
    let before = resident();
    for number in 0..10_000 {
        let (_, status) = attempt(&format!("{number}.{}.evil.example", "x".repeat(60))).await;
        assert_eq!(status, "HTTP/1.1 403");
    }
    assert_eq!(decisions.load(Ordering::Relaxed), 10_001);
    let attempts = resident().saturating_sub(before);
    assert!(attempts < 4 << 10, "10,000 attempts took {attempts} KiB");

    let before = resident();
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let (mut client, mut bytes) = match number % 2 {
            0 => {
                let (client, status) = attempt("good.test.example").await;
                assert_eq!(status, "HTTP/1.1 200");
                (client, vec![0; 7 + 4000])
            }
            _ => {
                let (client, served) = duplex(4096);
                let target = Target::parse(&format!("good.test.example:{port}")).unwrap();
                tokio::spawn(Arc::clone(&filter).serve(
                    ComponentName::Agent,
                    ClientKind::Direct(target),
                    served,
                ));
                (client, vec![0; 4000])
            }
        };
        client.write_all(&[7; 4000]).await.unwrap();
        let echo = timeout(Duration::from_secs(5), client.read_exact(&mut bytes)).await;
        echo.expect("an echo").unwrap();
        clients.push(client);
    }
    let all = resident().saturating_sub(before) * 512 / u64::from(CONNECTIONS);
    println!("10,000 attempts: {attempts} KiB; 512 connections with both ends: {all} KiB");
    assert!(all < 48 << 10, "512 connections and their ends take {all} KiB");
}

//! Resolvers that lie, or do not answer.

use std::future::pending;
use std::io;

use super::*;

/// Parses a list of addresses.
fn list(addresses: &str) -> Vec<IpAddr> {
    addresses.split_whitespace().map(|it| it.parse().unwrap()).collect()
}

async fn connect(world: &World) -> String {
    world.request("CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n").await
}

#[tokio::test]
async fn a_name_is_connected_to_at_no_other_address_than_was_allowed() {
    for addresses in [
        "127.0.0.2",
        "::1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:127.0.0.2",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "fd00:ec2::254",
        "168.63.129.16",
        "fe80::1",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "198.18.0.1",
        "203.0.113.5",
        "127.0.0.2 ::1 10.0.0.1 169.254.169.254 ::ffff:127.0.0.1",
    ] {
        let found = list(addresses);
        let world = Setup::default()
            .resolving(move |_, _| {
                let found = found.clone();
                async { Ok(found) }
            })
            .await;
        let answer = connect(&world).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{addresses}: {answer}");
        let reason = world.denied().await;
        let last = list(addresses).pop().unwrap();
        let is_named = reason.contains(&format!("{last} is not a host of the internet"))
            || reason == "the rules deny 203.0.113.0/24";
        assert!(is_named, "{addresses}: {reason}");
        world.reached_nobody(addresses);
    }
}

#[tokio::test]
async fn of_many_addresses_those_that_are_not_allowed_are_left_out() {
    for addresses in [
        "127.0.0.2 127.0.0.1",
        "127.0.0.1 127.0.0.2",
        "::1 ::ffff:127.0.0.1 169.254.169.254 127.0.0.1 127.0.0.2",
    ] {
        let found = list(addresses);
        let world = Setup::default()
            .resolving(move |_, _| {
                let found = found.clone();
                async { Ok(found) }
            })
            .await;
        world.serves().await;
        world.reached_no_decoy(addresses);
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_resolved_once_for_each_connection() {
    for (first, second) in [("127.0.0.1", "127.0.0.2"), ("127.0.0.1", "::1")] {
        let world = Setup::default()
            .resolving(move |_, before| async move {
                Ok(list(if before == 0 { first } else { second }))
            })
            .await;
        world.serves().await;
        assert_eq!(world.lookups.load(Ordering::Relaxed), 1);
        assert_eq!(world.server.visits(), 1);
        assert!(connect(&world).await.starts_with("HTTP/1.1 403"));
        assert_eq!(world.lookups.load(Ordering::Relaxed), 2);
        world.reached_no_decoy(second);
        // The same holds for an HTTP request without CONNECT.
        let request = "GET http://good.test.example:{port}/ HTTP/1.1\r\n\r\n";
        assert!(world.request(request).await.starts_with("HTTP/1.1 403"));
        world.reached_no_decoy(second);
    }
}

#[tokio::test]
async fn a_name_without_addresses_is_an_error() {
    let world = Setup::default().resolving(async |_, _| Ok(Vec::new())).await;
    assert!(connect(&world).await.starts_with("HTTP/1.1 502"));
    let failed = Verdict::Failed { reason: "its name has no address".to_owned() };
    assert_eq!(world.decisions(1).await[0].verdict, failed);
    let world =
        Setup::default().resolving(async |_, _| Err(io::Error::other("no such name"))).await;
    let answer = connect(&world).await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("no such name"), "{answer}");
    world.reached_nobody("nothing");
}

#[tokio::test]
async fn of_thousands_of_addresses_all_are_checked_and_few_are_tried() {
    // The rules allow 192.0.2.1, but no host has this address.
    let world = Setup::default()
        .resolving(async |_, _| {
            let mut found = vec!["127.0.0.2".parse().unwrap(); 50_000];
            found.extend(["127.0.0.1".parse::<IpAddr>().unwrap()]);
            Ok(found)
        })
        .await;
    world.serves().await;
    world.reached_no_decoy("the first 50,000");
    let world = Setup::default()
        .resolving(async |_, _| Ok(vec!["192.0.2.1".parse().unwrap(); 50_000]))
        .await;
    let answer = connect(&world).await;
    let is_failure = answer.starts_with("HTTP/1.1 504") || answer.starts_with("HTTP/1.1 502");
    assert!(is_failure, "{answer}");
    world.reached_nobody("192.0.2.1");
}

#[tokio::test]
async fn a_resolver_that_hangs_is_waited_for_so_long_and_by_so_many() {
    let world = Setup::default().resolving(|_, _| pending()).await;
    let request =
        world.text("CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n");
    let mut clients: Vec<_> = (0..40).map(|_| world.open(ClientKind::Http)).collect();
    for client in &mut clients {
        client.write_all(request.as_bytes()).await.unwrap();
    }
    for client in &mut clients {
        let answer = rest(client).await;
        assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
        assert!(answer.contains("resolving its name took too long"), "{answer}");
    }
    world.decisions(40).await;
    world.reached_nobody("a resolver that hangs");
}

#[tokio::test]
async fn no_more_than_sixteen_names_are_resolved_at_once() {
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let seen = Arc::clone(&most);
    let world = Setup::default()
        .resolving(move |_, _| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                pending().await
            }
        })
        .await;
    let clients: Vec<_> = (0..40)
        .map(|_| {
            let port = world.port();
            world.open(ClientKind::Direct(
                egress_rules::Target::parse(&format!("{GOOD}:{port}")).unwrap(),
            ))
        })
        .collect();
    world.decisions(40).await;
    drop(clients);
    // No client waits for these lookups, but getaddrinfo(3) would still run.
    let mut more = world.tunnel_fails().await;
    assert_eq!(rest(&mut more).await, "");
    assert_eq!(seen.load(Ordering::Relaxed), 16);
}

impl World {
    async fn tunnel_fails(&self) -> DuplexStream {
        let target = format!("{OTHER}:{}", self.port());
        self.open(ClientKind::Direct(egress_rules::Target::parse(&target).unwrap()))
    }
}

#[tokio::test]
async fn the_hosts_own_resolver_is_asked_for_names() {
    let (server, _) = servers(Does::Echo).await;
    let found = Resolver::host().resolve("localhost").await.unwrap();
    assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    drop(server);
}

//! Tests changes of the rules.

use super::*;

/// Returns the rules of `world`, and one more that denies `peer`.
fn without(world: &World, peer: &str) -> Rules {
    let mut rules = rules(world.port());
    rules.deny.push(Rule { peer: Peer::parse(peer).unwrap(), port: None });
    rules
}

#[tokio::test]
async fn a_tunnel_to_what_is_not_allowed_any_more_ends_and_others_stay() {
    let world = Setup::default().start().await;
    let (mut good, mut other) = (world.tunnel(GOOD).await, world.tunnel(OTHER).await);
    echoes(&mut good, b"before").await;
    world.filter.reload(rules(world.port()));
    echoes(&mut good, b"no change").await;
    world.filter.reload(without(&world, GOOD));
    assert_eq!(rest(&mut good).await, "");
    echoes(&mut other, b"after").await;
    assert_eq!(*world.filter.rules(), without(&world, GOOD));
    assert_eq!(world.denied().await, format!("the rules deny {GOOD}"));
    let request = "CONNECT good.test.example:{port} HTTP/1.1\r\nConnection: close\r\n\r\n";
    assert!(world.request(request).await.starts_with("HTTP/1.1 403"));
    assert_eq!(world.server.visits(), 2);
    world.filter.reload(rules(world.port()));
    world.serves().await;
}

#[tokio::test]
async fn so_does_one_to_an_address_that_is_not() {
    let world = Setup::default().start().await;
    let mut client = world.tunnel(GOOD).await;
    world.filter.reload(without(&world, "127.0.0.0/8"));
    assert_eq!(rest(&mut client).await, "");
    let mut only_names = rules(world.port());
    only_names.allow.retain(|it| it.peer != Peer::parse("127.0.0.1").unwrap());
    world.filter.reload(rules(world.port()));
    let mut client = world.tunnel(GOOD).await;
    world.filter.reload(only_names);
    assert_eq!(rest(&mut client).await, "");
}

#[tokio::test]
async fn so_does_a_request() {
    let world = Setup::that(Does::Nothing).start().await;
    let mut client = world.open(ClientKind::Http);
    let request =
        world.text("GET http://good.test.example:{port}/ HTTP/1.1\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    eventually(|| world.server.visits() == 1).await;
    world.filter.reload(without(&world, GOOD));
    assert!(rest(&mut client).await.starts_with("HTTP/1.1 502"));
    assert_eq!(world.denied().await, format!("the rules deny {GOOD}"));
}

#[tokio::test]
async fn rules_that_change_while_a_name_is_resolved_count() {
    let world = Setup::default()
        .resolving(async |_, _| {
            sleep(Duration::from_millis(100)).await;
            Ok(vec!["127.0.0.1".parse().unwrap()])
        })
        .await;
    let mut client = world.open(ClientKind::Http);
    let request = world.text("CONNECT good.test.example:{port} HTTP/1.1\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    eventually(|| world.lookups.load(Ordering::Relaxed) == 1).await;
    world.filter.reload(Rules::default());
    rest(&mut client).await;
    assert_eq!(world.server.got(), "");
    assert_eq!(world.denied().await, "it is not allowed");
}

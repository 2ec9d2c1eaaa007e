//! Honest and hostile clients of SOCKS5.

use super::*;

const AGREED: [u8; 2] = [5, 0];

fn answer(code: u8) -> Vec<u8> {
    [&AGREED[..], &[5, code, 0, 1, 0, 0, 0, 0, 0, 0]].concat()
}

/// Returns a greeting and a request that ends with the server's port.
fn request(world: &World, rest: &[u8]) -> Vec<u8> {
    [&[5, 1, 0], rest, &world.port().to_be_bytes()].concat()
}

fn named(name: &str) -> Vec<u8> {
    [&[5, 1, 0, 3, u8::try_from(name.len()).unwrap()], name.as_bytes()].concat()
}

#[tokio::test]
async fn names_and_addresses_are_connected_to() {
    for rest in [
        named(GOOD),
        named("GOOD.test.example."),
        named("127.0.0.1"),
        vec![5, 1, 0, 1, 127, 0, 0, 1],
    ] {
        let world = Setup::default().start().await;
        let mut client = world.open(ClientKind::Socks);
        client.write_all(&request(&world, &rest)).await.unwrap();
        let mut found = [0; 12];
        client.read_exact(&mut found).await.unwrap();
        assert_eq!(found, *answer(0));
        echoes(&mut client, b"hello").await;
        client.shutdown().await.unwrap();
        assert_eq!(super::rest(&mut client).await, "");
        assert_eq!(world.decisions(1).await[0].verdict, Verdict::Allowed);
    }
}

#[tokio::test]
async fn what_is_not_allowed_or_not_understood_is_refused() {
    let mapped = [&[5, 1, 0, 4][..], &[0; 10], &[255, 255, 127, 0, 0, 1]].concat();
    let loopback = [&[5, 1, 0, 4][..], &[0; 15], &[1]].concat();
    for (rest, code, what) in [
        (named("evil.example"), 2, "a name"),
        (vec![5, 1, 0, 1, 127, 0, 0, 2], 2, "an address"),
        (vec![5, 1, 0, 1, 169, 254, 169, 254], 2, "the metadata of a cloud"),
        (vec![5, 1, 0, 1, 0, 0, 0, 0], 2, "no address"),
        (mapped, 2, "an address in another spelling"),
        (loopback, 2, "an address of IPv6"),
        (named(""), 2, "no name"),
        (named("good.test.example\0"), 2, "a nul"),
        (named("good.test.example\0.evil.example"), 2, "a nul within"),
        (named("127.1"), 2, "an address in short"),
        (named("good.test.example:80"), 2, "a name with a port"),
        (named(&"a".repeat(255)), 2, "a long name"),
        ([&[5, 1, 0, 3, 4][..], &[255, 254, 0x80, 0xc0]].concat(), 2, "no text"),
        ([&[5, 2, 0, 3, 17][..], GOOD.as_bytes()].concat(), 7, "BIND"),
        ([&[5, 3, 0, 3, 17][..], GOOD.as_bytes()].concat(), 7, "UDP ASSOCIATE"),
        ([&[5, 0, 0, 3, 17][..], GOOD.as_bytes()].concat(), 7, "command 0"),
        (vec![5, 1, 0, 2, 127, 0, 0, 1], 8, "another kind of address"),
    ] {
        let world = Setup::default().start().await;
        let found = world.exchange(ClientKind::Socks, &request(&world, &rest)).await;
        assert_eq!(found.as_bytes(), answer(code), "{what}");
        world.reached_nobody(what);
    }
}

#[tokio::test]
async fn clients_that_do_not_agree_are_left() {
    for (bytes, expected, what) in [
        (&[4, 1, 0, 80, 127, 0, 0, 1, 0][..], &[][..], "version 4"),
        (&[5, 1, 2], &[5, 255], "a password alone"),
        (&[5, 0], &[5, 255], "no method"),
        (&[5, 1, 0, 4, 1, 0, 1, 127, 0, 0, 1, 0, 80], &AGREED, "another version afterwards"),
        (b"GET http://good.test.example/ HTTP/1.1\r\n\r\n", &[], "HTTP"),
        (&[5, 1, 0, 5, 1, 0, 3, 200, b'a'], &AGREED, "half a name"),
        (&[5], &[], "one byte"),
        (&[], &[], "nothing"),
    ] {
        let world = Setup::default().start().await;
        let mut client = world.open(ClientKind::Socks);
        client.write_all(bytes).await.unwrap();
        let mut found = Vec::new();
        timeout(LONG, client.read_to_end(&mut found)).await.expect("an end").unwrap();
        assert_eq!(found, expected, "{what}");
        world.reached_nobody(what);
    }
}

#[tokio::test]
async fn a_port_of_zero_is_none() {
    let world = Setup::default().start().await;
    let bytes = [&[5, 1, 0][..], &named(GOOD), &[0, 0]].concat();
    assert_eq!(world.exchange(ClientKind::Socks, &bytes).await.as_bytes(), answer(2));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_said_to_refuse() {
    let world = Setup::default().start().await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    world.filter.reload(rules(gone));
    let bytes = [&[5, 1, 0][..], &named(GOOD), &gone.to_be_bytes()].concat();
    assert_eq!(world.exchange(ClientKind::Socks, &bytes).await.as_bytes(), answer(5));
    assert!(matches!(world.decisions(1).await[0].verdict, Verdict::Failed { .. }));
}

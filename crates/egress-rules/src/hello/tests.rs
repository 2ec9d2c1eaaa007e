use proptest::prelude::*;

use super::*;

/// Returns the bytes of a list, with its length before them.
fn list(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &list(data)].concat()
}

fn named(kind: u8, name: &str) -> Vec<u8> {
    [&[kind][..], &list(name.as_bytes())].concat()
}

pub(crate) fn server(name: &str) -> Vec<u8> {
    extension(SERVER_NAME, &list(&named(HOST_NAME, name)))
}

/// Returns a message with these extensions, and with `after` behind them.
fn message_of(extensions: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([1, 9]);
    body.extend(list(&[0x13, 1, 0x13, 2]));
    body.extend([1, 0]);
    body.extend(list(&extensions.concat()));
    body.extend(after);
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[CLIENT_HELLO][..], &length[1..], &body].concat()
}

fn record(fragment: &[u8]) -> Vec<u8> {
    [&RECORD[..], &[1], &list(fragment)].concat()
}

pub(crate) fn hello(extensions: &[Vec<u8>]) -> Vec<u8> {
    record(&message_of(extensions, &[]))
}

fn read_for(bytes: &[u8]) -> Result<bool, HelloError> {
    read(bytes, &Target::parse("example.com:443").unwrap())
}

#[test]
fn the_name_that_was_asked_for_passes() {
    let other = || extension(43, &[2, 3, 4]);
    for extensions in [vec![server("example.com")], vec![other(), server("Example.COM"), other()]] {
        assert_eq!(read_for(&hello(&extensions)), Ok(true));
    }
}

#[test]
fn a_message_may_be_in_many_records_and_come_byte_by_byte() {
    let message = message_of(&[server("example.com")], &[]);
    for size in [1, 3, 4, 5, 50] {
        let bytes: Vec<u8> = message.chunks(size).flat_map(record).collect();
        for end in 0..bytes.len() {
            assert_eq!(read_for(&bytes[..end]), Ok(false), "{size} {end}");
        }
        assert_eq!(read_for(&bytes), Ok(true), "{size}");
    }
}

#[test]
fn another_name_or_none_does_not() {
    for name in ["evil.org", "a.example.com", "example.com.evil.org", "xample.com", "example.co"] {
        assert_eq!(read_for(&hello(&[server(name)])), Err(HelloError::OtherName), "{name}");
    }
    assert_eq!(read_for(&hello(&[])), Err(HelloError::OtherName));
    assert_eq!(read_for(&hello(&[server("93.184.216.34")])), Err(HelloError::OtherName));
    // If the client has named an address, no name is accepted.
    let address = Target::parse("93.184.216.34:443").unwrap();
    for name in ["93.184.216.34", "example.com"] {
        assert_eq!(read(&hello(&[server(name)]), &address), Err(HelloError::OtherName));
    }
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    let both = [named(HOST_NAME, "example.com"), named(HOST_NAME, "evil.org")].concat();
    let good = server("example.com");
    let message = message_of(&[server("example.com")], &[]);
    let mut long = message.clone();
    long[3] -= 1;
    for bytes in [
        hello(&[good.clone(), server("evil.org")]),
        hello(&[good.clone(), good.clone()]),
        hello(&[extension(SERVER_NAME, &list(&both))]),
        hello(&[extension(
            SERVER_NAME,
            &[list(&named(HOST_NAME, "example.com")), vec![0]].concat(),
        )]),
        hello(&[extension(SERVER_NAME, &list(&named(1, "example.com")))]),
        hello(&[extension(SERVER_NAME, &[])]),
        hello(&[extension(SERVER_NAME, &list(&[]))]),
        hello(&[server("")]),
        hello(&[server("example.com\0.evil.org")]),
        hello(&[server("example.com/")]),
        hello(&[server("exa mple.com")]),
        hello(&[server("\u{ff45}xample.com")]),
        record(&message_of(std::slice::from_ref(&good), &[0])),
        record(&[message.clone(), vec![CLIENT_HELLO]].concat()),
        record(&long),
        record(&[CLIENT_HELLO, 0, 0, 0]),
        record(&[CLIENT_HELLO, 0, 0, 3, 1, 2, 3]),
        [record(&message[..20]), record(&[])].concat(),
        [22, 3, 1, 0xff, 0xff].to_vec(),
    ] {
        assert_eq!(read_for(&bytes), Err(HelloError::Malformed), "{bytes:?}");
    }
}

#[test]
fn what_is_no_tls_or_too_long_is_refused_at_once() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x",
        &[22, 2],
        &[21, 3, 3],
        &[22, 3, 1, 0, 9, 2],
        &[0x80, 0x2e, 1],
    ] {
        assert_eq!(read_for(bytes), Err(HelloError::NotTls), "{bytes:?}");
    }
    for bytes in [&[22, 3, 1, 0, 9, 1, 0xff][..], &[22, 3, 1, 0x40, 0, 1, 0, 0x40, 1]] {
        let expected = if bytes.len() < 9 { Ok(false) } else { Err(HelloError::TooLong) };
        assert_eq!(read_for(bytes), expected, "{bytes:?}");
    }
    // The limit is the same for many records of one byte each.
    let bytes: Vec<u8> = [1, 0, 0xff, 0xff].into_iter().flat_map(|byte| record(&[byte])).collect();
    assert_eq!(read_for(&bytes), Err(HelloError::TooLong));
}

proptest! {
    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let header = [CLIENT_HELLO, 0, 0, u8::try_from(bytes.len()).unwrap()];
        for bytes in [&bytes, &record(&[&header, &bytes[..]].concat())] {
            prop_assert!(read_for(bytes) != Ok(true));
        }
    }

    #[test]
    fn a_changed_byte_asks_for_nobody_else(at in 0_usize..80, to in any::<u8>()) {
        let good = hello(&[server("example.com")]);
        let mut bytes = good.clone();
        let at = at % bytes.len();
        bytes[at] = to;
        if read_for(&bytes) == Ok(true) {
            let text = String::from_utf8_lossy(&bytes).to_lowercase();
            prop_assert!(text.contains("example.com"), "{at} {to}");
        }
    }
}

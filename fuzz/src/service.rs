//! The target for the answers of a service, from which the credential is removed.

use egress_proxy::{Held, Secrets};
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use zeroize::Zeroizing;

/// The credentials. The end of one is the beginning of the other.
const SECRETS: [&str; 2] = ["secret-1", "1-other"];
/// The header in which the API gets its credential.
const NAME: HeaderName = HeaderName::from_static("x-key");

/// Passes on all bytes but the first as an answer's body, and as its header lines. The first byte is the length of a piece of the
/// body, minus one.
pub fn service_answer(bytes: &[u8]) {
    let Some((length, body)) = bytes.split_first() else { return };
    let secrets = Secrets::new(SECRETS.map(|it| Zeroizing::new(it.as_bytes().to_vec())).into());
    let passed = passed(&secrets, body, usize::from(*length) + 1);
    assert_eq!(passed, masked(body), "{}", body.escape_ascii());
    headers(&secrets, body);
}

fn passed(secrets: &Secrets, body: &[u8], length: usize) -> Vec<u8> {
    let mut held = Held::default();
    let mut all: Vec<Bytes> = body.chunks(length).map(|it| secrets.pass(&mut held, it)).collect();
    all.push(held.rest());
    all.concat()
}

/// Returns the body with a star for each byte of a credential, found one byte at a time.
fn masked(body: &[u8]) -> Vec<u8> {
    let mut masked = body.to_vec();
    for at in 0..body.len() {
        for secret in SECRETS.map(str::as_bytes) {
            if body[at..].starts_with(secret) {
                masked[at..at + secret.len()].fill(b'*');
            }
        }
    }
    masked
}

/// No header of an answer that is passed on has a credential, sets a cookie or has the name of the credential's header.
fn headers(secrets: &Secrets, lines: &[u8]) {
    let mut answer = Response::new(());
    for line in lines.split(|it| *it == b'\n') {
        let Some(at) = line.iter().position(|it| *it == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..at]);
        let value = HeaderValue::from_bytes(line[at + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            // A map of headers has a greatest size.
            let _full = answer.headers_mut().try_append(name, value);
        }
    }
    let credential = (NAME, HeaderValue::from_static(SECRETS[0]));
    let Ok(answer) = secrets.checked(answer, &[credential]) else { return };
    for (name, value) in answer.headers() {
        assert!(![NAME, HeaderName::from_static("set-cookie")].contains(name), "{name}");
        assert_eq!(masked(value.as_bytes()), value.as_bytes(), "{name}");
    }
}

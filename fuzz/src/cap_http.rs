//! The target for requests that a component writes as files, and for their answers.

use std::net::SocketAddr;

use box_init::cap_http::message::{Answer, Framing, MAX_HEAD, Request, copy_body, read_head};

/// Parses the bytes as the file of a request, and as what a server answers.
pub fn cap_http(bytes: &[u8]) {
    for is_all in [true, false] {
        if let Ok(request) = Request::parse(bytes, is_all) {
            assert!(request.length <= bytes.len());
            one_head(&request, (bytes.len() - request.length) as u64);
        }
    }
    answer(bytes);
}

/// Whatever is in a file, the request has one head with one `host`, and at most one length.
fn one_head(request: &Request, body: u64) {
    let head = request.encoded(SocketAddr::from(([127, 0, 0, 1], 80)), body);
    let text = String::from_utf8_lossy(&head).to_lowercase();
    assert_eq!(text.find("\r\n\r\n"), Some(text.len() - 4), "{text:?}");
    assert!(!text.replace("\r\n", "").contains(['\r', '\n']), "{text:?}");
    let count = |name: &str| text.matches(&format!("\r\n{name}:")).count();
    assert_eq!((count("host"), count("connection"), count("transfer-encoding")), (1, 1, 0));
    assert!(count("content-length") <= 1, "{text:?}");
    assert_eq!(
        text.contains(&format!("\r\ncontent-length: {body}\r\n")),
        count("content-length") == 1
    );
}

/// An answer's file has no header about the connection, and no more bytes than the server has sent.
fn answer(bytes: &[u8]) {
    let mut rest = bytes;
    let Ok(head) = read_head(&mut rest) else { return };
    assert!(head.len() <= MAX_HEAD && bytes.starts_with(&head));
    for asks_for_head in [false, true] {
        let Some(answer) = Answer::parse(&head, asks_for_head) else { continue };
        assert!(answer.status >= 100 && answer.text.ends_with(b"\n"));
        assert!(!asks_for_head || answer.framing == Framing::Empty);
        let text = String::from_utf8_lossy(&answer.text).to_lowercase();
        assert!(!text.contains("\ntransfer-encoding:") && !text.contains("\nconnection:"));
        let mut body = Vec::new();
        let copied = copy_body(&mut { rest }, answer.framing, &mut body);
        assert!(body.len() <= rest.len());
        if let (Ok(()), Framing::Length(length)) = (copied, answer.framing) {
            assert_eq!(body.len() as u64, length);
        }
    }
}

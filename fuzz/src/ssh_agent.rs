//! The target for the messages of programs to the SSH agent of their host.

use egress_proxy::ssh_agent::{Message, Messages, Request};

/// Reads all bytes but the first as messages: as a whole, and in pieces. The first byte is the length of a piece, minus one.
pub fn ssh_agent(bytes: &[u8]) {
    let Some((length, stream)) = bytes.split_first() else { return };
    let whole = messages(stream, stream.len().max(1));
    assert_eq!(messages(stream, usize::from(*length) + 1), whole, "the cuts matter");
    let passed: Vec<u8> = whole.iter().flat_map(Message::bytes).copied().collect();
    assert!(stream.starts_with(&passed), "a message has other bytes than the program sent");
    whole.iter().for_each(check);
}

fn messages(stream: &[u8], length: usize) -> Vec<Message> {
    let (mut all, mut found) = (Messages::default(), Vec::new());
    for piece in stream.chunks(length) {
        all.push(piece);
        loop {
            match all.take() {
                Ok(Some(message)) => found.push(message),
                Ok(None) => break,
                Err(_) => return found,
            }
        }
    }
    found
}

/// Only the list and a signature have their kinds, and what a person is shown of a signature is printable.
fn check(message: &Message) {
    let kind = message.bytes()[4];
    let Ok(request) = Request::read(message) else { return };
    match &request {
        Request::List => assert_eq!(message.bytes(), Message::list().bytes()),
        Request::Sign(signature) => {
            assert_eq!(kind, 13);
            let key = &message.bytes()[9..];
            assert!(key.starts_with(&signature.blob), "another key");
            assert!(signature.key.starts_with("SHA256:") && signature.key.len() == 50);
            let is_shown = |it: u8| it.is_ascii_graphic() || it == b' ';
            assert!(signature.purpose.bytes().all(is_shown), "{:?}", signature.purpose);
        }
        Request::Other => assert!(!matches!(kind, 11 | 13), "kind {kind}"),
    }
    assert!(!message.lists(b"a key that no message has, because no message is that long"));
    assert!(!request.is_answered_by(message) || message.is_failure(), "a request is no answer");
}

//! The answers of a server.

use std::time::Duration;

/// One step of a reply.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes unchanged.
    Send(Vec<u8>),
    /// Sends bytes repeatedly until the client closes the connection.
    Flood(Vec<u8>),
    /// Waits for this time.
    Pause(Duration),
    /// Sends nothing more and waits until the client closes the connection.
    Hang,
    /// Closes the connection.
    Break,
}

/// The steps of one connection after its request was read.
pub type Reply = Vec<Step>;

/// Makes a reply from a status such as `200 OK`, header lines and a body. Does not add a `Content-Length`.
pub fn reply(status: &str, headers: &[&str], body: &[u8]) -> Reply {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| head.extend([header, "\r\n"]));
    head.push_str("\r\n");
    vec![Step::Send(head.into_bytes()), Step::Send(body.to_vec())]
}

/// Makes a complete answer with a body and its length.
pub fn file(body: &[u8]) -> Reply {
    reply("200 OK", &[&length(body.len())], body)
}

/// Makes a redirect (302) to a location.
pub fn redirect(location: &str) -> Reply {
    reply("302 Found", &[&format!("Location: {location}"), "Content-Length: 0"], b"")
}

/// Makes the header line for a body's length.
pub fn length(bytes: usize) -> String {
    format!("Content-Length: {bytes}")
}

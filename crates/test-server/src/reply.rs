//! The answers of a server.

use std::time::Duration;

/// One step of a reply.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Sends bytes again and again until the client hangs up.
    Flood(Vec<u8>),
    /// Sends nothing for a time.
    Pause(Duration),
    /// Sends nothing more until the client hangs up.
    Hang,
    /// Hangs up.
    Break,
}

/// The steps of one connection after its request was read.
pub type Reply = Vec<Step>;

/// Makes a reply of a status, header lines and a body, which is not measured.
pub fn reply(status: &str, headers: &[&str], body: &[u8]) -> Reply {
    let mut head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n");
    headers.iter().for_each(|header| head.extend([header, "\r\n"]));
    head.push_str("\r\n");
    vec![Step::Send(head.into_bytes()), Step::Send(body.to_vec())]
}

/// Makes a whole answer: its length and its body.
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

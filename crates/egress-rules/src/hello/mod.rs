//! Reads which server a TLS client asks for in its first message.
//!
//! Follows [RFC 8446](https://www.rfc-editor.org/rfc/rfc8446) (records in section 5.1, ClientHello in 4.1.2) and [RFC
//! 6066, section 3](https://www.rfc-editor.org/rfc/rfc6066#section-3).

use crate::{Host, Target};

/// The type of a TLS record that contains a handshake message.
pub const HANDSHAKE: u8 = 22;

/// The longest first message that is accepted, in bytes. Today's clients send some 2 KiB, with keys of ML-KEM.
const MAX_HELLO: usize = 16 << 10;
/// The longest fragment of a record (RFC 8446, section 5.1).
const MAX_FRAGMENT: usize = 1 << 14;
/// The first two bytes of a handshake record: the record's type, and the major version, which is 3 in every version of TLS.
const RECORD: [u8; 2] = [HANDSHAKE, 3];
const RECORD_HEADER: usize = 5;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// An error in the first bytes of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// The bytes are not TLS.
    #[error("the client does not speak TLS")]
    NotTls,
    /// The message is longer than any honest message.
    #[error("the client's first message is too long")]
    TooLong,
    /// The message is malformed.
    #[error("the client's first message is malformed")]
    Malformed,
    /// The server name in the ClientHello is absent, or is not the host of the connection's [`Target`], which the client
    /// named before (for example with CONNECT).
    #[error("the client asks for another server than it has named")]
    OtherName,
}

/// Checks that a client's first bytes ask for the server of `target`. Returns `false` if more bytes are needed.
///
/// # Errors
/// [`HelloError`].
pub fn read(bytes: &[u8], target: &Target) -> Result<bool, HelloError> {
    let Some(message) = message(bytes)? else { return Ok(false) };
    let name = server_name(&message).ok_or(HelloError::Malformed)?;
    let name = name.map(Host::parse).transpose().map_err(|_| HelloError::Malformed)?;
    match name {
        Some(name @ Host::Name(_)) if name == target.host => Ok(true),
        _ => Err(HelloError::OtherName),
    }
}

/// Returns the first message, which may span several records. `None` if it is incomplete.
fn message(bytes: &[u8]) -> Result<Option<Vec<u8>>, HelloError> {
    let (mut rest, mut message) = (bytes, Vec::new());
    loop {
        if rest.iter().zip(RECORD).any(|(found, expected)| *found != expected) {
            return Err(HelloError::NotTls);
        }
        let Some((header, fragments)) = rest.split_at_checked(RECORD_HEADER) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if length == 0 || length > MAX_FRAGMENT {
            return Err(HelloError::Malformed);
        }
        let Some((fragment, next)) = fragments.split_at_checked(length) else {
            // The received part already shows whether the message has a valid type and length.
            message.extend_from_slice(fragments);
            return whole(&message).map(|_| None);
        };
        message.extend_from_slice(fragment);
        if let Some(length) = whole(&message)? {
            // A ClientHello must end with its record (RFC 8446, section 5.1), so more bytes in this record are an error.
            return if message.len() == length {
                Ok(Some(message))
            } else {
                Err(HelloError::Malformed)
            };
        }
        rest = next;
    }
}

/// Returns the length of a message; `None` if the message is incomplete.
fn whole(message: &[u8]) -> Result<Option<usize>, HelloError> {
    match message {
        [kind, ..] if *kind != CLIENT_HELLO => Err(HelloError::NotTls),
        [_, a, b, c, ..] => {
            let length = 4 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if length > MAX_HELLO {
                return Err(HelloError::TooLong);
            }
            Ok((message.len() >= length).then_some(length))
        }
        _ => Ok(None),
    }
}

/// Returns the server's name in a message: `Some(None)` if the message has no name, `None` if it is malformed.
fn server_name(message: &[u8]) -> Option<Option<&str>> {
    let mut body = Reader(message.get(4..)?);
    // Skip the legacy version and the random bytes, the session, the ciphers, and the compression.
    body.take(2 + 32)?;
    body.short_list()?;
    body.list()?;
    body.short_list()?;
    let mut extensions = Reader(body.list()?);
    let mut name = None;
    while !extensions.0.is_empty() {
        let (kind, data) = (extensions.number()?, extensions.list()?);
        if kind == SERVER_NAME {
            // Refuse a second server_name extension: the server might use the name that was not checked.
            if name.replace(host_name(data)?).is_some() {
                return None;
            }
        }
    }
    body.0.is_empty().then_some(name)
}

/// Returns the only name in the extension.
fn host_name(data: &[u8]) -> Option<&str> {
    let mut data = Reader(data);
    let mut names = Reader(data.list()?);
    let kind = *names.take(1)?.first()?;
    let name = names.list()?;
    let is_one = kind == HOST_NAME && names.0.is_empty() && data.0.is_empty();
    std::str::from_utf8(name).ok().filter(|_| is_one)
}

/// Reads fields that have a length prefix.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// Reads a field whose length prefix has two bytes.
    fn list(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.take(length.into())
    }

    /// Reads a field whose length prefix has one byte.
    fn short_list(&mut self) -> Option<&'a [u8]> {
        let length = *self.take(1)?.first()?;
        self.take(length.into())
    }
}

#[cfg(test)]
pub(crate) mod tests;

//! The messages between programs and an SSH agent
//! ([draft-ietf-sshm-ssh-agent](https://datatracker.ietf.org/doc/draft-ietf-sshm-ssh-agent/)), and the data that agents sign.
//!
//! A message is a length of four bytes, a byte with its kind, and fields. For example, `00 00 00 01 0b` asks for the list of keys.

use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use box_digest::Digest;

use crate::printable;

/// The maximum length of a message in bytes, without its length field: that of OpenSSH's agent.
const MAX_MESSAGE: usize = 256 << 10;
/// The length of the length field.
const LENGTH: usize = 4;

/// The kinds of messages: the agent does not do what it was asked, lists its keys, or has signed; a program asks for the list, or
/// for a signature.
const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// The answer to a request that the agent does not get.
pub const REFUSAL: [u8; 5] = [0, 0, 0, 1, FAILURE];

/// The message of a login, which a client signs ([RFC 4252, section 7](https://www.rfc-editor.org/rfc/rfc4252#section-7)).
const USERAUTH_REQUEST: u8 = 50;
/// The service after a login.
const CONNECTION: &[u8] = b"ssh-connection";
/// The beginning of the data of other signatures, for example of commits
/// ([PROTOCOL.sshsig](https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.sshsig)).
const SSHSIG: &[u8] = b"SSHSIG";
/// The end of the names of certificates' types
/// ([PROTOCOL.certkeys](https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.certkeys)).
const CERTIFICATE: &str = "-cert-v01@openssh.com";
/// The purpose of a signature of other data.
const UNKNOWN: &str = "unknown data";

/// Why a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A message is longer than 256 KiB.
    #[error("a message has more than 256 KiB")]
    TooLong,
    /// A message has no kind, or a request has other fields than its kind has.
    #[error("a message is malformed")]
    Malformed,
    /// The agent sends what is no answer to the request.
    #[error("the agent's answer is of another kind")]
    Answer,
}

impl From<Misuse> for io::Error {
    fn from(misuse: Misuse) -> Self {
        Self::new(io::ErrorKind::InvalidData, misuse)
    }
}

/// A whole message, with its length field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message(Vec<u8>);

impl Message {
    /// Returns the request for the list of keys.
    pub fn list() -> Self {
        Self(vec![0, 0, 0, 1, REQUEST_IDENTITIES])
    }

    /// Returns whether the message is a list of keys that has `key`. Agents read keys leniently, so other bytes can mean the same key.
    pub fn lists(&self, key: &[u8]) -> bool {
        let mut fields = self.fields();
        let mut left = if self.kind() == Some(IDENTITIES_ANSWER) { fields.number() } else { None };
        while let Some(count) = left.filter(|it| *it > 0) {
            let Some((listed, _comment)) = fields.string().zip(fields.string()) else {
                return false;
            };
            if listed == key {
                return true;
            }
            left = Some(count - 1);
        }
        false
    }

    /// Returns the message with its length field.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns whether the message says that the agent has not done what it was asked.
    pub fn is_failure(&self) -> bool {
        self.kind() == Some(FAILURE)
    }

    fn kind(&self) -> Option<u8> {
        self.0.get(LENGTH).copied()
    }

    /// Returns the fields after the kind.
    fn fields(&self) -> Fields<'_> {
        Fields(self.0.get(LENGTH + 1..).unwrap_or_default())
    }
}

/// Cuts a stream of bytes into messages.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// How many of the bytes are in messages that were taken.
    taken: usize,
}

impl Messages {
    /// Adds bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next message. `None` if it has not arrived in full.
    ///
    /// # Errors
    /// The message is longer than 256 KiB, or empty. Then the stream cannot be cut into messages any more.
    pub fn take(&mut self) -> Result<Option<Message>, Misuse> {
        let rest = &self.bytes[self.taken..];
        let Some(length) = rest.first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        match length {
            0 => return Err(Misuse::Malformed),
            1..=MAX_MESSAGE => {}
            _ => return Err(Misuse::TooLong),
        }
        let end = LENGTH + length;
        let Some(message) = rest.get(..end) else { return Ok(None) };
        let message = Message(message.to_vec());
        self.taken += end;
        Ok(Some(message))
    }
}

/// What a message of a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// The list of keys. The agent gets the message.
    List,
    /// A signature. The agent gets the message.
    Sign(Signature),
    /// Anything else, for example to add or remove a key, or an extension. The agent does not get the message.
    Other,
}

/// A signature that a program asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The key.
    pub blob: Vec<u8>,
    /// The fingerprint of the key, as `ssh-add -l` prints it.
    pub key: String,
    /// What the signature is for, in words.
    pub purpose: String,
}

impl Request {
    /// Reads a message of a program.
    ///
    /// # Errors
    /// [`Misuse::Malformed`].
    pub fn read(message: &Message) -> Result<Self, Misuse> {
        let fields = message.fields();
        let read = match message.kind() {
            Some(REQUEST_IDENTITIES) => fields.end().map(|()| Self::List),
            Some(SIGN_REQUEST) => fields.signature().map(Self::Sign),
            _ => Some(Self::Other),
        };
        read.ok_or(Misuse::Malformed)
    }

    /// Returns whether a message is an answer to this request.
    pub fn is_answered_by(&self, message: &Message) -> bool {
        match message.kind() {
            Some(FAILURE) => true,
            Some(IDENTITIES_ANSWER) => *self == Self::List,
            Some(SIGN_RESPONSE) => matches!(self, Self::Sign(_)),
            _ => false,
        }
    }
}

/// Reads fields one after another ([RFC 4251, section 5](https://www.rfc-editor.org/rfc/rfc4251#section-5)). Each method returns
/// `None` if the field is not whole.
struct Fields<'m>(&'m [u8]);

impl<'m> Fields<'m> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    /// Reads a string of bytes, which follows its length.
    fn string(&mut self) -> Option<&'m [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    /// Reads `count` strings, and returns them with their lengths.
    fn strings(&mut self, count: usize) -> Option<&'m [u8]> {
        let all = self.0;
        for _ in 0..count {
            self.string()?;
        }
        all.get(..all.len() - self.0.len())
    }

    /// Returns `None` unless all fields were read.
    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    /// Reads the fields of a request for a signature: the key, the data, and flags.
    fn signature(mut self) -> Option<Signature> {
        let (key, data, _flags) = (self.string()?, self.string()?, self.number()?);
        self.end()?;
        Some(Signature { blob: key.to_vec(), key: fingerprint(key), purpose: purpose(data) })
    }
}

/// Returns the fingerprint of a public key, as `ssh-add -l` prints it. A certificate has the fingerprint of its key.
pub fn fingerprint(key: &[u8]) -> String {
    let plain = key_of_certificate(key);
    let digest = Digest::of(plain.as_deref().unwrap_or(key));
    format!("SHA256:{}", BASE64_STANDARD_NO_PAD.encode(digest.as_bytes()))
}

/// Returns the public key in a certificate. `None` if `key` is none.
fn key_of_certificate(key: &[u8]) -> Option<Vec<u8>> {
    let mut fields = Fields(key);
    let name = std::str::from_utf8(fields.string()?).ok()?.strip_suffix(CERTIFICATE)?;
    let _nonce = fields.string()?;
    let count = match name {
        "ssh-ed25519" => 1,
        "sk-ecdsa-sha2-nistp256" => 3,
        // RSA, the curves of ECDSA, and Ed25519 on a security key.
        _ => 2,
    };
    let domain = if name.starts_with("sk-") { "@openssh.com" } else { "" };
    let kind = format!("{name}{domain}");
    let length = u32::try_from(kind.len()).ok()?.to_be_bytes();
    Some([&length[..], kind.as_bytes(), fields.strings(count)?].concat())
}

/// Returns in words what a signature of this data is for.
fn purpose(data: &[u8]) -> String {
    let known = login(data).map(|user| format!("login as {}", printable(&user)));
    let known = known.or_else(|| namespace(data).map(|it| format!("signature for {it}")));
    known.unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Returns the user of a login. `None` if the data is not exactly what a client signs for a login.
fn login(data: &[u8]) -> Option<String> {
    let mut fields = Fields(data);
    let _session = fields.string()?;
    let kind = fields.byte()?;
    let (user, service, method) = (fields.string()?, fields.string()?, fields.string()?);
    let has_signature = fields.byte()? == 1;
    // The algorithm and the key, and the server's key in the second method.
    let keys = match method {
        b"publickey" => 2,
        b"publickey-hostbound-v00@openssh.com" => 3,
        _ => return None,
    };
    fields.strings(keys)?;
    fields.end()?;
    let is_login = kind == USERAUTH_REQUEST && service == CONNECTION && has_signature;
    (is_login && !user.is_empty()).then(|| String::from_utf8_lossy(user).into_owned())
}

/// Returns what the signature of a file or a commit is for, such as `git`. `None` if the data is that of another signature, or if
/// the text is not printable.
fn namespace(data: &[u8]) -> Option<&str> {
    let namespace = Fields(data.strip_prefix(SSHSIG)?).string()?;
    let namespace = std::str::from_utf8(namespace).ok()?;
    (!namespace.is_empty() && namespace == printable(namespace)).then_some(namespace)
}

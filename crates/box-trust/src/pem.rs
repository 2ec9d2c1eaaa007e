//! Reads and writes PEM ([RFC 7468](https://www.rfc-editor.org/rfc/rfc7468)) of one key.

use std::str;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use zeroize::Zeroizing;

use crate::TrustError;
use crate::keys::MAX_KEY_BYTES;

/// The label of a private key in PKCS #8.
pub(crate) const PRIVATE: &str = "PRIVATE KEY";
/// The label of a public key as SubjectPublicKeyInfo.
pub(crate) const PUBLIC: &str = "PUBLIC KEY";

/// The number of characters on a line.
const LINE: usize = 64;

/// Returns the content of the only block of a text, whose label must be `label`. Text outside of the block is ignored.
///
/// # Errors
/// The text has no such block, another one, or several, or the block's base64 is malformed.
pub(crate) fn read(text: &[u8], label: &'static str) -> Result<Zeroizing<Vec<u8>>, TrustError> {
    let text = Some(text).filter(|it| it.len() <= MAX_KEY_BYTES).ok_or(TrustError::NoText)?;
    let text = str::from_utf8(text).map_err(|_| TrustError::NoText)?;
    let labels: Vec<&str> = text.lines().filter_map(begins).collect();
    match *labels {
        [found] if found == label => decode(text, label),
        [] => Err(TrustError::NoBlock(label, unbroken(text).to_owned())),
        _ => Err(refusal(&labels, label)),
    }
}

/// Returns the error for blocks that are not exactly one block with the label `label`.
fn refusal(labels: &[&str], label: &'static str) -> TrustError {
    let has = |of: &dyn Fn(&str) -> bool| labels.iter().any(|it| of(it));
    if label == PUBLIC && has(&|it| it.ends_with(PRIVATE)) {
        return TrustError::PrivateForPublic;
    }
    if has(&|it| it == "ENCRYPTED SIGSTORE PRIVATE KEY" || it == "ENCRYPTED COSIGN PRIVATE KEY") {
        return TrustError::CosignKey;
    }
    if has(&|it| it == "ENCRYPTED PRIVATE KEY") {
        return TrustError::EncryptedKey;
    }
    // openssl writes a block "EC PARAMETERS" before the key.
    if has(&|it| it == "EC PRIVATE KEY") {
        return TrustError::Sec1Key;
    }
    match labels {
        [found] => TrustError::NoBlock(label, format!(", but {}", safe_text::quote(found))),
        _ => TrustError::SeveralBlocks,
    }
}

/// Returns the end of the message for a text without a block. Secret fields of CI systems may replace line breaks by spaces.
fn unbroken(text: &str) -> &'static str {
    if text.contains("-----BEGIN ") {
        ": \"-----BEGIN …-----\" is not alone on a line; keep the line breaks of the file"
    } else {
        ""
    }
}

/// Returns the label of the line that begins a block. A text without line breaks has no such line: what looks like a label could
/// then be a key, and messages repeat labels.
fn begins(line: &str) -> Option<&str> {
    let label = line.trim_end().strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
    let is_label = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b' ';
    (label.len() <= 64 && label.bytes().all(is_label)).then_some(label)
}

/// Decodes the block of a text that has one.
fn decode(text: &str, label: &str) -> Result<Zeroizing<Vec<u8>>, TrustError> {
    let end = format!("-----END {label}-----");
    // With its capacity, it is never moved, which would leave a copy of the key.
    let mut base64 = Zeroizing::new(String::with_capacity(text.len()));
    let mut lines = text.lines().map(str::trim_end).skip_while(|it| begins(it).is_none()).skip(1);
    loop {
        match lines.next() {
            Some(line) if line == end => break,
            Some(line) => base64.push_str(line),
            None => return Err(TrustError::MalformedKey),
        }
    }
    let content = BASE64_STANDARD.decode(base64.as_bytes());
    content.map(Zeroizing::new).map_err(|_| TrustError::MalformedKey)
}

/// Writes a block.
pub(crate) fn write(label: &str, content: &[u8]) -> Zeroizing<String> {
    let base64 = Zeroizing::new(BASE64_STANDARD.encode(content));
    let size = base64.len() + base64.len() / LINE + 2 * (label.len() + 32);
    let mut text = Zeroizing::new(String::with_capacity(size));
    let mut push = |parts: [&str; 3]| parts.iter().for_each(|it| text.push_str(it));
    push(["-----BEGIN ", label, "-----\n"]);
    let mut rest = base64.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        push([line, "\n", ""]);
        rest = after;
    }
    push(["-----END ", label, "-----\n"]);
    text
}

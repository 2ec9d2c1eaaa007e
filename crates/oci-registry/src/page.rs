//! Answers that come from something else than a registry: a proxy, a filter of the network, a login page.
//!
//! Such an answer often has the status 200. Nothing of it is repeated.

use reqwest::header::{CONTENT_TYPE, HeaderMap};

use crate::error::RegistryError;
use crate::server::Server;

/// A page for a browser, in messages.
const PAGE: &str = "an HTML page";

/// Refuses a response whose headers say that it is a page for a browser.
pub(crate) fn check_headers(
    server: &Server,
    what: &str,
    headers: &HeaderMap,
) -> Result<(), RegistryError> {
    let named = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let named = named.split(';').next().unwrap_or_default().trim();
    if named.eq_ignore_ascii_case("text/html")
        || named.eq_ignore_ascii_case("application/xhtml+xml")
    {
        return Err(not_a_registry(server, what, PAGE));
    }
    Ok(())
}

/// Refuses a page for a browser in the place of a document in JSON.
pub(crate) fn check_page(server: &Server, what: &str, bytes: &[u8]) -> Result<(), RegistryError> {
    if first(bytes) == Some(b'<') { Err(not_a_registry(server, what, PAGE)) } else { Ok(()) }
}

/// Refuses what cannot be a document in JSON.
pub(crate) fn check_document(
    server: &Server,
    what: &str,
    bytes: &[u8],
) -> Result<(), RegistryError> {
    match first(bytes) {
        Some(b'{' | b'[') => Ok(()),
        Some(_) => Err(not_a_registry(server, what, "not JSON")),
        None => Err(not_a_registry(server, what, "empty")),
    }
}

/// Returns the first byte of a text that is not blank.
fn first(bytes: &[u8]) -> Option<u8> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.trim_ascii_start().first().copied()
}

fn not_a_registry(server: &Server, what: &str, found: &'static str) -> RegistryError {
    let (what, host) = (what.to_owned(), server.repository.host().to_owned());
    RegistryError::NotARegistry { what, host, found }
}

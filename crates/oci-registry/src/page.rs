//! Detects answers of a proxy, a network filter or a login page instead of a registry.
//!
//! Such an answer often has the status 200. Messages do not repeat its text.

use reqwest::header::{CONTENT_TYPE, HeaderMap};

use crate::error::RegistryError;
use crate::server::Server;

/// The description of an HTML page in messages.
const PAGE: &str = "an HTML page";

/// Rejects a response whose headers declare an HTML page.
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

/// Rejects a body that begins with `<`, as an HTML page does.
pub(crate) fn check_page(server: &Server, what: &str, bytes: &[u8]) -> Result<(), RegistryError> {
    if first(bytes) == Some(b'<') { Err(not_a_registry(server, what, PAGE)) } else { Ok(()) }
}

/// Rejects a body that does not begin with `{` or `[`, as a JSON document does.
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

/// Returns the first byte that is not white space, after an optional byte order mark.
fn first(bytes: &[u8]) -> Option<u8> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.trim_ascii_start().first().copied()
}

fn not_a_registry(server: &Server, what: &str, found: &'static str) -> RegistryError {
    let (what, host) = (what.to_owned(), server.repository.host().to_owned());
    RegistryError::NotARegistry { what, host, found }
}

//! Decodes percent encoding ([RFC 3986, section 2.1](https://www.rfc-editor.org/rfc/rfc3986#section-2.1)).

/// Replaces each `%XX` by its byte. `None` if a `%` is not followed by two digits.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(part.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok())?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

//! Which part of a file an answer has.

use reqwest::header::HeaderValue;

/// Reads `bytes FIRST-LAST/TOTAL` (RFC 9110, section 14.4) into the first byte and the total; the
/// total may be unknown, `*`.
pub fn content_range(value: &HeaderValue) -> Option<(u64, Option<u64>)> {
    let (range, total) = value.to_str().ok()?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let read = |value| content_range(&HeaderValue::from_static(value));
        assert_eq!(read("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(read("bytes 5-9/*"), Some((5, None)));
        for bad in ["", "bytes */10", "bytes 5/10", "lines 5-9/10", "bytes x-9/10", "bytes 5-9"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}

//! Bytes in JSON (RFC 4648, section 4).

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as base64, padded.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let [a, b, c] = group;
        let digits = [a >> 2, (a & 3) << 4 | b >> 4, (b & 15) << 2 | c >> 6, c & 63];
        for (at, digit) in digits.into_iter().enumerate() {
            let digit = char::from(DIGITS[usize::from(digit)]);
            text.push(if at <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc() {
        let words = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let encoded = words.map(|word| base64(word.as_bytes()));
        let vectors = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        assert_eq!(encoded, vectors);
        assert_eq!(base64(&[0xff, 0xfb, 0xfe]), "//v+");
    }
}

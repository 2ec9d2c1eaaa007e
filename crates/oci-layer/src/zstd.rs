//! zstd streams (RFC 8878).

use std::io::{self, BufRead, Read};

use zstd::Decoder;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{MAGICNUMBER, get_error_name};

/// How a frame begins.
pub const MAGIC: [u8; 4] = MAGICNUMBER.to_le_bytes();
/// The largest window that is read, as a power of two of bytes: 128 MiB, what the program zstd reads
/// without being asked to take more memory. A frame names its window, so that one that names a larger
/// one is refused before memory is taken.
const WINDOW_LOG_MAX: u32 = 27;
/// The library's error code for a larger one.
const WINDOW_TOO_LARGE: usize =
    (ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize).wrapping_neg();

/// Reads the content of all frames of a stream; skippable frames are passed over. After the last one
/// there must be nothing.
pub(super) struct Zstd<R: BufRead>(Decoder<'static, R>);

impl<R: BufRead> Zstd<R> {
    /// Starts at the first frame.
    pub(super) fn new(stream: R) -> io::Result<Self> {
        let mut decoder = Decoder::with_buffer(stream)?;
        decoder.window_log_max(WINDOW_LOG_MAX)?;
        Ok(Self(decoder))
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| {
            // Of the code, the decoder passes on the name only.
            if error.to_string() != get_error_name(WINDOW_TOO_LARGE) {
                return error;
            }
            io::Error::new(
                error.kind(),
                "its zstd window is larger than 128 MiB; compress it without --long and --ultra",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(content: &[u8]) -> Vec<u8> {
        zstd::encode_all(content, 3).unwrap()
    }

    fn read(stream: &[u8]) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        Zstd::new(stream)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// A frame that readers pass over (RFC 8878, 3.1.2).
    fn skippable(content: &[u8]) -> Vec<u8> {
        let length = u32::try_from(content.len()).unwrap();
        [&0x184D_2A53_u32.to_le_bytes(), &length.to_le_bytes(), content].concat()
    }

    #[test]
    fn frames_follow_each_other_and_some_are_skipped() {
        let note = skippable(b"a table of contents");
        for (stream, content) in [
            (vec![frame(b"one")], "one"),
            (vec![frame(b"one"), frame(b""), frame(b"two")], "onetwo"),
            (vec![note.clone(), frame(b"one"), note.clone(), frame(b"two"), note], "onetwo"),
            (vec![skippable(b""), frame(b"")], ""),
        ] {
            assert_eq!(read(&stream.concat()).unwrap(), content.as_bytes());
        }
    }

    #[test]
    fn the_last_frame_is_complete_and_nothing_follows_it() {
        let whole = frame(&[7; 100_000]);
        for rest in [&b"\0"[..], b"\0\0\0\0\0\0\0\0", b"garbage garbage", &whole[..4]] {
            assert!(read(&[&whole, rest].concat()).is_err(), "{rest:?}");
        }
        for end in 1..whole.len() {
            assert!(read(&whole[..end]).is_err(), "{end} bytes");
        }
        for end in 1..8 {
            let cut = &skippable(b"note")[..end];
            assert!(read(&[&whole, cut].concat()).is_err(), "{end} bytes of a skippable frame");
        }
    }

    /// A frame of nothing that names a window of 2^`log` bytes (RFC 8878, 3.1.1.1.2).
    fn window(log: u8) -> Vec<u8> {
        let (descriptor, last_raw_block) = (0, [1, 0, 0]);
        [&0xFD2F_B528_u32.to_le_bytes()[..], &[descriptor, (log - 10) << 3], &last_raw_block]
            .concat()
    }

    #[test]
    fn a_large_window_is_refused() {
        assert_eq!(read(&window(10)).unwrap(), b"");
        assert_eq!(read(&window(27)).unwrap(), b"");
        for log in [28, 31, 41] {
            let error = read(&window(log)).unwrap_err().to_string();
            assert!(error.starts_with("its zstd window is larger than 128 MiB"), "{error}");
        }
    }
}

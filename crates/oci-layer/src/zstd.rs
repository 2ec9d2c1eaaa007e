//! zstd streams (RFC 8878).

use std::io::{self, BufRead, Read};
use std::mem;

use zstd::Decoder;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{MAGICNUMBER, get_error_name};

use super::room::{Reservation, Room};

/// The first bytes of a frame.
pub const MAGIC: [u8; 4] = MAGICNUMBER.to_le_bytes();
/// The largest window that is accepted, as a power of two of bytes: 128 MiB, the default limit of the program zstd. A frame's
/// header has its window's size, so a larger one is refused before memory is allocated.
const MAX_WINDOW_LOG: u32 = 27;
/// The library's error code for a larger window.
const WINDOW_TOO_LARGE: usize =
    (ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize).wrapping_neg();

/// The maximum size of a frame's header, in bytes, including the magic number (RFC 8878, 3.1.1).
const MAX_HEADER: usize = 18;

/// Decompresses all frames of a stream, and ignores skippable frames. Bytes after the last frame are
/// an error.
pub(super) struct Zstd<'w, R: BufRead> {
    state: State<'w, R>,
    room: &'w Room,
}

enum State<'w, R: BufRead> {
    /// Before the first frame.
    Start(Ahead<R>),
    /// In a frame. The decoder is dropped before the memory of its window is released.
    Within(Box<Decoder<'static, Ahead<R>>>, Reservation<'w>),
    Ended,
}

impl<'w, R: BufRead> Zstd<'w, R> {
    /// Starts at the first frame.
    pub(super) const fn new(stream: R, room: &'w Room) -> Self {
        let stream = Ahead { read: Vec::new(), position: 0, inner: stream };
        Self { state: State::Start(stream), room }
    }

    /// Enters the frame at the current position of the stream.
    fn enter(&self, mut stream: Ahead<R>) -> io::Result<State<'w, R>> {
        let header = stream.look(MAX_HEADER)?;
        if !is_frame(header) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, OTHER_FORMAT));
        }
        let reserved = self.room.take(window(header));
        let mut decoder = Decoder::with_buffer(stream)?.single_frame();
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        Ok(State::Within(Box::new(decoder), reserved))
    }
}

impl<R: BufRead> Read for Zstd<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let next = match mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Ok(0),
                State::Start(stream) => self.enter(stream)?,
                State::Within(mut decoder, reserved) => {
                    match decoder.read(buffer).map_err(named)? {
                        0 => {
                            let mut stream = decoder.finish();
                            drop(reserved);
                            if stream.fill_buf()?.is_empty() {
                                return Ok(0);
                            }
                            self.enter(stream)?
                        }
                        read => {
                            self.state = State::Within(decoder, reserved);
                            return Ok(read);
                        }
                    }
                }
            };
            self.state = next;
        }
    }
}

/// Replaces the error of a window that is too large. The decoder's error contains only the name of the code.
fn named(error: io::Error) -> io::Error {
    if error.to_string() != get_error_name(WINDOW_TOO_LARGE) {
        return error;
    }
    io::Error::new(
        error.kind(),
        "its zstd window is larger than 128 MiB; compress it without --long and --ultra",
    )
}

/// The error of bytes that are not a frame.
const OTHER_FORMAT: &str =
    "it has something else than a zstd frame (RFC 8878) where one has to begin";

/// Returns whether a skippable frame begins with these bytes (RFC 8878, 3.1.2).
pub(super) const fn is_skippable(start: &[u8]) -> bool {
    matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Returns whether these bytes can be the beginning of a frame. The library may be compiled to decode formats older than RFC
/// 8878, whose memory it does not limit.
fn is_frame(header: &[u8]) -> bool {
    header.len() < MAGIC.len() || header.starts_with(&MAGIC) || is_skippable(header)
}

/// Returns the window size in a frame's header ([RFC 8878, 3.1.1.1](https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1.1)). The
/// decoder reports malformed headers.
fn window(header: &[u8]) -> u64 {
    let Some((MAGIC, [descriptor, rest @ ..])) = header.split_first_chunk().map(|(a, b)| (*a, b))
    else {
        return 0;
    };
    let is_single_segment = descriptor & 0x20 != 0;
    if !is_single_segment {
        let Some(byte) = rest.first() else { return 0 };
        let base = 1_u64 << (10 + (byte >> 3));
        return base + base / 8 * u64::from(byte & 7);
    }
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let Some(size) = rest.get(dictionary..dictionary + size) else { return 0 };
    size.iter().rev().fold(0, |value, byte| (value << 8) | u64::from(*byte))
}

/// A stream whose next bytes can be read in advance.
struct Ahead<R> {
    /// The bytes that were read in advance. The first `position` of them have been consumed.
    read: Vec<u8>,
    position: usize,
    inner: R,
}

impl<R: BufRead> Ahead<R> {
    /// Returns the next `most` bytes without consuming them, or fewer at the end of the stream.
    fn look(&mut self, most: usize) -> io::Result<&[u8]> {
        self.read.drain(..self.position);
        self.position = 0;
        while self.read.len() < most {
            let next = self.inner.fill_buf()?;
            let taken = next.len().min(most - self.read.len());
            if taken == 0 {
                break;
            }
            self.read.extend_from_slice(&next[..taken]);
            self.inner.consume(taken);
        }
        Ok(&self.read)
    }
}

impl<R: BufRead> BufRead for Ahead<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.read.get(self.position..) {
            Some(rest) if !rest.is_empty() => Ok(rest),
            _ => self.inner.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        if self.position < self.read.len() {
            self.position += amount;
        } else {
            self.inner.consume(amount);
        }
    }
}

impl<R: BufRead> Read for Ahead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
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
        Zstd::new(stream, &Room::default()).read_to_end(&mut content)?;
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

    /// An empty frame with a window of 2^`log` bytes (RFC 8878, 3.1.1.1.2).
    fn window(log: u8) -> Vec<u8> {
        let (descriptor, last_raw_block) = (0, [1, 0, 0]);
        [&0xFD2F_B528_u32.to_le_bytes()[..], &[descriptor, (log - 10) << 3], &last_raw_block]
            .concat()
    }

    #[test]
    fn a_frame_names_its_window() {
        for log in 10..=41 {
            assert_eq!(super::window(&window(log)), 1 << log);
        }
        // An eighth of the base for each of the lower bits.
        assert_eq!(super::window(&[&MAGIC[..], &[0, (3 << 3) | 5]].concat()), 8192 + 5 * 1024);
        // The size of a single segment, in 1, 2, 4 and 8 bytes, after a dictionary's number.
        let single =
            |flags: u8, rest: &[u8]| super::window(&[&MAGIC[..], &[flags | 0x20], rest].concat());
        assert_eq!(single(0, &[200]), 200);
        assert_eq!(single(1 << 6 | 1, &[9, 0, 1]), 256);
        assert_eq!(single(2 << 6 | 2, &[9, 9, 0, 0, 1, 0]), 1 << 16);
        assert_eq!(single(3 << 6 | 3, &[9, 9, 9, 9, 0, 0, 0, 0, 1, 0, 0, 0]), 1 << 32);
        for none in [&b""[..], b"garbage, and more of it", &window(20)[..5], &skippable(b"note")] {
            assert_eq!(super::window(none), 0, "{none:?}");
        }
    }

    #[test]
    fn a_frame_gives_its_room_back() {
        let room = Room::default();
        let frames = [window(27), window(27), frame(b"one"), window(27)].concat();
        let mut stream = Zstd::new(frames.as_slice(), &room);
        let mut content = Vec::new();
        stream.read_to_end(&mut content).unwrap();
        assert_eq!(content, b"one");
        assert_eq!(room.reserved(), 0);
        let mut half = Zstd::new(&frames[..12], &room);
        assert!(half.read_to_end(&mut content).is_err());
        drop(half);
        assert_eq!(room.reserved(), 0);
    }

    #[test]
    fn a_format_before_the_standard_is_refused() {
        // zstd 0.7, with a window of 128 MiB and one block of a repeated byte; only some libraries decode it.
        let old = [0x27, 0xb5, 0x2f, 0xfd, 0, 17 << 3, 0, 0, 5, 0xf0, 1, 0, b'x', 0, 0xc0, 0, 0];
        for stream in [old.to_vec(), [frame(b"one"), old.to_vec()].concat()] {
            assert_eq!(read(&stream).unwrap_err().to_string(), OTHER_FORMAT);
        }
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

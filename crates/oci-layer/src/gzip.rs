//! gzip streams ([RFC 1952](https://www.rfc-editor.org/rfc/rfc1952)), of one or several members.
//!
//! The checksum of a member is not computed, because the output's sha256 is compared with the image's config. The size
//! of a member is checked. Bytes after the last member are an error: some readers would stop there, and others would
//! continue.

use std::io::{self, BufRead, Read};

use flate2::bufread::DeflateDecoder;

/// The first bytes of a stream.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// The only method of compression.
const DEFLATE: u8 = 8;
const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;
const RESERVED: u8 = 0b1110_0000;
/// The maximum length of a name or comment, in bytes. Neither is used.
const MAX_TEXT: u64 = 64 << 10;

/// Decompresses a gzip stream.
#[derive(Debug)]
pub(super) struct Gzip<R: BufRead>(State<R>);

#[derive(Debug)]
enum State<R: BufRead> {
    /// Before a member. Contains whether it is the first.
    Between(R, bool),
    /// In a member. Contains the number of uncompressed bytes that were read from it.
    Within(DeflateDecoder<R>, u64),
    Ended,
}

impl<R: BufRead> Gzip<R> {
    /// Starts at the stream's first byte.
    pub(super) const fn new(from: R) -> Self {
        Self(State::Between(from, true))
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.0 = match std::mem::replace(&mut self.0, State::Ended) {
                State::Ended => return Ok(0),
                State::Between(mut from, is_first) => {
                    if !is_first && is_at_end(&mut from)? {
                        return Ok(0);
                    }
                    read_header(&mut from)?;
                    State::Within(DeflateDecoder::new(from), 0)
                }
                State::Within(mut member, count) => match read_on(&mut member, buffer)? {
                    0 if !buffer.is_empty() => {
                        let mut from = member.into_inner();
                        read_trailer(&mut from, count)?;
                        State::Between(from, false)
                    }
                    read => {
                        self.0 = State::Within(member, count + read as u64);
                        return Ok(read);
                    }
                },
            };
        }
    }
}

/// Reads, and retries after an interruption.
fn read_on(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

fn is_at_end(from: &mut impl BufRead) -> io::Result<bool> {
    loop {
        match from.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.map(<[u8]>::is_empty),
        }
    }
}

fn read_header(from: &mut impl BufRead) -> io::Result<()> {
    let mut header = [0; 10];
    from.read_exact(&mut header)?;
    let flags = header[3];
    if header[..2] != MAGIC || header[2] != DEFLATE || flags & RESERVED != 0 {
        return Err(invalid("there is no gzip member where one should begin"));
    }
    if flags & HAS_EXTRA != 0 {
        let mut length = [0; 2];
        from.read_exact(&mut length)?;
        skip(from, u64::from(u16::from_le_bytes(length)))?;
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            skip_text(from)?;
        }
    }
    skip(from, if flags & HAS_CHECKSUM != 0 { 2 } else { 0 })
}

fn skip(from: &mut impl BufRead, length: u64) -> io::Result<()> {
    match io::copy(&mut from.take(length), &mut io::sink())? {
        skipped if skipped == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn skip_text(from: &mut impl BufRead) -> io::Result<()> {
    let mut text = Vec::new();
    from.take(MAX_TEXT).read_until(0, &mut text)?;
    match text.last() {
        Some(0) => Ok(()),
        _ => Err(invalid("the name in a gzip member's header does not end")),
    }
}

/// Skips the checksum, which sha256 makes redundant, and checks the size modulo 2^32.
fn read_trailer(from: &mut impl Read, count: u64) -> io::Result<()> {
    let mut trailer = [0; 8];
    from.read_exact(&mut trailer)?;
    match trailer[4..] == count.to_le_bytes()[..4] {
        true => Ok(()),
        false => Err(invalid("a gzip member does not have the size that it declares")),
    }
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, GzBuilder};
    use proptest::prelude::*;

    use super::*;

    fn unpacked(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        Gzip::new(bytes).read_to_end(&mut data).map(|_| data)
    }

    fn member(data: &[u8], header: GzBuilder) -> Vec<u8> {
        let mut encoder = header.write(Vec::new(), Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_follow_each_other_whatever_their_headers_hold() {
        let first = member(b"first", GzBuilder::new().filename("n").comment("c").extra("extra"));
        let bytes = [first, member(b"", GzBuilder::new()), member(b"last", GzBuilder::new())];
        assert_eq!(unpacked(&bytes.concat()).unwrap(), b"firstlast");
        // RFC 1952, 2.3.1: a checksum of the header.
        let mut bytes = member(b"data", GzBuilder::new());
        bytes[3] |= HAS_CHECKSUM;
        bytes.splice(10..10, [1, 2]);
        assert_eq!(unpacked(&bytes).unwrap(), b"data");
    }

    #[test]
    fn what_is_no_member_is_refused() {
        let good = member(b"data", GzBuilder::new());
        for behind in [b"x".as_slice(), &[0; 512], &good[..5]] {
            assert!(unpacked(&[&good, behind].concat()).is_err());
        }
        for (at, to) in [(0, 0), (1, 0), (2, 7), (3, 0x80), (good.len() - 1, 9)] {
            let mut bytes = good.clone();
            bytes[at] = to;
            assert!(unpacked(&bytes).is_err(), "{at}");
        }
        let mut endless = good[..10].to_vec();
        endless[3] |= HAS_NAME;
        endless.resize(100 << 10, b'n');
        assert!(unpacked(&endless).is_err());
        assert!(unpacked(b"").is_err());
    }

    proptest! {
        #[test]
        fn a_cut_stream_is_an_error(
            data in proptest::collection::vec(any::<u8>(), 0..300), at in any::<prop::sample::Index>(),
        ) {
            let bytes = member(&data, GzBuilder::new().filename("name"));
            prop_assert_eq!(unpacked(&bytes).unwrap(), data);
            prop_assert!(unpacked(&bytes[..at.index(bytes.len())]).is_err());
        }
    }
}

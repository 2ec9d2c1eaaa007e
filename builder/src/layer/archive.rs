//! The members of a tar archive, one after the other (POSIX pax(1), "ustar Interchange Format").
//!
//! The reader takes no guess: what two readers could understand in two ways is an error.

use std::io::{self, BufRead};

use tar::{EntryType, Header};

use super::metadata::{Member, header_size, number};
use super::pax::{Records, check_global};
use super::{LayerErrorKind, Limits};

const BLOCK: usize = 512;

/// What the headers before a member's own say about it.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// The records of its extended headers.
    pub(super) records: Records,
    /// The path of a GNU long name.
    pub(super) path: Option<Vec<u8>>,
    /// The target of a GNU long link name.
    pub(super) target: Option<Vec<u8>>,
    /// Bytes of extended headers so far.
    bytes: usize,
    /// Whether there was any such header.
    any: bool,
}

/// Reads an archive from a stream.
pub(super) struct Archive<'a, R> {
    inner: R,
    limits: &'a Limits,
    /// How many bytes were read.
    position: u64,
    /// How many bytes of the current member's data and of its padding are still to come.
    rest: (u64, u64),
    /// The path and the offset of the current header.
    here: Option<(Vec<u8>, u64)>,
}

impl<'a, R: BufRead> Archive<'a, R> {
    /// Starts at the archive's first byte.
    pub(super) const fn new(inner: R, limits: &'a Limits) -> Self {
        Self { inner, limits, position: 0, rest: (0, 0), here: None }
    }

    /// Returns the stream.
    pub(super) fn into_inner(self) -> R {
        self.inner
    }

    /// Returns the path and the offset of the header that is to blame for an error.
    pub(super) fn here(&self) -> Option<(Vec<u8>, Option<u64>)> {
        self.here.clone().map(|(path, offset)| (path, Some(offset)))
    }

    /// Goes to the next member, over what was not read of the one before; nothing at the end.
    ///
    /// # Errors
    /// A stream or header that does not read or is beyond the limits.
    pub(super) fn next_member(&mut self) -> Result<Option<Member>, LayerErrorKind> {
        self.skip_rest()?;
        let mut extensions = Extensions::default();
        loop {
            let Some(header) = self.header(extensions.any)? else { return Ok(None) };
            match header.entry_type() {
                EntryType::XHeader | EntryType::GNULongName | EntryType::GNULongLink => {
                    self.extend(&mut extensions, &header)?;
                }
                EntryType::XGlobalHeader if extensions.any => {
                    return Err(LayerErrorKind::Malformed("extended header"));
                }
                EntryType::XGlobalHeader => {
                    let body = self.body(&header, self.limits.header_bytes)?;
                    check_global(&body)?;
                }
                _ => return self.member(header, extensions).map(Some),
            }
        }
    }

    /// Returns data of the current member as the stream has it at hand; nothing at its end.
    /// [`Self::consume`] goes on to the next.
    ///
    /// # Errors
    /// A stream that does not read or ends before the data does.
    pub(super) fn data(&mut self) -> Result<&[u8], LayerErrorKind> {
        let length = self.rest.0;
        if length == 0 {
            return Ok(&[]);
        }
        let at_hand = self.at_hand()?;
        if at_hand.is_empty() {
            return Err(ended());
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(at_hand.len());
        Ok(&at_hand[..length])
    }

    /// Goes on behind so many bytes of what [`Self::data`] gave.
    pub(super) fn consume(&mut self, length: usize) {
        self.inner.consume(length);
        self.position += length as u64;
        self.rest.0 -= length as u64;
    }

    fn member(&mut self, header: Header, extensions: Extensions) -> Result<Member, LayerErrorKind> {
        let path = Member::path_of(&header, &extensions);
        if let Some((here, _)) = &mut self.here {
            here.clone_from(&path);
        }
        let member = Member::new(header, extensions, path, self.limits)?;
        self.expect(member.size);
        Ok(member)
    }

    /// Reads one header that says something about the next member.
    fn extend(
        &mut self,
        extensions: &mut Extensions,
        header: &Header,
    ) -> Result<(), LayerErrorKind> {
        extensions.any = true;
        match header.entry_type() {
            EntryType::GNULongName => extensions.path = Some(self.long_name(header)?),
            EntryType::GNULongLink => extensions.target = Some(self.long_name(header)?),
            _ => {
                let body = self.body(header, self.limits.header_bytes - extensions.bytes)?;
                extensions.bytes += body.len();
                extensions.records.add(&body)?;
            }
        }
        Ok(())
    }

    fn long_name(&mut self, header: &Header) -> Result<Vec<u8>, LayerErrorKind> {
        let mut name = self.body(header, self.limits.path_bytes.saturating_add(1))?;
        if name.last() == Some(&0) {
            name.pop();
        }
        if name.is_empty() {
            return Err(LayerErrorKind::Malformed("long name"));
        }
        Ok(name)
    }

    /// Reads the whole data of a header that has some.
    fn body(&mut self, header: &Header, limit: usize) -> Result<Vec<u8>, LayerErrorKind> {
        let size = header_size(header)?;
        let limit = limit as u64;
        if size > limit {
            return Err(LayerErrorKind::TooLarge { what: "bytes in its extended header", limit });
        }
        self.expect(size);
        let mut body = Vec::new();
        loop {
            let data = self.data()?;
            if data.is_empty() {
                break;
            }
            body.extend_from_slice(data);
            let length = data.len();
            self.consume(length);
        }
        self.skip_rest()?;
        Ok(body)
    }

    /// Reads the next header; nothing at the end. `inside` says that a header before it wants one.
    fn header(&mut self, inside: bool) -> Result<Option<Header>, LayerErrorKind> {
        let offset = self.position;
        self.here = None;
        let block = match self.block()? {
            Some(block) if is_zero(&block) => return self.end(inside),
            Some(block) => block,
            None if inside => return Err(ended()),
            None => return Ok(None), // Some writers put nothing behind the last member.
        };
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(&block);
        let found = number(&header.as_old().cksum);
        if found != Some(checksum(&header)) {
            let error = format!("there is no tar header at byte {offset}");
            return Err(LayerErrorKind::Unreadable(io::Error::new(
                io::ErrorKind::InvalidData,
                error,
            )));
        }
        self.here = Some((header.path_bytes().into_owned(), offset));
        Ok(Some(header))
    }

    /// Reads the second zero block. Behind a lone one, some readers stop and some go on.
    fn end(&mut self, inside: bool) -> Result<Option<Header>, LayerErrorKind> {
        match self.block()? {
            _ if inside => Err(LayerErrorKind::Malformed("end of archive")),
            Some(block) if !is_zero(&block) => Err(LayerErrorKind::Malformed("end of archive")),
            _ => Ok(None),
        }
    }

    /// Reads one block; nothing where the stream ends before it.
    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, LayerErrorKind> {
        let mut block = [0; BLOCK];
        let mut filled = 0;
        while filled < BLOCK {
            match self.read(&mut block[filled..])? {
                0 if filled == 0 => return Ok(None),
                0 => return Err(ended()),
                read => filled += read,
            }
        }
        Ok(Some(block))
    }

    /// Notes the length of the data behind a header.
    const fn expect(&mut self, size: u64) {
        let over = size % BLOCK as u64;
        self.rest = (size, if over == 0 { 0 } else { BLOCK as u64 - over });
    }

    fn skip_rest(&mut self) -> Result<(), LayerErrorKind> {
        let mut left = self.rest.0 + self.rest.1;
        while left > 0 {
            let length = self.at_hand()?.len() as u64;
            if length == 0 {
                return Err(ended());
            }
            let skipped = length.min(left);
            self.inner.consume(usize::try_from(skipped).unwrap_or(usize::MAX));
            self.position += skipped;
            left -= skipped;
        }
        self.rest = (0, 0);
        Ok(())
    }

    /// Returns what the stream has at hand; nothing at its end.
    fn at_hand(&mut self) -> Result<&[u8], LayerErrorKind> {
        let limit = self.limits.archive_bytes;
        loop {
            match self.inner.fill_buf() {
                // Filled already: this takes nothing from the stream.
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error, limit)),
            }
        }
        self.inner.fill_buf().map_err(|error| unreadable(error, limit))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, LayerErrorKind> {
        let length = {
            let at_hand = self.at_hand()?;
            let length = at_hand.len().min(buffer.len());
            buffer[..length].copy_from_slice(&at_hand[..length]);
            length
        };
        self.inner.consume(length);
        self.position += length as u64;
        Ok(length)
    }
}

/// Tells a stream that does not end from one that does not read.
fn unreadable(error: io::Error, limit: u64) -> LayerErrorKind {
    if error.kind() == io::ErrorKind::FileTooLarge {
        return LayerErrorKind::TooLarge { what: "bytes when it is uncompressed", limit };
    }
    LayerErrorKind::Unreadable(error)
}

fn ended() -> LayerErrorKind {
    LayerErrorKind::Unreadable(io::ErrorKind::UnexpectedEof.into())
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Sums a header's bytes; those of the sum itself count as spaces.
fn checksum(header: &Header) -> i64 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(*byte)).sum::<i64>();
    let field = &header.as_old().cksum;
    sum(header.as_bytes()) - sum(field) + i64::from(b' ') * 8
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_END: &[u8] = &[];

    /// One member of raw bytes with its padding.
    fn raw(kind: u8, name: &[u8], data: &[u8]) -> Vec<u8> {
        with(kind, name, data, |_| {})
    }

    fn with(kind: u8, name: &[u8], data: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::new(kind));
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_size(data.len() as u64);
        change(&mut header);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }

    /// A well-formed record.
    fn record(key: &str, value: &[u8]) -> Vec<u8> {
        let body = [b" ", key.as_bytes(), b"=", value, b"\n"].concat();
        let mut length = body.len() + 1;
        while length != body.len() + length.to_string().len() {
            length = body.len() + length.to_string().len();
        }
        [length.to_string().as_bytes(), &body].concat()
    }

    fn records(records: &[(&str, &[u8])]) -> Vec<u8> {
        let body: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        raw(b'x', b"PaxHeaders/f", &body)
    }

    fn read(parts: &[&[u8]]) -> Result<Vec<Member>, LayerErrorKind> {
        let bytes = parts.concat();
        let limits = Limits::default();
        let mut archive = Archive::new(bytes.as_slice(), &limits);
        let mut members = Vec::new();
        while let Some(member) = archive.next_member()? {
            members.push(member);
        }
        Ok(members)
    }

    /// Reads one member `f` with these records before it.
    fn extended(list: &[(&str, &[u8])]) -> Result<Member, LayerErrorKind> {
        let mut members = read(&[&records(list), &raw(b'0', b"f", b""), &[0; 1024]])?;
        assert_eq!(members.len(), 1);
        Ok(members.remove(0))
    }

    fn malformed<T: std::fmt::Debug>(result: Result<T, LayerErrorKind>, what: &str) {
        match result {
            Err(LayerErrorKind::Malformed(found)) => assert_eq!(found, what),
            other => panic!("{other:?}, not a malformed {what}"),
        }
    }

    fn eof<T: std::fmt::Debug>(result: Result<T, LayerErrorKind>) {
        match result {
            Err(LayerErrorKind::Unreadable(error)) => {
                assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            }
            other => panic!("{other:?}, not an early end"),
        }
    }

    #[test]
    fn a_newline_in_a_value_starts_no_record() {
        let smuggled = b"x\n17 path=smuggled\n19 linkpath=target";
        let member = extended(&[("comment", smuggled)]).unwrap();
        assert_eq!((member.path.as_slice(), member.target), (b"f".as_slice(), None));
        let member = extended(&[("SCHILY.xattr.user.a", smuggled)]).unwrap();
        assert_eq!(member.path, b"f");
        assert_eq!(member.meta.xattrs[b"user.a".as_slice()], smuggled);
        let member = extended(&[("path", b"two\nlines"), ("linkpath", b"a\nb")]).unwrap();
        assert_eq!(member.path, b"two\nlines");
        assert_eq!(member.target.as_deref(), Some(b"a\nb".as_slice()));
    }

    #[test]
    fn the_last_of_equal_keys_wins_and_an_empty_value_deletes() {
        let member = extended(&[("path", b"first"), ("path", b"last")]).unwrap();
        assert_eq!(member.path, b"last");
        let member = extended(&[("path", b"first"), ("path", b"")]).unwrap();
        assert_eq!(member.path, b"f");
        let (one, two) = (records(&[("path", b"1"), ("uid", b"7")]), records(&[("path", b"2")]));
        let members = read(&[&one, &two, &raw(b'0', b"f", b"")]).unwrap();
        assert_eq!((members[0].path.as_slice(), members[0].meta.uid), (b"2".as_slice(), 7));
    }

    #[test]
    fn records_end_with_their_member() {
        let (header, file) = (records(&[("path", b"p")]), raw(b'0', b"f", b"data"));
        let members = read(&[&header, &file, &file]).unwrap();
        let paths: Vec<_> = members.iter().map(|member| member.path.as_slice()).collect();
        assert_eq!(paths, [b"p", b"f"]);
    }

    #[test]
    fn malformed_records_are_refused() {
        let file = raw(b'0', b"f", b"");
        for body in [
            "x",
            "5 a=",
            "05 a=\n",
            "+6 a=b\n",
            "6 a=bc\n",
            "7 a=b\n",
            "6 a=b\n\0",
            "4 =\n",
            "5 =b\n",
            "5 ab\n",
            " a=b\n",
            "0 a=b\n",
            "1 a=b\n",
            "6\ta=b\n",
            "99999999999999999999999 a=b\n",
            "6 a=b\n\n",
        ] {
            malformed(read(&[&raw(b'x', b"x", body.as_bytes()), &file]), "extended header");
            let global = read(&[&raw(b'g', b"g", body.as_bytes()), &file]);
            malformed(global, "global extended header");
        }
        assert_eq!(read(&[&raw(b'x', b"x", b"6 a=b\n"), &file]).unwrap().len(), 1);
    }

    #[test]
    fn numbers_of_records_apply_to_every_kind_of_member() {
        let list: &[(&str, &[u8])] =
            &[("uid", b"4000000000"), ("gid", b"5"), ("mtime", b"-1.5"), ("size", b"3")];
        for kind in *b"0125" {
            let body = raw(kind, b"f", b"abc");
            let zero = with(kind, b"f", b"", |_| {});
            let members = read(&[&records(list), &zero[..BLOCK], &body[BLOCK..]]).unwrap();
            assert_eq!(members[0].size, 3);
            let meta = &members[0].meta;
            assert_eq!((meta.uid, meta.gid), (4_000_000_000, 5));
            assert_eq!((meta.mtime, meta.mtime_nsec), (-2, 500_000_000));
        }
        for (key, what) in
            [("size", "size"), ("uid", "owner"), ("gid", "group"), ("mtime", "modification time")]
        {
            for bad in [b"x".as_slice(), b"+1", b" 1", b"99999999999999999999"] {
                malformed(extended(&[(key, bad)]), what);
            }
        }
        assert!(matches!(extended(&[("GNU.sparse.major", b"1")]), Err(LayerErrorKind::Sparse)));
    }

    #[test]
    fn a_global_header_may_only_comment() {
        let file = raw(b'0', b"f", b"");
        let global = |key: &str| raw(b'g', b"g", &record(key, b"1"));
        for fine in ["comment", "VENDOR.note"] {
            assert_eq!(read(&[&global(fine), &file]).unwrap().len(), 1);
        }
        for bad in [
            "path",
            "linkpath",
            "size",
            "uid",
            "gid",
            "mtime",
            "SCHILY.xattr.user.a",
            "GNU.sparse.major",
        ] {
            malformed(read(&[&global(bad), &file]), "global extended header");
        }
        let between = read(&[&records(&[("uid", b"1")]), &global("comment"), &file]);
        malformed(between, "extended header");
    }

    #[test]
    fn records_go_over_long_names_and_these_over_the_header() {
        let file = raw(b'2', b"f", b"");
        let (name, link) = (raw(b'L', b"L", b"long\0"), raw(b'K', b"K", b"to\0"));
        let members = read(&[&name, &link, &file, &file]).unwrap();
        assert_eq!(members[0].path, b"long");
        assert_eq!(members[0].target.as_deref(), Some(b"to".as_slice()));
        assert_eq!((members[1].path.as_slice(), &members[1].target), (b"f".as_slice(), &None));
        let pax = records(&[("path", b"pax"), ("linkpath", b"there")]);
        for order in [[&pax, &name, &link], [&name, &link, &pax]] {
            let members = read(&[order[0], order[1], order[2], &file]).unwrap();
            assert_eq!(members[0].path, b"pax");
            assert_eq!(members[0].target.as_deref(), Some(b"there".as_slice()));
        }
        assert_eq!(read(&[&raw(b'L', b"L", b"a\0\0"), &file]).unwrap()[0].path, b"a\0");
        malformed(read(&[&raw(b'L', b"L", b"\0"), &file]), "long name");
    }

    /// Counts what is taken from an endless stream.
    struct Endless(u64);

    impl io::Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'a');
            self.0 += buffer.len() as u64;
            Ok(buffer.len())
        }
    }

    impl BufRead for Endless {
        fn fill_buf(&mut self) -> io::Result<&[u8]> {
            Ok(b"aaaaaaaa")
        }

        fn consume(&mut self, amount: usize) {
            self.0 += amount as u64;
        }
    }

    #[test]
    fn long_bodies_are_refused_before_they_are_read() {
        let limits = Limits::default();
        for (kind, size) in [(b'x', 2 << 20), (b'g', 2 << 20), (b'L', 4098), (b'K', 1 << 40)] {
            let header = with(kind, b"x", b"", |header| header.set_size(size));
            let stream = io::Read::chain(header.as_slice(), Endless(0));
            let mut archive = Archive::new(stream, &limits);
            let result = archive.next_member();
            assert!(matches!(result, Err(LayerErrorKind::TooLarge { .. })), "{result:?}");
            assert_eq!(archive.into_inner().get_ref().1.0, 0, "nothing of the body is read");
        }
        let half = records(&[("comment", &vec![b'a'; 600 << 10])]);
        let twice = read(&[&half, &half, &raw(b'0', b"f", b"")]);
        assert!(matches!(twice, Err(LayerErrorKind::TooLarge { .. })), "{twice:?}");
    }

    #[test]
    fn an_archive_ends_with_two_zero_blocks_or_the_stream() {
        let file = raw(b'0', b"f", b"data");
        for end in [NO_END, &[0; 512], &[0; 1024], &[0; 10240]] {
            assert_eq!(read(&[&file, end]).unwrap().len(), 1);
        }
        assert_eq!(read(&[&file, &[0; 1024], b"what is behind the end"]).unwrap().len(), 1);
        malformed(read(&[&file, &[0; 512], &file]), "end of archive");
        malformed(read(&[&[0; 512], &file]), "end of archive");
        let pax = records(&[("uid", b"1")]);
        malformed(read(&[&pax, &[0; 1024]]), "end of archive");
        eof(read(&[&pax]));
        for cut in [1, 511, 513, 516, 1023] {
            eof(read(&[&file[..cut]]));
        }
        eof(read(&[&pax[..600]]));
        eof(read(&[&file, &[0; 100]]));
    }

    #[test]
    fn a_damaged_header_does_not_read() {
        let mut file = raw(b'0', b"f", b"");
        file[0] = b'g';
        assert!(matches!(read(&[&file]), Err(LayerErrorKind::Unreadable(_))));
    }

    #[test]
    fn empty_fields_are_zero_and_times_may_be_negative() {
        for blank in [0, b' '] {
            let file = with(b'0', b"f", b"", |header| {
                let old = header.as_old_mut();
                for field in [&mut old.mode[..], &mut old.uid, &mut old.gid, &mut old.mtime] {
                    field.fill(blank);
                }
                old.size.fill(blank);
            });
            let member = read(&[&file]).unwrap().remove(0);
            assert_eq!((member.size, member.meta.mode, member.meta.mtime), (0, 0, 0));
        }
        let file = with(b'0', b"f", b"", |header| {
            header.as_old_mut().mtime = [0xff; 12];
            header.as_old_mut().mtime[11] = 0xfe;
        });
        assert_eq!(read(&[&file]).unwrap()[0].meta.mtime, -2);
        let negative = with(b'0', b"f", b"", |header| header.as_old_mut().uid = [0xff; 8]);
        malformed(read(&[&negative]), "owner");
        let negative = with(b'0', b"f", b"", |header| header.as_old_mut().size = [0xff; 12]);
        malformed(read(&[&negative]), "size");
    }

    #[test]
    fn prefixes_and_data_read() {
        let file = with(b'0', b"f", b"hello", |header| {
            header.as_ustar_mut().unwrap().prefix[..3].copy_from_slice(b"a/b");
        });
        let limits = Limits::default();
        let mut archive = Archive::new(file.as_slice(), &limits);
        assert_eq!(archive.next_member().unwrap().unwrap().path, b"a/b/f");
        assert_eq!(archive.here(), Some((b"a/b/f".to_vec(), Some(0))));
        for (data, taken) in [(b"hello".as_slice(), 2), (b"llo", 3), (b"", 0)] {
            assert_eq!(archive.data().unwrap(), data);
            archive.consume(taken);
        }
        assert!(archive.next_member().unwrap().is_none());
    }
}

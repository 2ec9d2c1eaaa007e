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
    assert_eq!(result.unwrap_err().to_string(), crate::error::malformed(what).to_string());
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

fn twice<T: std::fmt::Debug>(result: Result<T, LayerErrorKind>, what: &str) {
    assert_eq!(result.unwrap_err().to_string(), crate::error::twice(what).to_string());
}

#[test]
fn what_is_said_twice_is_refused() {
    twice(extended(&[("path", b"first"), ("path", b"last")]), "record of an extended header");
    let (one, two) = (records(&[("path", b"1"), ("uid", b"7")]), records(&[("gid", b"2")]));
    twice(read(&[&one, &two, &raw(b'0', b"f", b"")]), "extended header");
    let file = raw(b'2', b"f", b"");
    let (name, link) = (raw(b'L', b"L", b"long\0"), raw(b'K', b"K", b"to\0"));
    twice(read(&[&name, &name, &file]), "long name");
    twice(read(&[&link, &link, &file]), "long link target");
    for key in ["path", "linkpath"] {
        let pax = records(&[(key, b"pax")]);
        for order in [[&pax, &name, &link], [&name, &link, &pax]] {
            twice(read(&[order[0], order[1], order[2], &file]), "name");
        }
    }
    twice(extended(&[("size", b"512")]), "size");
}

#[test]
fn an_empty_value_is_none_where_it_matters() {
    for key in ["path", "linkpath", "size", "uid", "gid", "mtime"] {
        malformed(extended(&[(key, b"")]), "extended header");
    }
    assert!(extended(&[("comment", b""), ("VENDOR.note", b"")]).is_ok());
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
        let members = read(&[&records(list), &raw(kind, b"f", b"abc")]).unwrap();
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
fn records_and_long_names_go_over_the_header() {
    let file = raw(b'2', b"f", b"");
    let (name, link) = (raw(b'L', b"L", b"long\0"), raw(b'K', b"K", b"to\0"));
    let members = read(&[&name, &link, &file, &file]).unwrap();
    assert_eq!(members[0].path, b"long");
    assert_eq!(members[0].target.as_deref(), Some(b"to".as_slice()));
    assert_eq!((members[1].path.as_slice(), &members[1].target), (b"f".as_slice(), &None));
    let pax = records(&[("path", b"pax"), ("linkpath", b"there")]);
    let members = read(&[&pax, &file]).unwrap();
    assert_eq!(members[0].path, b"pax");
    assert_eq!(members[0].target.as_deref(), Some(b"there".as_slice()));
    assert_eq!(read(&[&raw(b'L', b"L", b"a\0\0"), &file]).unwrap()[0].path, b"a\0");
    for bad in [b"\0".as_slice(), b"long", b""] {
        malformed(read(&[&raw(b'L', b"L", bad), &file]), "long name");
    }
}

/// Counts the bytes that are read from an endless stream.
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
    assert!(matches!(read(&[&file]), Err(LayerErrorKind::NoHeader(0))));
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

//! What goes wrong is said, and said rightly.

use std::io::{self, Write};

use erofs_writer::{ContentId, Contents, Error, ImageBuilder, Meta, Node};

use crate::model::{Store, meta};

/// A destination with room for so many bytes.
struct Limited {
    room: usize,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room);
        self.room -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives every content this many bytes.
struct Always(usize);

impl Contents for Always {
    fn copy(&mut self, _: &ContentId, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&vec![b'x'; self.0])
    }
}

fn with_files(sizes: &[u64]) -> ImageBuilder {
    let mut builder = ImageBuilder::new(meta());
    for (&size, number) in sizes.iter().zip(0..) {
        let content = ContentId([number; 32]);
        let id = builder.add(meta(), Node::File { size, content }).unwrap();
        builder.link(builder.root(), &[b'a' + number], id).unwrap();
    }
    builder
}

#[test]
fn a_destination_that_fails_anywhere_is_reported() {
    let sizes = [100, 500_000, 300_000];
    let mut out = Vec::new();
    let mut contents = Sized;
    let size = with_files(&sizes).write(&mut out, &mut contents).unwrap().size;
    let size = usize::try_from(size).unwrap();
    for room in [0, 1, 4096, 5000, 9000, 300_000, 600_000, size - 1] {
        let error = with_files(&sizes).write(&mut Limited { room }, &mut contents).unwrap_err();
        let Error::Write(source) = &error else { panic!("{error}") };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    }
    with_files(&sizes).write(&mut Limited { room: size }, &mut contents).unwrap();
}

/// Gives every content the size that it should have.
struct Sized;

impl Contents for Sized {
    fn copy(&mut self, _: &ContentId, size: u64, out: &mut dyn Write) -> io::Result<()> {
        io::copy(&mut io::Read::take(io::repeat(b'x'), size), out).map(drop)
    }
}

#[test]
fn contents_of_another_size_are_refused() {
    // The first lies behind its inode, the second in blocks.
    for size in [1000, 10_000] {
        let write = |given| with_files(&[size]).write(&mut Vec::new(), &mut Always(given));
        let given = usize::try_from(size).unwrap();
        write(given).unwrap();
        let error = write(given - 1).unwrap_err();
        let Error::ContentTooShort { delivered, .. } = error else { panic!("{error}") };
        assert_eq!(delivered, size - 1);
        let error = write(given + 1).unwrap_err();
        assert!(matches!(error, Error::ContentTooLong { .. }), "{error}");
    }
}

#[test]
fn an_empty_file_asks_for_no_content() {
    with_files(&[0]).write(&mut Vec::new(), &mut Always(1)).unwrap();
}

#[test]
fn a_content_that_cannot_be_read_is_named() {
    let error = with_files(&[7]).write(&mut Vec::new(), &mut Store::default()).unwrap_err();
    let Error::Content { content, source } = error else { panic!("{error}") };
    assert_eq!(content, ContentId([0; 32]));
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_wrong_tree_leaves_the_destination_alone() {
    let mut out = Vec::new();
    let mut lone = ImageBuilder::new(meta());
    lone.add(meta(), Node::Fifo).unwrap();
    let error = lone.write(&mut out, &mut Store::default()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let bad_root = ImageBuilder::new(Meta { mode: 0o10000, ..Meta::default() });
    let error = bad_root.write(&mut out, &mut Store::default()).unwrap_err();
    assert!(matches!(error, Error::InvalidMode { .. }), "{error}");
    let mut two_sizes = ImageBuilder::new(meta());
    for (name, size) in [(b"a", 1), (b"b", 2)] {
        let node = Node::File { size, content: ContentId([0; 32]) };
        let id = two_sizes.add(meta(), node).unwrap();
        two_sizes.link(two_sizes.root(), name, id).unwrap();
    }
    let error = two_sizes.write(&mut out, &mut Store::default()).unwrap_err();
    assert!(matches!(error, Error::ContentSizeMismatch { .. }), "{error}");
    assert_eq!(out, []);
}

#[test]
fn messages_say_what_and_where() {
    let mut builder = ImageBuilder::new(meta());
    let fifo = builder.add(meta(), Node::Fifo).unwrap();
    let error = builder.link(builder.root(), b"a\n/b", fifo).unwrap_err();
    assert_eq!(error.to_string(), "the name \"a\\n/b\" has a slash");
    builder.link(builder.root(), b"\xFFx", fifo).unwrap();
    let error = builder.link(builder.root(), b"\xFFx", fifo).unwrap_err();
    let expected = "the directory already has an entry named \"\\xffx\"; link one of the two only";
    assert_eq!(error.to_string(), expected);
}

//! Errors of a tree or a content are reported with their variant and message.

use std::io::{self, Write};

use box_digest::Blake3Digest;
use erofs_writer::{ContentSource, Error, ImageBuilder, Meta, Node};

use crate::model::{Store, meta};

/// A source whose contents all have this many bytes.
struct Always(usize);

impl ContentSource for Always {
    fn copy(&mut self, _: &Blake3Digest, _: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&vec![b'x'; self.0])
    }
}

fn with_files(sizes: &[u64]) -> ImageBuilder {
    let mut builder = ImageBuilder::new(meta()).unwrap();
    for (&size, number) in sizes.iter().zip(0..) {
        let content = Blake3Digest::from_bytes([number; 32]);
        let id = builder.add(meta(), Node::File { size, content }).unwrap();
        builder.link(builder.root(), &[b'a' + number], id).unwrap();
    }
    builder
}

#[test]
fn contents_of_another_size_are_refused() {
    // The first content follows its inode, and the second is in blocks.
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
    assert_eq!(content, Blake3Digest::from_bytes([0; 32]));
    assert_eq!(source.kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_wrong_tree_leaves_the_destination_alone() {
    let mut out = Vec::new();
    let mut lone = ImageBuilder::new(meta()).unwrap();
    lone.add(meta(), Node::Fifo).unwrap();
    let error = lone.write(&mut out, &mut Store::default()).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    let error = ImageBuilder::new(Meta { mode: 0o10000, ..Meta::default() }).unwrap_err();
    assert!(matches!(error, Error::InvalidMode { .. }), "{error}");
    let mut two_sizes = ImageBuilder::new(meta()).unwrap();
    for (name, size) in [(b"a", 1), (b"b", 2)] {
        let node = Node::File { size, content: Blake3Digest::from_bytes([0; 32]) };
        let id = two_sizes.add(meta(), node).unwrap();
        two_sizes.link(two_sizes.root(), name, id).unwrap();
    }
    let error = two_sizes.write(&mut out, &mut Store::default()).unwrap_err();
    assert!(matches!(error, Error::ContentSizeMismatch { .. }), "{error}");
    assert_eq!(out, []);
}

#[test]
fn messages_say_what_and_where() {
    let mut builder = ImageBuilder::new(meta()).unwrap();
    let fifo = builder.add(meta(), Node::Fifo).unwrap();
    let error = builder.link(builder.root(), b"a\n/b", fifo).unwrap_err();
    assert_eq!(error.to_string(), "the name \"a\\n/b\" has a slash");
    builder.link(builder.root(), b"\xFFx", fifo).unwrap();
    let error = builder.link(builder.root(), b"\xFFx", fifo).unwrap_err();
    let expected = "the directory already has an entry named \"\\xffx\"; link one of the two only";
    assert_eq!(error.to_string(), expected);
}

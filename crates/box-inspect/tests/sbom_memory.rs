//! Measures, in a separate process, the memory that the document of a very large package database takes.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};

use box_contract::ComponentName;
use box_digest::{Blake3Digest, Digest};
use box_inspect::sbom::Subject;
use box_tree::listing::{ImageOrigin, Listing, Origins};
use box_tree::{Content, Inode, Leaf, Meta, Origin, ReadContent, Tree};

/// The size of the database, which is a little below the limit of an apk database, in bytes.
const SIZE: usize = 62 << 20;
/// The number of packages. With the maximum of 100,000, this test takes a quarter of a minute.
const PACKAGES: usize = 40_000;
/// The maximum memory of the process, in KiB: twice the size of the database.
const MOST: u64 = 2 * (SIZE as u64 >> 10);

/// Generates the database when it is read, so that the test does not keep it in memory.
struct Database;

impl ReadContent for Database {
    fn copy_head(&mut self, _: Content, _: u64, out: &mut dyn Write) -> io::Result<()> {
        let filler = "x".repeat(SIZE / PACKAGES - 160);
        let mut entry = String::new();
        for number in 0..PACKAGES {
            entry.clear();
            let license = number % 1000;
            write!(entry, "P:package-{number:06}-dev\nV:12.34.{number:06}-r0\nA:x86_64\nL:GPL {license:06}\nT:{filler}\n")
                .and_then(|()| entry.write_str("m:Someone Somewhere <someone@example.org>\nF:usr/lib\nR:a\n\n"))
                .unwrap();
            out.write_all(entry.as_bytes())?;
        }
        Ok(())
    }
}

/// Counts the written bytes and packages, and drops them.
#[derive(Default)]
struct Count {
    bytes: usize,
    packages: usize,
}

impl Write for Count {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.packages += usize::from(piece.starts_with(b"pkg:apk/"));
        self.bytes += piece.len();
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn listing() -> Listing {
    let mut tree = Tree::default();
    let directory = tree.make_directories(b"/lib/apk/db").unwrap();
    let content = Content { hash: Blake3Digest::from_bytes([1; 32]), size: SIZE as u64 };
    let file = Inode::leaf(Meta::root_owned(0o644), Leaf::File(content));
    let file = tree.add(file.from(Origin::Layer(ComponentName::Agent, 0)));
    tree.link(directory, b"installed", file);
    let layers = vec![Digest::from_bytes([2; 32])];
    let images = vec![ImageOrigin { component: ComponentName::Agent, layers }];
    Listing {
        tree,
        origins: Origins { images, program: None, skills: Vec::new(), files: Vec::new() },
    }
}

/// Returns the peak memory of this process, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

#[test]
fn the_document_of_a_large_database_takes_twice_its_memory_at_most() {
    let mut plan = testkit::test_box::config().plan;
    plan.business = None;
    plan.agent.root = "/".to_owned();
    let listing = listing();
    let subject = Subject {
        digest: Digest::from_bytes([5; 32]),
        plan: &plan,
        listing: &listing,
        tree: Blake3Digest::from_bytes([0; 32]),
        kernel: (Digest::from_bytes([3; 32]), "Linux version 6.12.34\n"),
        init: Digest::from_bytes([4; 32]),
    };
    let mut count = Count::default();
    box_inspect::sbom::document(&subject, &mut Database).unwrap().write(&mut count).unwrap();
    println!("{} packages, {} bytes, {} KiB", count.packages, count.bytes, peak());
    assert_eq!(count.packages, PACKAGES);
    assert!(peak() <= MOST, "{} KiB", peak());
}

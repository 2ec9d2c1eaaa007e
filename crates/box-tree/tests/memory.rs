//! Measures the memory for reading a listing of the maximum size. The test is a separate process,
//! so that its peak can be measured.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is how a test fails")]

use std::fs;

use box_tree::encoding::Writer;
use box_tree::listing::{LISTING_MEMORY, Listing, Origins};
use box_tree::{Inode, Leaf, Meta, entries};

/// The memory of the root, as an estimate for [`LISTING_MEMORY`].
const ROOT: usize = 760;
/// The memory of each other entry: its name, a leaf, and its only attribute.
const ENTRY: usize = 7 + 340 + 640 + 2 * (64 + 7);
/// The maximum memory of the process, in MiB. The listing has 27 MiB.
const MOST: u64 = 512;

/// Returns the listing of a root with so many pipes, each with an attribute.
fn listing(count: usize) -> Vec<u8> {
    let mut out = Writer(b"boxbuild listing 1\n".to_vec());
    out.bytes(&serde_json::to_vec(&Origins::default()).unwrap());
    out.length(count + 1);
    let mut meta = Meta::root_owned(0o755);
    let mut entry = |before: &[u8], path: &[u8], inode: &Inode| {
        let shared = before.iter().zip(path).take_while(|(a, b)| a == b).count();
        out.length(shared);
        out.bytes(&path[shared..]);
        out.0.push(0);
        out.entry(inode, None);
    };
    entry(b"", b"/", &Inode::directory(meta.clone()));
    meta.xattrs.insert(b"user.a".to_vec(), b"1".to_vec());
    let (pipe, mut before) = (Inode::leaf(meta, Leaf::Fifo), b"/".to_vec());
    for number in 0..count {
        let path = format!("/{number:07}").into_bytes();
        entry(&before, &path, &pipe);
        before = path;
    }
    out.0
}

/// Returns the peak memory of this process, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() >> 10
}

#[test]
fn the_largest_listing_takes_no_more_than_its_bound() {
    let count = (LISTING_MEMORY - ROOT) / ENTRY;
    let bytes = listing(count);
    let read = Listing::decode(&bytes).unwrap();
    println!("{count} entries, {} MiB, {} MiB of memory", bytes.len() >> 20, peak());
    assert_eq!(entries(&read.tree).count(), count + 1);
    drop((read, bytes));
    let error = Listing::decode(&listing(count + 1)).unwrap_err().to_string();
    let place = format!("its entries take more than 576 MiB of memory, from /{count:07} on");
    assert_eq!(error, place);
    assert!(peak() <= MOST, "{} MiB", peak());
}

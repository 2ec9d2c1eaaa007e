//! Memory does not grow with the size of files.
//!
//! The kernel measures the peak of a whole process (`VmHWM` of `/proc/self/status`,
//! [proc(5)](https://man7.org/linux/man-pages/man5/proc.5.html)), so each image is written by a
//! separate process: this program, limited to one test.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::process::Command;

use box_digest::Blake3Digest;
use erofs_writer::{ContentSource, ImageBuilder, Node};

use crate::model::meta;

const SIZE: &str = "EROFS_WRITER_TEST_SIZE";
const FILES: u8 = 16;
const MIB: u64 = 1 << 20;

/// Contents of up to 64 KiB at a time, as a store would write them.
struct Made;

impl ContentSource for Made {
    fn copy(&mut self, content: &Blake3Digest, size: u64, out: &mut dyn Write) -> io::Result<()> {
        let piece = [content.as_bytes()[0]; 64 * 1024];
        let mut left = size;
        while left > 0 {
            let length = left.min(piece.len() as u64);
            out.write_all(&piece[..usize::try_from(length).unwrap()])?;
            left -= length;
        }
        Ok(())
    }
}

/// Writes an image of 16 files with this many bytes together, and prints its peak memory.
#[test]
fn an_image_of_a_given_size_is_written() {
    let size = env::var(SIZE).map_or(MIB, |size| size.parse().unwrap());
    let mut builder = ImageBuilder::new(meta()).unwrap();
    for number in 0..FILES {
        let node = Node::File {
            size: size / u64::from(FILES),
            content: Blake3Digest::from_bytes([number; 32]),
        };
        let id = builder.add(meta(), node).unwrap();
        builder.link(builder.root(), &[b'a' + number], id).unwrap();
    }
    let summary = builder.write(&mut io::sink(), &mut Made).unwrap();
    assert_eq!(summary.size, size + 2 * 4096);
    println!("{PEAK}{}", peak());
}

const PEAK: &str = "peak of this process in bytes: ";

fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn peak_of(size: u64) -> u64 {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "memory::an_image_of_a_given_size_is_written", "--nocapture"])
        .env(SIZE, size.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let (_, peak) = text.split_once(PEAK).unwrap_or_else(|| panic!("{text}"));
    peak.lines().next().unwrap().parse().unwrap()
}

#[test]
fn a_thousand_times_the_data_take_the_same_memory() {
    let [small, large] = [MIB, 1024 * MIB].map(peak_of);
    assert!(large < small + MIB, "{small} bytes for 1 MiB, {large} bytes for 1 GiB");
}

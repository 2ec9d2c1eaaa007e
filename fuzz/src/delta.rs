//! The target for deltas between blobs.

use std::fs::File;
use std::io::{self, Write};
use std::sync::OnceLock;

use box_delta::{apply, sources};

/// The size of the blob that a delta makes.
const SIZE: u64 = 20_000;
/// The size of the source, which the target gives for every digest.
const SOURCE: usize = 65_536;

/// Counts the bytes that are written, and keeps none.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Applies the bytes as a delta. Never more is written than the blob has, and all of it if the delta is accepted.
pub fn delta(bytes: &[u8]) {
    drop(sources(&mut { bytes }));
    let give = |_: &_| Some(source().map(|file| (file, SOURCE as u64)));
    let mut out = Counted(0);
    let applied = apply(&mut { bytes }, SIZE, &give, &mut out);
    assert!(out.0 <= SIZE, "{} bytes were written", out.0);
    assert!(applied.is_err() || out.0 == SIZE, "{} bytes were accepted", out.0);
}

/// Returns the source: bytes without a short period.
fn source() -> io::Result<File> {
    static FILE: OnceLock<File> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let bytes: Vec<u8> = (0..SOURCE).map(|at| ((at * at) >> 7).to_le_bytes()[0]).collect();
        let mut file = tempfile::tempfile().expect("a file for the source");
        file.write_all(&bytes).expect("the bytes of the source");
        file
    });
    file.try_clone()
}

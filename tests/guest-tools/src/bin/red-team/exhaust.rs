//! Takes what it can get.

use std::process::Command;
use std::thread;

/// Keeps every processor busy.
pub(crate) fn burn() {
    for _ in 0..8 {
        thread::spawn(|| while std::hint::black_box(true) {});
    }
    thread::park();
}

/// Takes memory, a mebibyte at a time.
pub(crate) fn hoard() {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 20]);
        std::hint::black_box(&all);
    }
}

/// Starts processes until no more can be started; prints how many there are, and ends them.
pub(crate) fn multiply() {
    let start = || Command::new("/proc/self/exe").arg("wait").spawn();
    let mut all: Vec<_> = std::iter::from_fn(|| start().ok()).take(10_000).collect();
    println!("{}", all.len());
    for process in &mut all {
        drop(process.kill());
        drop(process.wait());
    }
}

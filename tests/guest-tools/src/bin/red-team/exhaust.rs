//! Uses up CPUs, memory and processes.

use std::process::Command;
use std::thread;

/// Keeps up to eight CPUs busy forever. Prints `burning` once all threads have been started.
pub(crate) fn burn() {
    for _ in 0..8 {
        thread::spawn(|| while std::hint::black_box(true) {});
    }
    println!("burning");
    thread::park();
}

/// Allocates memory, 1 MiB at a time, forever.
pub(crate) fn hoard() {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 20]);
        std::hint::black_box(&all);
    }
}

/// Starts up to 10,000 processes until a start fails, prints their number, and kills them.
pub(crate) fn multiply() {
    let start = || Command::new("/proc/self/exe").arg("wait").spawn();
    let mut all: Vec<_> = std::iter::from_fn(|| start().ok()).take(10_000).collect();
    println!("{}", all.len());
    for process in &mut all {
        drop(process.kill());
        drop(process.wait());
    }
}

//! Writes files that a kill of the VM must not lose, and samples the disk's content at many moments.
//!
//! ```text
//! keeper write DIR                            in a box: writes and flushes files forever, and prints each one's number then
//! keeper check DIR <REPORT                    anywhere: compares the newest files whose numbers were printed
//! keeper sample PID DISK REPORT OUT COUNT     on the host: stops the VM COUNT times, and records the disk's content
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests")]

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The number of files that exist at a time.
const KEPT: u32 = 64;
/// The number of newest printed files that must exist. It is less than `KEPT`, because the last printed numbers may not have
/// reached the report when the writer removes older files.
const CHECKED: u32 = KEPT / 2;
/// The number of files in one directory.
const TOGETHER: u32 = 8;
const BLOCK: usize = 4096;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let words: Vec<_> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["write", directory] => write(Path::new(directory)),
        ["check", directory] => check(Path::new(directory)),
        ["sample", pid, disk, report, out, count] => sample(pid, disk, report, out, count),
        _ => Err("usage: keeper write|check|sample …".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("keeper: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the content of file `number`: 1 to 6,000 pseudorandom bytes.
fn content(number: u32) -> Vec<u8> {
    let mut state = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let size = usize::try_from(next() % 6_000).unwrap_or_default();
    (0..=size).map(|_| next().to_le_bytes()[0]).collect()
}

fn place(directory: &Path, number: u32) -> PathBuf {
    directory.join(format!("d{}", number / TOGETHER)).join(format!("f{number}"))
}

/// Returns the directory that contains `path`.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn write(directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir(directory)?;
    for number in 0.. {
        let path = place(directory, number);
        if number.is_multiple_of(TOGETHER) {
            fs::create_dir(parent(&path))?;
            File::open(directory)?.sync_all()?;
        }
        put(&path, number)?;
        println!("{number}");
        stdout().flush()?;
        if let Some(old) = number.checked_sub(KEPT) {
            let old = place(directory, old);
            fs::remove_file(&old)?;
            // Fails until the directory's last file is removed.
            drop(fs::remove_dir(parent(&old)));
        }
    }
    Ok(())
}

/// Writes a file durably in one of three ways: create and flush; flush a draft and rename it; append to a flushed file.
fn put(path: &Path, number: u32) -> io::Result<()> {
    let content = content(number);
    match number % 3 {
        0 => {
            let mut file = File::create(path)?;
            file.write_all(&content)?;
            file.sync_all()?;
        }
        1 => {
            let draft = path.with_extension("new");
            let mut file = File::create(&draft)?;
            file.write_all(&content)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
        }
        _ => {
            let (first, rest) = content.split_at(content.len() / 2);
            fs::write(path, first)?;
            let mut file = OpenOptions::new().append(true).open(path)?;
            file.sync_all()?;
            file.write_all(rest)?;
            file.sync_data()?;
        }
    }
    File::open(parent(path))?.sync_all()
}

fn check(directory: &Path) -> Result<(), Box<dyn Error>> {
    let mut named = Vec::new();
    for line in stdin().lock().lines() {
        named.push(line?.parse::<u32>()?);
    }
    let last = named.last().copied().unwrap_or_default();
    named.retain(|number| *number + CHECKED > last);
    for number in &named {
        let path = place(directory, *number);
        let found = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if found != content(*number) {
            return Err(format!("{} has other bytes", path.display()).into());
        }
    }
    println!("{} files are there", named.len());
    Ok(())
}

/// Writes, for each sample, the number of the report's lines and the blocks that changed since the previous sample.
fn sample(
    pid: &str,
    disk: &str,
    report: &str,
    out: &str,
    count: &str,
) -> Result<(), Box<dyn Error>> {
    let (pid, count) = (Pid::from_raw(pid.parse()?), count.parse::<u32>()?);
    let mut before = vec![0; fs::read(disk)?.len()];
    fs::create_dir_all(out)?;
    for number in 0..count {
        // Varies the delay, so that the samples hit different moments of a write.
        sleep(Duration::from_micros(500 + u64::from(number * 7919 % 101) * 50));
        kill(pid, Signal::SIGSTOP)?;
        await_stop(pid)?;
        let (now, output) = (fs::read(disk)?, fs::read(report)?);
        let lines = output.iter().filter(|byte| **byte == b'\n').count();
        let mut noted = u32::try_from(lines)?.to_le_bytes().to_vec();
        for (block, index) in now.chunks(BLOCK).zip(0_u32..) {
            let at = usize::try_from(index)? * BLOCK;
            if before[at..at + block.len()] != *block {
                noted.extend(index.to_le_bytes());
                noted.extend(block);
            }
        }
        fs::write(Path::new(out).join(format!("{number:03}")), noted)?;
        before = now;
        kill(pid, Signal::SIGCONT)?;
    }
    Ok(())
}

/// Waits until all threads of the process are stopped.
fn await_stop(pid: Pid) -> Result<(), Box<dyn Error>> {
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let stat = task?.path().join("stat");
        let is_stopped = || -> io::Result<bool> {
            let stat = fs::read_to_string(&stat)?;
            Ok(stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
        };
        while !is_stopped()? {
            sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

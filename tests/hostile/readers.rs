//! Lists archives with other readers of tar.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde::Deserialize;
use testbed::{Workspace, program};

/// An entry of an archive in another reader's listing.
#[derive(Debug, Deserialize)]
pub(crate) struct Seen {
    /// `d`irectory, `f`ile, symbolic `l`ink, `h`ard link, `c`haracter or `b`lock device, or `p`ipe.
    pub(crate) kind: char,
    pub(crate) path: Vec<u8>,
    /// The target of a symbolic or hard link.
    pub(crate) target: Vec<u8>,
    /// The major and minor number of a device.
    pub(crate) device: (u64, u64),
    /// The content of a file. From programs that only list, zeros of the file's size.
    pub(crate) content: Vec<u8>,
}

/// The entries of an archive, or `None` if the reader refuses the archive.
pub(crate) type Listing = Option<Vec<Seen>>;

/// Lists archives with Python's library, in one process.
pub(crate) fn python(archives: &[Vec<u8>]) -> Vec<Listing> {
    let script = Workspace::find().path("tests/hostile/list.py");
    all(Command::new("python3").arg(script), archives)
}

/// Lists archives with Go's library, in one process.
pub(crate) fn go(archives: &[Vec<u8>]) -> Vec<Listing> {
    let directory = tempfile::tempdir().unwrap();
    let (source, made) =
        (Workspace::find().path("tests/hostile/list.go"), directory.path().join("list"));
    program::run(Command::new("gccgo").arg("-o").arg(&made).arg(source)).unwrap();
    all(&mut Command::new(made), archives)
}

/// Lists archives with one run of `program`. Its input is each archive after its length, and its output is one line of JSON
/// per archive.
fn all(program: &mut Command, archives: &[Vec<u8>]) -> Vec<Listing> {
    let output = fed(program, |mut input| {
        for archive in archives {
            input.write_all(&(archive.len() as u64).to_le_bytes()).unwrap();
            input.write_all(archive).unwrap();
        }
    });
    assert!(output.0, "the program has failed");
    let lines = output.1.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let listings: Vec<_> = lines.map(|line| serde_json::from_slice(line).ok()).collect();
    assert_eq!(listings.len(), archives.len());
    listings
}

/// Lists an archive with the `tar` crate.
pub(crate) fn tar_crate(archive: &[u8]) -> Listing {
    let mut archive = tar::Archive::new(archive);
    let mut found = Vec::new();
    for entry in archive.entries().ok()? {
        let mut entry = entry.ok()?;
        let kind = match entry.header().entry_type() {
            tar::EntryType::Directory => 'd',
            tar::EntryType::Symlink => 'l',
            tar::EntryType::Link => 'h',
            tar::EntryType::Char => 'c',
            tar::EntryType::Block => 'b',
            tar::EntryType::Fifo => 'p',
            tar::EntryType::XGlobalHeader => continue,
            _ => 'f',
        };
        let number = |number: std::io::Result<Option<u32>>| number.ok().flatten().unwrap_or(0);
        let header = entry.header();
        let device = (number(header.device_major()).into(), number(header.device_minor()).into());
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let path = entry.path_bytes().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).ok()?;
        found.push(Seen { kind, path, target, device, content });
    }
    Some(found)
}

/// Lists an archive with GNU tar.
pub(crate) fn gnu(archive: &[u8]) -> Listing {
    let mut tar = Command::new("tar");
    tar.args(["--numeric-owner", "--utc", "--full-time", "--quoting-style=escape", "-tvf", "-"]);
    // The 5 columns before the path: permissions, owner, size, day and time.
    listed(tar.env("LC_ALL", "C"), archive, 5, 2)
}

/// Lists an archive with bsdtar.
pub(crate) fn bsd(archive: &[u8]) -> Listing {
    let mut tar = Command::new("bsdtar");
    // The 8 columns before the path: permissions, links, owner, group, size, month, day, and time or year.
    listed(tar.env("LC_ALL", "C").args(["--numeric-owner", "-tvf", "-"]), archive, 8, 4)
}

/// Runs a program that lists an archive, and parses its lines. Each has `columns` words before the path, and word `size` is
/// the file's size.
fn listed(command: &mut Command, archive: &[u8], columns: usize, size: usize) -> Listing {
    let (accepted, output) = fed(command, |mut input| drop(input.write_all(archive)));
    let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let seen: Option<Vec<_>> = lines.map(|line| seen(line, columns, size)).collect();
    seen.filter(|_| accepted)
}

fn seen(line: &[u8], columns: usize, size: usize) -> Option<Seen> {
    let mut rest = std::str::from_utf8(line).ok()?;
    let mut words = Vec::new();
    for _ in 0..columns {
        let (word, after) = rest.trim_start_matches(' ').split_once(' ')?;
        words.push(word);
        rest = after;
    }
    let kind = match words[0].chars().next()? {
        '-' | 'C' => 'f',
        other => other,
    };
    let sign = match kind {
        'l' => " -> ",
        'h' => " link to ",
        _ => "\n",
    };
    let (path, target) = rest.split_once(sign).unwrap_or((rest, ""));
    let device = words[size].split_once(',');
    let device = device.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let length = if kind == 'f' { words[size].parse().ok()? } else { 0 };
    Some(Seen {
        kind,
        path: unescaped(path),
        target: unescaped(target),
        device: device.unwrap_or_default(),
        content: vec![0; length],
    })
}

/// Decodes C's escapes: `\n`, `\\`, `\123`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let octal =
            rest.get(..3).filter(|digits| digits.iter().all(|it| (b'0'..b'8').contains(it)));
        if let Some(digits) = octal {
            let digits = std::str::from_utf8(digits).unwrap();
            bytes.push(u8::from_str_radix(digits, 8).unwrap_or(b'?'));
            rest = &rest[3..];
        } else if let Some((letter, after)) = rest.split_first() {
            let letters = b"abtnvfr".iter().zip(7..).find(|(it, _)| *it == letter);
            bytes.push(letters.map_or(*letter, |(_, byte)| byte));
            rest = after;
        }
    }
    bytes
}

/// Runs a program to whose stdin `feed` writes. Returns whether the program succeeded, and its stdout.
fn fed(
    command: &mut Command,
    feed: impl FnOnce(std::process::ChildStdin) + Send,
) -> (bool, Vec<u8>) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let input = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| feed(input));
        let output = child.wait_with_output().unwrap();
        (output.status.success(), output.stdout)
    })
}

//! Compares this reader with other readers on randomly changed archives. If both accept an archive, they must list the same.

use std::io;

use box_digest::Blake3Digest;
use box_tree::Leaf;
use oci_layer::{Action, LayerIndex, Limits, read_plain};
use testbed::prerequisites::{Package, packages};
use testbed::promises::RANDOM_ARCHIVES;
use testkit::hostile::{Random, corpus, mutate};

use crate::readers::{Listing, Seen, bsd, gnu, go, python, tar_crate};

/// The number of archives, and of the accepted archives that are also given to readers that need one process per archive.
const ARCHIVES: usize = 12_000;
const LISTED: usize = 2_000;
/// The largest archive of the corpus to change, in bytes. Larger ones only take more time.
const LARGEST: usize = 16 << 10;

/// An archive that this reader accepts, and the reader's listing.
struct Accepted {
    /// The index among all archives.
    number: usize,
    archive: Vec<u8>,
    lines: Vec<String>,
}

fn archives() -> Vec<Vec<u8>> {
    let corpus: Vec<_> = corpus().iter().map(|case| case.one_layer()).collect();
    let small: Vec<_> = corpus.into_iter().filter(|archive| archive.len() <= LARGEST).collect();
    let mut random = Random::new(4);
    (0..ARCHIVES)
        .map(|number| {
            let other = &small[random.below(small.len())];
            mutate(&small[number % small.len()], other, &mut random)
        })
        .collect()
}

fn accepted(archives: Vec<Vec<u8>>) -> Vec<Accepted> {
    let limits = Limits::default();
    let read = |(number, archive): (usize, Vec<u8>)| {
        let index =
            read_plain(archive.as_slice(), &mut io::sink(), &mut io::sink(), &limits).ok()?;
        Some(Accepted { number, lines: ours(&index), archive })
    };
    archives.into_iter().enumerate().filter_map(read).collect()
}

/// Returns this reader's listing, one line per change.
fn ours(index: &LayerIndex) -> Vec<String> {
    let line = |change: &oci_layer::Change| {
        let path = change.path.as_slice();
        match &change.action {
            Action::Directory(_) => line('d', path, ""),
            Action::HardLink(target) => line('h', path, shown(target)),
            Action::Whiteout => line('w', path, ""),
            Action::Opaque => line('o', path, ""),
            Action::Leaf(_, Leaf::File(content)) => {
                line('f', path, format!("{} {}", content.size, content.hash))
            }
            Action::Leaf(_, Leaf::Symlink(target)) => line('l', path, shown(target)),
            Action::Leaf(_, Leaf::CharDevice(major, minor)) => {
                line('c', path, format!("{major},{minor}"))
            }
            Action::Leaf(_, Leaf::BlockDevice(major, minor)) => {
                line('b', path, format!("{major},{minor}"))
            }
            Action::Leaf(_, Leaf::Fifo) => line('p', path, ""),
        }
    };
    index.changes.iter().map(line).collect()
}

/// Returns another reader's listing in the format of [`ours`].
fn theirs(listing: &[Seen]) -> Vec<String> {
    listing.iter().filter_map(their_line).collect()
}

fn their_line(seen: &Seen) -> Option<String> {
    let path = normal(&seen.path);
    let split = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (folder, name) = path.split_at(split);
    if let Some(hidden) = name.strip_prefix(b".wh.") {
        return match hidden {
            b".wh..opq" => Some(line('o', folder.strip_suffix(b"/").unwrap_or(folder), "")),
            hidden if hidden.starts_with(b".wh.") => None, // AUFS
            hidden => Some(line('w', &[folder, hidden].concat(), "")),
        };
    }
    let (major, minor) = seen.device;
    Some(match seen.kind {
        'f' => {
            let hash = Blake3Digest::of(&seen.content);
            line('f', &path, format!("{} {hash}", seen.content.len()))
        }
        'l' => line('l', &path, shown(&seen.target)),
        'h' => line('h', &path, shown(&normal(&seen.target))),
        'c' | 'b' => line(seen.kind, &path, format!("{major},{minor}")),
        kind => line(kind, &path, ""),
    })
}

fn line(kind: char, path: &[u8], what: impl std::fmt::Display) -> String {
    format!("{kind} {} {what}", shown(path))
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

/// Normalizes a path: `./a//b/` becomes `a/b`.
fn normal(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|byte| *byte == b'/').filter(|part| !matches!(part, [] | [b'.']));
    parts.collect::<Vec<_>>().join(&b'/')
}

/// Removes the files' content hashes, which readers that only list do not have.
fn without_content(lines: &[String]) -> Vec<String> {
    let cut = |line: &String| line.split(" blake3:").next().unwrap_or(line).to_owned();
    lines.iter().map(cut).collect()
}

/// Compares the listings of another reader with ours, and returns how many archives both accept.
///
/// # Panics
/// If listings differ for another reason than the reader's known differences.
fn compare(reader: &Reader, found: &[(&Accepted, Listing)]) -> usize {
    let mut both = 0;
    let mut wrong = Vec::new();
    for (ours, listing) in found {
        let Some(listing) = listing else { continue };
        both += 1;
        let (mut expected, mut seen) = (ours.lines.clone(), theirs(listing));
        if reader.only_lists {
            (expected, seen) = (without_content(&expected), without_content(&seen));
        }
        if expected == seen {
            continue;
        }
        match reader.known.iter().find(|known| (known.applies)(&ours.archive)) {
            Some(known) => println!("{}, archive {}: {}", reader.name, ours.number, known.reason),
            None => wrong.push(format!("{}: they {seen:#?}, we {expected:#?}\n", ours.number)),
        }
    }
    let count = wrong.len();
    wrong.truncate(5);
    assert!(wrong.is_empty(), "{}: {count} of {both} differ:\n{}", reader.name, wrong.concat());
    both
}

/// Another reader of tar archives.
struct Reader {
    name: &'static str,
    /// Whether the reader does not return the files' content.
    only_lists: bool,
    /// The accepted differences from this reader.
    known: &'static [Known],
}

struct Known {
    /// The difference, and why it is accepted.
    reason: &'static str,
    /// Returns whether an archive can show the difference.
    applies: fn(&[u8]) -> bool,
}

const PYTHON: Reader = Reader {
    name: "Python",
    only_lists: false,
    known: &[Known {
        reason: "where GNU's headers have the time of access, it reads a prefix of the name",
        applies: has_gnu_times,
    }],
};
/// Go's `archive/tar`, which containerd, Docker, Podman and umoci use.
const GO: Reader = Reader { name: "Go", only_lists: false, known: &[] };
const GNU: Reader = Reader { name: "GNU tar", only_lists: true, known: &[] };
const BSD: Reader = Reader { name: "bsdtar", only_lists: true, known: &[] };
const TAR_CRATE: Reader = Reader {
    name: "the tar crate",
    only_lists: false,
    known: &[
        Known {
            reason: "it ends a record at the first newline, not where its length says",
            applies: has_newline_in_record,
        },
        Known {
            reason: "a file without a type but with a slash is a directory to all but it",
            applies: has_old_directory,
        },
    ],
};

/// Returns the blocks that look like tar headers, each with the offset of its end.
fn headers(archive: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let blocks = archive.chunks_exact(512).zip(1..).map(|(block, number)| (number * 512, block));
    blocks.filter(|(_, block)| block[257..].starts_with(b"ustar") || block[257..265] == [0; 8])
}

fn name(header: &[u8]) -> &[u8] {
    header[..100].split(|byte| *byte == 0).next().unwrap_or_default()
}

fn has_gnu_times(archive: &[u8]) -> bool {
    headers(archive).any(|(_, header)| header[257..].starts_with(b"ustar  ") && header[345] != 0)
}

fn has_old_directory(archive: &[u8]) -> bool {
    headers(archive).any(|(_, header)| header[156] == 0 && name(header).ends_with(b"/"))
}

fn has_newline_in_record(archive: &[u8]) -> bool {
    let is_record = |line: &[u8]| {
        let digits = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        std::str::from_utf8(digits).is_ok_and(|text| text.parse() == Ok(line.len()))
    };
    headers(archive).filter(|(_, header)| header[156] == b'x').any(|(end, header)| {
        let size = std::str::from_utf8(&header[124..135]).unwrap_or_default();
        let size = usize::from_str_radix(size.trim(), 8).unwrap_or_default();
        let body = &archive[end..archive.len().min(end.saturating_add(size))];
        !body.split_inclusive(|byte| *byte == b'\n').all(is_record)
    })
}

#[test]
fn other_readers_see_what_we_see() {
    let wanted = [Package::Bsdtar, Package::Go, Package::Python];
    packages(&wanted, &mut |line| println!("{line}")).unwrap();
    RANDOM_ARCHIVES.check(ARCHIVES as f64);
    let accepted = accepted(archives());
    let all: Vec<_> = accepted.iter().map(|it| it.archive.clone()).collect();
    let zip = |listings: Vec<Listing>| accepted.iter().zip(listings).collect::<Vec<_>>();
    let python = compare(&PYTHON, &zip(python(&all)));
    let go = compare(&GO, &zip(go(&all)));
    let each = |list: fn(&[u8]) -> Listing, count: usize| {
        zip(all.iter().take(count).map(|archive| list(archive)).collect())
    };
    let tar_crate = compare(&TAR_CRATE, &each(tar_crate, all.len()));
    let (gnu, bsd) = (compare(&GNU, &each(gnu, LISTED)), compare(&BSD, &each(bsd, LISTED)));
    println!(
        "{ARCHIVES} archives, {} accepted; of these as well by Python {python}, Go {go}, the \
         tar crate {tar_crate}, GNU tar {gnu} and bsdtar {bsd} of the first {LISTED}",
        all.len()
    );
    for both in [python, go, tar_crate, gnu, bsd] {
        assert!(both >= 1_000, "only {both} archives were compared");
    }
}

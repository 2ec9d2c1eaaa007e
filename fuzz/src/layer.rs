//! The target for layers.

use std::io;

use box_contract::ComponentName;
use box_digest::Digest;
use box_tree::entries;
use oci_layer::{Action, Change, LayerIndex, Limits, Total, flatten, read_plain};

/// Separates the lower layer in an input from the upper one.
const SEPARATOR: &[u8] = b"\n--\n";

/// Reads one uncompressed archive, or a stack of two, and checks the invariants that hold for all bytes.
pub fn layer(bytes: &[u8]) {
    let at = bytes.windows(SEPARATOR.len()).position(|part| part == SEPARATOR);
    let (lower, upper) = match at {
        Some(at) => (Some(&bytes[..at]), &bytes[at + SEPARATOR.len()..]),
        None => (None, bytes),
    };
    for change in [|archive: &[u8]| archive.to_vec(), summed] {
        let archives = lower.into_iter().chain([upper]).map(change);
        check_layers(&archives.filter_map(|archive| read(&archive)).collect::<Vec<_>>());
    }
}

/// Corrects the checksums of all headers, because the fuzzer cannot guess them.
pub(super) fn summed(archive: &[u8]) -> Vec<u8> {
    let mut archive = archive.to_vec();
    for block in archive.chunks_exact_mut(512).filter(|block| block[148..156] != [0; 8]) {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    archive
}

fn check_layers(layers: &[LayerIndex]) {
    let digest = Digest::from_bytes([0; 32]);
    let tree = || flatten(ComponentName::Agent, layers.iter().map(|index| (digest, index)));
    let Ok(tree_once) = tree() else { return };
    let Ok(tree_twice) = tree() else { panic!("the second time it fails") };
    assert_eq!(tree_once.digest(), tree_twice.digest());
    for (path, _) in entries(&tree_once).skip(1) {
        check_path(path.strip_prefix(b"/").expect("a path of a tree starts at its root"));
    }
}

fn read(archive: &[u8]) -> Option<LayerIndex> {
    let limits = Limits { entries: 1000, ..Limits::default() };
    let index = match read_plain(archive, &mut io::sink(), &mut io::sink(), &limits) {
        Ok(index) => index,
        Err(kind) => {
            assert!(!kind.to_string().is_empty());
            return None;
        }
    };
    assert!(index.changes.len() <= 1000);
    index.changes.iter().for_each(check);
    let mut stored = Vec::new();
    index.write(&mut stored).expect("memory takes everything");
    let again = LayerIndex::decode(&stored, &Total::default());
    assert_eq!(again.as_ref(), Ok(&index), "it does not read back");
    Some(index)
}

fn check(change: &Change) {
    check_path(&change.path);
    if let Action::HardLink(target) = &change.action {
        check_path(target);
    }
}

/// Checks that a path is normalized: relative, without empty components, `.` and `..`.
fn check_path(path: &[u8]) {
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && part.len() <= 255;
    let is_path = path.is_empty() || path.split(|byte| *byte == b'/').all(is_name);
    assert!(is_path && !path.contains(&0), "{}", path.escape_ascii());
}

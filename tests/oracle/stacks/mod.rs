//! Compares five hundred random stacks of layers.
//!
//! umoci applies a marker at its position in the layer, which layer.md forbids (see `markers_in_their_turn`). So the trees are
//! compared for the stack with the markers first, shallow ones before deep ones. boxbuild must make the same tree of the stack
//! in its random order, too.

mod generate;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use box_digest::Digest;
use box_tree::{InodeId, Kind, Leaf, Tree};
use oci_layer::{Action, LayerError, LayerIndex};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use testbed::promises::RANDOM_STACKS;
use testkit::images::{self, Compression, Image};

use self::generate::{Op, What, stack, to_layer};
use crate::compare::differences;
use crate::divergences::forgive_times;
use crate::listing::Listing;
use crate::{ours, theirs};

/// Counts of the comparisons.
#[derive(Debug, Default)]
struct Tally {
    stacks: usize,
    layers: usize,
    entries: usize,
    refused_by_both: usize,
    /// Stacks that are not compared because of `markers_behind_a_link_that_is_replaced`.
    behind_replaced_links: usize,
    /// Times that may differ because of `times_of_directories_that_no_entry_names`.
    forgiven_times: usize,
    /// Stacks with a marker after an entry of which umoci makes the same tree without reordering, and those of which it makes
    /// another tree (`markers_in_their_turn`).
    late_alike: usize,
    late_otherwise: usize,
}

#[test]
fn half_of_500_random_stacks_are_unpacked_alike() {
    compare_stacks(1);
}

#[test]
fn the_other_half_of_500_random_stacks_are_unpacked_alike() {
    compare_stacks(2);
}

fn compare_stacks(seed: u8) {
    let config = Config {
        cases: 250,
        max_global_rejects: 2000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let tally = RefCell::new(Tally::default());
    let outcome = TestRunner::new_with_rng(config, rng)
        .run(&stack(), |stack| compare_stack(&stack, &mut tally.borrow_mut()));
    println!("{:?}", tally.borrow());
    outcome.unwrap();
    let tally = tally.into_inner();
    RANDOM_STACKS.check(2.0 * tally.stacks as f64);
    assert!(tally.entries > 1000 && tally.behind_replaced_links < 50, "{tally:?}");
    assert!(tally.late_alike > 20 && tally.refused_by_both > 5, "{tally:?}");
}

fn compare_stack(stack: &[Vec<Op>], tally: &mut Tally) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let layout = directory.path();
    let first: Vec<_> = stack.iter().map(|ops| markers_first(ops)).collect();
    write(&first, layout, "first");
    write(stack, layout, "late");
    let layers = ours::layers(layout, "first").unwrap();
    let (first, late) = (ours::flat(&layers), ours::tree(layout, "late"));
    let digests = [&first, &late].map(|tree| tree.as_ref().ok().map(Tree::digest));
    prop_assert_eq!(digests[0], digests[1], "the order of markers counts");
    if (0..layers.len()).any(|at| has_marker_below_a_replaced_link(&layers[..=at])) {
        tally.behind_replaced_links += 1;
        return Err(TestCaseError::reject("a marker below a link that is replaced"));
    }
    let start = SystemTime::now();
    let theirs = |tag| theirs::unpacked(layout, tag);
    let (ours, unpacked) = taken_by_both(first, theirs("first"), tally)?;
    let touched = touched(&layers);
    let compare = |mut theirs| {
        let forgiven = forgive_times(&ours, &mut theirs, &touched, start);
        (differences(&ours, &theirs), forgiven)
    };
    let (found, forgiven) = compare(unpacked);
    prop_assert_eq!(found, []);
    tally.stacks += 1;
    tally.layers += stack.len();
    tally.entries += ours.len();
    tally.forgiven_times += forgiven;
    if stack.iter().any(|ops| !ops.is_sorted_by_key(|op| Reverse(op.is_marker()))) {
        let is_alike = theirs("late").is_ok_and(|late| compare(late).0.is_empty());
        tally.late_alike += usize::from(is_alike);
        tally.late_otherwise += usize::from(!is_alike);
    }
    Ok(())
}

/// Returns both trees. Rejects the stack if both programs refuse it, and fails if only one does.
fn taken_by_both(
    ours: Result<Tree, LayerError>,
    theirs: Result<Listing, String>,
    tally: &mut Tally,
) -> Result<(Listing, Listing), TestCaseError> {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => Ok((ours::listing(&ours), theirs)),
        (Err(_), Err(_)) => {
            tally.refused_by_both += 1;
            Err(TestCaseError::reject("both refuse it"))
        }
        (ours, theirs) => {
            let (ours, theirs) = (ours.err(), theirs.err());
            Err(TestCaseError::fail(format!("only one refuses it: {ours:?}, {theirs:?}")))
        }
    }
}

fn write(stack: &[Vec<Op>], layout: &Path, tag: &str) {
    let layers = stack.iter().map(|ops| to_layer(ops).to_tar());
    let image = layers.fold(Image::new(images::Config::default()), Image::with);
    image.write_layout(layout, tag, Compression::None).unwrap();
}

/// Sorts the markers to the front, shallow ones before deep ones.
fn markers_first(ops: &[Op]) -> Vec<Op> {
    let mut ops = ops.to_vec();
    ops.sort_by_key(|op| {
        let parts = op.path.split('/').filter(|part| !part.is_empty()).count();
        let order = (parts + usize::from(matches!(op.what, What::Opaque)), op.path.clone());
        (!op.is_marker(), op.is_marker().then_some(order))
    });
    ops
}

/// Returns the directories that had no entry at some point while the layers were applied, and the parents of these directories.
fn touched(layers: &[(Digest, LayerIndex)]) -> BTreeSet<Vec<u8>> {
    let mut touched = BTreeSet::new();
    for at in 0..layers.len() {
        for end in 1..=layers[at].1.changes.len() {
            let mut part = layers[..=at].to_vec();
            part[at].1.changes.truncate(end);
            touched.extend(ours::implicit(&ours::flat(&part).unwrap()));
        }
    }
    let parents = touched.clone().into_iter().map(|path| {
        let slash = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        path[..slash.max(1)].to_vec()
    });
    touched.extend(parents);
    touched
}

/// Returns whether the top layer has a marker below a symbolic link of the lower layers, and replaces such a link.
fn has_marker_below_a_replaced_link(layers: &[(Digest, LayerIndex)]) -> bool {
    let Some(((_, top), lower)) = layers.split_last() else { return false };
    let Ok(lower) = ours::flat(lower) else { return false };
    let is_marker = |action: &Action| matches!(action, Action::Opaque | Action::Whiteout);
    let replaces = |path: &[u8]| link_at(&lower, path).is_some();
    let is_behind = |path: &[u8], action: &Action| {
        let is_opaque = matches!(action, Action::Opaque);
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ends = slashes.map(|(at, _)| at).chain(is_opaque.then_some(path.len()));
        ends.any(|end| replaces(&path[..end]))
    };
    let mut changes = top.changes.iter();
    changes.clone().any(|it| is_marker(&it.action) && is_behind(&it.path, &it.action))
        && changes.any(|it| !is_marker(&it.action) && replaces(&it.path))
}

/// Returns the symbolic link at `path`, or `None` if there is another type or nothing.
fn link_at(tree: &Tree, path: &[u8]) -> Option<InodeId> {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    let (directory, name) = slash.map_or((&b""[..], path), |at| (&path[..at], &path[at + 1..]));
    let link = tree.child(tree.lookup(directory)?, name)?;
    matches!(tree.inode(link).kind, Kind::Leaf(Leaf::Symlink(_))).then_some(link)
}

//! The corpus of hostile layers, with each check left out in turn.

use std::io::{self, Cursor};

use box_digest::Digest;
use box_image::ComponentName;
use box_image::text::with_causes;
use box_tree as tree;
use testkit::hostile::{Case, Expected, corpus};

use super::guard::Guard;
use super::{Compression, LayerErrorKind, LayerSource, Limits, decode, flatten, read_plain};

#[path = "../../../tests/hostile/seen.rs"]
mod seen;

/// Reads layers and puts them on each other.
fn built(layers: &[Vec<u8>]) -> Result<Vec<String>, LayerErrorKind> {
    let limits = Limits::default();
    let read = |layer: &Vec<u8>| read_plain(layer.as_slice(), &mut io::sink(), &limits);
    let indexes = layers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let digest = Digest::from_bytes([0; 32]);
    let tree = flatten(ComponentName::Agent, indexes.iter().map(|index| (digest, index)));
    tree.map(|tree| seen::of_tree(&tree)).map_err(|error| *error.kind)
}

/// Says what is not as expected of layers, if anything.
fn difference(layers: &[Vec<u8>], expected: &Expected) -> Option<String> {
    let lines = expected.lines();
    match (built(layers), expected) {
        (Err(kind), Expected::Refused(start)) => {
            let kind = with_causes(&kind);
            (!kind.starts_with(start)).then(|| format!("{kind} is not {start}"))
        }
        (Err(kind), Expected::Tree(_)) => Some(format!("{kind:?}")),
        (Ok(found), _) => {
            let found = Some(found);
            (found != lines).then(|| format!("the tree\n{found:#?}\nis not\n{lines:#?}"))
        }
    }
}

fn differences(case: &Case) -> Vec<String> {
    let one = difference(&[case.one_layer()], &case.one).map(|what| format!("one layer: {what}"));
    let two = difference(&case.two_layers(), &case.two).map(|what| format!("two layers: {what}"));
    one.into_iter().chain(two).map(|what| format!("{}: {what}", case.name)).collect()
}

#[test]
fn what_an_attacker_sends_is_refused_or_stays_inside() {
    let wrong: Vec<_> = corpus().iter().flat_map(differences).collect();
    assert!(wrong.is_empty(), "{} of the corpus:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns whether a layer is refused that has more than `limits` allow, or of which the image says
/// something else.
fn is_refused(limits: Limits, change: impl FnOnce(&mut LayerSource)) -> bool {
    let layer = corpus().remove(0).one_layer();
    let (digest, size) = (Digest::of(&layer), layer.len() as u64);
    let mut source = LayerSource { digest, size, compression: Compression::None, diff_id: digest };
    change(&mut source);
    decode(&source, Cursor::new(layer), &mut Vec::new(), &limits).is_err()
}

/// Returns whether all that is no matter of the archive's bytes is refused.
fn is_all_refused() -> bool {
    let (default, other) = (Limits::default(), Digest::from_bytes([7; 32]));
    is_refused(Limits { entries: 0, ..default }, |_| {})
        && is_refused(Limits { index_bytes: 10, ..default }, |_| {})
        && is_refused(Limits { archive_bytes: 1024, ..default }, |_| {})
        && is_refused(default, |source| source.digest = other)
        && is_refused(default, |source| source.diff_id = other)
}

#[test]
fn without_any_one_check_something_gets_through() {
    let corpus = corpus();
    assert!(!is_refused(Limits::default(), |_| {}) && is_all_refused());
    let needless = |guard: &Guard| {
        let is_noticed = || corpus.iter().any(|case| !differences(case).is_empty());
        !guard.without(|| is_noticed() || !is_all_refused())
    };
    let needless: Vec<_> = Guard::ALL.iter().filter(|guard| needless(guard)).collect();
    assert!(needless.is_empty(), "nothing notices that these are gone: {needless:?}");
}

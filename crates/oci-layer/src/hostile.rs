//! The corpus of hostile layers, read in this process.

use std::io;

use box_contract::ComponentName;
use box_digest::Digest;
use box_tree as tree;
use safe_text::with_causes;
use testkit::hostile::{Case, Expected, corpus};

use super::{LayerErrorKind, Limits, flatten, read_plain};

#[path = "../../../tests/hostile/seen.rs"]
mod seen;

/// Reads layers, applies them in order, and lists the tree.
fn built(layers: &[Vec<u8>]) -> Result<Vec<String>, LayerErrorKind> {
    let limits = Limits::default();
    let read =
        |layer: &Vec<u8>| read_plain(layer.as_slice(), &mut io::sink(), &mut io::sink(), &limits);
    let indexes = layers.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let digest = Digest::from_bytes([0; 32]);
    let tree = flatten(ComponentName::Agent, indexes.iter().map(|index| (digest, index)));
    tree.map(|tree| seen::of_tree(&tree)).map_err(|error| *error.kind)
}

/// Returns the first difference from the expected result. `None` if there is none.
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

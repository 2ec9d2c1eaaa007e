//! A property test: plans with small changes.

use box_contract::RunPlan;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use super::parse;

/// A plan with every enforced field.
const FULL: &str = include_str!("../../../fuzz/corpus/plan/full");
/// Texts that make most plans malformed if they are inserted.
const PIECES: [&[u8]; 12] = [
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"\"\\u0000\"",
    b"\"\\ud800\"",
    b"\"/../..\"",
    b"[[[[[[[[",
    b"{\"\":",
    b"}",
    b"null",
    b"\xff\xfe",
    b"\0",
];

/// One change of a plan.
#[derive(Debug, Clone)]
enum Edit {
    /// Truncates the text at a position.
    Cut(Index),
    /// Flips bits of a byte.
    Flip(Index, u8),
    /// Removes at most this many bytes at a position.
    Remove(Index, usize),
    /// Appends a copy of at most this many bytes from a position.
    Repeat(Index, usize),
    /// Inserts a text at a position.
    Insert(Index, &'static [u8]),
    /// Replaces a value, if the text is still JSON.
    Replace(Index, Value),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let (at, length) = (any::<Index>, 1..200_usize);
    let edit = prop_oneof![
        1 => at().prop_map(Edit::Cut),
        4 => (at(), 1..=u8::MAX).prop_map(|(at, bits)| Edit::Flip(at, bits)),
        2 => (at(), length.clone()).prop_map(|(at, length)| Edit::Remove(at, length)),
        2 => (at(), length).prop_map(|(at, length)| Edit::Repeat(at, length)),
        4 => (at(), select(&PIECES[..])).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        8 => (at(), select(values())).prop_map(|(at, value)| Edit::Replace(at, value)),
    ];
    proptest::collection::vec(edit, 1..4)
}

/// Values of every JSON type. Each field of a plan accepts one or two types.
fn values() -> Vec<Value> {
    let nested = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let long = "a".repeat(10_000);
    let texts = ["", "\0", "/..", "/proc/1", "/a:b", "a\nb", &long].map(Value::from);
    let others =
        [json!(null), json!(true), json!(-1), json!(0), json!(u64::MAX), json!(1e300), json!({})];
    texts.into_iter().chain(others).chain([json!([]), json!([""]), nested]).collect()
}

fn apply(edit: &Edit, text: &mut Vec<u8>) {
    let length = text.len();
    let part = |at: &Index, wanted: usize| {
        let start = at.index(length.max(1)).min(length);
        start..(start + wanted).min(length)
    };
    match edit {
        Edit::Cut(at) => text.truncate(part(at, 0).start),
        Edit::Flip(at, bits) => text[part(at, 1)].iter_mut().for_each(|byte| *byte ^= bits),
        Edit::Remove(at, wanted) => drop(text.drain(part(at, *wanted))),
        Edit::Repeat(at, wanted) => text.extend_from_within(part(at, *wanted)),
        Edit::Insert(at, piece) => {
            let start = part(at, 0).start;
            drop(text.splice(start..start, piece.iter().copied()));
        }
        Edit::Replace(at, value) => replace(at, value, text),
    }
}

fn replace(at: &Index, value: &Value, text: &mut Vec<u8>) {
    let Ok(mut plan) = serde_json::from_slice::<Value>(text) else { return };
    let mut left = at.index(count(&plan));
    put(&mut plan, &mut left, value);
    *text = serde_json::to_vec(&plan).unwrap();
}

fn inner(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(fields) => fields.values_mut().collect(),
        _ => Vec::new(),
    }
}

/// Returns the number of values in a value, including itself.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value with the number `left`. The numbers are assigned depth-first from 0, which is `place` itself.
fn put(place: &mut Value, left: &mut usize, value: &Value) {
    if *left == 0 {
        *place = value.clone();
    }
    for child in inner(place) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        put(child, left, value);
    }
}

/// Returns whether the launcher would start a VM with this plan.
fn launcher_accepts(text: &[u8]) -> bool {
    let plan = serde_json::from_slice::<RunPlan>(text);
    plan.is_ok_and(|plan| plan.check().is_ok() && plan.unsupported().is_empty())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// Init reads or rejects each plan without a panic. It accepts exactly the plans that the launcher accepts.
    #[test]
    fn no_plan_makes_init_panic(edits in edits()) {
        let mut text = FULL.as_bytes().to_vec();
        edits.iter().for_each(|edit| apply(edit, &mut text));
        match parse(&text) {
            Ok(plan) => {
                prop_assert_eq!(plan.check(), Ok(()));
                prop_assert!(plan.unsupported().is_empty());
                let again = parse(&serde_json::to_vec(&plan).unwrap());
                prop_assert_eq!(again.unwrap(), plan);
            }
            Err(error) => {
                prop_assert!(error.to_string().len() < 5000);
                prop_assert!(!launcher_accepts(&text), "{error}");
            }
        }
    }
}

#[test]
fn the_plan_that_is_changed_is_one() {
    assert_eq!(parse(FULL.as_bytes()).unwrap().name, "full");
}

//! The rules for places of the guest, and for the directories of the host that are shown there.

use std::cmp::Ordering;

use super::{PATH_MAX, is_normalized};
use safe_text::visible;

/// Returns whether a path is another one or lies below it, part by part: `/capx` is not below `/cap`.
pub fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether one path is the other or leads to it.
pub fn overlap(one: &str, other: &str) -> bool {
    is_inside(one, other) || is_inside(other, one)
}

/// Orders paths so that the contents of a directory directly follow it.
pub fn path_order(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

/// A kind of what is at a place of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPlace {
    /// A directory of the host, or a volume: mounted in the order of their places, after all else that is mounted.
    Mount,
    /// A scratch disk.
    Scratch,
    /// The file of a secret.
    Secret,
    /// A file that is baked in.
    Baked,
}

/// Returns whether two things cannot be at their places of one component, since one would hide the other.
pub fn excludes(one: (AtPlace, &str), other: (AtPlace, &str)) -> bool {
    let [(outer, at), (inner, below)] =
        if is_inside(other.1, one.1) { [one, other] } else { [other, one] };
    let holds = matches!(outer, AtPlace::Mount | AtPlace::Scratch) && inner == AtPlace::Mount;
    is_inside(below, at) && !(holds && at != below)
}

/// Checks that each of some things of one component can be at its place beside the others.
///
/// The time for each thing grows with the number of those around it alone, of which a path has few.
///
/// # Errors
/// The index of the thing.
pub fn check_disjoint(places: &[(AtPlace, &str)]) -> Result<(), usize> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|one, other| path_order(places[*one].1, places[*other].1));
    let mut around: Vec<usize> = Vec::new();
    for at in order {
        while around.last().is_some_and(|it| !is_inside(places[at].1, places[*it].1)) {
            around.pop();
        }
        if around.iter().any(|it| excludes(places[*it], places[at])) {
            return Err(at);
        }
        around.push(at);
    }
    Ok(())
}

/// Returns why a box cannot propose a directory of the host for a share. It is to be below the one in which the box is
/// launched, so that nobody who launches it gives away what they did not see.
pub fn share_host_fault(host: &str) -> Option<&'static str> {
    if host.is_empty() {
        Some("an empty path")
    } else if host.starts_with('/') {
        Some("an absolute path")
    } else if host.split('/').any(|part| part == "..") {
        Some("`..` leads out of it")
    } else if host.chars().any(|c| visible(c) != c) {
        Some("an invisible character")
    } else if host.len() > PATH_MAX {
        Some("longer than 4096 bytes")
    } else {
        None
    }
}

/// Returns whether something can be mounted, or written, at a path of a box, as far as its form goes.
pub fn is_place(path: &str) -> bool {
    is_normalized(path) && path.len() <= PATH_MAX && !path.contains('\0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_lie_in_one_another_part_by_part() {
        assert!(is_inside("/cap", "/cap") && is_inside("/cap/x", "/cap"));
        assert!(!is_inside("/capx", "/cap") && !is_inside("/", "/cap"));
        use AtPlace::{Baked, Mount, Scratch, Secret};
        for (outer, inner, excluded) in [
            (Mount, Mount, false),
            (Scratch, Mount, false),
            (Mount, Scratch, true),
            (Mount, Secret, true),
            (Secret, Mount, true),
            (Mount, Baked, true),
        ] {
            for (one, other) in [("/a", "/a/b"), ("/a/b", "/a")] {
                let of = |path| if path == "/a" { (outer, path) } else { (inner, path) };
                assert_eq!(excludes(of(one), of(other)), excluded, "{outer:?}, {inner:?}");
            }
            assert!(excludes((outer, "/a"), (inner, "/a")));
            assert!(!excludes((outer, "/a"), (inner, "/ab")));
        }
        assert!(overlap("/a/b", "/a") && overlap("/a", "/a/b") && !overlap("/a/b", "/a/c"));
    }

    proptest! {
        /// It finds what a look at each pair would find.
        #[test]
        fn things_are_apart_if_no_two_exclude_each_other(
            things in proptest::collection::vec((0..3_usize, "(/[ab.]){1,3}"), 0..6)
        ) {
            let kinds = [AtPlace::Mount, AtPlace::Scratch, AtPlace::Secret];
            let places: Vec<_> = things.iter().map(|(kind, path)| (kinds[*kind], path.as_str())).collect();
            let pairs = || (0..places.len()).flat_map(|at| (0..at).map(move |it| (it, at)));
            let none = !pairs().any(|(one, other)| excludes(places[one], places[other]));
            prop_assert_eq!(check_disjoint(&places).is_ok(), none);
        }
    }
}

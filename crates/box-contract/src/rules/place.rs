//! Rules for mount points in the guest, and for the shared directories of the host.

use std::cmp::Ordering;

use super::{PATH_MAX, is_normalized};
use safe_text::visible;

/// Returns whether `path` equals `outer` or is inside it. Paths are compared part by part: `/cap/x` is inside `/cap`, and
/// `/capx` is not.
pub fn is_inside(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether two paths are equal, or one of them contains the other, as `/a` and `/a/b`.
pub fn overlap(one: &str, other: &str) -> bool {
    is_inside(one, other) || is_inside(other, one)
}

/// Orders paths so that the paths inside a directory directly follow the path of the directory.
pub fn path_order(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

/// The kind of a file or mount in a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountKind {
    /// A directory of the host or a volume. These are mounted after everything else, in the order of their paths.
    Mount,
    /// A scratch disk.
    Scratch,
    /// The file of a secret.
    Secret,
    /// The socket that leads to the SSH agent of the host.
    Socket,
    /// A file in the rootfs.
    Baked,
}

/// Returns whether two files or mounts exclude each other in one component, because one would hide the other. For example, a
/// directory of the host at `/a` excludes a secret at `/a/key`, but not another directory of the host at `/a/b`.
pub fn excludes(one: (MountKind, &str), other: (MountKind, &str)) -> bool {
    let [(outer, at), (inner, below)] =
        if is_inside(other.1, one.1) { [one, other] } else { [other, one] };
    let holds = matches!(outer, MountKind::Mount | MountKind::Scratch) && inner == MountKind::Mount;
    is_inside(below, at) && !(holds && at != below)
}

/// Checks that no two of a component's files and mounts exclude each other ([`excludes`]).
///
/// Each path is compared only with its ancestors in the list, of which there are few.
///
/// # Errors
/// Returns the index of an entry that another entry excludes: the first one in the order of the paths.
pub fn check_disjoint(places: &[(MountKind, &str)]) -> Result<(), usize> {
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

/// Returns why a box must not propose the directory `host` for a share, or `None` if it may. `host` must be below the
/// directory in which the box is launched, so that a launch cannot expose a directory that the user did not see.
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

/// Returns whether a path can be a mount point or a file in a box: it is normalized, has at most [`PATH_MAX`] bytes, and has no
/// control character.
pub fn is_place(path: &str) -> bool {
    is_normalized(path) && path.len() <= PATH_MAX && !path.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_lie_in_one_another_part_by_part() {
        assert!(is_inside("/cap", "/cap") && is_inside("/cap/x", "/cap"));
        assert!(!is_inside("/capx", "/cap") && !is_inside("/", "/cap"));
        use MountKind::{Baked, Mount, Scratch, Secret, Socket};
        for (outer, inner, excluded) in [
            (Mount, Mount, false),
            (Scratch, Mount, false),
            (Mount, Scratch, true),
            (Mount, Secret, true),
            (Secret, Mount, true),
            (Mount, Socket, true),
            (Socket, Mount, true),
            (Socket, Baked, true),
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
        /// The result equals a comparison of all pairs.
        #[test]
        fn things_are_apart_if_no_two_exclude_each_other(
            things in proptest::collection::vec((0..3_usize, "(/[ab.]){1,3}"), 0..6)
        ) {
            let kinds = [MountKind::Mount, MountKind::Scratch, MountKind::Secret];
            let places: Vec<_> = things.iter().map(|(kind, path)| (kinds[*kind], path.as_str())).collect();
            let pairs = || (0..places.len()).flat_map(|at| (0..at).map(move |it| (it, at)));
            let none = !pairs().any(|(one, other)| excludes(places[one], places[other]));
            prop_assert_eq!(check_disjoint(&places).is_ok(), none);
        }
    }
}

//! The policies of a Boxfile, and the number of conflicts that each decided.

use boxfile_spec::{Boxfile, Conflict, ConflictPolicy};
use diagnostics::Diagnostic;
use serde::{Deserialize, Serialize};

use super::system_file::system_file;

/// A declared policy, and the number of conflicts that it decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyUse {
    /// The declaration.
    #[serde(flatten)]
    pub declared: Conflict,
    /// The number of conflicts that its pattern matches.
    pub fits: usize,
    /// The number of these conflicts that no earlier pattern matches.
    pub decides: usize,
}

/// A declared policy that decides no conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// The index of the declaration in the Boxfile.
    pub number: usize,
    /// Whether the policy matches conflicts, but earlier policies decide all of them.
    pub late: bool,
}

impl Unused {
    /// Returns the policies that decide no conflict.
    pub fn of(policies: &[PolicyUse]) -> Vec<Self> {
        let unused = policies.iter().enumerate().filter(|(_, it)| it.decides == 0);
        unused.map(|(number, it)| Self { number, late: it.fits > 0 }).collect()
    }

    /// Returns the warning about the policy, at the policy's span in the Boxfile.
    pub fn warning(&self, boxfile: &Boxfile) -> Option<Diagnostic> {
        let span = boxfile.conflicts.get(self.number)?.pattern.span;
        let (what, label, help) = if self.late {
            (
                "unused `conflict`: an earlier one decides every path that it matches",
                "matches only what an earlier pattern matches",
                "remove it, or move it above the other: the first pattern that matches decides",
            )
        } else {
            (
                "unused `conflict`: no conflict matches this pattern",
                "matches no conflict",
                "remove it",
            )
        };
        Some(Diagnostic::warning(what, span, label).with_help(help))
    }
}

impl PolicyUse {
    /// Returns a policy that has decided no conflict yet.
    pub(super) fn unused(declared: &Conflict) -> Self {
        Self { declared: declared.clone(), fits: 0, decides: 0 }
    }

    /// Returns whether the policy names exactly this path.
    pub(super) fn names(&self, path: &[u8]) -> bool {
        self.declared.pattern.value.as_bytes() == path
    }

    /// Returns whether the policy applies to a path. A policy for a system file must name its exact path.
    fn applies(&self, path: &[u8]) -> bool {
        let may_fit = system_file(path).is_none() || self.names(path);
        may_fit && fits(self.declared.pattern.value.as_bytes(), path)
    }
}

/// Returns the policy for a conflict: the first matching pattern decides.
pub(super) fn decide(policies: &mut [PolicyUse], path: &[u8]) -> Option<ConflictPolicy> {
    let mut decided = None;
    for policy in policies.iter_mut().filter(|it| it.applies(path)) {
        policy.fits += 1;
        policy.decides += usize::from(decided.is_none());
        decided = decided.or(Some(policy.declared.policy));
    }
    decided
}

/// A position in the pattern, and one in the path.
type Positions = (usize, usize);

/// Returns whether a pattern matches a path: `*` matches any bytes except `/`, and `**` matches any bytes; both also
/// match the empty string. For example, `/etc/*` matches `/etc/hosts`, but not `/etc/ssl/certs`.
///
/// The number of steps is at most the product of both lengths: only the last `*` and the last `**` can have to match
/// more, because everything before them is matched as early as possible.
pub(super) fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let (mut p, mut at) = (0, 0);
    // The positions from which to continue if a star has to match more.
    let (mut star, mut stars): (Option<Positions>, Option<Positions>) = (None, None);
    loop {
        if pattern[p..].starts_with(b"**") {
            p += 2;
            (star, stars) = (None, Some((p, at)));
        } else if pattern.get(p) == Some(&b'*') {
            p += 1;
            star = Some((p, at));
        } else if p == pattern.len() && at == path.len() {
            return true;
        } else if at < path.len() && pattern.get(p) == Some(&path[at]) {
            (p, at) = (p + 1, at + 1);
        } else {
            star = star.filter(|(_, from)| path.get(*from).is_some_and(|byte| *byte != b'/'));
            let more = match (&mut star, &mut stars) {
                (Some(one), _) => one,
                (None, Some(any)) if any.1 < path.len() => any,
                _ => return false,
            };
            more.1 += 1;
            (p, at) = *more;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of a match, written out literally.
    fn means(pattern: &[u8], path: &[u8]) -> bool {
        let rest = |from: usize| &path[from..];
        match pattern {
            [] => path.is_empty(),
            [b'*', b'*', more @ ..] => (0..=path.len()).any(|from| means(more, rest(from))),
            [b'*', more @ ..] => {
                let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
                (0..=end).any(|from| means(more, rest(from)))
            }
            [byte, more @ ..] => path.first() == Some(byte) && means(more, rest(1)),
        }
    }

    #[test]
    fn stars_stand_for_what_the_reference_says() {
        for (pattern, path, expected) in [
            ("/etc/motd", "/etc/motd", true),
            ("/etc/motd", "/etc/motd2", false),
            ("/etc/*", "/etc/motd", true),
            ("/etc/*", "/etc/ssl/a", false),
            ("/etc/*", "/etc", false),
            ("/usr/share/doc/**", "/usr/share/doc/a/copyright", true),
            ("/usr/share/doc/**", "/usr/share/doc", false),
            ("/**", "/", true),
            ("/**/copyright", "/usr/share/doc/a/copyright", true),
            ("/*/b/**.pyc", "/a/b/c/d.pyc", true),
            ("/*/b/**.pyc", "/a/x/b/c.pyc", false),
            ("/a*b*c", "/abbc", true),
            ("/**a*b", "/x/a/ab", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let (pattern, path) =
            ("/".to_owned() + &"*a".repeat(200), "/".to_owned() + &"a".repeat(4000));
        assert!(fits(pattern.as_bytes(), path.as_bytes()));
        assert!(!fits((pattern + "b").as_bytes(), path.as_bytes()));
    }

    proptest! {
        #[test]
        fn it_means_what_it_says(pattern in "/([ab/]|\\*|\\*\\*[ab/]){0,8}", path in "/[ab/]{0,10}") {
            let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
            prop_assert_eq!(fits(pattern, path), means(pattern, path));
        }
    }
}

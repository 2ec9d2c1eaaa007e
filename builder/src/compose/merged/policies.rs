//! The policies of a Boxfile, and what each of them was good for.

use boxfile_spec::{Boxfile, Conflict, ConflictPolicy, Diagnostic};
use serde::{Deserialize, Serialize};

use super::glob::fits;
use super::special::special;

/// A declared policy, and the conflicts that it decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyUse {
    /// The declaration.
    #[serde(flatten)]
    pub declared: Conflict,
    /// The conflicts that its pattern fits.
    pub fits: usize,
    /// Those of them that no earlier pattern fits.
    pub decides: usize,
}

/// A declared policy that decides nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unused {
    /// Which of the Boxfile's it is, from 0.
    pub number: usize,
    /// Whether it fits some conflicts, and earlier ones decide all of them.
    pub late: bool,
}

impl Unused {
    /// Lists those that decide nothing.
    pub fn of(policies: &[PolicyUse]) -> Vec<Self> {
        let unused = policies.iter().enumerate().filter(|(_, it)| it.decides == 0);
        unused.map(|(number, it)| Self { number, late: it.fits > 0 }).collect()
    }

    /// Says so, where the Boxfile declares it.
    pub fn warning(&self, boxfile: &Boxfile) -> Option<Diagnostic> {
        let span = boxfile.conflicts.get(self.number)?.pattern.span;
        let (what, label, help) = if self.late {
            (
                "this policy decides nothing: an earlier one does, each time",
                "fits only what an earlier pattern fits",
                "remove it, or put it above the other: the first pattern that fits decides",
            )
        } else {
            (
                "this policy decides nothing: no conflict is where it fits",
                "fits no conflict",
                "remove it",
            )
        };
        Some(Diagnostic::warning(what, span, label).with_help(help))
    }
}

impl PolicyUse {
    /// Returns a policy that has decided nothing yet.
    pub(super) fn unused(declared: &Conflict) -> Self {
        Self { declared: declared.clone(), fits: 0, decides: 0 }
    }

    /// Returns `true` if the policy names this very path.
    pub(super) fn names(&self, path: &[u8]) -> bool {
        self.declared.pattern.value.as_bytes() == path
    }

    /// Returns `true` if the policy is about a path; a special one has to be named.
    fn applies(&self, path: &[u8]) -> bool {
        let may_fit = special(path).is_none() || self.names(path);
        may_fit && fits(self.declared.pattern.value.as_bytes(), path)
    }
}

/// Returns what is to be done about a conflict: the first pattern that fits decides.
pub(super) fn decide(policies: &mut [PolicyUse], path: &[u8]) -> Option<ConflictPolicy> {
    let mut decided = None;
    for policy in policies.iter_mut().filter(|it| it.applies(path)) {
        policy.fits += 1;
        policy.decides += usize::from(decided.is_none());
        decided = decided.or(Some(policy.declared.policy));
    }
    decided
}

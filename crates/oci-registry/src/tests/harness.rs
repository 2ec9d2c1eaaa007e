//! Checks a case by its outcome, the content of the store, and the requests that other servers got.

use std::error::Error;

use super::pull::pull;
use super::stage::{Plan, pair, quick};
use super::*;

/// One attack, and the expected outcome.
pub(super) struct Case {
    pub(super) plan: fn() -> Plan,
    /// Changes the options of the client.
    pub(super) options: fn(Options) -> Options,
    /// Returns whether the outcome is the expected one.
    pub(super) ends: fn(&Result<(), PullError>, &Stage) -> bool,
}

/// Makes one test of each case, and a list of their names.
macro_rules! cases {
    ($($name:ident: $plan:expr => $ends:expr $(, $options:expr)?;)*) => {
        /// The names of all cases.
        pub(super) const CASES: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            #[allow(unused_mut, unused_assignments)]
            let mut options: fn(Options) -> Options = |it| it;
            $(options = $options;)?
            Case { plan: || $plan, ends: $ends, options }.check().unwrap();
        })*
    };
}
pub(super) use cases;

impl Case {
    /// Runs the case with four parallel blobs. Returns an error if the outcome is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        let stage = (self.plan)().set();
        let registry = stage.client(Options { parallel: 4, ..(self.options)(quick()) });
        let outcome = pull(&registry, &stage);
        let debug = debug(&outcome, &registry);
        if let Some(secret) = secrets().into_iter().find(|secret| debug.contains(secret)) {
            return Err(format!("a message has {secret:?}: {debug}"));
        }
        for request in stage.foreign.iter().flat_map(|server| server.requests()) {
            let seen = format!("{}{}", request.head, request.body);
            let shown = secrets().into_iter().any(|secret| seen.contains(&secret));
            if shown || request.header("authorization").is_some() {
                return Err(format!("another server has seen a secret: {seen}"));
            }
        }
        // The config is fetched first, so the store may have it if the layer fails.
        let mut stored = stage.stored();
        stored.sort();
        let config = digest(&stage.image.config).hex();
        let mut whole = vec![config.clone(), digest(&stage.image.layer).hex()];
        whole.sort();
        let right =
            if outcome.is_ok() { stored == whole } else { stored.is_empty() || stored == [config] };
        if !right {
            return Err(format!("the store has {stored:?} after {debug}"));
        }
        let ends = (self.ends)(&outcome, &stage);
        if ends { Ok(()) } else { Err(format!("the outcome is {debug}")) }
    }
}

/// Returns all text that a message or a log could contain: the error and its causes in each format, and the client.
fn debug(outcome: &Result<(), PullError>, registry: &Registry) -> String {
    let mut debug = format!("{outcome:?} {outcome:#?} {registry:?}");
    let mut error: Option<&dyn Error> = outcome.as_ref().err().map(|error| error as _);
    while let Some(cause) = error {
        debug = format!("{debug}\n{cause} {cause:?}");
        error = cause.source();
    }
    debug
}

/// Returns each form in which the secrets are sent.
fn secrets() -> [String; 3] {
    [CANARY.to_owned(), TOKEN.to_owned(), pair()]
}

/// Tests whether an outcome is this error.
macro_rules! is {
    ($outcome:expr, $pattern:pat $(if $guard:expr)?) => {
        matches!($outcome, Err(PullError::Registry($pattern)) $(if $guard)?)
    };
}
pub(super) use is;

/// Makes a function that returns whether a pull has failed with this error.
macro_rules! fails {
    ($pattern:pat $(if $guard:expr)?) => {
        |outcome: &Result<(), PullError>, _: &Stage| is!(outcome, $pattern $(if $guard)?)
    };
}
pub(super) use fails;

/// Returns whether a pull has succeeded.
pub(super) fn succeeds(outcome: &Result<(), PullError>, _: &Stage) -> bool {
    outcome.is_ok()
}

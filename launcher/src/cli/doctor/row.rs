//! One row of the report: a capability and its state.

use serde::Serialize;

/// One capability of a host.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// The name in JSON, which never changes. For example, `host-kernel`.
    name: &'static str,
    /// The name in the text. For example, `its kernel`.
    #[serde(skip)]
    pub(super) title: &'static str,
    pub(super) state: State,
    /// The finding, in one line.
    pub(super) fact: String,
    /// The command or setting that repairs the capability. `None` if no repair is needed.
    pub(super) help: Option<String>,
    pub(super) needed_for: &'static str,
}

/// The state of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The capability works.
    Ok,
    /// The capability works in part, or its state is unknown.
    Limited,
    /// The capability does not work.
    Missing,
    /// A file of the host has an error.
    Broken,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }
}

/// The verdict about a capability, for a [`Row`].
pub(super) struct Finding {
    state: State,
    fact: String,
    help: Option<String>,
}

impl Finding {
    pub(super) fn ok(fact: impl Into<String>) -> Self {
        Self { state: State::Ok, fact: fact.into(), help: None }
    }

    pub(super) fn limited(fact: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Limited, fact: fact.into(), help: Some(help.into()) }
    }

    pub(super) fn missing(fact: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Missing, fact: fact.into(), help: Some(help.into()) }
    }

    pub(super) fn broken(fact: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Broken, fact: fact.into(), help: Some(help.into()) }
    }

    pub(super) fn row(
        self,
        name: &'static str,
        title: &'static str,
        needed_for: &'static str,
    ) -> Row {
        let Self { state, fact, help } = self;
        Row { name, title, state, fact, help, needed_for }
    }
}

//! One row of the table: what it is of, and how it was judged.

use serde::Serialize;

/// One thing that a host can offer.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Its stable name.
    name: &'static str,
    /// Its name for people.
    #[serde(skip)]
    pub(super) title: &'static str,
    pub(super) state: State,
    /// The finding, in one line.
    pub(super) fact: String,
    /// The command or setting that mends it; `None` where nothing has to be mended.
    pub(super) help: Option<String>,
    pub(super) needed_for: &'static str,
}

/// How much there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It works.
    Ok,
    /// It works in part, or it is not known.
    Limited,
    /// It does not work.
    Missing,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// A judged fact.
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

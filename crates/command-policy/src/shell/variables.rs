//! The variables that a command line sets.

use std::collections::{HashMap, HashSet};

use super::Unreadable;

/// The maximum number of bytes of one value.
const MAX_VALUE: usize = 4096;
/// The maximum number of values that a variable can have.
const MAX_VALUES: usize = 64;
/// The maximum number of bytes that all variables are replaced by.
const MAX_REPLACED: usize = 512 * 1024;

/// The values that a variable can have.
#[derive(Debug, Clone, Default)]
struct Values {
    known: Vec<String>,
    /// Whether it can have other values.
    is_open: bool,
}

/// The variables with a known value.
#[derive(Debug, Default)]
pub(super) struct Variables {
    all: HashMap<String, Values>,
    /// Whether a command such as `read` can have set any variable.
    is_unknown: bool,
    replaced: usize,
    /// The names of arrays.
    arrays: HashSet<String>,
    /// Whether words are perhaps split at other characters than blanks.
    has_ifs: bool,
    /// Whether a shell perhaps runs a command of the text that was not found.
    is_doubtful: bool,
    /// Whether a text is perhaps the name of an element whose number is the output of a command.
    has_hidden: bool,
    /// Whether the values of variables are perhaps read as arithmetic.
    has_arithmetic: bool,
}

/// The values of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// The only value.
    One(String),
    /// Some of the values.
    Some(Vec<String>),
}

impl Variables {
    /// Adds a value. `None` is a value that is unknown.
    pub(super) fn assign(&mut self, name: &str, value: Option<&str>) {
        self.note_text(value.unwrap_or_default());
        let values = self.all.entry(name.to_owned()).or_default();
        match value {
            Some(value) if value.len() <= MAX_VALUE && values.known.len() < MAX_VALUES => {
                if !values.known.iter().any(|it| it == value) {
                    values.known.push(value.to_owned());
                }
            }
            _ => values.is_open = true,
        }
    }

    /// Notes that a variable is an array.
    pub(super) fn assign_array(&mut self, name: &str) {
        self.arrays.insert(name.to_owned());
    }

    /// Notes that `IFS` is set for the commands that follow.
    pub(super) fn assign_ifs(&mut self) {
        self.has_ifs = true;
    }

    /// Returns whether words are perhaps split at other characters than blanks.
    pub(super) fn has_ifs(&self) -> bool {
        self.has_ifs
    }

    /// Notes a text that a variable can have as its value.
    pub(super) fn note_text(&mut self, text: &str) {
        self.has_hidden |= hides_command(text);
    }

    /// Notes that values of variables are read as arithmetic.
    pub(super) fn note_arithmetic(&mut self) {
        self.has_arithmetic = true;
    }

    /// Notes that a shell perhaps runs a command of the text that was not found.
    pub(super) fn doubt(&mut self) {
        self.is_doubtful = true;
    }

    /// Returns whether a shell perhaps runs a command of the text that was not found. Arithmetic runs the commands in the number of
    /// an element, also if that is the value of a variable.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful || (self.has_hidden && self.has_arithmetic)
    }

    /// Makes all variables unknown.
    pub(super) fn forget(&mut self) {
        self.is_unknown = true;
    }

    /// Returns whether no variable has been set.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Begins to read the same text again.
    pub(super) fn again(self) -> Self {
        Self { replaced: 0, ..self }
    }

    /// Returns the values of a variable. `None` if they are unknown, as the first element of an array is.
    ///
    /// # Errors
    /// The values that were replaced are too long together.
    pub(super) fn get(&mut self, name: &str) -> Result<Option<Value>, Unreadable> {
        if self.arrays.contains(name) { Ok(None) } else { self.elements(name) }
    }

    /// Returns the values of a variable, or the elements of an array as one text. `None` if they are unknown.
    ///
    /// # Errors
    /// The values that were replaced are too long together.
    pub(super) fn elements(&mut self, name: &str) -> Result<Option<Value>, Unreadable> {
        let Some(values) = self.all.get(name).filter(|_| !self.is_unknown) else {
            return Ok(None);
        };
        self.replaced += values.known.iter().map(|it| it.len() + 1).sum::<usize>();
        if self.replaced > MAX_REPLACED {
            return Err(Unreadable("the values of its variables are too long"));
        }
        Ok(match values.known.as_slice() {
            [] => None,
            [only] if !values.is_open => Some(Value::One(only.clone())),
            all => Some(Value::Some(all.to_vec())),
        })
    }
}

/// Returns whether a text is perhaps the name of an element whose number is the output of a command, such as `a[$(b)]`.
pub(super) fn hides_command(text: &str) -> bool {
    text.split_once('[').is_some_and(|it| runs_command(it.1))
}

/// Returns whether a shell that expands a text perhaps runs a command.
pub(super) fn runs_command(text: &str) -> bool {
    ["$(", "`", "@P}"].iter().any(|it| text.contains(it))
}

//! The warnings of a command: for a person as they come, as data in the command's report.

use box_contract::plan::Unsupported;
use boxbuild::Report;
use serde_json::{Value, json};

use super::terminal;

/// Warnings on their way to a person, or collected for the field `warnings` of a report.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    as_json: bool,
    found: Vec<Value>,
}

impl Warnings {
    /// Returns a collection without warnings yet. With `as_json` nothing is printed.
    pub(crate) const fn new(as_json: bool) -> Self {
        Self { as_json, found: Vec::new() }
    }

    /// Adds the warnings of a text.
    pub(crate) fn add(&mut self, report: &Report) {
        if self.as_json {
            self.found.extend(report.problems().iter().map(|it| json!(it)));
        } else {
            terminal::note(&report.render());
        }
    }

    /// Adds what keeps boxlaunch of this version from starting the box.
    pub(crate) fn add_unsupported(&mut self, unsupported: &[Unsupported]) {
        for unsupported in unsupported {
            self.add_message(&format!("boxlaunch will not start this box: {unsupported}"));
        }
    }

    /// Adds a warning without a place in a text.
    pub(crate) fn add_message(&mut self, message: &str) {
        if self.as_json {
            self.found.push(json!({
                "severity": "warning", "message": message, "help": null, "labels": [],
            }));
        } else {
            terminal::note(&format!("warning: {message}"));
        }
    }

    /// Returns the collected warnings as data.
    pub(crate) fn json(&self) -> Value {
        json!(self.found)
    }
}

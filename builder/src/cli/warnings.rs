//! The warnings of a command: printed at once, or collected as JSON for its report.

use box_contract::plan::Unsupported;
use boxbuild::Report;
use serde_json::{Value, json};

use super::terminal;

/// Prints warnings, or collects them for the field `warnings` of a report.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    as_json: bool,
    found: Vec<Value>,
}

impl Warnings {
    /// Returns an empty collection. With `as_json`, nothing is printed.
    pub(crate) const fn new(as_json: bool) -> Self {
        Self { as_json, found: Vec::new() }
    }

    /// Adds the warnings about a text.
    pub(crate) fn add(&mut self, report: &Report) {
        report.problems().iter().for_each(|it| terminal::annotate_warning(&json!(it)));
        if self.as_json {
            self.found.extend(report.problems().iter().map(|it| json!(it)));
        } else {
            terminal::note(&report.render());
        }
    }

    /// Adds a warning for each reason why boxlaunch of this version cannot start the box.
    pub(crate) fn add_unsupported(&mut self, unsupported: &[Unsupported]) {
        for unsupported in unsupported {
            self.add_message(&format!("boxlaunch will not start this box: {unsupported}"));
        }
    }

    /// Adds a warning without a span.
    pub(crate) fn add_message(&mut self, message: &str) {
        let warning = json!({
            "severity": "warning", "message": message, "help": null, "labels": [],
        });
        terminal::annotate_warning(&warning);
        if self.as_json {
            self.found.push(warning);
        } else {
            terminal::note(&format!("warning: {message}"));
        }
    }

    /// Returns the collected warnings as JSON.
    pub(crate) fn json(&self) -> Value {
        json!(self.found)
    }
}

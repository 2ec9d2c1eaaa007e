//! The reports about files with boxes, as text and as JSON.

use std::path::Path;

use box_digest::Digest;
use box_registry::not_kept;
use safe_text::{counted, readable, shown};
use serde_json::{Value, json};

use crate::{Loaded, NameGiven, Plan, Saved};

impl Saved {
    /// Returns the line about the output, for the user.
    pub fn line(&self, output: &Path, boxes: usize) -> String {
        let (output, size) = (shown(&output.display().to_string()), readable(self.bytes));
        let boxes = counted(boxes, "box", "boxes");
        let attachments = attached(self.attachments);
        let deltas = match self.deltas {
            0 => String::new(),
            deltas => format!(" ({deltas} as deltas)"),
        };
        format!("saved: {output}, {boxes}{attachments}, {} blobs{deltas}, {size}", self.blobs)
    }

    /// Returns the JSON report, with the digest and the name of each box in the order of the command line.
    pub fn json(&self, output: &Path, boxes: &[(Digest, Option<&str>)]) -> Value {
        let boxes = boxes.iter().map(|(digest, name)| json!({ "box": digest, "name": name }));
        json!({
            "output": output.display().to_string(),
            "boxes": boxes.collect::<Vec<_>>(),
            "blobs": self.blobs,
            "bytes": self.bytes,
            "attachments": self.attachments,
            "deltas": self.deltas,
        })
    }
}

/// Returns the number of attachments, after a comma; an empty text if there is none.
fn attached(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(", {}", counted(count, "attachment", "attachments")),
    }
}

impl Plan<'_> {
    /// Returns the line that the user sees before the blobs are read.
    pub fn line(&self) -> String {
        let (new, all) = (self.missing.len(), self.blobs());
        let amounts = format!("{} of {}", readable(self.new_bytes()), readable(self.bytes()));
        let deltas = match self.missing.iter().filter(|it| it.is_delta()).count() {
            0 => String::new(),
            deltas => format!(" ({deltas} as deltas)"),
        };
        format!("loading {new} of {all} blobs{deltas}, {amounts}")
    }
}

impl Loaded {
    /// Returns the lines for the user: the new blobs, the outcome for each name, and how many attachments were not kept.
    pub fn lines(&self) -> Vec<String> {
        let Self { digest, blobs, bytes, new_blobs, new_bytes, .. } = self;
        let given = self.names.iter().filter(|(_, given)| *given != NameGiven::NotAName);
        let given: Vec<_> = given.map(|(name, _)| name.as_str()).collect();
        let called = if given.is_empty() { digest.to_string() } else { given.join(", ") };
        let amounts = format!("{} of {}", readable(*new_bytes), readable(*bytes));
        let attachments = attached(self.attachments);
        let first = format!(
            "loaded {called}: {new_blobs} of {blobs} blobs were new, {amounts}{attachments}"
        );
        let others = self.names.iter().filter_map(|(name, given)| match given {
            NameGiven::Given => None,
            NameGiven::Moved(before) => {
                Some(format!("the name {name} moved to this box from {before}"))
            }
            NameGiven::NotAName => Some(format!(
                "{:?} is no name for a box: {digest} is found by its digest",
                shown(name)
            )),
        });
        std::iter::once(first).chain(others).chain(self.not_kept()).collect()
    }

    /// Returns the note for the user if the store has no room for attachments of the box.
    pub fn not_kept(&self) -> Option<String> {
        not_kept(self.left_out)
    }

    /// Returns the JSON report.
    pub fn json(&self) -> Value {
        let names = self.names.iter().map(|(name, given)| {
            let replaced = match given {
                NameGiven::Moved(before) => Some(before),
                NameGiven::Given | NameGiven::NotAName => None,
            };
            json!({ "name": name, "given": *given != NameGiven::NotAName, "replaced": replaced })
        });
        json!({
            "box": self.digest,
            "names": names.collect::<Vec<_>>(),
            "blobs": self.blobs,
            "bytes": self.bytes,
            "new_blobs": self.new_blobs,
            "new_bytes": self.new_bytes,
            "attachments": self.attachments,
        })
    }
}

//! What can only be judged when all entries are read: which are there twice, which do not fit.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

use super::Entry;
use super::found::Found;
use super::seal::seal;
use super::table::ANEW;
use crate::diagnostic::quote;
use crate::sink::Sink;
use crate::{Diagnostic, Platform, Span, Spanned};

/// Reports every entry whose name and platform an earlier one has.
pub(super) fn twice(all: &[Found], sink: &Sink) {
    let mut first = BTreeMap::new();
    for found in all {
        match first.entry(found.entry.key()) {
            Vacant(place) => {
                place.insert(found.name);
            }
            Occupied(earlier) => sink.report(again(found, *earlier.get())),
        }
    }
}

fn again(found: &Found, earlier: Span) -> Diagnostic {
    let message = format!("{} is there twice", title(&found.entry));
    Diagnostic::new(message, found.name, "here again")
        .with_label(earlier, "first here")
        .with_help("delete one of the two, and run `boxbuild lock`")
}

/// Reports every entry that is not what was written, by its check.
pub(super) fn misfits(all: &[Found], epoch: &Spanned<u32>, sink: &Sink) {
    let misfits: Vec<&Found> =
        all.iter().filter(|found| seal(epoch.value, &found.entry) != found.check.value).collect();
    let moved = |found: &&Found| origin(epoch.value, found).is_some();
    if misfits.len() > 1 && misfits.len() == all.len() && !misfits.iter().any(moved) {
        sink.report(none_fits(epoch, all.len()));
        return;
    }
    for found in misfits {
        sink.report(misfit(epoch.value, found));
    }
}

/// Returns the platform that an entry which does not fit would fit with.
fn origin(epoch: u32, found: &Found) -> Option<Platform> {
    Platform::ALL.into_iter().find(|platform| {
        let entry = Entry { platform: Some(*platform), ..found.entry.clone() };
        seal(epoch, &entry) == found.check.value
    })
}

fn misfit(epoch: u32, found: &Found) -> Diagnostic {
    if let (Some(origin), Some(span)) = (origin(epoch, found), found.platform) {
        let name = quote(&found.entry.name);
        let message = format!("the entry {name} was resolved for {origin}, not for this platform");
        return Diagnostic::new(message, span, "changed or copied by hand").with_help(ANEW);
    }
    let message = format!("{} does not fit its check", title(&found.entry));
    Diagnostic::new(message, found.check.span, "computed for other values")
        .with_label(found.name, "something in this entry was changed by hand or lost in a merge")
        .with_help(format!("undo the change, or {ANEW}"))
}

fn none_fits(epoch: &Spanned<u32>, count: usize) -> Diagnostic {
    let message = format!("none of the {count} entries fits its check");
    Diagnostic::new(message, epoch.span, "this, or every entry, was changed by hand")
        .with_help(format!("undo the change, or {ANEW}"))
}

/// Names an entry for a message.
pub(super) fn title(entry: &Entry) -> String {
    let name = quote(&entry.name);
    match entry.platform {
        Some(platform) => format!("the entry {name} for {platform}"),
        None => format!("the entry {name}"),
    }
}

//! `layout "…"` and `conflict "PATTERN" policy="…"`: how two images become one rootfs.

use box_contract::Layout;
use box_contract::rules::ACCOUNT_FILES;

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, names};
use crate::{Conflict, ConflictPolicy, form, schema};
use diagnostics::Spanned;
use safe_text::quote;

/// Reads the layout and the conflict policies. The layout `merged` requires two images, and
/// policies require the layout `merged`.
pub(super) fn read(top: &Children<'_>) -> (Layout, Vec<Conflict>) {
    let sink = top.sink();
    let declared = top.one(&schema::LAYOUT);
    let layout = Reader::sole(top, &schema::LAYOUT, Reader::first);
    let nodes = top.many(&schema::CONFLICT);
    names::check_unique(&nodes, &schema::CONFLICT, sink);
    let conflicts =
        nodes.iter().filter_map(|node| Reader::whole(node, &schema::CONFLICT, sink, read_conflict));
    let conflicts = conflicts.collect();
    if let (Some(Layout::Merged), Some(node)) = (layout, declared)
        && !top.may_have(&schema::BUSINESS)
    {
        sink.report(DECLARATION_ERRORS.at("merged-alone", node.name.span));
    }
    // A layout that cannot be read may be `merged`.
    let split = declared.is_none() || layout == Some(Layout::Split);
    if let (true, Some(first)) = (split, nodes.first()) {
        let merged = form::declaration(first.syntax, "layout", "\"merged\"");
        let error = DECLARATION_ERRORS.about("idle-conflict", &merged, first.name.span);
        match declared {
            Some(layout) => sink.report(error.with_label(layout.name.span, "the layout")),
            None => sink.report_missing(error),
        }
    }
    (layout.unwrap_or_default(), conflicts)
}

fn read_conflict(reader: &mut Reader<'_>) -> Option<Conflict> {
    let pattern: Option<Spanned<String>> = reader.first();
    let policy: Option<Spanned<ConflictPolicy>> = reader.value("policy");
    let (pattern, policy) = (pattern?, policy?);
    if policy.value == ConflictPolicy::Merge && !ACCOUNT_FILES.contains(&pattern.value.as_str()) {
        let error = DECLARATION_ERRORS.about("merge-pattern", &quote(&pattern.value), policy.span);
        let [passwd, group, shadow, gshadow] = ACCOUNT_FILES;
        let help = format!(
            "`merge` is for {passwd}, {group}, {shadow} and {gshadow}; choose one image's file, or \
             neither"
        );
        reader.report(error.with_help(help));
    }
    Some(Conflict { pattern, policy: policy.value })
}

//! `layout "…"` and `conflict "PATTERN" policy="…"`: how two images become one rootfs.

use box_contract::Layout;
use box_contract::rules::ACCOUNT_FILES;

use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::syntax::tree::{Node, Value};
use crate::{Conflict, ConflictPolicy, form, rules, schema, value};
use diagnostics::Sink;
use diagnostics::{Diagnostic, Spanned};
use safe_text::quote;

/// Reads the layout, which is `merged` only with two images, and the conflict policies, which need
/// the layout `merged`.
pub(super) fn read(top: &Children<'_>, sink: &Sink) -> (Layout, Vec<Conflict>) {
    let declared = top.one(&schema::LAYOUT);
    let layout = Reader::sole(top, &schema::LAYOUT, Reader::choice_arg);
    let nodes = top.many(&schema::CONFLICT);
    names::check_unique(&nodes, &schema::CONFLICT, sink);
    let conflicts = nodes.iter().filter_map(|node| read_conflict(node, sink)).collect();
    if let (Some(Layout::Merged), Some(node)) = (layout, declared)
        && !top.may_have(&schema::BUSINESS)
    {
        let message = "without `business` there is only one image, and nothing to merge";
        let error = Diagnostic::new(message, node.name.span, "has no effect");
        sink.report(error.with_help("declare `business`, or remove the layout"));
    }
    // Of a layout that cannot be read, nothing is known.
    let split = declared.is_none() || layout == Some(Layout::Split);
    if let (true, Some(first)) = (split, nodes.first()) {
        let message = "nothing can conflict in the layout `split`";
        let error = Diagnostic::new(message, first.name.span, "has no effect");
        let merged = form::declaration(first.syntax, "layout", "\"merged\"");
        let error = error.with_help(format!("remove it, or write `{merged}`"));
        match declared {
            Some(layout) => sink.report(error.with_label(layout.name.span, "the layout")),
            None => sink.report_missing(error),
        }
    }
    (layout.unwrap_or_default(), conflicts)
}

fn read_conflict(node: &Node, sink: &Sink) -> Option<Conflict> {
    let mut reader = Reader::new(node, &schema::CONFLICT, sink);
    let pattern = reader.read_arg(pattern);
    let policy_value = reader.prop("policy");
    let policy = reader.choice("policy");
    reader.finish();
    let (pattern, policy) = (pattern?, policy?);
    if policy == ConflictPolicy::Merge && !ACCOUNT_FILES.contains(&pattern.value.as_str()) {
        let message = format!("`merge` cannot combine {}", quote(&pattern.value));
        let span = policy_value.map_or(pattern.span, |value| value.span);
        let error = Diagnostic::new(message, span, "only for four files of accounts");
        let [passwd, group, shadow, gshadow] = ACCOUNT_FILES;
        let help = format!(
            "`merge` is for {passwd}, {group}, {shadow} and {gshadow}; choose one image's file, or \
             neither"
        );
        sink.report(error.with_help(help));
    }
    Some(Conflict { pattern, policy })
}

fn pattern(value: &Value, name: &str) -> Result<Spanned<String>, Diagnostic> {
    let pattern = value::spanned_text(value, name)?;
    if rules::is_glob(&pattern.value) {
        return Ok(pattern);
    }
    let message = format!("{} is not a pattern of paths", quote(&pattern.value));
    Err(Diagnostic::new(message, value.span, "not a pattern")
        .with_help("it begins with `/`; `*` stands for anything but `/`, `**` for anything: \"/usr/share/doc/**\""))
}

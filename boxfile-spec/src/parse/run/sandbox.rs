//! `sandbox "PRESET" …`: the policy for commands.

use std::cmp::Ordering;
use std::collections::HashMap;

use box_contract::{NetworkMode, SandboxFallback, SandboxPlan, SandboxPreset};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader, names};
use crate::{rules, schema};
use diagnostics::{Diagnostic, Sink, Span, Spanned};
use safe_text::quote;

/// Reads the policy of a box with this network.
pub(in crate::parse) fn read(top: &Children<'_>, network: NetworkMode) -> Option<SandboxPlan> {
    let (node, sink) = (top.one(&schema::SANDBOX)?, top.sink());
    let mut reader = Reader::new(node, &schema::SANDBOX, sink);
    let preset = reader.first();
    if preset == Some(SandboxPreset::Default) && network == NetworkMode::Shared {
        sink.report(DECLARATION_ERRORS.at("sandbox-shared", node.name.span));
    }
    let fallback = reader.optional("fallback");
    let max_output_bytes = reader.value("max-output");
    let ask_timeout_seconds = reader.value("ask-timeout");
    let children = reader.children();
    let list = |it| Reader::sole(&children, it, Reader::rest).unwrap_or_default();
    let paths = [&schema::WRITABLE, &schema::DENY_READ, &schema::DENY_WRITE].map(list);
    let patterns = PATTERNS.map(list);
    check_writable(&paths[0], &paths[2], sink);
    check_patterns(&patterns, sink);
    reader.finish_block(&children);
    let plain = |it: Vec<Spanned<String>>| it.into_iter().map(|it| it.value).collect();
    let [writable, deny_read, deny_write] = paths.map(|it| names::unique(plain(it)));
    let [allow, ask, forbid] = patterns.map(plain);
    let (preset, max_output_bytes) = (preset?, max_output_bytes?);
    let ask_timeout_seconds = ask_timeout_seconds?;
    let fallback = fallback.unwrap_or(match preset {
        SandboxPreset::Development => SandboxFallback::Warn,
        SandboxPreset::Default | SandboxPreset::Ci => SandboxFallback::Strict,
    });
    Some(SandboxPlan {
        preset,
        fallback,
        max_output_bytes,
        ask_timeout_seconds,
        writable,
        deny_read,
        deny_write,
        allow,
        ask,
        forbid,
    })
}

/// The lists of patterns, each of which takes precedence over the lists before it.
static PATTERNS: [&schema::Declaration; 3] = [&schema::ALLOW, &schema::ASK, &schema::FORBID];

/// Reports each pattern that is in two of the lists `allow`, `ask` and `forbid`.
fn check_patterns(lists: &[Vec<Spanned<String>>; 3], sink: &Sink) {
    let mut known: HashMap<&str, (Span, &str)> = HashMap::new();
    for (list, name) in lists.iter().zip(PATTERNS.map(|it| it.name)) {
        for pattern in list {
            let (first, other) = *known.entry(&pattern.value).or_insert((pattern.span, name));
            if other == name {
                continue;
            }
            let message = format!("{} is in both `{other}` and `{name}`", quote(&pattern.value));
            sink.report(
                Diagnostic::new(
                    message,
                    pattern.span,
                    format!("in `{name}`, which takes precedence"),
                )
                .with_label(first, format!("in `{other}`, which has no effect"))
                .with_help("remove one of them"),
            );
        }
    }
}

/// Reports each path of `writable` that is inside a path of `denied`.
fn check_writable(writable: &[Spanned<String>], denied: &[Spanned<String>], sink: &Sink) {
    let mut denied: Vec<&Spanned<String>> = denied.iter().collect();
    denied.sort_by(|one, other| rules::path_order(&one.value, &other.value));
    // Keeps only the outermost paths. Then only the last denied path that is sorted before `path`
    // can contain it.
    denied.dedup_by(|inner, outer| rules::is_inside(&inner.value, &outer.value));
    for path in writable {
        let is_after = |denied: &&Spanned<String>| {
            rules::path_order(&denied.value, &path.value) == Ordering::Greater
        };
        let before = denied.partition_point(|denied| !is_after(denied));
        let last = before.checked_sub(1).map(|index| denied[index]);
        if let Some(denied) = last.filter(|it| rules::is_inside(&path.value, &it.value)) {
            let error = DECLARATION_ERRORS.about("writable-denied", &quote(&path.value), path.span);
            sink.report(error.with_label(denied.span, "denied, which takes precedence"));
        }
    }
}

//! `sandbox "PRESET" …`: the policy for the commands that the agent runs.

use std::cmp::Ordering;
use std::collections::HashMap;

use box_contract::defaults::MAX_OUTPUT_BYTES;
use box_contract::{SandboxFallback, SandboxPlan, SandboxPreset};

use crate::parse::names;
use crate::parse::reader::Reader;
use crate::schema;
use crate::syntax::tree::{Node, Value};
use crate::{rules, value};
use diagnostics::Sink;
use diagnostics::{Diagnostic, Span, Spanned};
use safe_text::quote;

/// Reads the policy.
pub(in crate::parse) fn read(node: &Node, sink: &Sink) -> Option<SandboxPlan> {
    let mut reader = Reader::new(node, &schema::SANDBOX, sink);
    let preset = reader.choice_arg();
    let fallback = reader.choice("fallback");
    let max_output_bytes = reader.size("max-output").unwrap_or(MAX_OUTPUT_BYTES);
    let children = reader.children();
    let list = |declaration, read: fn(&Value, &str) -> Result<Spanned<String>, Diagnostic>| {
        Reader::sole(&children, declaration, |it| it.read_args(read)).unwrap_or_default()
    };
    let plain = |paths: Vec<Spanned<String>>| {
        names::unique(paths.into_iter().map(|path| path.value).collect())
    };
    let [writable, deny_read, deny_write] =
        [&schema::WRITABLE, &schema::DENY_READ, &schema::DENY_WRITE]
            .map(|declaration| list(declaration, value::guest_path));
    let patterns = [&schema::ALLOW, &schema::ASK, &schema::FORBID]
        .map(|declaration| list(declaration, value::spanned_text));
    check_writable(&writable, &deny_write, sink);
    check_patterns(&patterns, sink);
    let [allow, ask, forbid] = patterns.map(|list| list.into_iter().map(|it| it.value).collect());
    reader.finish_block(&children);
    let preset = preset?;
    let default = match preset {
        SandboxPreset::Development => SandboxFallback::Warn,
        SandboxPreset::Default | SandboxPreset::Ci => SandboxFallback::Strict,
    };
    Some(SandboxPlan {
        preset,
        fallback: fallback.unwrap_or(default),
        max_output_bytes,
        writable: plain(writable),
        deny_read: plain(deny_read),
        deny_write: plain(deny_write),
        allow,
        ask,
        forbid,
    })
}

/// Reports each pattern that is in two of the lists `allow`, `ask` and `forbid`.
fn check_patterns(lists: &[Vec<Spanned<String>>; 3], sink: &Sink) {
    let names = [&schema::ALLOW, &schema::ASK, &schema::FORBID].map(|it| it.name);
    let mut known: HashMap<&str, (Span, &str)> = HashMap::new();
    for (list, name) in lists.iter().zip(names) {
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

/// Reports what is declared writable inside of what is declared not to be.
fn check_writable(writable: &[Spanned<String>], denied: &[Spanned<String>], sink: &Sink) {
    let mut denied: Vec<&Spanned<String>> = denied.iter().collect();
    denied.sort_by(|one, other| rules::path_order(&one.value, &other.value));
    // Only the outermost: then the last one in front of a path is the only one that it may be in.
    denied.dedup_by(|inner, outer| rules::is_inside(&inner.value, &outer.value));
    for path in writable {
        let is_after = |denied: &&Spanned<String>| {
            rules::path_order(&denied.value, &path.value) == Ordering::Greater
        };
        let before = denied.partition_point(|denied| !is_after(denied));
        let last = before.checked_sub(1).map(|index| denied[index]);
        if let Some(denied) = last.filter(|it| rules::is_inside(&path.value, &it.value)) {
            let message = format!("{} is declared writable and denied", quote(&path.value));
            sink.report(
                Diagnostic::new(message, path.span, "declared writable")
                    .with_label(denied.span, "denied, which takes precedence")
                    .with_help("remove one of them"),
            );
        }
    }
}

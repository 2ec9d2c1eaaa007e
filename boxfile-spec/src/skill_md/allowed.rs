//! `allowed-tools`: `Bash(gh issue:*), read(*)` or `Read Write`, as one text or a list of such.

use super::fields::Field;
use super::manifest::AllowedTool;
use super::report::Report;
use super::value;
use super::yaml::{Data, Node};
use crate::diagnostic::quote;
use crate::{Diagnostic, tools};

/// Reads the permissions.
pub(super) fn read(field: Field<'_>, report: &Report) -> Vec<AllowedTool> {
    let texts = match &field.value.data {
        Data::List(items) => items.as_slice(),
        _ => std::slice::from_ref(field.value),
    };
    let permissions = texts.iter().filter_map(|node| report.check(permissions(node, field.name)));
    permissions.flatten().collect()
}

fn permissions(node: &Node, key: &str) -> Result<Vec<AllowedTool>, Diagnostic> {
    let text = value::text(node, key)?;
    let parts = split(&text).filter(|part| !part.is_empty());
    parts.map(|part| permission(part, node)).collect()
}

/// Parts a text at the commas and blanks that stand outside of parentheses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    })
}

fn permission(part: &str, node: &Node) -> Result<AllowedTool, Diagnostic> {
    let (tool, pattern) = match part.split_once('(') {
        None => (part, None),
        Some((tool, rest)) => {
            let pattern = rest.strip_suffix(')').ok_or_else(|| malformed(part, node))?;
            (tool, Some(pattern.trim()))
        }
    };
    if tool.is_empty() || tool.contains(')') || pattern == Some("") {
        return Err(malformed(part, node));
    }
    Ok(AllowedTool {
        tool: tools::canonical(tool).map_or_else(|_| tool.to_owned(), str::to_owned),
        // `*` allows every call, as no pattern does.
        pattern: pattern.filter(|pattern| *pattern != "*").map(str::to_owned),
        span: node.span,
    })
}

fn malformed(part: &str, node: &Node) -> Diagnostic {
    let message = format!("{} is not a permission", quote(part));
    Diagnostic::new(message, node.span, "in this text").with_help(
        "write a tool's name, with a pattern in parentheses or without: `Bash(gh:*), read`",
    )
}

//! Makes the paths of a file relative to the main file's directory, and normalizes them, so that equal paths are equal
//! texts.

use box_contract::KernelName;

use crate::schema::{Declaration, Kind, find};
use crate::syntax::tree::{Data, Node, Value};
use box_contract::image_ref::WITH_PATH;

/// The greatest number of bytes that the directories of bases may add to the paths in them, in all bases of a Boxfile
/// together. The bound is needed because a base's directory is added to each of the base's paths, and each profile
/// repeats all of these paths.
pub const MAX_ADDED: usize = 1 << 20;

/// The number of bytes that may still be added to paths; `None` once a path has exceeded it.
#[derive(Debug)]
pub(super) struct Growth(Option<usize>);

impl Default for Growth {
    fn default() -> Self {
        Self(Some(MAX_ADDED))
    }
}

impl Growth {
    /// Subtracts the number of bytes by which `path` is longer than `before`. Returns `path` if the bytes are allowed.
    fn take(&mut self, path: String, before: &str) -> Option<String> {
        let added = path.len().saturating_sub(before.len());
        self.0 = self.0.and_then(|left| left.checked_sub(added));
        self.0.map(|_| path)
    }

    /// Returns whether a path has exceeded the bound. If so, not all paths are rewritten.
    pub(super) const fn is_exceeded(&self) -> bool {
        self.0.is_none()
    }
}

/// Rewrites every path in the nodes of a file whose directory is `directory`, until the allowed growth is exceeded.
///
/// For the main file, `directory` is empty, and its paths are only normalized.
pub(super) fn nodes(
    nodes: &mut [Node],
    known: &[&'static Declaration],
    directory: &str,
    growth: &mut Growth,
) {
    for node in nodes {
        if growth.is_exceeded() {
            return;
        }
        let Some(declaration) = find(known, &node.name.value) else { continue };
        let kinds = declaration
            .first
            .iter()
            .chain(std::iter::repeat_n(declaration.rest.as_ref(), node.args.len()).flatten());
        for (value, argument) in node.args.iter_mut().zip(kinds) {
            rewrite(value, argument.kind, directory, growth);
        }
        for prop in &mut node.props {
            if let Some(known) = declaration.prop(&prop.name.value) {
                rewrite(&mut prop.value, known.kind, directory, growth);
            }
        }
        if let Some(block) = &mut node.block {
            self::nodes(&mut block.nodes, declaration.children, directory, growth);
        }
    }
}

fn rewrite(value: &mut Value, kind: Kind, directory: &str, growth: &mut Growth) {
    let Data::Text(text) = &mut value.data else { return };
    let path = rewritten(text, kind, directory).and_then(|path| growth.take(path, text));
    if let Some(path) = path {
        *text = path;
    }
}

/// Returns the rewritten text if its kind is a path.
fn rewritten(text: &str, kind: Kind, directory: &str) -> Option<String> {
    match kind {
        _ if text.is_empty() => None,
        Kind::Path | Kind::BakedPath => Some(join(directory, text)),
        Kind::Kernel if KernelName::of(text).is_none() => {
            Some(KernelName::as_path(join(directory, text)))
        }
        // The directory of the launch does not depend on the directory of the file.
        Kind::LaunchPath => Some(join("", text)),
        Kind::PathOrUrl if !text.contains("://") => Some(join(directory, text)),
        Kind::Image => {
            let kinds = WITH_PATH.iter().find_map(|kind| Some((kind, text.strip_prefix(kind)?)));
            let (kind, path) = kinds.filter(|(_, path)| !path.is_empty())?;
            Some(format!("{kind}{}", join(directory, path)))
        }
        _ => None,
    }
}

/// Joins a relative `directory` and a `path`: `a/b` and `../c` become `a/c`. Removes each `.`. Each `..` at the
/// beginning of `path` removes the last part of `directory`. An absolute `path` is only normalized.
///
/// Works on the text alone, without following symbolic links. So a `..` after another part is kept.
pub(super) fn join(directory: &str, path: &str) -> String {
    let plain = |part: &&str| !matches!(*part, "" | ".");
    if path.starts_with('/') {
        return format!("/{}", path.split('/').filter(plain).collect::<Vec<_>>().join("/"));
    }
    let mut parts: Vec<&str> = directory.split('/').filter(plain).collect();
    let mut rest = path.split('/').filter(plain).peekable();
    while parts.last().is_some_and(|last| *last != "..")
        && rest.next_if(|part| *part == "..").is_some()
    {
        parts.pop();
    }
    parts.extend(rest);
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_by_text() {
        for (directory, path, joined) in [
            ("", "a/b", "a/b"),
            ("", "./a", "a"),
            ("", "a//b/./c/", "a/b/c"),
            ("", "./", "."),
            ("", "a/..", "a/.."),
            ("x", "..", "."),
            ("x", "/a//./b/", "/a/b"),
            ("x", "/../a", "/../a"),
            ("..", "a", "../a"),
            ("../x", "../a", "../a"),
            ("../x", "../../a", "../../a"),
            ("x", "/a", "/a"),
            ("x", "a/../../b", "x/a/../../b"),
            ("x/..", "../a", "x/../../a"),
            ("..", ".", ".."),
        ] {
            assert_eq!(join(directory, path), joined);
        }
        let kernel = |text: &str, directory| {
            let data = Data::Text(text.to_owned());
            let syntax = diagnostics::Syntax::Kdl;
            let mut value = Value { data, span: diagnostics::Span::default(), syntax };
            rewrite(&mut value, Kind::Kernel, directory, &mut Growth::default());
            let Data::Text(text) = value.data else { unreachable!() };
            text
        };
        assert_eq!([kernel("lean", "x"), kernel("krunfw", "")], ["lean", "krunfw"], "names");
        assert_eq!([kernel("./lean", "x"), kernel("./lean", "")], ["x/lean", "./lean"], "paths");
        assert_eq!(kernel("lean.elf", "x"), "x/lean.elf");
    }
}

//! Recognizes what makes an image, which a Boxfile does not: a Dockerfile, and declarations such as `RUN` and `packages`.

use super::tree::{Node, Tree};
use crate::errors::SYNTAX_ERRORS;
use crate::schema;
use diagnostics::cursor::lines;
use diagnostics::{Diagnostic, Source, Span, Syntax};
use safe_text::quote;

/// Declarations that make an image, in lower case. None of them is a declaration of a Boxfile.
const RECIPES: [&str; 13] = [
    "apk", "apt", "apt-get", "arg", "dnf", "from", "install", "npm", "package", "packages", "pip",
    "run", "yum",
];
/// Instructions of a [Dockerfile](https://docs.docker.com/reference/dockerfile/) that mean something else in a Boxfile, or nothing.
/// They are part of the same mistake if one of [`RECIPES`] is there, too.
const INSTRUCTIONS: [&str; 14] = [
    "ADD",
    "CMD",
    "COPY",
    "ENTRYPOINT",
    "ENV",
    "EXPOSE",
    "HEALTHCHECK",
    "LABEL",
    "MAINTAINER",
    "ONBUILD",
    "SHELL",
    "USER",
    "VOLUME",
    "WORKDIR",
];

/// Returns the error of a text that is a Dockerfile.
pub(super) fn dockerfile(source: &Source) -> Option<Diagnostic> {
    if source.syntax != Syntax::Kdl {
        return None;
    }
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let mut words = lines(&source.text).map(|(at, line)| (at, first(line), line));
    let (at, word, line) = words.find(|(_, word, _)| !word.is_empty() && !word.starts_with('#'))?;
    let begins = ["FROM", "ARG"].iter().any(|it| word.eq_ignore_ascii_case(it));
    if !begins || words.any(|(_, word, _)| schema::find(schema::TOP, &word).is_some()) {
        return None;
    }
    let place = Span::at(at + line.len() - line.trim_start().len(), word.len());
    Some(error(&word, place))
}

/// Removes the declarations that make an image from a tree, and the errors on their lines from `found`. Returns the one error of
/// all of them.
pub(super) fn take(
    tree: &mut Tree,
    source: &Source,
    found: &mut Vec<Diagnostic>,
) -> Option<Diagnostic> {
    let first = first_of(&tree.nodes)?;
    let error = error(&first.name.value, first.name.span);
    let mut lines = Vec::new();
    remove(&mut tree.nodes, &source.text, &mut lines);
    found.retain(|it| !lines.iter().any(|line| line.contains(&it.span().offset)));
    // What is missing is in the Dockerfile.
    tree.complete = false;
    Some(error)
}

fn error(word: &str, place: Span) -> Diagnostic {
    SYNTAX_ERRORS.about("recipe", &quote(word), place)
}

/// Returns the first declaration that makes an image.
fn first_of(nodes: &[Node]) -> Option<&Node> {
    nodes.iter().find_map(|node| match is_recipe(node) {
        true => Some(node),
        false => is_block(node).then(|| first_of(node.children()))?,
    })
}

/// Removes the declarations that make an image, and collects the ranges of their lines.
fn remove(nodes: &mut Vec<Node>, text: &str, lines: &mut Vec<std::ops::Range<usize>>) {
    nodes.retain(|node| {
        let is_one = is_recipe(node) || INSTRUCTIONS.contains(&&*node.name.value);
        if is_one {
            let at = node.name.span.offset;
            let end = text[at..].find('\n').map_or(text.len(), |length| at + length);
            lines.push(at..end + 1);
        }
        !is_one
    });
    for node in nodes.iter_mut().filter(|it| is_block(it)) {
        if let Some(block) = &mut node.block {
            remove(&mut block.nodes, text, lines);
        }
    }
}

fn is_recipe(node: &Node) -> bool {
    RECIPES.contains(&&*node.name.value.trim_end_matches(':').to_ascii_lowercase())
}

/// Returns whether the block of a node has declarations, and not names that a user chooses.
fn is_block(node: &Node) -> bool {
    let blocks = [schema::AGENT.name, schema::BUSINESS.name, schema::PROFILE.name];
    blocks.contains(&&*node.name.value)
}

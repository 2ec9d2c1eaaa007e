//! How files merge: what a file declares goes over what its base declares, and a profile's over
//! the file's.
//!
//! A declaration that only one of them has applies as it is. Of one that both have, the later
//! replaces the earlier ([`Merge::Replace`]), or its arguments, properties and inner declarations
//! replace those of the same name ([`Merge::Combine`]). Nothing is ever taken away.

use std::collections::{HashMap, HashSet};

use crate::parse::component::env::variables;
use crate::schema::{self, Count, Declaration, Merge, find};
use crate::syntax::tree::{Block, Data, Node};

/// Two properties that say the same: the later replaces the earlier, whichever of them it is.
const SYNONYMS: [&str; 2] = ["cpu-weight", "cpu-shares"];

/// Merges nodes into those of a base.
///
/// New declarations come before the base's, so that they decide first where order counts; what
/// replaces something stays in its place. Where `over` itself has a declaration twice, both stay:
/// that is an error for whoever reads it.
pub(super) fn overlay(
    mut base: Vec<Node>,
    over: Vec<Node>,
    known: &[&'static Declaration],
) -> Vec<Node> {
    forget(&mut base, &over);
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (place, node) in base.iter().enumerate() {
        places.entry(Key::of(node, known)).or_insert(place);
    }
    let mut new = Vec::new();
    for node in over {
        let declaration = find(known, &node.name.value);
        let mergeable = declaration.filter(|it| it.count != Count::Repeatable);
        // Taken out, so that a second one of the same file finds nothing.
        match (mergeable, places.remove(&Key::of(&node, known))) {
            (Some(declaration), Some(place)) => merge(&mut base[place], node, declaration),
            _ => new.push(node),
        }
    }
    new.append(&mut base);
    new
}

/// The key that two declarations about the same thing have in common.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: String,
    /// The first argument, of those that may stand several times.
    argument: Option<String>,
}

impl Key {
    fn of(node: &Node, known: &[&'static Declaration]) -> Self {
        let name = node.name.value.clone();
        let keyed = find(known, &name).is_some_and(|it| it.count == Count::Keyed);
        let argument = match node.args.first().map(|value| &value.data) {
            Some(Data::Text(text)) if keyed => Some(text.clone()),
            _ => None,
        };
        Self { name, argument }
    }
}

/// Takes out of the base's variables what a later file says again; `env` and `plain-env` name the
/// same ones.
fn forget(base: &mut Vec<Node>, over: &[Node]) {
    let is_env =
        |node: &Node| [schema::ENV.name, schema::PLAIN_ENV.name].contains(&&*node.name.value);
    let names = over.iter().filter(|node| is_env(node)).flat_map(variables);
    let again: HashSet<&str> = names.map(|it| it.name).collect();
    base.retain_mut(|node| {
        if !is_env(node) {
            return true;
        }
        if !node.args.is_empty() {
            return !variables(node).iter().any(|it| again.contains(it.name));
        }
        let before = node.props.len();
        node.props.retain(|prop| !again.contains(prop.name.value.as_str()));
        // One of which nothing is left would be one without a variable.
        !node.props.is_empty() || before == 0
    });
}

fn merge(base: &mut Node, over: Node, declaration: &'static Declaration) {
    if declaration.merge == Merge::Replace {
        *base = over;
        return;
    }
    base.name = over.name;
    base.syntax = over.syntax;
    // What a line that cannot be read says is unknown; its block still counts.
    base.broken |= over.broken;
    if !over.args.is_empty() {
        base.args = over.args;
    }
    let again: HashSet<&str> = over.props.iter().map(|prop| meaning(&prop.name.value)).collect();
    base.props.retain(|prop| !again.contains(meaning(&prop.name.value)));
    base.props.splice(0..0, over.props);
    base.block = match (base.block.take(), over.block) {
        (Some(base), Some(over)) => Some(Block {
            open: over.open,
            nodes: overlay(base.nodes, over.nodes, declaration.children),
        }),
        (base, over) => over.or(base),
    };
}

fn meaning(name: &str) -> &str {
    if SYNONYMS.contains(&name) { SYNONYMS[0] } else { name }
}

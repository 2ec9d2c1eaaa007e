//! Merges two lists of declarations, of which `over` takes precedence over `base`. A file is merged
//! over its base file, and a profile over the file.
//!
//! A declaration that only one of the lists has applies unchanged. If both lists have it, the later
//! one, in `over`, replaces the one in `base` ([`Merge::Replace`]), or its arguments, properties
//! and inner declarations replace the ones with the same names ([`Merge::Combine`]). A merge never
//! removes a setting.

use std::collections::{HashMap, HashSet};

use box_contract::ComponentName;

use crate::parse::component::env::variables;
use crate::schema::{self, Count, Declaration, Merge, find};
use crate::syntax::tree::{Block, Data, Node};

/// Two properties with the same meaning. Either of them in `over` replaces either of them in
/// `base`.
const SYNONYMS: [&str; 2] = ["cpu-weight", "cpu-shares"];

/// Merges the nodes of `over` into the nodes of `base`.
///
/// Declarations that only `over` has are put in front of the base's declarations. So they take
/// precedence if the first match decides, as for `conflict`. A replacement keeps the position of
/// the replaced declaration. If `over` has a declaration twice, both are kept, and the reader of
/// the merged nodes reports them.
pub(super) fn overlay(
    mut base: Vec<Node>,
    over: Vec<Node>,
    known: &[&'static Declaration],
) -> Vec<Node> {
    forget(&mut base, &over);
    forget_ports(&mut base, &over);
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (place, node) in base.iter().enumerate() {
        places.entry(Key::of(node, known)).or_insert(place);
    }
    let mut new = Vec::new();
    for node in over {
        let declaration = find(known, &node.name.value);
        let mergeable = declaration.filter(|it| it.count != Count::Repeatable);
        // The key is removed, so that a second declaration with this key in `over` is not merged,
        // too.
        match (mergeable, places.remove(&Key::of(&node, known))) {
            (Some(declaration), Some(place)) => merge(&mut base[place], node, declaration),
            _ => new.push(node),
        }
    }
    new.append(&mut base);
    new
}

/// What a declaration is about. Two declarations with equal keys are merged.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: String,
    /// The first argument, for a declaration with [`Count::Keyed`].
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

/// Removes from `base` the variables that `over` declares again. The names of `env` and `plain-env`
/// are shared: `plain-env A="2"` in `over` also removes `env A="1"` from `base`.
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
        // A declaration that has lost all its variables is removed.
        !node.props.is_empty() || before == 0
    });
}

/// Removes from `base` the published ports that `over` publishes again: `publish 80 host=8080` in `over` also removes 80 from
/// `publish 80 81` in `base`.
fn forget_ports(base: &mut Vec<Node>, over: &[Node]) {
    let is_publish = |node: &Node| node.name.value == schema::PUBLISH.name;
    let again: Vec<&Node> = over.iter().filter(|node| is_publish(node)).collect();
    base.retain_mut(|node| {
        if !is_publish(node) {
            return true;
        }
        let component = component(node).cloned();
        let before = node.args.len();
        for later in again.iter().filter(|it| self::component(it) == component.as_ref()) {
            node.args.retain(|port| later.args.iter().all(|it| it.data != port.data));
        }
        // A declaration that has lost all its ports is removed.
        !node.args.is_empty() || before == 0
    });
}

/// Returns the component of a declaration. `None` for the agent, which is the default.
fn component(node: &Node) -> Option<&Data> {
    let prop = node.props.iter().find(|it| it.name.value == "component")?;
    Some(&prop.value.data).filter(|_| prop.value.as_text() != Some(ComponentName::Agent.name()))
}

fn merge(base: &mut Node, over: Node, declaration: &'static Declaration) {
    if declaration.merge == Merge::Replace {
        *base = over;
        return;
    }
    base.name = over.name;
    base.syntax = over.syntax;
    // The arguments and properties of a broken line are unknown; its block is still merged.
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

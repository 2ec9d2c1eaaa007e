//! Tests that `Boxfile.example` shows every declaration, and that its commented-out declarations
//! are valid, too.

use std::collections::BTreeSet;

use super::{nodes, parsed, wrong};
use crate::schema::{Declaration, TOP, find, place};
use crate::syntax::tree::Node;

const EXAMPLE: &str = include_str!("../../../../Boxfile.example");
/// The prefix of a declaration that is commented out.
const OUT: &str = "/-";
/// The beginning of a declaration that is commented out, and of the one without which it is an error.
const DEPENDENT: (&str, &str) = ("/-cap \"http\"", "/-service ");

/// Returns the example as it is, with each one of its commented-out declarations made active, and
/// with all of them made active.
pub(crate) fn variants() -> Vec<String> {
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    let out = |line: &&str| line.trim_start().starts_with(OUT);
    let with = |chosen: &dyn Fn(usize) -> bool| {
        let line = |(index, line): (usize, &&str)| match chosen(index) && out(line) {
            true => line.replacen(OUT, "", 1),
            false => (*line).to_owned(),
        };
        lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
    };
    let places = (0..lines.len()).filter(|index| out(&lines[*index]));
    let needed = |place: usize, index: usize| {
        lines[place].starts_with(DEPENDENT.0) && lines[index].starts_with(DEPENDENT.1)
    };
    let single = places.map(|place| with(&|index| index == place || needed(place, index)));
    [EXAMPLE.to_owned()].into_iter().chain(single).chain([with(&|_| true)]).collect()
}

#[test]
fn nothing_in_the_example_is_wrong() {
    let variants = variants();
    assert!(variants.len() > 15);
    for boxfile in variants {
        assert_eq!(wrong(&boxfile), "", "in\n{boxfile}");
        assert!(parsed(&boxfile).boxfile.is_some());
    }
}

/// Adds to `seen` the id of every declaration, and the id with the name of each property: `vm` and
/// `vm cpus`.
fn collect(nodes: &[Node], known: &[&'static Declaration], seen: &mut BTreeSet<String>) {
    for node in nodes {
        let declaration = find(known, &node.name.value).unwrap();
        let id = place::find(declaration).unwrap().id();
        seen.extend(node.props.iter().map(|prop| format!("{id} {}", prop.name.value)));
        seen.insert(id);
        collect(node.children(), declaration.children, seen);
    }
}

#[test]
fn every_declaration_and_property_is_shown() {
    let mut seen = BTreeSet::new();
    collect(&nodes(variants().last().unwrap()), TOP, &mut seen);
    for place in place::all() {
        let id = place.id();
        assert!(seen.contains(&id), "Boxfile.example does not show `{id}`");
        for prop in place.declaration.props {
            let prop = format!("{id} {}", prop.name);
            assert!(seen.contains(&prop), "Boxfile.example does not show `{prop}`");
        }
    }
}

/// Returns the name and the offset of each declaration and each property, such as `vm cpus`.
fn offsets(nodes: &[Node], known: &[&'static Declaration], found: &mut Vec<(String, usize)>) {
    for node in nodes {
        let declaration = find(known, &node.name.value).unwrap();
        let id = place::find(declaration).unwrap().id();
        let props =
            node.props.iter().map(|it| (format!("{id} {}", it.name.value), it.name.span.offset));
        found.extend([(id.clone(), node.name.span.offset)].into_iter().chain(props));
        offsets(node.children(), declaration.children, found);
    }
}

/// The canonical form is hashed into the key of a box, so a setting that it lacks would be ignored by the next build.
#[test]
fn without_any_declaration_or_property_it_is_another_box() {
    let whole = variants().pop().unwrap();
    let canonical = |text: &str| parsed(text).into_result().ok().map(|it| it.canonical());
    let expected = canonical(&whole);
    assert!(expected.is_some());
    let mut found = Vec::new();
    offsets(&nodes(&whole), TOP, &mut found);
    let without = |at: usize| format!("{}{OUT}{}", &whole[..at], &whole[at..]);
    let same = found.iter().filter(|(_, at)| canonical(&without(*at)) == expected);
    let same: Vec<_> = same.map(|(name, _)| name.as_str()).collect();
    // These have the default there, are in a profile that is not chosen, or are not in the key.
    insta::assert_snapshot!(same.join("\n"), @"
    extends
    platform
    agent kind
    agent.file owner
    agent.namespaces
    agent.namespaces mount
    agent.namespaces pid
    agent.namespaces ipc
    agent.namespaces uts
    agent.namespaces net
    agent.namespaces hostname
    agent.limits pids
    agent.limits pids
    agent.limits cpu-shares
    skill mode
    skills mode
    layout
    volume component
    secret component
    share over
    share component
    network.limits
    network.limits connections
    network.limits rate
    network.limits names
    service component
    service timeout
    cap timeout
    ssh-agent component
    task.verify component
    task.verify timeout
    logs stdout
    logs stderr
    logs events
    cap max-connections
    sandbox fallback
    sandbox max-output
    sandbox ask-timeout
    profile
    vm
    vm cpus
    budget
    budget total
    profile
    agent
    profile
    conflict
    conflict
    ");
    assert!(found.len() > 150, "{}", found.len());
}

#[test]
fn every_declaration_is_explained() {
    let lines: Vec<&str> = EXAMPLE.lines().map(str::trim).collect();
    for declaration in TOP {
        let name = |line: &str| {
            line.trim_start_matches(OUT).split_whitespace().next() == Some(declaration.name)
        };
        let at = lines.iter().position(|line| name(line)).expect(declaration.name);
        assert!(lines[at - 1].starts_with("//"), "`{}` has no explanation", declaration.name);
    }
}

#[test]
fn declarations_that_the_launcher_refuses_are_commented_out() {
    use crate::schema::Enforced;
    let active = nodes(EXAMPLE);
    let enforced = |node: &Node, known| find(known, &node.name.value).unwrap().enforced;
    for node in active.iter().filter(|node| node.name.value != "profile") {
        let known = find(TOP, &node.name.value).unwrap().children;
        assert!(node.children().iter().all(|child| enforced(child, known) == Enforced::Now));
    }
}

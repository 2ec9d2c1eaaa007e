//! `profile "NAME" { … }`: declarations that apply only if the profile is chosen.

use std::collections::HashSet;

use crate::parse::load::Files;
use crate::parse::{Children, Reader, document, merge, names};
use crate::syntax::tree::Node;
use crate::{Document, form, schema};
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Sink, Span};
use safe_text::quote;

/// The greatest number of profiles of a Boxfile. It bounds the work, because the whole file is read
/// again with each profile.
const MAX_PROFILES: usize = 16;

/// A profile, with the declarations that a profile may have.
pub(super) struct Profile {
    pub(super) name: String,
    nodes: Vec<Node>,
}

/// Removes the profiles from the declarations of a file, and returns them.
pub(super) fn take(nodes: &mut Vec<Node>, sink: &Sink) -> Vec<Profile> {
    let (profiles, rest): (Vec<Node>, Vec<Node>) =
        std::mem::take(nodes).into_iter().partition(|node| node.name.value == schema::PROFILE.name);
    *nodes = rest;
    let all: Vec<&Node> = profiles.iter().collect();
    names::check_unique(&all, &schema::PROFILE, sink);
    if let Some(further) = profiles.get(MAX_PROFILES) {
        let message = format!("a Boxfile has at most {MAX_PROFILES} profiles");
        sink.report(Diagnostic::new(message, further.name.span, "one too many"));
    }
    profiles.into_iter().take(MAX_PROFILES).filter_map(|node| read(node, sink)).collect()
}

fn read(node: Node, sink: &Sink) -> Option<Profile> {
    let mut reader = Reader::new(&node, &schema::PROFILE, sink);
    let name = reader.first();
    let children = Children::new(node.children(), schema::PROFILE.children, sink);
    let elsewhere = |node_below: &Node| {
        let help = match schema::find(schema::TOP, &node_below.name.value)?.name {
            name if name == schema::PROFILE.name => {
                "profiles cannot be nested; write it beside this one"
            }
            _ => "it is the same in every profile; write it outside of them",
        };
        Some(help.to_owned())
    };
    children.finish_profile(|it| elsewhere(it).or_else(|| names::place_inside(it)));
    reader.finish_line();
    drop(reader);
    let nodes = node.block.map(|block| block.nodes).unwrap_or_default();
    let known = |it: &Node| schema::PROFILE.child(&it.name.value).is_some();
    Some(Profile { name: name?, nodes: nodes.into_iter().filter(known).collect() })
}

impl Files {
    /// Reads the file once with each profile merged over it. `base` has the errors of the file
    /// without a profile, which are not reported again.
    pub(super) fn read_profiles(
        &self,
        profiles: &[Profile],
        chosen: Option<&str>,
        base: Vec<Diagnostic>,
        document: &mut Document,
    ) {
        let key = |it: &Diagnostic| (it.span(), it.message().to_owned());
        let mut known: HashSet<(Span, String)> = base.iter().map(key).collect();
        document.found.extend(base);
        for profile in profiles {
            let sink = self.sink();
            let over = profile.nodes.clone();
            let nodes = merge::overlay(self.nodes.clone(), over, schema::PROFILE.children);
            let boxfile = document::read(&nodes, self.syntax, &self.reach, &sink);
            let mut found = sink.into_found();
            // Errors of the same profile are not compared with one another: two with the same text
            // are two errors.
            found.retain(|it| !known.contains(&key(it)));
            known.extend(found.iter().map(key));
            document.found.append(&mut found);
            document.variants.extend(boxfile.map(|boxfile| (profile.name.clone(), boxfile)));
        }
        let missing = chosen.filter(|name| profiles.iter().all(|profile| profile.name != *name));
        // If a base cannot be read, it may have a profile of this name.
        let missing = missing.filter(|_| self.complete);
        let file = document.sources.as_slice().first().map_or("the file", |main| &*main.name);
        document.unknown_profile = missing.map(|name| self.unknown_profile(file, name, profiles));
    }

    /// Returns the error of a chosen profile that `file` does not have.
    fn unknown_profile(&self, file: &str, name: &str, profiles: &[Profile]) -> Diagnostic {
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let help = match nearest(name, &names) {
            Some(meant) => format!("write `--profile {meant}`"),
            None if names.is_empty() => {
                let profile = form::keyed(self.syntax, "profile", name);
                format!("leave `--profile` out, or declare `{profile}`")
            }
            None => {
                let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
                format!("its profiles are {}", names.join(", "))
            }
        };
        let message = format!("{file} has no profile {}", quote(name));
        Diagnostic::new(message, Span::default(), "").with_help(help)
    }
}

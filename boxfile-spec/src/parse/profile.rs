//! `profile "NAME" { … }`: declarations that count only when the profile is chosen.

use std::collections::HashSet;

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::reader::Reader;
use crate::parse::{document, keyed, merge};
use crate::schema;
use crate::sink::Sink;
use crate::suggest::nearest;
use crate::syntax::Node;
use crate::{Boxfile, Diagnostic, Span, Syntax, form};

/// How many profiles a Boxfile may have: each is read by itself.
const MOST_PROFILES: usize = 16;

/// A profile.
pub(super) struct Profile {
    pub(super) name: String,
    nodes: Vec<Node>,
}

/// Takes the profiles out of the declarations of a file.
pub(super) fn take(nodes: &mut Vec<Node>, sink: &Sink) -> Vec<Profile> {
    let (profiles, rest): (Vec<Node>, Vec<Node>) =
        std::mem::take(nodes).into_iter().partition(|node| node.name.value == schema::PROFILE.name);
    *nodes = rest;
    let all: Vec<&Node> = profiles.iter().collect();
    keyed::check_unique(&all, "name", sink);
    if let Some(further) = profiles.get(MOST_PROFILES) {
        let message = format!("a Boxfile has at most {MOST_PROFILES} profiles");
        sink.report(Diagnostic::new(message, further.name.span, "one too many"));
    }
    profiles.into_iter().take(MOST_PROFILES).filter_map(|node| read(node, sink)).collect()
}

fn read(node: Node, sink: &Sink) -> Option<Profile> {
    let mut reader = Reader::new(&node, &schema::PROFILE, sink);
    let name = keyed::name(&mut reader);
    let children = Children::new(node.children(), schema::PROFILE.children, sink);
    let elsewhere = |it: &Node| {
        schema::find(schema::TOP, &it.name.value)
            .map(|_| "it is the same in every profile; write it outside of them".to_owned())
            .or_else(|| document::place_inside(it))
    };
    children.finish_profile(elsewhere);
    reader.finish_line();
    let nodes = node.block.map(|block| block.nodes).unwrap_or_default();
    let known = |it: &Node| schema::PROFILE.child(&it.name.value).is_some();
    Some(Profile { name: name?, nodes: nodes.into_iter().filter(known).collect() })
}

/// The file that the profiles are of.
pub(super) struct Context<'n> {
    pub(super) nodes: &'n [Node],
    pub(super) syntax: Syntax,
    pub(super) climb: usize,
}

/// What reading the profiles gave.
pub(super) struct Chosen {
    /// The model with the chosen profile, if one was chosen: nothing inside where that is wrong.
    pub(super) boxfile: Option<Option<Boxfile>>,
    /// What is wrong with the profiles.
    pub(super) found: Vec<Diagnostic>,
}

impl Context<'_> {
    /// Reads every profile over the file, and keeps the chosen one. What is wrong with the file
    /// without a profile, in `base`, is not said again.
    pub(super) fn read(
        &self,
        profiles: &[Profile],
        chosen: Option<&str>,
        base: &[Diagnostic],
        complete: bool,
    ) -> Chosen {
        let key = |it: &Diagnostic| (it.span(), it.message().to_owned());
        let mut known: HashSet<(Span, String)> = base.iter().map(key).collect();
        let mut result = Chosen { boxfile: None, found: Vec::new() };
        for profile in profiles {
            let sink = Sink::default();
            if !complete {
                sink.be_lenient();
            }
            let nodes = merge::overlay(
                self.nodes.to_vec(),
                profile.nodes.clone(),
                schema::PROFILE.children,
            );
            let boxfile = document::read(&nodes, self.syntax, self.climb, &sink);
            result.found.extend(sink.into_found().into_iter().filter(|it| known.insert(key(it))));
            if chosen == Some(&profile.name) {
                result.boxfile = Some(boxfile);
            }
        }
        if let (Some(name), None) = (chosen, &result.boxfile) {
            result.found.push(self.unknown(name, profiles));
            result.boxfile = Some(None);
        }
        result
    }

    fn unknown(&self, name: &str, profiles: &[Profile]) -> Diagnostic {
        let message = format!("the file has no profile {}", quote(name));
        let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
        let error = Diagnostic::new(message, Span::default(), "in this file");
        error.with_help(match (nearest(name, &names), names.is_empty()) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, true) => {
                let profile = form::keyed(self.syntax, "profile", "ci");
                format!("it has none; declare one, such as `{profile}`, or name none")
            }
            (None, false) => {
                let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
                format!("its profiles are {}", quoted.join(", "))
            }
        })
    }
}

//! `share …` and `scratch …`: what is mounted into the components.

use std::collections::HashSet;

use crate::diagnostic::quote;
use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::parse::run::Components;
use crate::parse::run::secret::SecretFile;
use crate::parse::vm;
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Access, Diagnostic, Scope, Scratch, Share, Spanned, rules, schema, value};

/// What the guest mounts by itself, and what must not be hidden.
const RESERVED: [&str; 8] =
    ["/proc", "/sys", "/dev", "/a3s/skills", "/boxbuild", "/task", "/logs", "/cap"];

/// Reads all shares, and sorts them by name.
pub(in crate::parse) fn shares(top: &Children<'_>, sink: &Sink) -> Vec<Share> {
    let nodes = top.many(&schema::SHARE);
    names::check_unique(&nodes, "name", sink);
    let components = Components::of(top, sink);
    let mut shares: Vec<Share> = nodes.iter().filter_map(|node| share(node, components)).collect();
    shares.sort_by(|one, other| one.name.cmp(&other.name));
    shares
}

fn share(node: &Node, components: Components<'_>) -> Option<Share> {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SHARE, sink);
    let name = names::name(&mut reader);
    let guest = guest(&mut reader, sink);
    let host = reader.read_optional("host", value::path);
    let access = if reader.choice("access") == Some("rw") { Access::Rw } else { Access::Ro };
    let component = components.scope(&mut reader, Scope::Both);
    reader.finish();
    Some(Share { name: name?, guest: guest?, host, access, component })
}

/// Reads all scratch disks, and sorts them by name.
pub(in crate::parse) fn scratch(top: &Children<'_>, sink: &Sink) -> Vec<Scratch> {
    let nodes = top.many(&schema::SCRATCH);
    names::check_unique(&nodes, "name", sink);
    let components = Components::of(top, sink);
    let mut disks: Vec<Scratch> = nodes.iter().filter_map(|node| disk(node, components)).collect();
    disks.sort_by(|one, other| one.name.cmp(&other.name));
    disks
}

fn disk(node: &Node, components: Components<'_>) -> Option<Scratch> {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SCRATCH, sink);
    let name = names::name(&mut reader);
    let guest = guest(&mut reader, sink);
    let written = reader.prop("size");
    let size = reader.size("size");
    let whole = |size: &u64| written.is_some_and(|value| vm::whole(value, "size", *size, sink));
    let size = size.filter(whole);
    let component = components.scope(&mut reader, Scope::Both);
    reader.finish();
    Some(Scratch { name: name?, guest: guest?, size: size?, component })
}

fn guest(reader: &mut Reader<'_>, sink: &Sink) -> Option<Spanned<String>> {
    let guest = reader.read_prop("guest", value::guest_path)?;
    if let Some(taken) = reserved(&guest.value) {
        let message = format!("nothing can be mounted at {}", quote(&guest.value));
        let label = format!("the guest has its own `{taken}`");
        let error = Diagnostic::new(message, guest.span, label);
        sink.report(error.with_help("choose another place, for instance \"/a3s/workspace\""));
    }
    Some(guest)
}

/// Returns what the guest has at a place itself, above or below it.
pub(super) fn reserved(place: &str) -> Option<&'static str> {
    RESERVED.into_iter().find(|taken| overlap(taken, place))
}

/// A place where something is mounted, who sees it, and by which declaration.
type Mount<'b> = (&'b Spanned<String>, Scope, &'static str);

/// Reports shares, disks and files of secrets that lie on one another in the same component.
pub(in crate::parse) fn check_apart(
    shares: &[Share],
    disks: &[Scratch],
    secrets: &[SecretFile],
    sink: &Sink,
) {
    let shares = shares.iter().map(|it| (&it.guest, it.component, schema::SHARE.name));
    let disks = disks.iter().map(|it| (&it.guest, it.component, schema::SCRATCH.name));
    let secrets = secrets.iter().map(|it| (&it.path, it.component, schema::SECRET.name));
    let mut mounts: Vec<Mount<'_>> = shares.chain(disks).chain(secrets).collect();
    // Of a place that is refused, enough is said.
    mounts.retain(|(place, ..)| reserved(&place.value).is_none());
    mounts.sort_by(|(one, ..), (other, ..)| {
        rules::path_order(&one.value, &other.value).then(one.span.cmp(&other.span))
    });
    let mut reported = HashSet::new();
    for hidden in [Scope::Business, Scope::Agent] {
        let mut outer: Option<Mount<'_>> = None;
        for mount in mounts.iter().filter(|(_, scope, _)| *scope != hidden) {
            match outer.filter(|outer| overlap(&outer.0.value, &mount.0.value)) {
                None => outer = Some(*mount),
                Some(outer) if reported.insert(mount.0.span) => {
                    sink.report(on_another(outer, *mount));
                }
                Some(_) => {}
            }
        }
    }
}

fn on_another(outer: Mount<'_>, inner: Mount<'_>) -> Diagnostic {
    let [outside, inside] = [outer, inner].map(|mount| quote(&mount.0.value));
    let message = if outside == inside {
        format!("two things would be at {inside}")
    } else if outer.2 == schema::SECRET.name {
        format!("{inside} lies inside of {outside}, which is the file of a secret")
    } else {
        format!("{inside} lies inside of {outside}, where something else is mounted")
    };
    Diagnostic::new(message, inner.0.span, format!("the place of this `{}`", inner.2))
        .with_label(outer.0.span, format!("the place of this `{}`", outer.2))
        .with_help("choose places of which none is inside of another")
}

/// Tells whether one path is the other or leads to it.
fn overlap(one: &str, other: &str) -> bool {
    rules::is_inside(one, other) || rules::is_inside(other, one)
}

//! `share …` and `scratch …`: what is mounted into the components.

use std::collections::HashSet;

use box_image::plan::{BOX_EXEC_PATH, EXEC_SOCKET_PATH, PLAN_PATH, SKILLS_PATH};
use box_image::rules::KERNEL_DIRECTORIES;
use box_image::{Scope, ScratchPlan, SharePlan};

use crate::diagnostic::quote;
use crate::parse::checkout::Checkout;
use crate::parse::children::Children;
use crate::parse::names;
use crate::parse::reader::Reader;
use crate::parse::run::Components;
use crate::parse::run::secret::Secret;
use crate::parse::vm;
use crate::schema::{self, Declaration};
use crate::sink::Sink;
use crate::syntax::tree::Node;
use crate::{Diagnostic, Span, Spanned, rules, value};

/// The directories that the guest shows for `task`, `logs` and `cap`.
const SHOWN: [&str; 3] = ["/task", "/logs", "/cap"];

/// Reads all shares, and sorts them by name.
pub(in crate::parse) fn shares(
    top: &Children<'_>,
    checkout: Checkout<'_>,
) -> Vec<Spanned<SharePlan>> {
    let components = Components::of(top, checkout.sink);
    let nodes = top.keyed(&schema::SHARE).into_iter();
    nodes.filter_map(|node| share(node, components, checkout)).collect()
}

fn share(
    node: &Node,
    components: Components<'_>,
    checkout: Checkout<'_>,
) -> Option<Spanned<SharePlan>> {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SHARE, sink);
    let name = reader.read_arg(names::plain_name);
    let guest = guest(&mut reader, sink);
    let host = reader.read_optional("host", value::path);
    host.iter().for_each(|host| checkout.share(host));
    let access = reader.choice("access").unwrap_or_default();
    let scope = components.scope(&mut reader, Scope::Both);
    reader.finish();
    let (guest, host) = (guest?, host.map(|host| host.value));
    let share = SharePlan { name: name?, guest: guest.value, access, scope, host };
    Some(Spanned { value: share, span: guest.span })
}

/// Reads all scratch disks, and sorts them by name.
pub(in crate::parse) fn scratch(top: &Children<'_>, sink: &Sink) -> Vec<Spanned<ScratchPlan>> {
    let components = Components::of(top, sink);
    top.keyed(&schema::SCRATCH).into_iter().filter_map(|node| disk(node, components)).collect()
}

fn disk(node: &Node, components: Components<'_>) -> Option<Spanned<ScratchPlan>> {
    let sink = components.sink;
    let mut reader = Reader::new(node, &schema::SCRATCH, sink);
    let name = reader.read_arg(names::plain_name);
    let guest = guest(&mut reader, sink);
    let written = reader.prop("size");
    let size = reader.size("size");
    let whole = |size: &u64| written.is_some_and(|value| vm::whole(value, "size", *size, sink));
    let size = size.filter(whole);
    let scope = components.scope(&mut reader, Scope::Both);
    reader.finish();
    let guest = guest?;
    let disk = ScratchPlan { name: name?, guest: guest.value, size_bytes: size?, scope };
    Some(Spanned { value: disk, span: guest.span })
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
    let plan = PLAN_PATH.rsplit_once('/').map(|(directory, _)| directory);
    let of_exec = [BOX_EXEC_PATH, EXEC_SOCKET_PATH];
    let own = KERNEL_DIRECTORIES.into_iter().chain([SKILLS_PATH]).chain(of_exec);
    let mut taken = own.chain(plan).chain(SHOWN);
    taken.find(|taken| overlap(taken, place))
}

/// A place where something is mounted, who sees it, and by which declaration.
#[derive(Clone, Copy)]
struct Mount<'b> {
    path: &'b str,
    span: Span,
    scope: Scope,
    declaration: &'static str,
}

/// Reports shares, disks and files of secrets that overlap in the same component.
pub(in crate::parse) fn check_apart(
    shares: &[Spanned<SharePlan>],
    disks: &[Spanned<ScratchPlan>],
    secrets: &[Secret],
    sink: &Sink,
) {
    let mut mounts = Vec::new();
    let mut add = |path, span, scope, declaration: &Declaration| {
        mounts.push(Mount { path, span, scope, declaration: declaration.name });
    };
    for Spanned { value: share, span } in shares {
        add(&share.guest, *span, share.scope, &schema::SHARE);
    }
    for Spanned { value: disk, span } in disks {
        add(&disk.guest, *span, disk.scope, &schema::SCRATCH);
    }
    for secret in secrets {
        secret.path.iter().for_each(|it| add(&it.value, it.span, secret.scope, &schema::SECRET));
    }
    // Of a place that is refused, enough is said.
    mounts.retain(|mount| reserved(mount.path).is_none());
    mounts.sort_by(|one, other| {
        rules::path_order(one.path, other.path).then(one.span.cmp(&other.span))
    });
    let mut reported = HashSet::new();
    for hidden in [Scope::Business, Scope::Agent] {
        let mut outer: Option<Mount<'_>> = None;
        for mount in mounts.iter().filter(|mount| mount.scope != hidden) {
            match outer.filter(|outer| overlap(outer.path, mount.path)) {
                None => outer = Some(*mount),
                Some(outer) if reported.insert(mount.span) => {
                    sink.report(on_another(outer, *mount));
                }
                Some(_) => {}
            }
        }
    }
}

fn on_another(outer: Mount<'_>, inner: Mount<'_>) -> Diagnostic {
    let [outside, inside] = [outer, inner].map(|mount| quote(mount.path));
    let message = if outside == inside {
        format!("two things would be at {inside}")
    } else if outer.declaration == schema::SECRET.name {
        format!("{inside} is inside {outside}, which is a secret's file")
    } else {
        format!("{inside} is inside {outside}, which is already in use")
    };
    let label = |mount: Mount<'_>| format!("the place of this `{}`", mount.declaration);
    Diagnostic::new(message, inner.span, label(inner))
        .with_label(outer.span, label(outer))
        .with_help("choose places that are not inside one another")
}

/// Returns whether one path is the other or leads to it.
fn overlap(one: &str, other: &str) -> bool {
    rules::is_inside(one, other) || rules::is_inside(other, one)
}

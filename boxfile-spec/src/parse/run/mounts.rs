//! `share …`, `volume …` and `scratch …`: mounts of the components. Compares their paths with those of other declarations.

use std::collections::HashSet;

use box_contract::plan::{SSH_AGENT_SOCKET, system_part};
use box_contract::rules::{MountKind, excludes};
use box_contract::{Scope, ScratchPlan, SharePlan, SshAgentPlan, SystemDirectories, VolumePlan};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::run::scope;
use crate::parse::run::secret::Secret;
use crate::parse::{Children, Reader, read_fields};
use crate::rules::reserved_place;
use crate::schema::{self, Declaration};
use crate::{BakedFile, Component, Share, rules, value};
use diagnostics::{Diagnostic, Sink, Span, Spanned};
use safe_text::quote;

/// Reads all shares, and sorts them by name.
pub(in crate::parse) fn shares(top: &Children<'_>) -> Vec<Spanned<Share>> {
    Reader::keyed(top, &schema::SHARE, |reader| {
        let span = reader.value_span("guest");
        let over = reader.value("over");
        let plan = read_fields!(reader => SharePlan {
            name = reader.first(), guest, host, access, scope = scope(reader, top)
        })?;
        Some(Spanned { value: Share { plan, over: over? }, span })
    })
}

/// Reads all volumes, and sorts them by name.
pub(in crate::parse) fn volumes(top: &Children<'_>) -> Vec<Spanned<VolumePlan>> {
    Reader::keyed(top, &schema::VOLUME, |reader| {
        let span = reader.value_span("guest");
        let volume = read_fields!(reader => VolumePlan {
            name = reader.first(), guest, scope = scope(reader, top)
        })?;
        Some(Spanned { value: volume, span })
    })
}

/// Reads all scratch disks, and sorts them by name.
pub(in crate::parse) fn scratch(top: &Children<'_>) -> Vec<Spanned<ScratchPlan>> {
    Reader::keyed(top, &schema::SCRATCH, |reader| {
        let span = reader.value_span("guest");
        let disk = read_fields!(reader => ScratchPlan {
            name = reader.first(), guest, size_bytes = whole_size(reader), scope = scope(reader, top)
        })?;
        Some(Spanned { value: disk, span })
    })
}

/// Reads the size of the disk for the components' roots, in bytes.
pub(in crate::parse) fn disk(top: &Children<'_>) -> Option<u64> {
    Reader::sole(top, &schema::DISK, |reader| {
        let written = reader.arg();
        let size = reader.read_first(written)?;
        reader.check(value::check_whole(written?, "disk", size))
    })
}

fn whole_size(reader: &mut Reader<'_>) -> Option<u64> {
    let size = reader.value("size")?;
    let written = reader.optional_prop("size")?;
    reader.check(value::check_whole(written, "size", size))
}

/// A path of the guest that a declaration uses, and the components that see it.
#[derive(Clone, Copy)]
struct DeclaredPath<'b> {
    path: &'b str,
    span: Span,
    scope: Scope,
    kind: MountKind,
    /// The name of the declaration.
    declaration: &'static str,
}

impl DeclaredPath<'_> {
    /// Returns whether this is the path of a baked file, which does not hide other paths.
    fn is_baked(&self) -> bool {
        self.kind == MountKind::Baked
    }

    /// Returns whether one of the two paths would hide the other: see [`excludes`].
    fn excludes(&self, other: &Self) -> bool {
        excludes((self.kind, self.path), (other.kind, other.path))
    }
}

/// The declarations that use paths of the guest. [`check_apart`] compares these paths.
pub(in crate::parse) struct Placed<'b> {
    pub(in crate::parse) shares: &'b [Spanned<Share>],
    pub(in crate::parse) volumes: &'b [Spanned<VolumePlan>],
    pub(in crate::parse) disks: &'b [Spanned<ScratchPlan>],
    pub(in crate::parse) secrets: &'b [Secret],
    pub(in crate::parse) ssh_agent: Option<&'b Spanned<SshAgentPlan>>,
    /// The files of the components.
    pub(in crate::parse) files: Vec<(Scope, &'b BakedFile)>,
}

impl<'b> Placed<'b> {
    /// Returns all paths, sorted so that the paths inside a path directly follow it.
    fn places(&self) -> Vec<DeclaredPath<'b>> {
        let mut places = Vec::new();
        let mut add = |path: &'b str, span, scope, (kind, of): (_, &Declaration)| {
            places.push(DeclaredPath { path, span, scope, kind, declaration: of.name });
        };
        for Spanned { value: Share { plan: share, .. }, span } in self.shares {
            add(&share.guest, *span, share.scope, (MountKind::Mount, &schema::SHARE));
        }
        for Spanned { value: volume, span } in self.volumes {
            add(&volume.guest, *span, volume.scope, (MountKind::Mount, &schema::VOLUME));
        }
        for Spanned { value: disk, span } in self.disks {
            add(&disk.guest, *span, disk.scope, (MountKind::Scratch, &schema::SCRATCH));
        }
        for Secret { path, scope, .. } in self.secrets {
            let kind = (MountKind::Secret, &schema::SECRET);
            path.iter().for_each(|it| add(&it.value, it.span, *scope, kind));
        }
        if let Some(Spanned { value: agent, span }) = self.ssh_agent {
            let kind = (MountKind::Socket, &schema::SSH_AGENT);
            add(SSH_AGENT_SOCKET, *span, agent.scope, kind);
        }
        for (scope, BakedFile { path, to, .. }) in &self.files {
            // The path in the box of agent definitions is not written in the file.
            let of = if path.span == to.span { &schema::AGENTS } else { &schema::FILE };
            add(&to.value, to.span, *scope, (MountKind::Baked, of));
        }
        // The error about a reserved path is already reported.
        places.retain(|place| reserved_place(place.path).is_none());
        places.sort_by(|one, other| {
            let by_path = rules::path_order(one.path, other.path);
            by_path.then((one.is_baked(), one.span).cmp(&(other.is_baked(), other.span)))
        });
        places
    }
}

/// Reports paths of one component of which one would hide the other: every path at or inside the path of a share,
/// scratch disk, secret or the SSH agent's socket, except a share inside a share or a scratch disk. Also reports two baked files at one
/// path.
pub(in crate::parse) fn check_apart(placed: &Placed<'_>, sink: &Sink) {
    let places = placed.places();
    let mut reported = HashSet::new();
    for hidden in [Scope::Business, Scope::Agent] {
        let [mut outer, mut inner, mut baked]: [Option<DeclaredPath<'_>>; 3] = [None; 3];
        for place in places.iter().filter(|place| place.scope != hidden) {
            let same = baked.filter(|it| place.is_baked() && it.path == place.path);
            let excluding = [inner, outer].into_iter().flatten().find(|it| it.excludes(place));
            match excluding.or(same) {
                None if place.is_baked() => baked = Some(*place),
                None if outer.is_some_and(|it| rules::overlap(it.path, place.path)) => {
                    inner = Some(*place);
                }
                None => outer = Some(*place),
                Some(outer) if reported.insert(place.span) => {
                    sink.report(on_another(outer, *place));
                }
                Some(_) => {}
            }
        }
    }
}

/// Reports a working directory in which no program could write, because it is in a read-only system and on no mount. The working
/// directory of an image is checked when the box is built.
pub(in crate::parse) fn check_workdir(
    (scope, component): (Scope, &Component),
    placed: &Placed<'_>,
    sink: &Sink,
) {
    let Some(workdir) = &component.workdir else { return };
    let places = placed.places();
    let is_mount =
        |it: &&DeclaredPath<'_>| matches!(it.kind, MountKind::Mount | MountKind::Scratch);
    let seen = |it: &&DeclaredPath<'_>| it.scope == scope || it.scope == Scope::Both;
    let mounts = places.iter().filter(is_mount).filter(seen).map(|it| it.path);
    let is_read_only = component.system == SystemDirectories::ReadOnly;
    if is_read_only && system_part(&workdir.value, mounts).is_some() {
        let path = quote(&workdir.value);
        sink.report(DECLARATION_ERRORS.about("system-workdir", &path, workdir.span));
    }
}

fn on_another(outer: DeclaredPath<'_>, inner: DeclaredPath<'_>) -> Diagnostic {
    let [outside, inside] = [outer, inner].map(|place| quote(place.path));
    let message = if outside == inside {
        format!("{inside} is used twice")
    } else if outer.kind == MountKind::Secret {
        format!("{inside} is inside {outside}, which is a secret's file")
    } else {
        format!("{inside} is inside {outside}, which is already in use")
    };
    let label = |place: DeclaredPath<'_>| format!("the place of this `{}`", place.declaration);
    let help = match outside == inside {
        true => "give one of them another path, or remove it",
        false => "choose paths that are not inside one another",
    };
    Diagnostic::new(message, inner.span, label(inner))
        .with_label(outer.span, label(outer))
        .with_help(help)
}

//! The operands of a comparison.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use box_contract::plan::{FieldDifference, differences};
use box_contract::{ComponentName, ErrorCode, RemoteName, RunPlan};
use box_contract::{ImageRef, Platform};
use box_find::{BoxReference, FindError};
use box_inspect::diff::{PartDifference, Side};
use box_inspect::export::VerifiedContents;
use box_inspect::opened::{self, OpenBox, OpenError};
use box_inspect::sbom::Inventory;
use cli_common::policy::HostPolicy;
use cli_registry::{PullArgs, RegistryOptions};
use oci_image::Access;

use crate::cli::failure::Failure;
use crate::cli::init::{misnamed, parse};
use crate::cli::stored::PROGRAM;
use crate::cli::{registries, terminal};
use cli_common::store::StoreOption;

/// An operand of `boxbuild diff`.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) side: Side,
    /// The box, if the operand is one.
    pub(super) opened: Option<OpenBox>,
}

/// How boxes are found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Search<'s> {
    pub(super) component: Option<ComponentName>,
    pub(super) store: &'s StoreOption,
    pub(super) registries: &'s RegistryOptions,
    pub(super) as_json: bool,
}

impl Operand {
    /// Opens the box, image or directory that a word of the command line names.
    pub(super) fn open(word: &OsStr, search: Search<'_>) -> Result<Self, Failure> {
        let is_image = |it: &&str| ImageRef::PREFIXES.iter().any(|prefix| it.starts_with(prefix));
        if let Some(reference) = word.to_str().filter(is_image) {
            let image = parse(reference)?;
            if let ImageRef::Registry { .. } = image {
                return Err(not_asked(reference));
            }
            let access = Access { base: Path::new(""), registries: None };
            let side = Side::of_image(&image, Platform::BUILT, &access)?;
            return Ok(Self { side, opened: None });
        }
        let subject = BoxReference::parse(word).map_err(|error| {
            misnamed(&word.to_string_lossy()).unwrap_or_else(|| Failure::from(error))
        })?;
        // An image layout is opened as a box. Otherwise, its blobs would be compared as files.
        let Some(path) = subject.path().filter(|it| !box_layout::is_layout(it)) else {
            return Self::of_box(&subject, search);
        };
        match path.metadata() {
            Ok(found) if !found.is_dir() => Err(misnamed(&word.to_string_lossy())
                .unwrap_or_else(|| not_comparable(format!("{} is a file", path.display())))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_comparable(format!("there is no {}", path.display())))
            }
            _ => Ok(Self { side: Side::of_directory(path)?, opened: None }),
        }
    }

    /// Takes the files of a box or an image, without its other parts.
    pub(super) const fn of_side(side: Side) -> Self {
        Self { side, opened: None }
    }

    /// Takes a whole box.
    pub(super) fn of_opened(opened: OpenBox) -> Result<Self, Failure> {
        Ok(Self { side: Side::of_box(&opened, None)?, opened: Some(opened) })
    }

    fn of_box(subject: &BoxReference, search: Search<'_>) -> Result<Self, Failure> {
        let find = || subject.find(search.store.stores(&PROGRAM))?.open();
        let found = match (find(), subject.remote()) {
            (Err(error), Some(remote)) if error.is_absent() => {
                pull(remote, search)?;
                find()
            }
            (found, _) => found,
        };
        let opened = found.map_err(|error| match (&error, subject.path()) {
            (FindError::Open(of), Some(path)) if is_not_a_box(of) => {
                let path = path.display();
                let help = format!("compare an image in it: oci:{path}");
                let message = format!("{path} is an OCI image, not a box");
                Failure::new((ErrorCode::BoxNotFound, help), message)
            }
            _ => error.into(),
        })?;
        Ok(Self { side: Side::of_box(&opened, search.component)?, opened: Some(opened) })
    }

    /// Returns the plan, if the operand is a box.
    pub(super) fn plan(&self) -> Option<&RunPlan> {
        self.opened.as_ref().map(OpenBox::plan)
    }

    /// Reads the package databases of a box.
    pub(super) fn inventory(&self) -> Result<Option<Inventory>, Failure> {
        let (Some(opened), listing) = (&self.opened, &self.side.listing) else { return Ok(None) };
        let mut contents = VerifiedContents::open(opened, &listing.tree)?;
        Ok(Some(Inventory::read(opened.plan(), listing, &mut contents)?))
    }
}

/// Pulls a box that the store lacks, as for a start: collections remove it like any other box that was not used for long.
fn pull(remote: &RemoteName, search: Search<'_>) -> Result<(), Failure> {
    let client = registries::client(search.registries, search.as_json)?;
    let note = |amounts: &str| {
        if !search.as_json {
            terminal::note(amounts);
        }
    };
    let args = PullArgs::of(remote.clone(), search.store.clone(), search.registries.clone());
    let policy = HostPolicy::read(PROGRAM.variable)?;
    args.run(&PROGRAM, &client, policy.as_ref(), note, true)?;
    Ok(())
}

/// Returns whether the error means that an OCI image layout is not a box.
fn is_not_a_box(error: &box_layout::OpenError) -> bool {
    use box_layout::OpenError::{Manifests, OtherArtifact};
    matches!(error, OtherArtifact { .. } | Manifests { .. })
}

/// Returns the failure of a path that cannot be compared.
fn not_comparable(message: String) -> Failure {
    let help = "name a box such as NAME.box, an image such as oci:DIR, or a directory";
    Failure::new((ErrorCode::BoxNotFound, help), message)
}

/// Returns the failure of an image in a registry.
fn not_asked(reference: &str) -> Failure {
    let help = format!("copy it first: skopeo copy {reference} oci:DIR:latest");
    let message = format!("`boxbuild diff` does not read images from a registry: {reference}");
    Failure::new((ErrorCode::Offline, help), message)
}

/// Refuses two boxes with contradictory listings of the same rootfs, of which at least one must be
/// forged.
pub(super) fn check_same_rootfs(a: &Operand, b: &Operand) -> Result<(), OpenError> {
    let origins = &a.side.listing.origins;
    let (Some(a), Some(b)) = (&a.opened, &b.opened) else { return Ok(()) };
    opened::check_same_rootfs(a, b, origins)
}

/// Compares the parts of two boxes outside their rootfs. Other operands have no such parts.
pub(super) fn parts(a: &Operand, b: &Operand, equal: bool) -> Vec<PartDifference> {
    let (Some(a), Some(b)) = (&a.opened, &b.opened) else { return Vec::new() };
    box_inspect::diff::parts(a, b, equal)
}

/// Compares the run plans of two boxes. Other operands have no plan.
pub(super) fn plans(a: &Operand, b: &Operand) -> Result<Vec<FieldDifference>, Failure> {
    let (Some(a), Some(b)) = (&a.opened, &b.opened) else { return Ok(Vec::new()) };
    differences(a.plan(), b.plan()).map_err(|error| {
        let help = "build the boxes again with this version of boxbuild";
        Failure::new((ErrorCode::BoxMalformed, help), format!("a plan cannot be read: {error}"))
    })
}

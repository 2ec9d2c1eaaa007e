//! The operands of a comparison.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

use box_contract::plan::{FieldDifference, differences};
use box_contract::{ComponentName, Descriptor, ErrorCode, RemoteName, RunPlan};
use box_contract::{ImageRef, Platform};
use box_find::{BoxReference, FindError, Found};
use box_inspect::diff::{PackageChanges, PartDifference, Side};
use box_inspect::export::LateContents;
use box_inspect::opened::{self, Documents, OpenBox, OpenError};
use box_inspect::sbom::Packaged;
use box_layout::Blob;
use cli_common::policy::HostPolicy;
use cli_registry::{PullArgs, RegistryOptions, View};
use oci_image::Access;

use crate::cli::failure::Failure;
use crate::cli::init::{misnamed, parse};
use crate::cli::stored::PROGRAM;
use crate::cli::{registries, terminal};
use cli_common::store::{StoreOption, stored_boxes};

/// An operand of `boxbuild diff`.
#[derive(Debug)]
pub(super) struct Operand {
    pub(super) side: Side,
    source: Source,
}

/// The place of the blobs of an operand.
#[derive(Debug)]
enum Source {
    /// The operand is no whole box.
    Files,
    /// The box is on this host.
    Here(Box<Documents>),
    /// The box is in a registry.
    There(Box<View>),
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
            return Ok(Self::of_side(side));
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
            _ => Ok(Self::of_side(Side::of_directory(path)?)),
        }
    }

    /// Takes the files of a box or an image, without its other parts.
    pub(super) const fn of_side(side: Side) -> Self {
        Self { side, source: Source::Files }
    }

    /// Takes a whole box.
    pub(super) fn of_opened(opened: OpenBox) -> Result<Self, Failure> {
        Self::here(opened, None)
    }

    fn of_box(subject: &BoxReference, search: Search<'_>) -> Result<Self, Failure> {
        let found = subject.find(search.store.stores(&PROGRAM)).and_then(Found::open);
        if let (Err(error), Some(remote)) = (&found, subject.remote())
            && error.is_absent()
        {
            return Self::there(remote, search);
        }
        let opened = found.map_err(|error| match (&error, subject.path()) {
            (FindError::Open(of), Some(path)) if is_not_a_box(of) => {
                let path = path.display();
                let help = format!("compare an image in it: oci:{path}");
                let message = format!("{path} is an OCI image, not a box");
                Failure::new((ErrorCode::BoxNotFound, help), message)
            }
            _ => error.into(),
        })?;
        Self::here(opened, search.component)
    }

    fn here(opened: OpenBox, component: Option<ComponentName>) -> Result<Self, Failure> {
        let side = Side::of_box(&opened, component)?;
        Ok(Self { side, source: Source::Here(Box::new(opened.documents)) })
    }

    /// Opens a box that is not whole on this host, but in a registry. If the store has pulled a box under this name, opens that box or
    /// fails: the tag may mean another box by now. The fetched blobs become no box of the store.
    fn there(remote: &RemoteName, search: Search<'_>) -> Result<Self, Failure> {
        let client = registries::client(search.registries, search.as_json)?;
        let note = |verdict: &str| terminal::unless_json(search.as_json, verdict);
        let args = PullArgs::of(remote.clone(), search.store.clone(), search.registries.clone());
        let boxes = stored_boxes(&search.store.stores(&PROGRAM))?;
        let noted = boxes.map(|it| it.pulled(&remote.unpinned().to_string())).transpose()?;
        let args = args.meaning(noted.flatten().map(|it| it.digest));
        let policy = HostPolicy::read(PROGRAM.variable)?;
        let view = args.view(&PROGRAM, client, policy.as_ref(), note)?;
        let side = Side::of_box(&view.documents, search.component)?;
        Ok(Self { side, source: Source::There(Box::new(view)) })
    }

    /// Returns the documents of the box, if the operand is one.
    pub(super) fn documents(&self) -> Option<&Documents> {
        match &self.source {
            Source::Files => None,
            Source::Here(documents) => Some(documents),
            Source::There(view) => Some(&view.documents),
        }
    }

    /// Returns the plan, if the operand is a box.
    pub(super) fn plan(&self) -> Option<&RunPlan> {
        self.documents().map(Documents::plan)
    }

    /// Opens a part of the rootfs. A part that is only in the registry is fetched first.
    fn part(&self, named: &Descriptor) -> Result<Option<Blob>, Failure> {
        Ok(match &self.source {
            Source::Files => None,
            Source::Here(documents) => Some(documents.open_blob(named).map_err(FindError::from)?),
            Source::There(view) => Some(view.open(named)?),
        })
    }
}

/// Compares the packages of two boxes, whose trees may be `equal`. Other operands have no packages.
pub(super) fn packages(a: &Operand, b: &Operand, equal: bool) -> Result<PackageChanges, Failure> {
    let (Some(one), Some(other)) = (a.documents(), b.documents()) else {
        return Ok(PackageChanges::default());
    };
    let are_here = [a, b].iter().all(|it| matches!(it.source, Source::Here(_)));
    let parts = |it: &Documents| -> Vec<_> { it.parts().iter().map(|it| it.digest).collect() };
    // Equal trees have equal databases. If both boxes are here, reading costs no fetch, so a different rootfs is read all the same.
    if equal && (!are_here || parts(one) == parts(other)) {
        return Ok(PackageChanges::default());
    }
    // A failure has more to say than the error of a reader can.
    let failure = RefCell::new(None);
    let open = |of: &Operand, named: &Descriptor| {
        let part = of.part(named).map_err(|error| {
            failure.replace(Some(error));
            io::ErrorKind::Other
        })?;
        part.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let (open_a, open_b) = (|named: &_| open(a, named), |named: &_| open(b, named));
    let mut contents_a = LateContents::new(one, &a.side.listing.tree, &open_a);
    let mut contents_b = LateContents::new(other, &b.side.listing.tree, &open_b);
    let mut one =
        Packaged { plan: one.plan(), listing: &a.side.listing, contents: &mut contents_a };
    let mut other =
        Packaged { plan: other.plan(), listing: &b.side.listing, contents: &mut contents_b };
    let compare = if are_here { PackageChanges::verified } else { PackageChanges::of };
    compare(&mut one, &mut other).map_err(|error| failure.take().unwrap_or_else(|| error.into()))
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
    let (Some(a), Some(b)) = (a.documents(), b.documents()) else { return Ok(()) };
    opened::check_same_rootfs(a, b, origins)
}

/// Compares the parts of two boxes outside their rootfs. Other operands have no such parts.
pub(super) fn parts(a: &Operand, b: &Operand, equal: bool) -> Vec<PartDifference> {
    let (Some(a), Some(b)) = (a.documents(), b.documents()) else { return Vec::new() };
    box_inspect::diff::parts(a, b, equal)
}

/// Compares the run plans of two boxes.
pub(in crate::cli) fn plans(a: &RunPlan, b: &RunPlan) -> Result<Vec<FieldDifference>, Failure> {
    differences(a, b).map_err(|error| {
        let help = "build the boxes again with this version of boxbuild";
        Failure::new((ErrorCode::BoxMalformed, help), format!("a plan cannot be read: {error}"))
    })
}

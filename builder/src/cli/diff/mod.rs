//! `boxbuild diff`: shows the differences between two boxes, images or directories.

mod operand;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use box_contract::permissions::PermissionChange;
use box_contract::plan::FieldDifference;
use box_contract::{ComponentName, ErrorCode, exit};
use box_inspect::diff::markdown::{MAX_FILES, comment};
use box_inspect::diff::summary::{Files, Summary};
use box_inspect::diff::{Change, Difference, PackageChange, PartDifference, Side, SideKind};
use box_inspect::diff::{PackageChanges, Sizes, compare, text};
use box_inspect::entry::{entry_json, path_json, shown_bytes, with_fields};
use box_inspect::opened::{Documents, OpenBox};
use box_tree::Field;
use box_tree::Follow;
use box_tree::listing::Listing;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::options::{RegistryOptions, StoreOption};
use super::terminal;
pub(super) use operand::plans;
use operand::{Operand, Search};

/// Shows what differs between two boxes, images or directories.
///
/// A and B are boxes, images as a Boxfile names them (oci:DIR:TAG, oci-archive:FILE:TAG, docker-archive:FILE:NAME:TAG), or
/// other directories. Compares each entry by type, mode, uid, gid, size, content, target, device, xattrs, mtime and hard
/// links, and prints the first difference. For two boxes, also compares their packages and the fields of their plans: what the
/// box may do, which programs it runs and what it gets. Of a box in a registry (HOST/NAME:TAG) that the store lacks, only the
/// blobs that are compared are fetched. Exits with 5 if there is a difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild diff old.box new.box                              two boxes\n  \
    boxbuild diff old.box new.box /roots/agent/etc             only this directory\n  \
    boxbuild diff --component agent new.box oci:images/agent   a component and its image\n  \
    boxbuild diff --ignore mtime new.box ./unpacked            a box and a directory\n  \
    boxbuild diff ghcr.io/acme/a:v1 a --format markdown        a comment for a pull request")]
pub(crate) struct Args {
    /// A box, an image (oci:DIR:TAG), or a directory (./DIR)
    #[arg(value_name = "A")]
    a: OsString,
    /// A second box, image or directory
    #[arg(value_name = "B")]
    b: OsString,
    /// Compare only this path and the entries below it
    #[arg(value_name = "PATH", default_value = "/")]
    path: OsString,
    /// For a box, compare only the root of this component, as for comparison with its image
    #[arg(long, value_parser = cli_common::component_name())]
    component: Option<ComponentName>,
    /// Ignore differences in this field: mode, uid, gid, size, content, target, device, xattrs, mtime or hard-links; separate
    /// several with commas
    #[arg(long, value_name = "FIELD", value_delimiter = ',', value_parser = field)]
    ignore: Vec<Field>,
    /// How to print the differences
    #[arg(long, value_enum, default_value = "text", conflicts_with = "json")]
    format: Format,
    #[command(flatten)]
    store: StoreOption,
    #[command(flatten)]
    registries: RegistryOptions,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for a terminal
    Text,
    /// A comment for a pull request: permissions, packages, sizes, budget and the largest files. Only for two boxes
    Markdown,
}

fn field(text: &str) -> Result<Field, String> {
    let mut fields = Field::ALL.into_iter().filter(|it| *it != Field::Type);
    let names: Vec<&str> = fields.clone().map(Field::name).collect();
    fields.find(|it| it.name() == text).ok_or_else(|| format!("a field is {}", names.join(", ")))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let search = Search {
        component: args.component,
        store: &args.store,
        registries: &args.registries,
        as_json: args.json,
    };
    let (a, b) = (Operand::open(&args.a, search)?, Operand::open(&args.b, search)?);
    operand::check_same_rootfs(&a, &b)?;
    let path = path(args, &a.side, &b.side)?;
    let is_whole = args.component.is_none() && path.is_empty();
    let found = Comparison::new((a, b), (path, args.ignore.clone()), is_whole)?;
    match args.format {
        _ if args.json => {
            let (a, b) = (about(&args.a, &found.a.side), about(&args.b, &found.b.side));
            found.print_json(json!({ "a": a, "b": b }));
        }
        Format::Text => {
            found.print();
            if args.component.is_none() && is_box_and_image(found.a.side.kind, found.b.side.kind) {
                terminal::note(
                    "note: an image is one component's root; add `--component agent`, or business",
                );
            }
        }
        Format::Markdown => terminal::result(markdown(args, &found, is_whole)?.trim_end()),
    }
    // If the result could not be written, `cli::main` returns a failure.
    if found.is_same() || terminal::lost() {
        Ok(())
    } else {
        Err(Failure::reported(exit::DIFFERENT))
    }
}

/// The differences between two operands. Those between their entries are computed again for each use, because all of them can
/// be larger than the memory.
pub(super) struct Comparison {
    a: Operand,
    b: Operand,
    path: Vec<u8>,
    ignore: Vec<Field>,
    beside: Beside,
    counts: Counts,
}

impl Comparison {
    /// Compares two whole boxes.
    pub(super) fn of_boxes(a: OpenBox, b: OpenBox) -> Result<Self, Failure> {
        let (a, b) = (Operand::of_opened(a)?, Operand::of_opened(b)?);
        operand::check_same_rootfs(&a, &b)?;
        Self::new((a, b), (Vec::new(), Vec::new()), true)
    }

    /// Compares the files of two boxes, of which the differences of the plans are known.
    pub(super) fn of_sides(
        (a, b): (Side, Side),
        plan: Vec<FieldDifference>,
    ) -> Result<Self, Failure> {
        let [a, b] = [a, b].map(Operand::of_side);
        let found = Self::new((a, b), (Vec::new(), Vec::new()), false)?;
        Ok(Self { beside: Beside { plan, ..Beside::default() }, ..found })
    }

    /// Returns the fields of the plans that differ.
    pub(super) fn plan(&self) -> &[FieldDifference] {
        &self.beside.plan
    }

    /// Compares the entries below a path. If `is_whole`, also compares what boxes have beside their files.
    fn new(
        (a, b): (Operand, Operand),
        (path, ignore): (Vec<u8>, Vec<Field>),
        is_whole: bool,
    ) -> Result<Self, Failure> {
        let beside = if is_whole { Beside::of(&a, &b, &ignore)? } else { Beside::default() };
        let counts = Counts::of(compare(&a.side, &b.side, &path, &ignore));
        Ok(Self { a, b, path, ignore, beside, counts })
    }

    fn is_same(&self) -> bool {
        self.counts.all() == 0 && self.beside.plan.is_empty() && self.beside.parts.is_empty()
    }

    /// Returns the entries that differ.
    pub(super) fn entries(&self) -> impl Iterator<Item = Difference<'_>> {
        compare(&self.a.side, &self.b.side, &self.path, &self.ignore)
    }

    /// Prints the differences, and then a summary as a note.
    pub(super) fn print(&self) {
        let Beside { plan, packages, parts, .. } = &self.beside;
        let lines = text::plan_lines(plan).chain(text::package_lines(packages));
        let lines = lines.chain(text::lines(self.entries(), parts));
        terminal::pieces(lines.map(|line| line + "\n"));
        terminal::note(&self.counts.summary(plan.len(), parts.len()));
    }

    /// Prints the JSON object `head` with the fields of the differences.
    pub(super) fn print_json(&self, mut head: Value) {
        head["counts"] = json!(self.counts);
        self.beside.add_to(&mut head);
        terminal::json_list(&head, "differences", self.entries().map(|it| line(&it)));
    }

    /// Summarizes the differences of two whole boxes, with at most `most` files. Returns `None` for other operands.
    pub(super) fn summary(&self, names: [String; 2], most: usize) -> Option<Summary<'_>> {
        let (a, b) = (self.a.documents()?, self.b.documents()?);
        Some(Summary {
            names,
            title: &b.plan().name,
            permissions: &self.beside.permissions,
            fields: &self.beside.plan,
            packages: &self.beside.packages,
            is_incomplete: self.beside.is_incomplete,
            sizes: [(a, &self.a), (b, &self.b)].map(|(it, of)| Sizes::of(it, &of.side.listing)),
            budgets: [a.plan().budget, b.plan().budget],
            kernels: [&a.config.kernel_version, &b.config.kernel_version],
            parts: &self.beside.parts,
            files: Files::of(self.entries(), most),
        })
    }

    /// Returns the second box with its listing. `None` for other operands.
    pub(super) fn second(&self) -> Option<(&Documents, &Listing)> {
        Some((self.b.documents()?, &self.b.side.listing))
    }
}

/// What differs between two boxes beside their files. Other operands have nothing of it.
#[derive(Debug, Default)]
struct Beside {
    permissions: Vec<PermissionChange>,
    plan: Vec<FieldDifference>,
    packages: Vec<PackageChange>,
    /// Whether a package database of one of the boxes is not fully read.
    is_incomplete: bool,
    parts: Vec<PartDifference>,
}

impl Beside {
    /// Compares two operands. `ignore` affects the comparison of the parts, but not of the packages.
    fn of(a: &Operand, b: &Operand, ignore: &[Field]) -> Result<Self, Failure> {
        let (Some(one), Some(other)) = (a.plan(), b.plan()) else { return Ok(Self::default()) };
        let equal = |ignore| compare(&a.side, &b.side, b"", ignore).next().is_none();
        let found = operand::packages(a, b, equal(&[]))?;
        let PackageChanges { changes: packages, is_incomplete } = found;
        Ok(Self {
            permissions: one.permission_changes(other),
            plan: plans(one, other)?,
            packages,
            is_incomplete,
            parts: operand::parts(a, b, equal(ignore)),
        })
    }

    /// Adds the fields of `--json`.
    fn add_to(&self, report: &mut Value) {
        report["permissions"] = json!(self.permissions);
        report["plan"] = json!(self.plan);
        report["packages"] = json!(self.packages);
        report["parts"] = json!(self.parts);
    }
}

/// Formats the comment of `--format markdown`.
fn markdown(args: &Args, found: &Comparison, is_whole: bool) -> Result<String, Failure> {
    let names = [&args.a, &args.b].map(|it| it.to_string_lossy().into_owned());
    let summary = if is_whole { found.summary(names, MAX_FILES) } else { None };
    summary.map(|it| comment(&it)).ok_or_else(|| {
        let help = "leave out PATH and `--component`, and name two boxes; or leave out `--format`";
        let message = "`--format markdown` compares two whole boxes";
        Failure::new((ErrorCode::Usage, help), message)
    })
}

/// Returns the path to compare, with the symbolic links in its directories resolved. One side may lack the path.
fn path(args: &Args, a: &Side, b: &Side) -> Result<Vec<u8>, Failure> {
    let path = args.path.as_bytes();
    match [a, b].map(|side| side.find(path, Follow::Parents)) {
        [Ok(a), Ok(b)] if a.path != b.path => {
            let [a, b] = [a, b].map(|it| shown_bytes(&it.path));
            let message = format!("{} is {a} in A and {b} in B", shown_bytes(path));
            Err(Failure::new((ErrorCode::PathNotFound, "name one of the two"), message))
        }
        [Ok(found), _] | [_, Ok(found)] => Ok(found.path),
        [Err(error), Err(_)] => Err(error.into()),
    }
}

/// Returns whether a whole box is compared with an image, which corresponds to one component of a box.
const fn is_box_and_image(a: SideKind, b: SideKind) -> bool {
    matches!(
        (a, b),
        (SideKind::Box(_), SideKind::Image(_)) | (SideKind::Image(_), SideKind::Box(_))
    )
}

/// Adds the fields of [`Comparison::print_json`] for a comparison that found no difference, or that was not made.
pub(super) fn without_differences(mut head: Value) -> Value {
    head["counts"] = json!(Counts::default());
    for list in ["permissions", "plan", "packages", "parts", "differences"] {
        head[list] = json!([]);
    }
    head
}

/// The number of entries that differ.
#[derive(Debug, Default, Serialize)]
pub(super) struct Counts {
    added: usize,
    removed: usize,
    changed: usize,
}

impl Counts {
    /// Counts the differences.
    pub(super) fn of<'d>(differences: impl Iterator<Item = Difference<'d>>) -> Self {
        let mut counts = Self::default();
        for difference in differences {
            let count = match difference.change {
                Change::Added(_) => &mut counts.added,
                Change::Removed(_) => &mut counts.removed,
                Change::Changed(..) => &mut counts.changed,
            };
            *count += 1;
        }
        counts
    }

    /// Returns the number of all entries that differ.
    pub(super) const fn all(&self) -> usize {
        self.added + self.removed + self.changed
    }

    /// Returns the numbers as text.
    pub(super) fn text(&self) -> String {
        let Self { added, removed, changed } = self;
        format!("{added} added, {removed} removed, {changed} changed")
    }

    /// Summarizes the differences in the files, in the fields of the plan, and in other parts.
    fn summary(&self, fields: usize, parts: usize) -> String {
        let files = match (self.all(), fields + parts) {
            (0, 0) => "no difference".to_owned(),
            (0, _) => "the files are the same".to_owned(),
            _ => self.text(),
        };
        match fields {
            0 => files,
            1 => format!("1 field of the plan differs; {files}"),
            fields => format!("{fields} fields of the plan differ; {files}"),
        }
    }
}

/// Returns a difference as JSON.
fn line(difference: &Difference<'_>) -> Value {
    let (change, field, a, b) = match &difference.change {
        Change::Added(b) => ("added", None, None, Some(b)),
        Change::Removed(a) => ("removed", None, Some(a), None),
        Change::Changed(field, a, b) => ("changed", Some(field.name()), Some(a), Some(b)),
    };
    let xattr = match &difference.change {
        Change::Changed(Field::Xattrs, a, b) => a.inode.meta.differing_xattr(&b.inode.meta),
        _ => None,
    };
    let entry = |it| entry_json(json!({}), it);
    let fields = [
        ("change", json!(change)),
        ("field", json!(field)),
        ("xattr", json!(xattr.map(shown_bytes))),
        ("a", json!(a.map(entry))),
        ("b", json!(b.map(entry))),
    ];
    with_fields(path_json(&difference.path), fields)
}

fn about(name: &OsString, side: &Side) -> Value {
    let name = name.to_string_lossy();
    match side.kind {
        SideKind::Box(digest) => json!({ "name": name, "kind": "box", "digest": digest }),
        SideKind::Image(digest) => json!({ "name": name, "kind": "image", "digest": digest }),
        SideKind::Directory => json!({ "name": name, "kind": "directory" }),
    }
}

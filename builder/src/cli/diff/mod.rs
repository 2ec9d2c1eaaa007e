//! `boxbuild diff`: shows the differences between two boxes, images or directories.

mod operand;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use box_contract::{ComponentName, ErrorCode, exit};
use box_inspect::diff::{Change, Difference, Side, SideKind, compare, text};
use box_inspect::entry::{entry_json, path_json, shown_bytes, with_fields};
use box_tree::Field;
use box_tree::Follow;
use serde::Serialize;
use serde_json::{Value, json};

use super::failure::Failure;
use super::options::StoreOption;
use super::terminal;
use operand::Operand;

/// Shows what differs between two boxes, images or directories.
///
/// A and B are boxes, images as a Boxfile names them (oci:DIR:TAG, oci-archive:FILE:TAG, docker-archive:FILE:NAME:TAG), or
/// other directories. Compares each entry by type, mode, uid, gid, size, content, target, device, xattrs, mtime and hard
/// links, and prints the first difference. For two boxes, also compares the fields of their plans: what the box may do, which
/// programs it runs and what it gets. Exits with 5 if there is a difference.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    boxbuild diff old.box new.box                              two boxes\n  \
    boxbuild diff old.box new.box /roots/agent/etc             only this directory\n  \
    boxbuild diff --component agent new.box oci:images/agent   a component and its image\n  \
    boxbuild diff --ignore mtime new.box ./unpacked            a box and a directory")]
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
    #[command(flatten)]
    store: StoreOption,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

fn field(text: &str) -> Result<Field, String> {
    let mut fields = Field::ALL.into_iter().filter(|it| *it != Field::Type);
    let names: Vec<&str> = fields.clone().map(Field::name).collect();
    fields.find(|it| it.name() == text).ok_or_else(|| format!("a field is {}", names.join(", ")))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let open = |word| Operand::open(word, args.component, &args.store);
    let (a, b) = (open(&args.a)?, open(&args.b)?);
    operand::check_same_rootfs(&a, &b)?;
    let path = path(args, &a.side, &b.side)?;
    // The differences are computed again for each use, because all of them can be larger than the memory.
    let all = || compare(&a.side, &b.side, &path, &args.ignore);
    let whole = args.component.is_none() && path.is_empty();
    let parts = if whole { operand::parts(&a, &b, all().next().is_none()) } else { Vec::new() };
    let plan = &if whole { operand::plans(&a, &b)? } else { Vec::new() };
    let counts = Counts::of(all());
    if args.json {
        let (a, b) = (about(&args.a, &a.side), about(&args.b, &b.side));
        let head = json!({ "a": a, "b": b, "counts": counts, "plan": plan, "parts": parts });
        terminal::json_list(&head, "differences", all().map(|it| line(&it)));
    } else {
        let lines = text::plan_lines(plan).chain(text::lines(all(), &parts));
        terminal::pieces(lines.map(|line| line + "\n"));
        terminal::note(&counts.summary(plan.len(), parts.len()));
        if args.component.is_none() && is_box_and_image(a.side.kind, b.side.kind) {
            terminal::note(
                "note: an image is one component's root; add `--component agent`, or business",
            );
        }
    }
    // If the result could not be written, `cli::main` returns a failure.
    let same = counts.all() == 0 && plan.is_empty() && parts.is_empty();
    if same || terminal::lost() { Ok(()) } else { Err(Failure::reported(exit::DIFFERENT)) }
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

/// The number of entries that differ.
#[derive(Debug, Serialize)]
struct Counts {
    added: usize,
    removed: usize,
    changed: usize,
}

impl Counts {
    fn of<'d>(differences: impl Iterator<Item = Difference<'d>>) -> Self {
        let mut counts = Self { added: 0, removed: 0, changed: 0 };
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

    const fn all(&self) -> usize {
        self.added + self.removed + self.changed
    }

    /// Summarizes the differences in the files, in the fields of the plan, and in other parts.
    fn summary(&self, fields: usize, parts: usize) -> String {
        let Self { added, removed, changed } = self;
        let files = match (self.all(), fields + parts) {
            (0, 0) => "no difference".to_owned(),
            (0, _) => "the files are the same".to_owned(),
            _ => format!("{added} added, {removed} removed, {changed} changed"),
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

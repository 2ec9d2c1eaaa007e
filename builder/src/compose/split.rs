//! Layout "split": each image keeps its whole root.
//!
//! ```text
//! /roots/agent      the agent image
//! /roots/business   the business image
//! /a3s/skills/NAME  the skills
//! /boxbuild/plan.json
//! /dev /proc /sys /run   empty: init mounts there
//! ```
//!
//! No path of one image can meet a path of the other; what both hold is stored once, because the
//! image format shares the data of equal files.

use boxfile_spec::Boxfile;

use box_image::plan::{PLAN_PATH, ROOTS_PATH, SKILLS_PATH};

use super::{ComposeError, FlatImage, mounts};
use crate::tree::{Content, Inode, Leaf, Meta, Origin, Tree};

/// What a root tree is made of.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The images.
    pub images: &'a [FlatImage],
    /// The skills by name.
    pub skills: Vec<(&'a str, &'a Tree)>,
    /// The run plan's content.
    pub plan: Content,
}

/// Where the guest mounts something in each component, and what.
const MOUNT_POINTS: [(&str, &str); 3] = [
    ("/proc", "the guest mounts the process file system"),
    ("/sys", "the guest mounts the system's file system"),
    ("/dev", "the guest mounts the devices"),
];

/// Composes the root tree.
///
/// # Errors
/// [`ComposeError::MountPoint`] where an image has something in the way of what the guest mounts.
pub fn compose(parts: &Parts<'_>, boxfile: &Boxfile) -> Result<Tree, ComposeError> {
    let mut root = Tree::default();
    for name in ["dev", "proc", "run", "sys"] {
        let directory = root.ensure_directory(Tree::ROOT, name.as_bytes());
        root.inode_mut(directory).origin = Origin::Init;
    }
    let roots = root.ensure_directory(Tree::ROOT, &ROOTS_PATH.as_bytes()[1..]);
    for flat in parts.images {
        check_mount_points(flat, !parts.skills.is_empty())?;
        mounts::check(flat, boxfile)?;
        root.graft(roots, flat.component.name().as_bytes(), &flat.tree);
    }
    put_skills(&mut root, parts);
    put_plan(&mut root, parts.plan);
    Ok(root)
}

fn put_skills(root: &mut Tree, parts: &Parts<'_>) {
    let mut directory = Tree::ROOT;
    for name in SKILLS_PATH.split('/').filter(|name| !name.is_empty()) {
        directory = root.ensure_directory(directory, name.as_bytes());
    }
    for (number, (name, skill)) in (0..).zip(&parts.skills) {
        let skill = (*skill).clone().with_origin(Origin::Skill(number));
        root.graft(directory, name.as_bytes(), &skill);
    }
}

fn put_plan(root: &mut Tree, plan: Content) {
    let (directory, name) = PLAN_PATH[1..].split_once('/').unwrap_or(("", PLAN_PATH));
    let directory = root.ensure_directory(Tree::ROOT, directory.as_bytes());
    let plan = Inode::leaf(Meta::root_owned(0o644), Leaf::File(plan));
    let inode = root.add(plan.from(Origin::Init));
    root.link(directory, name.as_bytes(), inode);
}

/// A mount point must be a directory or absent: a link would lead the mount elsewhere
/// (CVE-2026-41579 in another runtime). Skills must not hide what an image has.
fn check_mount_points(flat: &FlatImage, has_skills: bool) -> Result<(), ComposeError> {
    let component = flat.component.name();
    for (path, mounted) in MOUNT_POINTS {
        if let Some(inode) = at(&flat.tree, path)
            && inode.names().is_none()
        {
            let found = "something other than a directory";
            return Err(ComposeError::MountPoint { component, path, found, mounted });
        }
    }
    match at(&flat.tree, SKILLS_PATH) {
        Some(inode) if has_skills && inode.names().is_none_or(|names| !names.is_empty()) => {
            let (found, mounted) = ("files", "the box has its skills");
            Err(ComposeError::MountPoint { component, path: SKILLS_PATH, found, mounted })
        }
        _ => Ok(()),
    }
}

/// Returns what lies at an absolute path, without following links.
fn at<'tree>(tree: &'tree Tree, path: &str) -> Option<&'tree Inode> {
    let mut id = Tree::ROOT;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        id = tree.child(id, name.as_bytes())?;
        if tree.inode(id).names().is_none() {
            break;
        }
    }
    Some(tree.inode(id))
}

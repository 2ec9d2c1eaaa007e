//! The root tree of a box.
//!
//! ```text
//! /roots/agent      the agent image      layout "split": each image keeps its whole root
//! /roots/business   the business image
//! /roots/merged     both images          layout "merged": both components have this root
//! /a3s/skills/NAME  the skills
//! /boxbuild/system/NAME    the files that the box adds to the root of the component NAME
//! /boxbuild/packages/NAME  layout "merged": the package databases of the image of NAME, for the SBOM
//! /dev /proc /sys /run   empty: init mounts there
//! ```
//!
//! In the layout "split", the paths of the images never collide. Content that both images have is stored once, because
//! files of equal content share their data in the rootfs.

use box_contract::plan::{ROOTS_PATH, RUN_PATH, SKILLS_PATH, system_path};
use box_contract::rules::KERNEL_DIRECTORIES;
use box_contract::{ComponentName, Layout, RunPlan, SkillMode};
use box_tree::{InodeId, Origin, Tree, path};
use boxfile_spec::Boxfile;

use super::error::owner;
use super::files::check_visible;
use super::system::SKILLS_PLACE;
use super::{Baked, ComposeError, FlatImage, System};

/// The name of the root that both components share in the layout "merged".
const MERGED: &str = "merged";

/// The trees of which [`compose`] makes the root tree of a box.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The components' roots, each with its name in [`ROOTS_PATH`].
    pub trees: Vec<(&'static str, Tree)>,
    /// The files and directories that the box adds to the root of each component.
    pub systems: Vec<System>,
    /// The names and the files of the baked skills.
    pub skills: Vec<(&'a str, &'a Tree)>,
}

/// The root of one component (layout "split"), or of both (layout "merged").
#[derive(Debug)]
pub struct ComponentRoot<'a> {
    /// The components that have this root.
    pub components: Vec<ComponentName>,
    /// The root's name in [`ROOTS_PATH`]: `agent`, `business` or `merged`.
    pub name: &'static str,
    /// The root's entries.
    pub tree: &'a Tree,
}

impl<'a> ComponentRoot<'a> {
    /// Moves the trees of [`Self::all`] out, each with its name in [`ROOTS_PATH`]. `images` stays unchanged if `merged`
    /// is the only root.
    pub fn take(images: &mut Vec<FlatImage>, merged: Option<Tree>) -> Vec<(&'static str, Tree)> {
        match merged {
            Some(tree) => vec![(MERGED, tree)],
            None => images.drain(..).map(|image| (image.component.name(), image.tree)).collect(),
        }
    }

    /// Returns the roots of all components: one for each image, or only `merged`, into which the images were merged.
    pub fn all(images: &'a [FlatImage], merged: Option<&'a Tree>) -> Vec<Self> {
        let each = images.iter().map(|FlatImage { component, tree, .. }| Self {
            components: vec![*component],
            name: component.name(),
            tree,
        });
        let Some(tree) = merged else { return each.collect() };
        let components = images.iter().map(|image| image.component).collect();
        vec![Self { components, name: MERGED, tree }]
    }
}

/// Returns the path of a component's root in the rootfs.
pub(super) fn root_of(layout: Layout, component: ComponentName) -> String {
    let name = match layout {
        Layout::Split => component.name(),
        Layout::Merged => MERGED,
    };
    format!("{ROOTS_PATH}/{name}")
}

/// Composes the root tree. [`check_roots`] must have accepted the roots.
pub fn compose(parts: Parts<'_>, plan: &RunPlan) -> Tree {
    let Parts { trees, systems, skills } = parts;
    let mut root = Tree::default();
    for path in KERNEL_DIRECTORIES.into_iter().chain([RUN_PATH]) {
        let directory = root.ensure_directory(Tree::ROOT, &path.as_bytes()[1..]);
        root.inode_mut(directory).origin = Origin::Init;
    }
    let roots = root.ensure_directory(Tree::ROOT, &ROOTS_PATH.as_bytes()[1..]);
    // Each tree is moved, because copies of a large image's tree would take twice the memory.
    for (name, tree) in trees {
        root.graft(roots, name.as_bytes(), tree);
    }
    put_systems(&mut root, systems);
    put_skills(&mut root, skills, plan);
    root
}

/// Checks that nothing hides the entries of the components' roots, and that working directories are usable.
///
/// # Errors
/// [`ComposeError::Hidden`] if an entry of an image is in the way of a mount of the guest, or of a component's
/// working directory; [`ComposeError::Unplaceable`] if the box hides a file of the checkout.
pub fn check_roots(
    roots: &[ComponentRoot<'_>],
    systems: &[System],
    files: &[Baked],
    boxfile: &Boxfile,
    plan: &RunPlan,
) -> Result<(), ComposeError> {
    for own in roots {
        check_visible(own, systems, files)?;
        for component in &own.components {
            check_skills(own.tree, *component, !plan.skills.is_empty())?;
            check_workdir(own.tree, *component, boxfile, plan)?;
        }
    }
    Ok(())
}

fn put_systems(root: &mut Tree, systems: Vec<System>) {
    for System { component, tree, .. } in systems {
        let path = system_path(component);
        let (directory, name) = path::split(path.as_bytes());
        let directory = make_directory(root, directory);
        root.graft(directory, name, tree.with_origin(Origin::Init));
    }
}

fn make_directory(root: &mut Tree, path: &[u8]) -> InodeId {
    path::names(path).fold(Tree::ROOT, |directory, name| root.ensure_directory(directory, name))
}

fn put_skills(root: &mut Tree, skills: Vec<(&str, &Tree)>, plan: &RunPlan) {
    let directory = make_directory(root, SKILLS_PATH.as_bytes());
    for (number, (name, skill)) in (0..).zip(skills) {
        let skill = skill.clone().with_origin(Origin::Skill(number));
        root.graft(directory, name.as_bytes(), skill);
    }
    // The mount points of mounted skills: the guest mounts a directory of the host over each.
    for skill in plan.skills.iter().filter(|it| it.mode == SkillMode::Mounted) {
        root.ensure_directory(directory, skill.name.as_bytes());
    }
}

/// Checks that the skills do not hide entries of an image.
fn check_skills(
    tree: &Tree,
    component: ComponentName,
    has_skills: bool,
) -> Result<(), ComposeError> {
    let directory = tree.reach(SKILLS_PATH.as_bytes()).ok().filter(|_| has_skills);
    let names = directory.and_then(|id| tree.inode(id).names());
    let Some(mount_obstacle) = names.and_then(|names| names.values().next()) else { return Ok(()) };
    let (whose, baked) = owner(tree.inode(*mount_obstacle), component);
    Err(ComposeError::Hidden {
        component: whose,
        baked,
        path: SKILLS_PATH.to_owned(),
        found: "files".to_owned(),
        mounted: SKILLS_PLACE.to_owned(),
        span: None,
    })
}

/// Checks that a component's working directory can be used. The directory may be missing, because the guest creates it.
/// Symbolic links in its path are followed. A file at its path, or at a parent's path, would make the start of the
/// component fail.
fn check_workdir(
    tree: &Tree,
    component: ComponentName,
    boxfile: &Boxfile,
    plan: &RunPlan,
) -> Result<(), ComposeError> {
    let Some(component_plan) = plan.component(component) else { return Ok(()) };
    let mut path = Vec::new();
    for name in path::names(component_plan.workdir.as_bytes()) {
        path = path::join(&path, name);
        let Some(inode) = tree.lookup(&path).map(|id| tree.inode(id)) else { return Ok(()) };
        if inode.names().is_none() {
            let declared = boxfile.component(component).and_then(|it| it.workdir.as_ref());
            let (whose, baked) = owner(inode, component);
            return Err(ComposeError::Hidden {
                component: whose,
                baked,
                path: String::from_utf8_lossy(&path).into_owned(),
                found: format!("a {}", inode.type_name()),
                mounted: format!("in the way of the working directory of the {}", component.name()),
                span: Some(declared.map_or_else(|| boxfile.root_span(component), |it| it.span)),
            });
        }
    }
    Ok(())
}

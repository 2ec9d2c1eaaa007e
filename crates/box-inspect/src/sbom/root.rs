//! The paths of the components' files and package databases.

use box_contract::plan::PACKAGES_PATH;
use box_contract::{ComponentName, RunPlan};
use box_tree::Tree;
use box_tree::listing::NamedOrigin;

use super::scan::Scan;

/// The root of a component, or of both components.
#[derive(Debug)]
pub(super) struct Root {
    /// The path of the root with the component's files. Empty for the rootfs.
    files: String,
    /// The path of the root with the package databases, usually the same as `files`.
    pub(super) databases: String,
    /// The component whose entries are used, if both components share the root (layout "merged").
    component: Option<ComponentName>,
}

impl Root {
    /// Returns the path of the root with the component's files; empty for the rootfs.
    pub(super) fn files(&self) -> &str {
        &self.files
    }

    /// Returns the origin of the entry at a path of the component, following symbolic links. `None` if the entry is from
    /// another component.
    pub(super) fn origin<'a>(
        &self,
        scan: &mut Scan<'a, '_>,
        path: &str,
    ) -> Option<NamedOrigin<'a>> {
        let origin = scan.origin(&self.files, path)?;
        let NamedOrigin::Image { component, .. } = origin else { return Some(origin) };
        (self.component.is_none() || component == self.component).then_some(origin)
    }
}

/// Returns the roots whose databases are read. If the box has [kept](super::keep_databases) databases, there is one
/// `Root` for each component. Otherwise there is one for each directory: components with the same directory share
/// one.
pub(super) fn all(plan: &RunPlan, tree: &Tree) -> Vec<Root> {
    let has_kept = tree.reach(PACKAGES_PATH.as_bytes()).is_ok();
    let mut roots: Vec<Root> = Vec::new();
    for (name, component) in plan.components() {
        let files = component.root.trim_end_matches('/').to_owned();
        if has_kept {
            let databases = format!("{PACKAGES_PATH}/{}", name.name());
            roots.push(Root { files, databases, component: Some(name) });
        } else if roots.last().is_none_or(|last| last.files != files) {
            roots.push(Root { databases: files.clone(), files, component: None });
        }
    }
    roots
}

//! Checks the verification of a task: the component in which it runs, and the working directory that it takes over.

use super::NOBODY;
use crate::plan::{ComponentPlan, RunPlan, VerifyPlan, can_be_kept, reserved_place};
use crate::rules::{is_inside, search_path};

impl RunPlan {
    /// Finds the fault of a verification that could not take place, or whose program the agent could replace.
    pub(super) fn verification_fault(&self, plan: &VerifyPlan) -> Option<String> {
        let Some(component) = self.component(plan.component) else {
            return Some(format!("its `verify`: {NOBODY}"));
        };
        let (name, workdir) = (plan.component.name(), component.workdir.trim_end_matches('/'));
        let is_searched = plan.argv.first().is_some_and(|it| !it.contains('/'));
        if let Some(directory) =
            self.changed_directory_of_path(plan, component).filter(|_| is_searched)
        {
            return Some(format!(
                "its `verify`: the agent can change the directory {directory:?} in the PATH of {name}; name the program \
                 with its path, or remove the directory from the PATH"
            ));
        }
        if self.mount_points(plan.component).any(|it| is_inside(workdir, it)) {
            return None;
        }
        if !can_be_kept(&component.workdir) || reserved_place(workdir).is_some() {
            return Some(format!(
                "its `verify` keeps the files that the agent leaves in the working directory of {name}, and {:?} is a \
                 directory of the system; declare another `workdir` in {name}, such as \"/work\", or a `share` at it",
                component.workdir
            ));
        }
        let is_kept = |guest: &str| is_inside(guest, workdir);
        let disk = self
            .scratch
            .iter()
            .find(|it| it.scope.includes(plan.component) && is_kept(&it.guest))?;
        Some(format!(
            "its `verify`: the scratch disk {:?} is inside the working directory of {name}; choose another `guest` for it, \
             or a `volume`",
            disk.name
        ))
    }

    /// Returns a directory of the component's search path that the agent can change: in the working directory, or in a
    /// writable mount of the Boxfile.
    fn changed_directory_of_path<'p>(
        &self,
        plan: &VerifyPlan,
        component: &'p ComponentPlan,
    ) -> Option<&'p str> {
        let workdir = component.workdir.trim_end_matches('/');
        let mounts = self.writable_mount_points(plan.component);
        let changed: Vec<_> = mounts.chain((!workdir.is_empty()).then_some(workdir)).collect();
        search_path(&component.env)
            .split(':')
            .find(|directory| changed.iter().any(|it| is_inside(directory, it)))
    }
}

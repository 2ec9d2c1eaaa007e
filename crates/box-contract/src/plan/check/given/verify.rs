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

    /// Returns a warning if a volume or a writable share of the Boxfile contains the `HOME` of the component in which the task is verified:
    /// the command gets another one, because interpreters run files there. `None` otherwise, and without a verification.
    pub fn hidden_home(&self) -> Option<String> {
        let name = self.task.as_ref()?.verify.as_ref()?.component;
        let component = self.component(name)?;
        let home = component.env.iter().find_map(|it| it.strip_prefix("HOME="))?;
        let mut mounts = self.writable_mount_points(name);
        let mount = mounts.find(|it| is_inside(home, it))?;
        let name = name.name();
        Some(format!(
            "the command of `verify` gets an empty directory as its HOME: the HOME of {name}, {home}, is in {mount}, to which the \
             agent can write; put the files that the command needs there into the image"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ComponentName;
    use crate::plan::TaskPlan;
    use crate::plan::tests::grown;

    #[test]
    fn a_home_that_the_agent_can_write_is_not_that_of_a_verification() {
        let hidden = |home: &str, guest: &str, access: &str, scope: &str| {
            let mut plan = grown("{}");
            let (argv, component) = (vec!["npm".to_owned()], ComponentName::Business);
            let verify = VerifyPlan { argv, component, timeout_seconds: 60 };
            let task = r#"{"id":"t","type":"x","description":"y"}"#;
            plan.task = Some(TaskPlan { verify: Some(verify), ..TaskPlan::read(task).unwrap() });
            let share = format!(
                r#"{{"name":"s","guest":"{guest}","access":"{access}","scope":"{scope}"}}"#
            );
            plan.shares = vec![serde_json::from_str(&share).unwrap()];
            plan.business.as_mut().unwrap().env = vec![format!("HOME={home}")];
            plan.hidden_home()
        };
        let warning = hidden("/home/me", "/home", "rw", "both").unwrap();
        assert!(warning.contains("the HOME of business, /home/me, is in /home, to"), "{warning}");
        assert!(hidden("/home", "/home", "rw", "business").is_some());
        for (home, guest, access, scope) in [
            ("/home", "/home/me", "rw", "both"),
            ("/home", "/home", "ro", "both"),
            ("/home", "/home", "rw", "agent"),
            ("/homes", "/home", "rw", "both"),
        ] {
            assert_eq!(hidden(home, guest, access, scope), None, "{home} {guest} {access} {scope}");
        }
        assert_eq!(grown("{}").hidden_home(), None);
    }
}

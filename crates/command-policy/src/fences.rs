//! What a command may reach: the paths, the network and the limits of a policy.

use std::collections::BTreeSet;

use box_contract::plan::CAP_PATH;
use box_contract::rules::{is_inside, resolved_parts};
use box_contract::{ComponentName, ComponentPlan, RunPlan, SandboxPlan, SandboxPreset};

use crate::protected::{CREDENTIALS, PROGRAMS, SETTINGS};

/// Directories below which every command may write, besides its working directory.
const SCRATCH: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// How many processes the command's user may have.
    pub processes: u64,
    /// How many files a process of the command may have open.
    pub open_files: u64,
}

/// The limits of every command under a policy. A limit of the component's `rlimits` takes precedence.
pub const COMMAND_LIMITS: CommandLimits = CommandLimits { processes: 1024, open_files: 1024 };

/// What is started under a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The agent's own program. It keeps the network of its component, which it needs for its model, and has the
    /// component's limits.
    Program,
    /// A command.
    Command,
}

/// The facts about a component that a policy's paths depend on. All paths are absolute.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The home directories that commands could find credentials in.
    pub homes: Vec<String>,
    /// The working directory of the component.
    pub workdir: String,
    /// The mount points of writable shares, volumes and scratch disks, and what else the box makes writable.
    pub writable_mounts: Vec<String>,
}

/// The home directory of root.
const ROOTS_HOME: &str = "/root";

impl Surroundings {
    /// Returns the facts of a plan about a component.
    pub fn of(run: &RunPlan, name: ComponentName, plan: &ComponentPlan) -> Self {
        let home = plan.env.iter().find_map(|it| it.strip_prefix("HOME="));
        let homes = home.into_iter().filter(|it| it.starts_with('/')).chain([ROOTS_HOME]);
        Self {
            homes: homes.map(normalized).collect(),
            workdir: normalized(&plan.workdir),
            writable_mounts: run.writable_paths(name).map(normalized).collect(),
        }
    }

    /// Adds the home directories of a user under which commands run. They must be absolute.
    #[must_use]
    pub fn with_homes(mut self, homes: &BTreeSet<String>) -> Self {
        self.homes.extend(homes.iter().map(|home| normalized(home)));
        self
    }
}

/// A path that a policy denies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denied {
    /// The absolute path.
    pub path: String,
    /// Whether the Boxfile declares it. If not, it is of the preset.
    pub is_declared: bool,
}

/// What a command may reach.
///
/// Everything that is not denied can be read. Only what is below [`Self::writable`] can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fences {
    /// The files and directories that can be written, sorted, each once.
    pub writable: Vec<String>,
    /// The files and directories that are shown empty, sorted.
    pub deny_read: Vec<Denied>,
    /// The files and directories below [`Self::writable`] that are read-only, sorted.
    pub deny_write: Vec<Denied>,
    /// Whether the command has the network of its component. If not, it has only a loopback device.
    pub has_network: bool,
    /// The limits, if it has others than its component.
    pub limits: Option<CommandLimits>,
}

impl Fences {
    /// Returns what a policy lets a command reach.
    pub fn of(plan: &SandboxPlan, subject: Subject, around: &Surroundings) -> Self {
        let is_command = subject == Subject::Command;
        let has_network = !is_command || plan.preset != SandboxPreset::Ci;
        let mut writable = writable(plan, around);
        // Init sends the requests that are written there over the network.
        writable.retain(|it| has_network || it != CAP_PATH);
        let declared = |all: &[String]| -> Vec<Denied> {
            all.iter().map(|path| Denied { path: path.clone(), is_declared: true }).collect()
        };
        let is_preset = |path: &String| !plan.writable.contains(path);
        let preset = |path: String| Denied { path, is_declared: false };

        let mut deny_read = declared(&plan.deny_read);
        let homes = || around.homes.iter().map(String::as_str);
        let credentials =
            homes().flat_map(|home| CREDENTIALS.iter().map(move |name| join(home, name)));
        deny_read.extend(credentials.filter(is_preset).map(preset));
        let mut deny_write = declared(&plan.deny_write);
        let directories = writable.iter().map(String::as_str).chain(homes());
        let obeyed = directories
            .flat_map(|home| SETTINGS.iter().chain(&PROGRAMS).map(move |name| join(home, name)));
        deny_write.extend(obeyed.filter(is_preset).map(preset));
        // Everything else is read-only already.
        deny_write.retain(|it| writable.iter().any(|root| contains(root, &it.path)));
        Self {
            writable,
            deny_read: unique(deny_read),
            deny_write: unique(deny_write),
            has_network,
            limits: is_command.then_some(COMMAND_LIMITS),
        }
    }

    /// Returns the directories between a writable one and a denied path in it, sorted, so that a directory precedes those
    /// in it. They must not be renamed: a denied path would move with its directory, and a command could make another one
    /// in its place.
    pub fn fixed(&self) -> Vec<&str> {
        let denied = self.deny_read.iter().chain(&self.deny_write).map(|it| it.path.as_str());
        let mut fixed: Vec<_> = denied.flat_map(|path| self.between(path)).collect();
        fixed.sort_unstable();
        fixed.dedup();
        fixed
    }

    /// Returns the writable paths that are not in another one.
    pub fn writable_roots(&self) -> Vec<&str> {
        let is_outermost = |path: &&String| {
            !self.writable.iter().any(|other| other != *path && contains(other, path))
        };
        self.writable.iter().filter(is_outermost).map(String::as_str).collect()
    }

    fn between<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a str> {
        let root =
            self.writable.iter().filter(|root| contains(root, path)).min_by_key(|it| it.len());
        let start = root.map_or(path.len(), |root| if root == "/" { 0 } else { root.len() });
        let ends = path.match_indices('/').map(|(at, _)| at).filter(move |at| *at > start);
        ends.map(|end| &path[..end])
    }

    /// Returns whether a path is in a directory that commands may write to.
    pub fn is_writable(&self, path: &str) -> bool {
        self.writable.iter().any(|root| contains(root, path))
    }
}

fn writable(plan: &SandboxPlan, around: &Surroundings) -> Vec<String> {
    // An image without a working directory has `/`, which nobody chose.
    let workdir = Some(around.workdir.as_str()).filter(|it| *it != "/");
    let mounts = around.writable_mounts.iter().map(String::as_str);
    let all = SCRATCH.into_iter().chain(workdir).chain(mounts);
    let mut all: Vec<_> =
        all.chain(plan.writable.iter().map(String::as_str)).map(str::to_owned).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Sorts paths and keeps each once, as a declared one if it is both.
fn unique(mut all: Vec<Denied>) -> Vec<Denied> {
    all.sort_by(|one, other| {
        one.path.cmp(&other.path).then(other.is_declared.cmp(&one.is_declared))
    });
    all.dedup_by(|later, first| later.path == first.path);
    all
}

/// Returns whether a directory, which may be `/`, contains a path or is the path.
fn contains(directory: &str, path: &str) -> bool {
    directory == "/" || is_inside(path, directory)
}

/// Returns an absolute path without `.`, `..` and double slashes.
fn normalized(path: &str) -> String {
    format!("/{}", resolved_parts(path).join("/"))
}

fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings {
        let [home, workdir, data, requests] =
            ["/root", "/workspace", "/data", "/cap"].map(str::to_owned);
        Surroundings { homes: vec![home], workdir, writable_mounts: vec![data, requests] }
    }

    fn paths(all: &[Denied]) -> Vec<&str> {
        all.iter().map(|it| it.path.as_str()).collect()
    }

    #[test]
    fn commands_write_to_their_directory_to_scratch_and_to_what_is_declared() {
        let plan = SandboxPlan { writable: vec!["/srv".to_owned()], ..SandboxPlan::default() };
        let fences = Fences::of(&plan, Subject::Command, &around());
        let expected = ["/cap", "/data", "/dev/shm", "/srv", "/tmp", "/var/tmp", "/workspace"];
        assert_eq!(fences.writable, expected);
        assert!(fences.is_writable("/workspace/a") && !fences.is_writable("/workspaces"));
        let root = Surroundings { workdir: "/".to_owned(), ..around() };
        let fences = Fences::of(&SandboxPlan::default(), Subject::Command, &root);
        assert!(!fences.is_writable("/etc"));
    }

    #[test]
    fn credentials_are_hidden_and_what_programs_obey_is_kept() {
        let fences = Fences::of(&SandboxPlan::default(), Subject::Command, &around());
        assert!(paths(&fences.deny_read).contains(&"/root/.ssh"));
        let kept = paths(&fences.deny_write);
        assert!(kept.contains(&"/workspace/.git/hooks") && kept.contains(&"/data/.git/hooks"));
        assert!(!kept.contains(&"/root/.bashrc"), "its directory is read-only already");
    }

    #[test]
    fn credentials_in_the_home_of_the_commands_user_are_hidden() {
        let around = around().with_homes(&BTreeSet::from(["/home//web/".to_owned()]));
        let fences = Fences::of(&SandboxPlan::default(), Subject::Command, &around);
        let hidden = paths(&fences.deny_read);
        assert!(hidden.contains(&"/home/web/.ssh") && hidden.contains(&"/root/.ssh"));
    }

    #[test]
    fn a_declared_path_replaces_the_rule_of_the_preset() {
        let own = ["/root/.npmrc".to_owned(), "/workspace/.git/config".to_owned()];
        let plan = SandboxPlan {
            writable: own.to_vec(),
            deny_write: vec!["/workspace/.git/hooks".to_owned()],
            ..SandboxPlan::default()
        };
        let fences = Fences::of(&plan, Subject::Command, &around());
        assert!(!paths(&fences.deny_read).contains(&"/root/.npmrc"));
        assert!(!paths(&fences.deny_write).contains(&"/workspace/.git/config"));
        let hooks = fences.deny_write.iter().filter(|it| it.path == "/workspace/.git/hooks");
        assert!(hooks.map(|it| it.is_declared).eq([true]));
    }

    #[test]
    fn directories_on_the_way_to_a_denied_path_are_fixed() {
        let plan = SandboxPlan {
            deny_read: vec!["/workspace/a/b/secret".to_owned(), "/etc/shadow".to_owned()],
            ..SandboxPlan::default()
        };
        let fences = Fences::of(&plan, Subject::Command, &around());
        let fixed = fences.fixed();
        assert!(fixed.contains(&"/workspace/a") && fixed.contains(&"/workspace/a/b"));
        assert!(fixed.contains(&"/workspace/.git"));
        assert!(!fixed.iter().any(|it| *it == "/workspace" || it.starts_with("/etc")));
        assert!(fixed.is_sorted());
    }

    #[test]
    fn every_directory_is_fixed_if_the_whole_root_is_writable() {
        let plan = SandboxPlan {
            writable: vec!["/".to_owned()],
            deny_read: vec!["/srv/a/key".to_owned()],
            ..SandboxPlan::default()
        };
        let fences = Fences::of(&plan, Subject::Command, &around());
        let fixed = fences.fixed();
        assert!(fixed.contains(&"/srv") && fixed.contains(&"/srv/a"), "{fixed:?}");
    }

    #[test]
    fn a_writable_path_in_another_one_is_no_root() {
        let plan = SandboxPlan { writable: vec!["/data/a".to_owned()], ..SandboxPlan::default() };
        let fences = Fences::of(&plan, Subject::Command, &around());
        let roots = ["/cap", "/data", "/dev/shm", "/tmp", "/var/tmp", "/workspace"];
        assert_eq!(fences.writable_roots(), roots);
    }

    #[test]
    fn only_commands_lose_the_network_and_have_limits_of_their_own() {
        let plan = SandboxPlan { preset: SandboxPreset::Ci, ..SandboxPlan::default() };
        let of = |subject| {
            let fences = Fences::of(&plan, subject, &around());
            (fences.has_network, fences.limits.is_some())
        };
        assert_eq!(of(Subject::Command), (false, true));
        assert!(!Fences::of(&plan, Subject::Command, &around()).is_writable("/cap/http"));
        assert!(Fences::of(&plan, Subject::Program, &around()).is_writable("/cap/http"));
        assert_eq!(of(Subject::Program), (true, false));
    }
}

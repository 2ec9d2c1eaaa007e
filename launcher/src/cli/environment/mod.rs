//! `boxlaunch up`, `down` and `reset`: the environment of a project, which is a box that has the project's directory and is there again
//! the next time.

mod config;
mod given;
mod here;
mod hidden;
mod identity;
mod left;
mod removal;
mod reset;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use box_contract::{ErrorCode, RunPlan, exit};
use box_digest::Digest;
use boxlaunch::boxes::{self, Boxes, Record, RecordError, Snapshot, Snapshots, State};
use boxlaunch::network::Published;
use boxlaunch::project::left::Seen;
use boxlaunch::project::{GitError, Project, ProjectError};
use checkout::{BOXFILES, is_boxfile_name};
use cli_common::store::{BoxArgument, StoreOption};
use cli_registry::RegistryOptions;
use host_fs::OsError;
use host_fs::read::{Links, open_regular};
use host_fs::trust::Trusted;
use nix::unistd::{Uid, User, getuid};
use safe_text::{shell_word, shown};
use serde_json::json;
use vmm::signals::StopSignals;

use super::consent::Differences;
use super::error::{Failure, usage};
use super::image::BoxfileSource;
use super::list::publish;
use super::repeat::{self, box_of};
use super::run::{GivenOptions, PublishOption, RunArgs};
use super::start::check_with;
use super::terminal::{is_quiet, json_line, notice, print};
use super::{detach, paths, pull};

pub(super) use here::{names_of, record_at, record_or_tip};
pub(super) use identity::{GITCONFIG, gitconfig};
pub(super) use left::Environment;
pub(super) use removal::{check_kept, remove_data};
pub(super) use reset::{DownArgs, ResetArgs, down, reset};

/// Starts the environment of a project: a box that has the project's directory, writable and at the same path.
///
/// The environment stays until `boxlaunch rm --all-data`, with what was installed in it and with the options of its first start. So
/// the next `boxlaunch up` needs none. Then `boxlaunch shell` opens a shell in it. Its name is made from the path of the project.
///
/// Without --box, the project's Boxfile declares the box. It is built if it has changed and you permit that with --accept, because the
/// box can write to it, too. A project without a Boxfile gets the box that `box` names in ~/.config/boxlaunch/config.toml.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UpArgs {
    /// The directory of the project [default: that of the environment around the current directory, else the current directory].
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The box: a Boxfile, a name in the store, a directory, HOST/NAME:TAG or sha256:... [default: the box that the environment
    /// has, at first the project's Boxfile or else that of config.toml].
    #[arg(long = "box", value_name = "BOX")]
    subject: Option<PathBuf>,
    /// Begin with a copy of this snapshot, instead of what programs have written to the root until now. The snapshot must be of the
    /// same box: `boxlaunch snapshot ls`.
    #[arg(long, value_name = "SNAP", conflicts_with = "disk")]
    from: Option<String>,
    /// Permit the box what its changed Boxfile, or the box of --box, asks for, and take the git repositories that it has left in the
    /// project as yours.
    #[arg(long)]
    accept: bool,
    /// Forget the options of the first start, and take those of this command line alone. Permits what the box asks for, too.
    #[arg(long)]
    forget: bool,
    /// Let the box write to all of the git repository: also .git/hooks and .git/config, which make git start programs on this host, and
    /// symbolic links, through which git writes.
    #[arg(long)]
    writable_git: bool,
    /// Print one JSON object: name, project, box, result and published.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    store: StoreOption,
    #[command(flatten)]
    registries: RegistryOptions,
    #[command(flatten)]
    given: GivenOptions,
}

/// How many characters of a path are shown.
const MAX_PATH: usize = 200;

/// The notice about an environment that runs.
const CHANGED: &str = "boxlaunch: the Boxfile has changed since this environment was started; `boxlaunch down && boxlaunch up --accept` starts the new box\n";

const EXAMPLES: &str = "\
Examples:
  boxlaunch up && boxlaunch shell
  boxlaunch up --box python.box -p 8000:8000 --idle 30m
  boxlaunch up ~/src/page --box ghcr.io/acme/agent:2 --secret API_KEY
  boxlaunch up --forget -v ~/data:/data
  boxlaunch down && boxlaunch up --from page-4a05-1
  boxlaunch exec . -- make test";

/// Runs `boxlaunch up`.
pub(crate) fn up(args: &UpArgs) -> Result<u8, Failure> {
    let state = paths::state()?;
    boxes::check_owner(&state)?;
    args.check_secrets()?;
    let boxes = Boxes::new(&state);
    let project = args.project(&boxes)?;
    let snapshot = args.from.as_deref().map(|it| Snapshots::new(&state).find(it)).transpose()?;
    let (name, given) = (project.name(), given::words());
    let up = Up { args, project: &project, name, given, snapshot, boxes, state: &state };
    match up.record()? {
        None => up.first(None),
        Some(record) if record.state == State::Ended && up.boxes.is_spent(&up.name)? => {
            up.first(Some(&record))
        }
        Some(record) if record.state == State::Ended => up.again(&record),
        Some(record) => up.running(&record),
    }
}

impl UpArgs {
    /// Refuses secrets from standard input, which later starts could not read again.
    fn check_secrets(&self) -> Result<(), Failure> {
        let Some(secret) = self.given.secrets.iter().find(|it| it.ends_with("=-")) else {
            return Ok(());
        };
        let name = secret.trim_end_matches("=-");
        let message =
            format!("the secret {name} cannot come from standard input: later starts need it, too");
        Err(usage(
            &shown(&message),
            "write `--secret NAME=file:PATH` or `--secret NAME=env:VARIABLE`",
        ))
    }

    fn project(&self, boxes: &Boxes) -> Result<Project, Failure> {
        if let Some(directory) = &self.directory {
            return project_at(directory);
        }
        match here::around(boxes)?.and_then(|it| it.project) {
            Some(project) => project_at(&project),
            None => project_at(Path::new(".")),
        }
    }
}

/// Finds the project in a directory.
pub(super) fn project_at(directory: &Path) -> Result<Project, Failure> {
    let trusted = Trusted::of_user(|name| env::var_os(name));
    Ok(Project::find(directory, &homes(), &trusted)?)
}

/// Returns the home directories of this user, and of the user who became root with sudo.
fn homes() -> Vec<PathBuf> {
    let sudo = env::var("SUDO_UID").ok().and_then(|it| it.parse().ok()).map(Uid::from_raw);
    let users = [Some(getuid()), sudo].into_iter().flatten();
    let homes = users.filter_map(|it| User::from_uid(it).ok()?.map(|it| it.dir));
    homes.chain(env::var_os("HOME").map(PathBuf::from)).collect()
}

/// Returns the help for a directory that can be no project.
pub(super) fn help(error: &ProjectError) -> &'static str {
    match error {
        ProjectError::TooLarge { .. } => {
            "change to a directory of one project, or name it: `boxlaunch up DIR`"
        }
        ProjectError::Strange { .. } => {
            "move the project to where only you can write, for example below your home directory"
        }
        ProjectError::Unnameable { .. } => "rename the directory",
        ProjectError::Git(GitError::TooMany(_) | GitError::Link(_) | GitError::Elsewhere(_)) => {
            "--writable-git lets the box write to all of the repository"
        }
        ProjectError::Git(GitError::Index { .. }) => {
            "a box may have forged it, so that git writes there: remove it, and make a new one with `git reset`"
        }
        ProjectError::Git(GitError::Around(_)) => {
            "use a worktree outside of the repository; or --writable-git lets the box write to all of it"
        }
        ProjectError::Git(GitError::Special { .. }) => {
            "a box may have made it: remove it; if it is yours, put a file in its place, or let the box write to all of the repository: `boxlaunch up --forget --writable-git` with the other options that it needs"
        }
        ProjectError::Git(_) => "--writable-git starts it without that repository",
        ProjectError::Unopened { .. } | ProjectError::Os(_) => "name a directory that exists",
    }
}

/// The box of an environment, before it is on this host.
enum Named {
    /// The project's Boxfile declares it.
    Own {
        path: PathBuf,
        /// The declaration that a user has permitted. `None` for any.
        declared: Option<Digest>,
    },
    /// A user has named it: a box, or another Boxfile.
    Given(PathBuf),
}

/// A start of the environment of a project.
struct Up<'a> {
    args: &'a UpArgs,
    project: &'a Project,
    name: String,
    /// The options of the command line that say what the box gets.
    given: Vec<OsString>,
    /// The snapshot of the command line.
    snapshot: Option<Snapshot>,
    boxes: Boxes,
    state: &'a Path,
}

impl Up<'_> {
    /// Returns the record of the environment.
    fn record(&self) -> Result<Option<Record>, Failure> {
        let record = match self.boxes.find(&self.name) {
            Err(RecordError::NoBox(_)) => return Ok(None),
            found => found?,
        };
        if record.project.as_deref() == Some(self.project.path()) {
            return Ok(Some(record));
        }
        let other = match &record.project {
            Some(other) => format!("the project {}", other.display()),
            None => "another box".to_owned(),
        };
        let message =
            format!("the name {} of this project's environment belongs to {other}", self.name);
        let help =
            "rename the directory of one of the projects, or remove that box: `boxlaunch rm`";
        Err(Failure::new((ErrorCode::NameTaken, help), shown(&message)))
    }

    /// Starts an environment that does not exist yet. `failed` is the record of a start that has failed: its box has run, and may have
    /// changed the project's Boxfile.
    fn first(&self, failed: Option<&Record>) -> Result<u8, Failure> {
        self.check_around()?;
        let found = match failed {
            None => self.found(&self.first_box()?)?,
            Some(record) => self.next_found(record)?,
        };
        match found {
            Ok((found, boxfile)) => {
                if let Some(record) = failed.filter(|_| !self.args.forget) {
                    self.check_asked(record, &found)?;
                }
                self.check_snapshot(&found)?;
                self.environment().first(self.args.accept)?;
                let code = self.start(self.command(&found.subject, boxfile))?;
                if code != exit::DONE && self.record()?.is_none() {
                    Seen::remove(self.state, &self.name);
                }
                Ok(code)
            }
            Err(code) => Ok(code),
        }
    }

    /// Returns the box of a first start.
    fn first_box(&self) -> Result<Named, Failure> {
        if let Some(subject) = &self.args.subject {
            return Ok(Named::Given(subject.clone()));
        }
        if let Some(path) = self.own_boxfile()? {
            return Ok(Named::Own { path, declared: None });
        }
        let default = config::default_box()?.ok_or_else(|| self.no_box())?;
        if let Some(path) = config::path().filter(|_| !is_quiet()) {
            let (subject, path) = (default.display(), path.display());
            let line = shown(&format!("boxlaunch: the box is {subject}, from {path}"));
            notice(&format!("{line}\n"));
        }
        Ok(Named::Given(default))
    }

    /// Returns the error of a project without a box.
    fn no_box(&self) -> Failure {
        let path = self.project.path();
        let around = path.ancestors().skip(1).find(|it| it.join(BOXFILES[0]).is_file());
        let around = around.map(|it| format!("`boxlaunch up {}`; or ", shell_word(it)));
        let subject = self.snapshot.as_ref().map_or_else(
            || "--box BOX".to_owned(),
            |it| format!("--box {} --from {}", it.digest, it.name),
        );
        let config = config::path().map(|it| {
            format!("; or set the box of all such projects: `box = \"BOX\"` in {}", it.display())
        });
        let help = format!(
            "{}name a box: `boxlaunch up {subject}`; or write a Boxfile: `boxbuild init IMAGE`, or `boxbuild init --agent NAME` for an agent such as claude-code{}",
            around.unwrap_or_default(),
            config.unwrap_or_default()
        );
        let message = format!("{} has no Boxfile", path.display());
        Failure::new((ErrorCode::Usage, shown(&help)), shown(&message))
    }

    /// Refuses an environment in or around the project of another one, because both would write to the same files.
    fn check_around(&self) -> Result<(), Failure> {
        let path = self.project.path();
        let overlaps = |it: &&Record| {
            it.name != self.name
                && it
                    .project
                    .as_deref()
                    .is_some_and(|it| path.starts_with(it) || it.starts_with(path))
        };
        let all = self.boxes.all()?;
        let Some(other) = all.iter().find(overlaps) else { return Ok(()) };
        let place = other.project.as_deref().unwrap_or(path).display();
        let message = format!(
            "{} overlaps with {place}, the project of the environment {}",
            path.display(),
            other.name
        );
        let help = format!(
            "use that one: `boxlaunch up {}`; or remove it: `boxlaunch rm --all-data {}`",
            shell_word(place.to_string()),
            other.name
        );
        Err(usage(&message, &help))
    }

    /// Starts an environment that has ended.
    fn again(&self, record: &Record) -> Result<u8, Failure> {
        self.check_given(record)?;
        let alone = self.boxes.updating(&self.name)?;
        let (found, boxfile) = match self.next_found(record)? {
            Ok(found) => found,
            Err(code) => return Ok(code),
        };
        self.check_snapshot(&found)?;
        let mut start = if self.args.forget {
            let mut start = self.command(&found.subject, boxfile);
            start.arg("--afresh");
            start
        } else {
            self.check_asked(record, &found)?;
            let mut options = check_with(record, &found.opened)?;
            let new = self.new_ports(record).unwrap_or_default();
            options.extend(new.iter().map(|it| format!("--publish={it}")));
            options.retain(|it| !it.starts_with("--boxfile="));
            options.extend(boxfile.map(|it| format!("--boxfile={it}")));
            repeat::command(&found.subject, &self.name, &options, self.args.json)
        };
        start.arg("--again");
        let before = repeat::exactly(record.digest, &record.directory, &self.args.store);
        let code = self.start_again(start, record)?;
        drop(alone);
        let is_changed = code == exit::DONE && record.digest != found.opened.digest;
        if let Some(before) = before.filter(|_| is_changed && !is_quiet()) {
            let record = self.boxes.find(&self.name)?;
            hidden::tell(&record, &before.opened.documents, &found.opened.documents)?;
        }
        Ok(code)
    }

    /// Prints what the box may have left in the project, and starts the box again.
    fn start_again(&self, start: Command, record: &Record) -> Result<u8, Failure> {
        let there = self.environment().again(record, self.args.accept)?;
        let code = self.start(start)?;
        if code != exit::DONE && self.boxes.find(&self.name)?.created_ms == record.created_ms {
            self.environment().not_begun(record, there)?;
        }
        Ok(code)
    }

    fn environment(&self) -> Environment<'_> {
        Environment { state: self.state, name: &self.name, project: self.project.path() }
    }

    /// Finds the next box of an environment; see [`Self::found`].
    fn next_found(
        &self,
        record: &Record,
    ) -> Result<Result<(repeat::Found, Option<Digest>), u8>, Failure> {
        match self.next_box(record)? {
            Ok(Some(named)) => self.found(&named),
            Ok(None) => Ok(Ok((box_of(record, &self.args.store)?, None))),
            Err(code) => Ok(Err(code)),
        }
    }

    /// Returns the next box of an environment, or the exit code of boxbuild. `None` for the box that it had. A declaration that has
    /// changed since a user has permitted it may ask for what only the user can read, such as another image, so it is not even
    /// built.
    fn next_box(&self, record: &Record) -> Result<Result<Option<Named>, u8>, Failure> {
        if let Some(subject) = &self.args.subject {
            return Ok(Ok(Some(Named::Given(subject.clone()))));
        }
        let own = self.own_boxfile()?.filter(|_| record.boxfile.is_some());
        let Some(path) = own else { return Ok(Ok(None)) };
        if self.args.accept || self.args.forget {
            return Ok(Ok(Some(Named::Own { path, declared: None })));
        }
        let declared = match self.own(&path).declaration()? {
            Ok(declared) => Some(declared),
            Err(code) => return Ok(Err(code)),
        };
        if record.boxfile != declared {
            let message = format!(
                "{} has changed since you permitted it, or a Boxfile that it extends, a pin of its lock, its kernel, or the place of an image; a box can write to these, too",
                path.display()
            );
            let help = "look at the change, for example with `git diff`; `boxlaunch up --accept` permits it";
            return Err(Failure::new((ErrorCode::Usage, help), shown(&message)));
        }
        Ok(Ok(Some(Named::Own { path, declared })))
    }

    /// Returns to an environment that runs.
    fn running(&self, record: &Record) -> Result<u8, Failure> {
        let is_plain = !(self.args.forget || self.args.accept || self.args.writable_git);
        let names_other = self.args.subject.is_some() || self.snapshot.is_some();
        let new = self.new_ports(record);
        if new.is_none() || names_other || !is_plain {
            let message = format!("{} runs with the box and the options of its start", self.name);
            let help = if self.given.is_empty() {
                "stop it first: `boxlaunch down`, then `boxlaunch up` with these words"
            } else {
                "a port can be added while it runs: `boxlaunch up -p`; for other options: `boxlaunch down`, then `boxlaunch up --forget` with all options"
            };
            return Err(usage(&message, help));
        }
        let own = self.own_boxfile()?.filter(|_| record.boxfile.is_some());
        let now = own.filter(|_| !is_quiet()).and_then(|it| self.own(&it).declaration_if_any());
        if now.is_some_and(|it| record.boxfile != Some(it)) {
            notice(CHANGED);
        }
        if let Some(new) = new.filter(|it| !it.is_empty()) {
            publish(record, &new)?;
        }
        self.environment().tell();
        self.say("running")
    }

    /// Returns the ports of the command line that the environment does not publish yet. `None` if the command line has other options,
    /// too.
    fn new_ports(&self, record: &Record) -> Option<Vec<Published>> {
        let ports = &self.args.given.published;
        if ports.len() < self.given.len() {
            return None;
        }
        let new = ports.iter().filter_map(|it| match it {
            PublishOption::Port(port) => Some(*port),
            PublishOption::Undeclare | PublishOption::Declared(_) => None,
        });
        let has = |new: &Published| {
            let is_same = |it: &Published| (it.guest, it.component) == (new.guest, new.component);
            let is_at = |it: &Published| new.host.port() == 0 || it.host == new.host;
            record.published.iter().any(|it| is_same(it) && is_at(it))
        };
        let all: Vec<_> = new.collect();
        (all.len() == ports.len()).then(|| all.into_iter().filter(|it| !has(it)).collect())
    }

    /// Refuses options for an environment that has its own. Ports can be added.
    fn check_given(&self, record: &Record) -> Result<(), Failure> {
        if self.args.forget || (self.new_ports(record).is_some() && !self.args.writable_git) {
            return Ok(());
        }
        let message = format!("{} has the options of its first start", self.name);
        Err(usage(
            &message,
            "leave them out, except -p, which adds a port; or add --forget, which starts it with those of this command line alone",
        ))
    }

    /// Refuses a snapshot of another box than the one that is about to start.
    fn check_snapshot(&self, found: &repeat::Found) -> Result<(), Failure> {
        let Some(snapshot) = &self.snapshot else { return Ok(()) };
        Ok(snapshot.check_box(found.opened.digest)?)
    }

    /// Refuses a box that asks for more than the one that the environment had. What that one asks for was permitted by a user.
    fn check_asked(&self, record: &Record, found: &repeat::Found) -> Result<(), Failure> {
        if found.opened.digest == record.digest || self.args.accept {
            return Ok(());
        }
        let before = box_of(record, &self.args.store)?;
        let before = before.opened.plan();
        // The volumes of an environment have its name, whatever the name of the box.
        let now = RunPlan { name: before.name.clone(), ..found.opened.plan().clone() };
        let Some(more) = Differences::between(before, &now).more() else { return Ok(()) };
        let message =
            format!("the box of {} has changed, and asks for more than before:{more}", self.name);
        let help = "`boxlaunch up --accept` permits that";
        Err(Failure::new((ErrorCode::Usage, help), message))
    }

    /// Returns the project's Boxfile. `None` if there is none. A link could lead to another project's.
    fn own_boxfile(&self) -> Result<Option<PathBuf>, Failure> {
        let at = |it: &str| self.project.path().join(it);
        let Some(path) = BOXFILES.map(at).into_iter().find(|it| it.symlink_metadata().is_ok())
        else {
            return Ok(None);
        };
        let opened = open_regular(&path, Links::Refuse);
        opened.map_err(|error| OsError::file("read", &path)(error.into()))?;
        Ok(Some(path))
    }

    /// Returns the project's Boxfile for boxbuild. The box could write to it, so it gets no file from outside of the project.
    fn own<'b>(&'b self, path: &'b Path) -> BoxfileSource<'b> {
        BoxfileSource { checkout: Some(self.project.path()), ..self.boxfile(path) }
    }

    fn boxfile<'b>(&'b self, path: &'b Path) -> BoxfileSource<'b> {
        let UpArgs { store, registries, json, .. } = self.args;
        BoxfileSource { path, checkout: None, store, registries, as_json: *json }
    }

    /// Finds a box, or builds that of a Boxfile, and brings it to this host. Also returns the declaration of the project's Boxfile
    /// as it was built, with the lock that the build may have written. Returns an exit code if boxbuild or the pull has failed.
    fn found(&self, named: &Named) -> Result<Result<(repeat::Found, Option<Digest>), u8>, Failure> {
        let (reference, declared) = match named {
            Named::Own { path, declared } => match self.own(path).build(*declared)? {
                Ok((digest, declared)) => (digest.to_string().into(), Some(declared)),
                Err(code) => return Ok(Err(code)),
            },
            Named::Given(path) if is_boxfile(path) => match self.boxfile(path).build(None)? {
                Ok((digest, _)) => (digest.to_string().into(), None),
                Err(code) => return Ok(Err(code)),
            },
            Named::Given(reference) => (reference.clone(), None),
        };
        Ok(self.brought(reference)?.map(|found| (found, declared)))
    }

    /// Brings a box to this host. Returns the exit code of a failed pull.
    fn brought(&self, reference: PathBuf) -> Result<Result<repeat::Found, u8>, Failure> {
        let (store, registries) = (&self.args.store, &self.args.registries);
        let run = RunArgs {
            subject: BoxArgument { reference, store: store.clone() },
            registries: registries.clone(),
            json: self.args.json,
            ..repeat::parsed(&self.name, &[])?
        };
        if let Some(code) = pull::before(&run)? {
            return Ok(Err(code));
        }
        run.load()?;
        // A box could replace what is at a path in its project.
        let (opened, _held) = run.open()?;
        let directory = opened.places.directory.to_string_lossy();
        let found = repeat::exactly(opened.digest, &directory, store);
        let lost = || {
            let message = format!("the box {} is not there any more", opened.digest);
            Failure::new((ErrorCode::BoxNotFound, "run this command again"), message)
        };
        found.map(Ok).ok_or_else(lost)
    }

    /// Returns the command that starts the environment with the options of the command line.
    fn command(&self, subject: &BoxArgument, boxfile: Option<Digest>) -> Command {
        let mut start = repeat::command(subject, &self.name, &self.options(), self.args.json);
        start.args(boxfile.map(|it| format!("--boxfile={it}")));
        start.args(&self.given);
        start
    }

    /// Returns the options that every environment has.
    fn options(&self) -> Vec<String> {
        // The path of a project is UTF-8.
        let project = format!("--project={}", self.project.path().display());
        let writable = self.args.writable_git.then(|| "--writable-git".to_owned());
        [project].into_iter().chain(writable).collect()
    }

    fn start(&self, mut start: Command) -> Result<u8, Failure> {
        // Later starts go on with the disk.
        start.args(self.snapshot.iter().map(|it| format!("--from={}", it.name)));
        let signals = StopSignals::block()?;
        let (output, code) = detach::follow(&mut start, &signals)?;
        let code = code();
        if code == exit::DONE {
            return self.say("started");
        }
        if self.args.json {
            print(&String::from_utf8_lossy(&output))?;
        }
        Ok(code)
    }

    /// Prints the name of the environment, which runs, and the addresses of its ports.
    fn say(&self, result: &str) -> Result<u8, Failure> {
        let record = self.boxes.find(&self.name)?;
        if self.args.json {
            let Record { name, project, digest, published, .. } = &record;
            let object = json!({
                "name": name, "project": project, "box": digest, "result": result, "published": published,
            });
            print(&json_line(&object)?)?;
            return Ok(exit::DONE);
        }
        if !is_quiet() {
            for port in &record.published {
                notice(&format!("boxlaunch: http://{} leads to port {}\n", port.host, port.guest));
            }
        }
        print(&format!("{}\n", self.name))?;
        Ok(exit::DONE)
    }
}

/// Returns the first `most` of `count` paths, and how many there are beside them.
fn listed<'a>(paths: impl Iterator<Item = &'a String>, count: u64, most: usize) -> String {
    let cut = |it: &String| match it.char_indices().nth(MAX_PATH) {
        Some((end, _)) => shown(&it[..end]) + "…",
        None => shown(it),
    };
    let paths: Vec<_> = paths.take(most).map(cut).collect();
    let more = count.saturating_sub(paths.len() as u64);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    paths.join(", ") + &more
}

/// Returns whether a path leads to a Boxfile, and not to a box.
fn is_boxfile(path: &Path) -> bool {
    is_boxfile_name(path) && path.is_file()
}

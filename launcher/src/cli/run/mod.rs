//! `boxlaunch run`: boots a box, enforces the budget of its start, and runs its agent or a command.

mod again;
mod checks;
mod disk;
mod given;
mod limits;
mod modes;
mod network;
mod options;
mod origins;
mod proxy;
mod publish;
mod replaced;
mod restart;
mod serve;
mod ssh_agent;
mod values;
mod volumes;

use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use box_contract::wire::Secret;
use box_contract::{RunPlan, Scope, TaskPlan};
use box_layout::OpenBox;
use boxlaunch::boxes::task::{Task, write_result};
use boxlaunch::boxes::{self, Boxes, CommandPolicy, Entry, Record, Snapshot, State};
use boxlaunch::client::{ClientError, Predecessor};
use boxlaunch::host::{self, kvm::DEVICE};
use boxlaunch::machine::variables::GivenVariable;
use boxlaunch::machine::{BoxToRun, HostResources, MachineError, StartPolicy};
use boxlaunch::mounts::scratch;
use boxlaunch::mounts::shares::HostShare;
use boxlaunch::mounts::volumes::VolumePlace;
use boxlaunch::network::Given;
use boxlaunch::opened::receipt::Receipts;
use boxlaunch::opened::verify::Trust;
use boxlaunch::streams::output::{Prefixed, Route};
use boxlaunch::supervisor::Started;
use egress_rules::Local;
use host_fs::OsError;
use host_fs::named::FileSlot;
use rustix::fs::{Mode, OFlags, openat};
use vmm::runtime_dir::RuntimeDir;
use vmm::signals::StopSignals;

use super::environment::{Environment, gitconfig};
use super::error::{self, Failure};
use super::launch_error::{FailedRun, LaunchError};
use super::paths::{self, SELF};
use super::progress::Shown;
use super::screen::Screen;
use super::shares::{FoundSkills, Shared};
use super::stored::PROGRAM;
use super::terminal::{self, is_quiet};
use super::{
    detach, emulated, given_file, image, kept, memory, notify, pull, secrets, shares, task,
};
use checks::{Checked, checked};
use limits::Limits;
use replaced::Replaced;
use restart::Again;
use serve::Run;

pub(super) use again::{Replaces, options_of};
pub(super) use checks::{check, check_volumes};
pub(super) use disk::others;
pub(super) use given::GivenOptions;
pub(super) use options::NetworkChoice;
pub(crate) use options::RunArgs;
pub(super) use publish::{PublishOption, of_run as ports_of};
pub(super) use ssh_agent::{AgentChoice, socket as agent_of_host};
pub(super) use values::{milliseconds, seconds};
pub(super) use volumes::of_run as volumes_of;

pub(crate) fn run(args: &RunArgs, started: Instant) -> Result<u8, Failure> {
    modes::check(args)?;
    args.options.check()?;
    let handed_over = secrets::handed_over();
    if args.as_supervisor {
        // Closes the caller's files before this process opens other files.
        vmm::close_all_but(handed_over.as_slice())?;
    }
    let limits = Limits::of(args)?;
    let fetching = Instant::now();
    let of_image = match image::before(args)? {
        None => None,
        Some(Ok(args)) => Some(args),
        Some(Err(code)) => return Ok(code),
    };
    let args = of_image.as_ref().unwrap_or(args);
    // A detached, nested or restarted run continues a `boxlaunch run` that has already pulled the box. The box of an image is there.
    let is_first = !args.as_supervisor && handed_over.is_none() && !args.nested;
    if is_first
        && args.image.is_none()
        && let Some(code) = pull::before(args)?
    {
        return Ok(code);
    }
    args.load()?;
    let started = started + fetching.elapsed();
    if args.emulated {
        let (opened, _held) = args.open()?;
        emulated::refuse_secrets(opened.plan())?;
        emulated::refuse_shares(args, opened.plan())?;
        emulated::refuse_network(args, opened.plan())?;
        emulated::refuse_ssh_agent(args, opened.plan())?;
        emulated::refuse_declared(opened.plan())?;
        let checked = checked(args, &opened)?;
        return emulated::run(args, &opened, &checked.env);
    }
    if !args.given.secrets.is_empty() && handed_over.is_none() {
        let (opened, _) = args.open()?;
        checked(args, &opened)?;
        return Err(secrets::restart(
            &secrets::checked(args, opened.plan())?,
            image::own_words(args.built),
        ));
    }
    if args.detach && !args.as_supervisor {
        let parent = args.with_parent.then(|| format!("--parent={}", parent_id()).into());
        let words = image::own_words(args.built).into_iter().chain(parent);
        return detach::run(args.replaces.is_some(), words.collect());
    }
    let signals = Rc::new(StopSignals::block()?);
    limits.watch();
    let screen = Screen::new(&signals, args.raw || args.options.tty)?;
    let done = boot(args, started, &signals, &screen);
    let code = done.unwrap_or_else(|error| screen.report(&error, args.json));
    Ok(screen.close(code))
}

/// Boots the box, runs the command or waits for the agent, and returns the exit code.
fn boot(
    args: &RunArgs,
    started: Instant,
    signals: &StopSignals,
    screen: &Screen,
) -> Result<u8, Failure> {
    // While `held` exists, the store keeps the box. It exists until the run ends, even a detached one.
    let (opened, held) = args.open()?;
    let Checked { component, env, given, skills } = checked(args, &opened)?;
    let secrets = secrets::take(&secrets::checked(args, opened.plan())?, opened.plan())?;
    let mut asked = Asked::of(args, opened.plan(), given.clone(), secrets, &skills)?;
    if args.detach {
        asked.options = again::options(args, opened.plan(), &env, &asked.shared.skill_dirs)?;
        restart::check_options(args, asked.options.as_ref())?;
    }
    let state = paths::state()?;
    boxes::check_owner(&state)?;
    let mut asked = asked.with_rules(args, &opened, &state)?;
    let mut left = args.check_scratch(opened.plan(), &state)?;
    let claim = || origins::claim(args, &opened.digest);
    (asked.volumes, left) = volumes::sized(args, opened.plan(), claim, (left, &state))?;
    asked.snapshot = disk::snapshot(args, &opened, &state)?;
    asked.disk_bytes = disk::size(args, &opened, &asked, (left, &state))?;
    let boot = Boot { args, opened: &opened, state: &state, signals, screen };
    boot.say(&asked)?;
    // Tries KVM before the box is hashed, because hashing can take long. `tried`, the duration of the first try, is not part of
    // the startup time.
    let emulation = emulated::emulation(args, opened.plan());
    let tried = host::ensure_kvm(Path::new(SELF), &state)
        .map_err(|error| error::of_kvm(&error, emulation.as_ref()))?;
    let predecessor = asked.take_ports(args, &Boxes::new(&state))?;
    let runtime = RuntimeDir::create(&paths::runtime_base())?;
    let record = boot.record(&asked, &runtime);
    let (mut entry, replaced) = boot.entry(record)?;
    let result = asked.result.clone();
    let copying = match boot.prepare(&mut entry, held.is_some(), &asked) {
        Ok(copying) => copying,
        Err(failure) => {
            // As in `note_failure`, the next command records the end if this one cannot.
            drop(entry.fail(None, failure.message(), args.again));
            replaced.map_or(Ok(()), Replaced::restore)?;
            return Err(failure);
        }
    };
    let mut agent_output = agent_route(args, screen);
    match boot.start(asked, (runtime, &mut entry), &mut agent_output, started + tried + copying) {
        Ok(started) => {
            let again = Again { state: &state, given };
            let run = Run { args, opened: &opened, component, env, signals, screen, result, again };
            run.serve((started, predecessor), replaced, entry, agent_output)
        }
        Err(failure) => {
            note_failure(args, entry, &failure);
            replaced.map_or(Ok(()), Replaced::restore)?;
            Err(publish::refused(&failure, args, opened.plan())
                .unwrap_or_else(|| error::of_run(failure, emulation.as_ref())))
        }
    }
}

/// The resources that the command line gives to a box. Files and directories are opened before the run changes anything on the
/// host.
struct Asked {
    task: Option<TaskPlan>,
    /// The file for the result of the task.
    result: Option<Arc<FileSlot>>,
    console: Option<FileSlot>,
    agent_socket: Option<PathBuf>,
    secrets: Vec<Secret>,
    shared: Shared,
    network: Given,
    variables: Vec<GivenVariable>,
    volumes: Vec<VolumePlace>,
    /// The snapshot with which the disk for the components' roots begins.
    snapshot: Option<Snapshot>,
    /// The size of that disk.
    disk_bytes: Option<u64>,
    /// The sockets of the box that this one replaces.
    handed: Option<Vec<TcpListener>>,
    /// The options with which the run can be repeated.
    options: Option<Vec<String>>,
}

impl Asked {
    /// Returns the paths at which the start mounts something writable, each with the components that see it.
    fn writable_mounts(&self) -> impl Iterator<Item = (Scope, &str)> + Clone {
        let volumes = self.volumes.iter().map(|it| (it.scope, it.guest.as_str()));
        self.shared.writable().chain(volumes)
    }

    fn of(
        args: &RunArgs,
        plan: &RunPlan,
        variables: Vec<GivenVariable>,
        secrets: Vec<Secret>,
        skills: &FoundSkills,
    ) -> Result<Self, Failure> {
        Ok(Self {
            shared: shares::resolved(args, plan, skills)?,
            task: task::given(args)?,
            result: task::result_place(args, plan)?,
            console: console_place(args)?,
            agent_socket: agent_socket(args)?,
            secrets,
            network: network::given(args, plan)?,
            variables,
            volumes: volumes::of_run(args, plan),
            snapshot: None,
            disk_bytes: None,
            handed: None,
            options: None,
        })
    }

    /// If the run continues an earlier one of the same box, keeps the changes of that run's network. A hostile agent must not get
    /// back what the user has denied it. Another box has other rules.
    fn with_rules(
        self,
        args: &RunArgs,
        opened: &OpenBox,
        state: &Path,
    ) -> Result<Self, LaunchError> {
        let continued = args.name.as_deref().filter(|_| args.again && !args.afresh);
        let old = continued.map(|name| Boxes::new(state).find(name)).transpose()?;
        let Some(old) = old.filter(|it| it.digest == opened.digest) else { return Ok(self) };
        let network = self.network.with_changes(&old.network, &old.network_local);
        Ok(Self { network, ..self })
    }

    /// If the run replaces a box that runs, takes the sockets of that box's published ports.
    fn take_ports(
        &mut self,
        args: &RunArgs,
        boxes: &Boxes,
    ) -> Result<Option<Predecessor>, LaunchError> {
        let runs = args.replaces.as_ref().filter(|it| it.runs);
        let Some(name) = runs.and_then(|it| it.name.as_deref()) else { return Ok(None) };
        let record = boxes.find(name)?;
        if record.state == State::Ended {
            return Err(ClientError::NotRunning(record.name).into());
        }
        let (predecessor, sockets) = Predecessor::ask(&record)?;
        self.handed = Some(sockets);
        Ok(Some(predecessor))
    }
}

/// A box that is about to start.
struct Boot<'a> {
    args: &'a RunArgs,
    opened: &'a OpenBox,
    state: &'a Path,
    signals: &'a StopSignals,
    screen: &'a Screen,
}

impl Boot<'_> {
    /// Checks that the box gets nothing of this host that no box may have. Each start needs this check: an earlier start of
    /// the box may have made what its shares lead to.
    fn check(&self, asked: &Asked) -> Result<(), Failure> {
        let Shared { directories, files, sockets, .. } = &asked.shared;
        kept::check(directories, self.args, &self.opened.places.directory, self.state)?;
        kept::check_copies(files, self.state)?;
        kept::check_sockets(sockets, self.state)
    }

    /// Prints the notices about this start. Refuses what [`Self::check`] refuses.
    fn say(&self, asked: &Asked) -> Result<(), Failure> {
        let Self { args, opened, state, screen, .. } = *self;
        let (plan, shares) = (opened.plan(), &asked.shared.directories);
        let is_told = !args.json && !is_quiet();
        let notices = shares::linked(args, shares).chain(shares::movable(shares));
        let larger = memory::larger_machine(plan, args.given.memory).filter(|_| is_told);
        let fewer = args.fewer_cpus(plan).filter(|_| is_told);
        notices.chain(larger).chain(fewer).for_each(|it| screen.notice(&it));
        self.check(asked)?;
        shares::look_through(shares, terminal::notice);
        let powerful = shares::powerful(&asked.shared.sockets);
        kept::notices(shares, state).chain(powerful).for_each(|it| screen.notice(&it));
        if is_told {
            asked.shared.warnings.iter().for_each(|it| screen.notice(it));
            shares::notices(shares).for_each(|it| screen.notice(&it));
            self.say_lacks_of(shares);
            shares::file_notices(&asked.shared.files).for_each(|it| screen.notice(&it));
            shares::of_project(args).iter().for_each(|it| screen.notice(it));
            shares::socket_notices(&asked.shared.sockets).for_each(|it| screen.notice(&it));
            volumes::notices(&asked.volumes).for_each(|it| screen.notice(&it));
            publish::notices(args, plan).for_each(|it| screen.notice(&it));
            let notice = network::notice(&asked.network, plan, &args.subject.shell_words());
            notice.iter().for_each(|it| screen.notice(it));
        }
        Ok(())
    }

    /// Prints what the shares do not do that a directory of this host does.
    fn say_lacks_of(&self, shares: &[HostShare]) {
        let late = shares::late(shares, &self.opened.config.kernel_version);
        let own: Vec<_> = shares.iter().map(HostShare::record).collect();
        let all = match own.iter().any(|it| it.writable) {
            // If they cannot be read, the notices about them are missing.
            true => Boxes::new(self.state).all().unwrap_or_default(),
            false => Vec::new(),
        };
        let others = all.iter().filter(|it| {
            it.state == State::Running && Some(it.name.as_str()) != self.args.name.as_deref()
        });
        let unlocked =
            shares::unlocked(&own, others.map(|it| (it.name.as_str(), it.shares.as_slice())));
        late.iter().chain(&unlocked).for_each(|it| self.screen.notice(it));
    }

    /// Begins the record of the run. With `--replace`, first stops the box that has the name, and gives it another name.
    fn entry(&self, record: Record) -> Result<(Entry, Option<Replaced>), Failure> {
        let (args, boxes) = (self.args, Boxes::new(self.state));
        let Some(name) = args.name.as_deref() else {
            return Ok((boxes.create(None, record)?, None));
        };
        if args.again {
            let before = boxes.find(name)?;
            Environment::of(self.state, &before).map_or(Ok(()), |it| it.begins(&before))?;
            return Ok((boxes.resume(name, record, args.afresh)?, None));
        }
        let replaced = args.replace.then(|| Replaced::set_aside(&boxes, name, args.grace()));
        let replaced = replaced.transpose()?.flatten();
        match boxes.create(Some(name), record) {
            Ok(entry) => Ok((entry, replaced)),
            Err(error) => {
                replaced.map_or(Ok(()), Replaced::give_back)?;
                Err(error.into())
            }
        }
    }

    /// Makes the store keep the box, if it is from there (`is_held`), removes the result of an earlier run, so that it cannot be
    /// mistaken for the result of this run, and begins the disk with a snapshot. Returns how long the copy of the snapshot has taken,
    /// which is not part of the startup time.
    fn prepare(
        &self,
        entry: &mut Entry,
        is_held: bool,
        asked: &Asked,
    ) -> Result<Duration, Failure> {
        if self.args.keeps_disk() && is_held {
            self.keep_box(entry)?;
        }
        asked.result.as_deref().map_or(Ok(()), |it| write_result(it, &[]))?;
        disk::begin(asked.snapshot.as_ref(), entry, self.signals)
    }

    /// Makes the store keep the box until its record is removed, so that it can be started again.
    fn keep_box(&self, entry: &Entry) -> Result<(), Failure> {
        entry.keep_documents(&self.opened.places.directory)?;
        let noted = self.args.subject.store.root(&PROGRAM).map(|it| {
            // A store that this user cannot write, such as that of all users, keeps what its owner wants.
            drop(Boxes::new(self.state).note_in(&it));
        });
        Ok(noted?)
    }

    /// Returns the record of the box.
    fn record(&self, asked: &Asked, runtime: &RuntimeDir) -> Record {
        let (args, plan) = (self.args, self.opened.plan());
        let record = Record::new(self.opened, args.size(plan), runtime.path());
        Record {
            remove: args.rm,
            project: args.project.clone(),
            boxfile: args.boxfile,
            agent_socket: asked.agent_socket.clone(),
            shares: asked.shared.records(),
            skills: asked.shared.skills(plan),
            volumes: asked.volumes.clone(),
            policy: CommandPolicy::of_start(plan, asked.writable_mounts()),
            network: asked.network.plan(&plan.network),
            network_given: args.given.network.into(),
            network_local: asked.network.local.iter().map(Local::plan).collect(),
            env: asked.variables.iter().cloned().map(GivenVariable::masked).collect(),
            task: TaskPlan::of_run(plan.task.as_ref(), asked.task.clone()).as_ref().map(Task::new),
            options: asked.options.clone(),
            disk_bytes: asked.disk_bytes,
            service: args.as_supervisor && notify::is_heard(),
            ..record
        }
    }

    /// Starts the box, and notes the start in the record of `entry`.
    fn start(
        &self,
        mut asked: Asked,
        (runtime, entry): (RuntimeDir, &mut Entry),
        agent_output: &mut Route,
        started: Instant,
    ) -> Result<Started, FailedRun> {
        let (args, plan) = (self.args, self.opened.plan());
        let (programs, receipts) = (paths::programs(), Receipts::new(self.state));
        let watch = Shown::new(self.screen, &plan.name, args.json || is_quiet());
        let console = asked.console.take();
        let gifts = self.gifts(asked, entry, &watch)?;
        let run = BoxToRun {
            opened: self.opened,
            size: entry.record.vm,
            program: Path::new(SELF),
            programs: &programs,
            device: Path::new(DEVICE),
            receipts: &receipts,
            trust: if args.verify { Trust::Nothing } else { Trust::Receipts },
            runtime,
        };
        let policy = StartPolicy {
            console: console.as_ref().map(create_console).transpose()?,
            logs: entry.logs(plan.logs)?,
            agent_output,
            signals: self.signals,
            started,
            startup_timeout: Duration::from_secs(args.startup_timeout.into()),
            enforced_total: args.enforced_total(plan),
            jail: args.jail(),
            watch: &watch,
        };
        let started = Started::new(run, gifts, policy)?;
        entry.update(|record| record.start(&started.machine))?;
        Ok(started)
    }

    /// Creates and collects the resources that the host gives to the box.
    fn gifts(
        &self,
        asked: Asked,
        entry: &Entry,
        watch: &Shown<'_>,
    ) -> Result<HostResources, FailedRun> {
        let record = &entry.record;
        let of_git = self.args.project.as_deref().filter(|_| !self.args.has_gitconfig());
        let of_git = of_git.map(gitconfig);
        Ok(HostResources {
            disks: scratch::make(self.opened.plan(), self.state)?,
            roots_disk: disk::take(self.args, entry, self.state)?,
            volumes: volumes::take(&asked.volumes, self.state, &record.name, watch)?,
            variables: asked.variables,
            secrets: asked.secrets,
            shares: asked.shared.directories,
            files: asked.shared.files.into_iter().chain(of_git).collect(),
            sockets: asked.shared.sockets,
            task: asked.task,
            network: asked.network,
            published: publish::of_run(self.args, self.opened.plan()),
            handed: asked.handed,
            agent_socket: record.agent_socket.clone(),
        })
    }
}

/// Records the end of a box that has not started.
fn note_failure(args: &RunArgs, entry: Entry, failure: &FailedRun) {
    let status = match failure.error {
        LaunchError::Machine(MachineError::AgentEnded { status, .. }) => Some(status),
        _ => None,
    };
    // An error is ignored: the next command finds the lock of the record free, and then records the end.
    drop(entry.fail(status, failure.error.to_string(), args.again));
}

fn agent_route(args: &RunArgs, screen: &Screen) -> Route {
    match (args.json, args.command.is_empty()) {
        (true, _) => Route::capture(),
        // The caller of a detached run sees the agent's output only if the start fails.
        _ if args.as_supervisor => Route::capture(),
        // The agent's lines would disturb the command's terminal.
        _ if args.options.tty => Route::capture(),
        (false, true) => screen.route(),
        (false, false) => {
            Route::Prefix(Prefixed::new("agent | ", screen.program_stderr(), args.raw))
        }
    }
}

/// Returns the path of `--agent-socket`. The links in its directory are resolved.
fn agent_socket(args: &RunArgs) -> Result<Option<PathBuf>, Failure> {
    let place = |path| given_file::place(path, "make the agent's socket");
    let place = args.agent_socket.as_deref().map(place).transpose()?;
    Ok(place.map(|it| it.path().to_owned()))
}

/// The action in an error about the console's file.
const WRITE_CONSOLE: &str = "write the console to";

/// Returns the file for the console.
fn console_place(args: &RunArgs) -> Result<Option<FileSlot>, Failure> {
    args.console.as_deref().map(|it| given_file::place(it, WRITE_CONSOLE)).transpose()
}

fn create_console(place: &FileSlot) -> Result<File, OsError> {
    // Without NONBLOCK, opening a FIFO that has no reader would block (https://man7.org/linux/man-pages/man7/fifo.7.html), and so
    // would writing to a FIFO whose reader pauses. No signal could end that wait, because signals are blocked.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // An earlier box may have replaced the file with a link, if the box could write to the directory. So only links of the kernel
    // are followed, for example `/dev/stdout`.
    if !place.is_kernels() {
        flags |= OFlags::NOFOLLOW;
    }
    flags |= OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let opened = openat(place.directory(), place.name(), flags, Mode::RUSR | Mode::WUSR);
    let failed = OsError::file(WRITE_CONSOLE, place.path());
    opened.map(File::from).map_err(|error| failed(error.into()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::symlink;

    use super::*;

    fn console(path: &Path) -> Result<File, OsError> {
        create_console(&given_file::place(path, WRITE_CONSOLE).unwrap())
    }

    #[test]
    fn a_console_that_is_a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let OsError::File { source, .. } = console(&pipe).unwrap_err() else { panic!() };
        assert_eq!(source.raw_os_error(), Some(nix::errno::Errno::ENXIO as i32));
    }

    #[test]
    fn no_link_leads_the_console_to_another_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        for path in ["share/out", "keys"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("keys/file"), "key").unwrap();
        symlink("../keys/file", at("share/link")).unwrap();
        console(&at("share/link")).unwrap_err();
        let place = given_file::place(&at("share/out/file"), WRITE_CONSOLE).unwrap();
        fs::rename(at("share/out"), at("share/moved")).unwrap();
        symlink("../keys", at("share/out")).unwrap();
        create_console(&place).unwrap();
        assert!(at("share/moved/file").exists());
        let error = given_file::place(&at("share/out/file"), WRITE_CONSOLE).unwrap_err().text();
        assert!(error.contains("share/out is a link: the path leads to "), "{error}");
        assert_eq!(fs::read_to_string(at("keys/file")).unwrap(), "key");
        // Links of the kernel are followed. `/dev/stdout` leads to such a link, `/proc/self/fd/1`.
        let open = File::create(at("keys/other")).unwrap();
        let link = format!("/proc/self/fd/{}", open.as_raw_fd());
        console(Path::new(&link)).unwrap().write_all(b"console").unwrap();
        assert_eq!(fs::read_to_string(at("keys/other")).unwrap(), "console");
    }
}

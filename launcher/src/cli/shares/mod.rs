//! `boxlaunch run --share`, `--skill` and `--skills`: the directories, files and sockets of this host that a box sees.
//!
//! A box declares the shares that it wants. Only the command line grants them.

mod again;
mod lacks;
mod project;
mod skills;
mod survey;

use std::env;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use box_contract::plan::{PlanError, SKILL_DEFINITION, SKILLS_PATH};
use box_contract::rules::{NAME_FORM, is_name};
use box_contract::wire::{MAX_DEVICES, MAX_FILES_BYTES};
use box_contract::{Access, RunPlan, Scope, SharePlan, SkillMode, SkillPlan};
use boxlaunch::boxes;
use boxlaunch::host::raise_limit_of_files;
use boxlaunch::mounts::files::FileCopy;
use boxlaunch::mounts::guest_paths;
use boxlaunch::mounts::roots_disk::size_for;
use boxlaunch::mounts::shares::{HostShare, ShareError, ShareRecord, devices};
use boxlaunch::mounts::sockets::SharedSocket;
use safe_text::{shell_word, shown};

use super::error::{Failure, usage};
use super::given_file;
use super::lacks::Lack;
use super::run::{RunArgs, agent_of_host, others};

pub(super) use again::parse_record;
pub(super) use lacks::{late, unlocked};
pub(super) use project::notice as of_project;
pub(super) use skills::FoundSkills;
use skills::OpenedSkills;
pub(super) use survey::look_through;

/// The help for a malformed `--share`.
const FORM: &str = "write HOST:GUEST, HOST:GUEST:rw, NAME=HOST or NAME";

/// A share of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShareArg {
    /// A share that the box declares. If `host` is `None`, the run uses the directory that the Boxfile proposes.
    Declared { name: String, host: Option<PathBuf> },
    /// A share that the box does not declare.
    Own { host: PathBuf, guest: String, access: Access },
}

impl ShareArg {
    /// Parses the option's value.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(at) = text.rfind(":/") {
            let (host, rest) = (&text[..at], &text[at + 1..]);
            let (guest, option) = match rest.split_once(':') {
                Some((guest, option)) => (guest, Some(option)),
                None => (rest, None),
            };
            let (guest, access) = (guest_paths::read(guest)?, access(option)?);
            return match host {
                "" => Err(FORM.to_owned()),
                _ if boxes::is_entry_name(host) => Err(format!(
                    "write ./{host} for a directory; a volume is given with --volume {host}:{guest}"
                )),
                _ => Ok(Self::Own { host: host.into(), guest: guest.to_owned(), access }),
            };
        }
        match text.split_once('=') {
            Some((name, host)) if is_name(name) && !host.is_empty() => {
                Ok(Self::Declared { name: name.to_owned(), host: Some(host.into()) })
            }
            None if is_name(text) => Ok(Self::Declared { name: text.to_owned(), host: None }),
            Some((_, host)) if !host.is_empty() => Err(format!("{FORM}; {NAME_FORM}")),
            None if !text.contains(['/', ':', '.']) => Err(format!("{FORM}; {NAME_FORM}")),
            _ => Err(format!("{FORM}; GUEST is an absolute path")),
        }
    }

    /// Parses a value of `--skill`.
    pub(super) fn parse_skill(text: &str) -> Result<(String, PathBuf), String> {
        match text.split_once('=') {
            Some((name, host)) if is_name(name) && !host.is_empty() => {
                Ok((name.to_owned(), host.into()))
            }
            _ => Err(format!("write NAME=DIR; {NAME_FORM}")),
        }
    }

    /// Returns the guest path of a share that the box does not declare.
    pub(super) fn place(&self) -> Option<&str> {
        match self {
            Self::Declared { .. } => None,
            Self::Own { guest, .. } => Some(guest),
        }
    }

    /// Returns the option that shares the same directory at a path to choose. For a declared share, whose path the box
    /// declares, returns the option as it is.
    pub(super) fn elsewhere(&self) -> String {
        match self {
            Self::Declared { name, .. } => format!("-v {name}"),
            Self::Own { host, access: Access::ReadOnly, .. } => at_another_path(host.clone()),
            Self::Own { host, .. } => at_another_path(host.clone()) + ":rw",
        }
    }

    /// Returns the option's value for another current directory. `declared` are the shares of the box. `None` if the path
    /// cannot be written.
    pub(super) fn word(&self, declared: &[SharePlan]) -> Option<String> {
        let absolute = |path: &Path| Some(std::path::absolute(path).ok()?.to_str()?.to_owned());
        match self {
            Self::Declared { name, host } => {
                let proposed = || declared.iter().find(|it| it.name == *name)?.host.as_deref();
                let host = host.as_deref().or_else(|| proposed().map(Path::new))?;
                Some(format!("{name}={}", absolute(host)?))
            }
            Self::Own { host, guest, access } => {
                let access = if *access == Access::ReadWrite { ":rw" } else { "" };
                Some(format!("{}:{guest}{access}", absolute(host)?))
            }
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            Self::Declared { name, .. } => Some(name),
            Self::Own { .. } => None,
        }
    }
}

/// Parses the access after the guest path, for example `rw` of `./a:/b:rw`.
fn access(option: Option<&str>) -> Result<Access, String> {
    match option {
        None | Some("ro") => Ok(Access::ReadOnly),
        Some("rw") => Ok(Access::ReadWrite),
        Some(other) => {
            let other = shown(other);
            Err(format!(
                "`{other}` is not an option of a share: write `rw`, or `ro`, which is the default"
            ))
        }
    }
}

/// Checks that the box declares each share and skill that the command line names, and that none is named twice. [`lacking`]
/// returns the opposite: the declared shares and skills that the command line does not name. Returns the skills of `--skills`, whose
/// directories no later step of the start reads again.
pub(super) fn checked(args: &RunArgs, plan: &RunPlan) -> Result<FoundSkills, Failure> {
    check_shares(&args.given.shares, &plan.shares)?;
    let mounted = plan.skills.iter().filter(|it| it.mode == SkillMode::Mounted);
    let skills: Vec<_> = args.given.skills.iter().map(|(name, _)| name.as_str()).collect();
    let declared: Vec<_> = mounted.clone().map(|it| it.name.as_str()).collect();
    check_names("skill", &skills, &declared, |name| not_mounted(plan, name, &declared))?;
    skills::found(args, plan)
}

/// Returns the missing options for the shares and skills of a box. `found` are the skills that [`checked`] has returned.
pub(super) fn lacking(args: &RunArgs, plan: &RunPlan, found: &FoundSkills) -> Vec<Lack> {
    let shares = plan.shares.iter().filter(|it| given(args, &it.name).is_none());
    let is_given =
        |name: &str| args.given.skills.iter().any(|(it, _)| it == name) || found.contains_key(name);
    let skills = plan.skills.iter().filter(|it| it.mode == SkillMode::Mounted);
    let skills = skills.filter(|skill| !is_given(&skill.name)).map(|it| {
        let words = format!("--skill {}=DIR", it.name);
        let message = format!("the box wants its skill {} from a directory of this host", it.name);
        let help =
            format!("add `{words}`, or `--skills DIR` for the directory that the skill is in");
        Lack { message, help, words }
    });
    shares.map(missing_share).chain(skills).collect()
}

/// Checks that the box declares the shares that are given by name.
fn check_shares(given: &[ShareArg], declared: &[SharePlan]) -> Result<(), Failure> {
    let names: Vec<_> = given.iter().filter_map(ShareArg::name).collect();
    let declared: Vec<_> = declared.iter().map(|it| it.name.as_str()).collect();
    check_names("share", &names, &declared, |name| {
        // `-v project` may mean the directory `./project`.
        let host = match given.iter().find(|it| it.name() == Some(name)) {
            Some(ShareArg::Declared { host: Some(host), .. }) => host.clone(),
            _ => Path::new(".").join(name),
        };
        let own = format!("write `{}` for a directory of your own", at_another_path(host));
        let help = match declared.as_slice() {
            [] => own,
            names => format!("it declares {}; or {own}", names.join(", ")),
        };
        usage(&format!("the box declares no share {name}"), &help)
    })
}

/// Returns the option that shares `host` at a path to choose.
fn at_another_path(host: PathBuf) -> String {
    let mut share = host.into_os_string();
    share.push(":/PATH");
    format!("-v {}", shell_word(share))
}

/// Returns the error of a `--skill` that the box does not declare as mounted. `mounted` are the names of its mounted skills.
fn not_mounted(plan: &RunPlan, name: &str, mounted: &[&str]) -> Failure {
    let is_baked = plan.skills.iter().any(|it| it.name == name);
    let message = if is_baked {
        format!("the skill {name} is baked into the box, and cannot be given")
    } else {
        format!("the box declares no skill {name}")
    };
    let help = match mounted {
        [] if is_baked => format!("leave `--skill {name}` out"),
        [] => format!(
            "leave `--skill {name}` out; `--skills DIR` mounts skills that the box does not declare"
        ),
        names => format!("the box takes {}", names.join(", ")),
    };
    usage(&message, &help)
}

/// Checks that each name is declared, and given once.
fn check_names(
    kind: &str,
    given: &[&str],
    declared: &[&str],
    unknown: impl Fn(&str) -> Failure,
) -> Result<(), Failure> {
    for (at, name) in given.iter().enumerate() {
        if given[..at].contains(name) {
            return Err(usage(&format!("the {kind} {name} is given twice"), "leave one out"));
        }
        if !declared.contains(name) {
            return Err(unknown(name));
        }
    }
    Ok(())
}

fn given<'a>(args: &'a RunArgs, name: &str) -> Option<&'a ShareArg> {
    args.given.shares.iter().find(|it| it.name() == Some(name))
}

fn missing_share(share: &SharePlan) -> Lack {
    let SharePlan { name, guest, access, host, .. } = share;
    let access = match access {
        Access::ReadOnly => "read",
        Access::ReadWrite => "read and write",
    };
    let message =
        format!("the box wants to {access} a directory of this host at {guest}, its share {name}");
    let (words, help) = match host {
        Some(host) => (
            format!("--share {name}"),
            format!(
                "add `--share {name}` to give it {host:?}, or `--share {name}=DIR` for another"
            ),
        ),
        None => (format!("--share {name}=DIR"), format!("add `--share {name}=DIR`")),
    };
    Lack { message, help, words }
}

/// What a box sees of this host.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) directories: Vec<HostShare>,
    pub(super) files: Vec<FileCopy>,
    pub(super) sockets: Vec<SharedSocket>,
    /// The warnings about the skills of `--skills`, as they are printed.
    pub(super) warnings: Vec<String>,
    /// The paths of the directories of `--skills` without links, in the order of the command line.
    pub(super) skill_dirs: Vec<PathBuf>,
}

impl Shared {
    /// Returns the paths of the writable directories, each with the components that see it.
    pub(super) fn writable(&self) -> impl Iterator<Item = (Scope, &str)> + Clone {
        self.directories.iter().filter_map(HostShare::writable)
    }

    /// Returns the skills of a box that sees this: those of its plan, and those that the command line adds. They are sorted by
    /// name.
    pub(super) fn skills(&self, plan: &RunPlan) -> Vec<SkillPlan> {
        let added = self.directories.iter().filter_map(HostShare::added_skill_name);
        let added = added.map(|name| SkillPlan {
            name: name.to_owned(),
            mode: SkillMode::Mounted,
            ..SkillPlan::default()
        });
        let mut skills: Vec<_> = plan.skills.iter().cloned().chain(added).collect();
        skills.sort();
        skills
    }

    /// Returns all of it for the box's record.
    pub(super) fn records(&self) -> Vec<ShareRecord> {
        let files = self.files.iter().map(FileCopy::record);
        let sockets = self.sockets.iter().map(SharedSocket::record);
        self.directories.iter().map(HostShare::record).chain(files).chain(sockets).collect()
    }
}

/// One of the directories, files and sockets that a box sees.
#[derive(Debug)]
enum Opened {
    Directory(HostShare),
    File(FileCopy),
    Socket(SharedSocket),
}

impl Opened {
    /// Opens a directory, reads a file, or examines a socket.
    fn new(host: &Path, guest: &str, access: Access, scope: Scope) -> Result<Self, Failure> {
        let kind = host.metadata().map(|it| it.file_type());
        let (is_file, is_socket) = kind.map_or((false, false), |it| (it.is_file(), it.is_socket()));
        if !is_file && !is_socket {
            let found = HostShare::new(host, guest, access, scope);
            return Ok(Self::Directory(found.map_err(|error| not_found(host, error))?));
        }
        if access == Access::ReadWrite {
            return Err(not_writable(host, is_file));
        }
        // A box may have put a link to another file there, as for every file of an option.
        let failed = |source| not_found(host, ShareError { path: host.to_owned(), source });
        if is_socket {
            let real = given_file::real_path(host, failed)?;
            return Ok(Self::Socket(SharedSocket::new(real, guest, scope)?));
        }
        let (file, real) = given_file::with_path(host, failed)?;
        Ok(Self::File(FileCopy::read(file, real, guest, scope)?))
    }

    /// Returns whether this is in a directory. `false` if that is not known.
    fn is_surely_inside(&self, directory: &Path) -> bool {
        match self {
            Self::Directory(share) => share.is_inside(directory),
            Self::File(file) => file.is_inside(directory).unwrap_or(false),
            Self::Socket(socket) => socket.is_inside(directory).unwrap_or(false),
        }
    }

    fn host(&self) -> &Path {
        match self {
            Self::Directory(share) => share.host(),
            Self::File(file) => file.host(),
            Self::Socket(socket) => socket.host(),
        }
    }
}

/// Returns the error of a file or a socket that is shared with `rw`.
fn not_writable(host: &Path, is_file: bool) -> Failure {
    let (what, help) = if is_file {
        let help = "share it without `rw`, or share the directory that it is in";
        ("a file, of which a box gets a copy to read", help)
    } else {
        let help = "share it without `rw`: a box sends and receives through it";
        ("a socket, which is neither read-only nor writable", help)
    };
    usage(&format!("{} is {what}", host.display()), help)
}

/// Opens the directories, reads the files, and examines the sockets that a box sees. `skills` are the skills that [`checked`] has
/// returned.
pub(super) fn resolved(
    args: &RunArgs,
    plan: &RunPlan,
    skills: &FoundSkills,
) -> Result<Shared, Failure> {
    if !skills.is_empty() {
        // Each directory of the path of a skill is an open file.
        raise_limit_of_files();
    }
    let declared = plan.shares.iter().map(|share| match given(args, &share.name) {
        Some(ShareArg::Declared { host: Some(host), .. }) => found(share, host),
        _ => proposed(share),
    });
    let own = args.given.shares.iter().filter_map(|share| match share {
        ShareArg::Own { host, guest, access } => {
            Some(Opened::new(host, guest, *access, Scope::Both))
        }
        ShareArg::Declared { .. } => None,
    });
    let of_names =
        args.given.skills.iter().map(|(name, host)| skill(name, host).map(Opened::Directory));
    let OpenedSkills { directories: of_skills, warnings } = skills::opened(skills, plan)?;
    let directories = project::shares(args)?.into_iter().chain(of_skills).collect();
    let skill_dirs = skills::real_directories(args)?;
    let mut shared = Shared { directories, warnings, skill_dirs, ..Shared::default() };
    for opened in declared.chain(own).chain(of_names) {
        match opened? {
            Opened::Directory(share) => shared.directories.push(share),
            Opened::File(file) => shared.files.push(file),
            Opened::Socket(socket) => shared.sockets.push(socket),
        }
    }
    shared.sockets.extend(agent_of_host(args, plan)?);
    check_files(&shared.files)?;
    check_sockets(&shared)?;
    skills::check_writable(args, skills, &shared.directories)?;
    project::check_overlap(&shared.directories)?;
    again::check(args, &shared)?;
    check_devices(args, plan, &shared.directories)?;
    Ok(shared)
}

/// Checks that the copies of files are not too large together.
fn check_files(files: &[FileCopy]) -> Result<(), Failure> {
    if files.iter().map(FileCopy::length).sum::<u64>() <= MAX_FILES_BYTES {
        return Ok(());
    }
    let message = "the shared files have more than 1 MiB together";
    Err(usage(message, "share the directories that they are in, or copy them: `boxlaunch cp`"))
}

/// Checks that the box can write to no directory with one of its sockets. It could put another socket of that directory there, to
/// which it would then connect.
fn check_sockets(shared: &Shared) -> Result<(), Failure> {
    let around = |socket: &SharedSocket| {
        let mut written = shared.directories.iter().filter(|it| it.is_writable());
        written.find(|it| socket.is_inside(it.host()).unwrap_or(true)).map(HostShare::host)
    };
    let found = shared.sockets.iter().find_map(|it| Some((it.host(), around(it)?)));
    let Some((socket, directory)) = found else { return Ok(()) };
    let (socket, directory) = (socket.display(), directory.display());
    let message = format!(
        "a box that may write to {directory} must not connect to {socket}: it could put another socket there"
    );
    Err(usage(
        &message,
        "share a socket that is outside of it, or share the directory without `rw`",
    ))
}

/// Checks that a VM has enough devices for the directories, the disks and the network.
fn check_devices(args: &RunArgs, plan: &RunPlan, shares: &[HostShare]) -> Result<(), Failure> {
    // The default disk is left out if there is no room, but not one that begins with a snapshot.
    let has_disk = args.from.is_some() || size_for(plan, args.given.disk, 0).is_some();
    let own = usize::from(has_disk);
    let devices = devices(others(args, plan) + own, shares, plan.network.mode);
    if devices > MAX_DEVICES {
        let help = "leave a volume, --disk or the directories of one kind out";
        let message = format!("the box cannot have all of this: {}", PlanError::Devices(devices));
        return Err(usage(&message, help));
    }
    Ok(())
}

/// Opens the directory, the file or the socket of a declared share.
fn found(share: &SharePlan, host: &Path) -> Result<Opened, Failure> {
    Opened::new(host, &share.guest, share.access, share.scope)
}

/// Returns the error of a directory of the command line that cannot be opened. Only this error explains a `:rw` or `:ro` at the
/// end, because the name of an existing directory may end with it.
fn not_found(host: &Path, error: ShareError) -> Failure {
    let named = host.to_string_lossy();
    let help = if let Some(help) = not_expanded(host) {
        help
    } else if let Some(option) = [":rw", ":ro"].into_iter().find(|it| named.ends_with(it)) {
        format!("leave `{option}` out: the Boxfile's `access` decides who may write")
    } else {
        return error.into();
    };
    usage(&error.to_string(), &help)
}

/// Returns the help for a path that does not exist and begins with `~/`, which a shell expands only at the beginning of a word.
/// `None` for another path.
fn not_expanded(host: &Path) -> Option<String> {
    let host = host.to_string_lossy();
    let rest = host.strip_prefix("~/")?;
    Some(format!("the shell did not expand `~`: write \"$HOME/{rest}\""))
}

/// Opens the directory that a box proposes for a share. The directory must be below the current directory. So neither the path,
/// which the box chooses, nor a link that an earlier box has created can lead elsewhere.
fn proposed(share: &SharePlan) -> Result<Opened, Failure> {
    let Some(host) = share.host.as_deref().map(Path::new) else {
        return Lack::check(&[missing_share(share)]).and_then(|()| found(share, Path::new("")));
    };
    if !host.exists() {
        // Opening it gives the reason.
        let found = HostShare::new(host, &share.guest, share.access, share.scope);
        found.map_err(|error| not_proposed(share, host, error))?;
    }
    let found = found(share, host)?;
    if !host.is_absolute() && found.is_surely_inside(Path::new(".")) {
        return Ok(found);
    }
    let (name, host, real) = (&share.name, host.display(), found.host());
    let message =
        format!("{host}, which the box proposes for its share {name}, leads to {}", real.display());
    let mut option = OsString::from(format!("{name}="));
    option.push(real);
    let option = shell_word(option);
    Err(usage(&message, &format!("if you mean that directory: `--share {option}`")))
}

/// Returns the error of a proposed directory that cannot be opened. If it does not exist, the help names the alternatives.
fn not_proposed(share: &SharePlan, host: &Path, error: ShareError) -> Failure {
    if error.source.kind() != ErrorKind::NotFound || host.is_absolute() {
        return error.into();
    }
    let (name, host) = (&share.name, host.display());
    let help = format!(
        "the Boxfile proposes {host} for its share {name}, below the current directory: change to where it is, make it, or \
         give another one: `--share {name}=DIR`"
    );
    usage(&error.to_string(), &help)
}

/// Returns a notice for each directory that the box sees.
pub(super) fn notices(shares: &[HostShare]) -> impl Iterator<Item = String> {
    shares.iter().map(|share| {
        let ShareRecord { host, guest, writable, .. } = share.record();
        let access = if writable { "read-write" } else { "read-only" };
        let text = format!("boxlaunch: {} is shared at {guest}, {access}", host.display());
        shown(&text) + "\n"
    })
}

/// Returns a notice for each file of which the box gets a copy.
pub(super) fn file_notices(files: &[FileCopy]) -> impl Iterator<Item = String> {
    files.iter().map(|file| {
        let ShareRecord { host, guest, .. } = file.record();
        shown(&format!("boxlaunch: {} is copied to {guest}", host.display())) + "\n"
    })
}

/// Returns a notice for each socket of which the box gets the other end.
pub(super) fn socket_notices(sockets: &[SharedSocket]) -> impl Iterator<Item = String> {
    sockets.iter().map(|socket| {
        let ShareRecord { host, guest, .. } = socket.record();
        let host = host.display();
        let text = if socket.is_ssh_agent() {
            format!("boxlaunch: the box can log in and sign with the keys of the SSH agent at {host}")
        } else if socket.is_served() {
            format!("boxlaunch: {guest} leads to the socket {host}")
        } else {
            format!("boxlaunch: {guest} leads to the socket {host}, where no program of this host listens now")
        };
        shown(&text) + "\n"
    })
}

/// Returns a warning for each socket through which a box gets the rights of a user of this host.
pub(super) fn powerful(sockets: &[SharedSocket]) -> impl Iterator<Item = String> {
    sockets.iter().filter_map(|socket| {
        let (host, user) = (socket.host().display(), socket.power()?);
        let text = format!(
            "boxlaunch: warning: whoever connects to {host} can start any program on this host as {user}, and the box can \
             connect to it"
        );
        Some(shown(&text) + "\n")
    })
}

/// Returns a notice for each share whose path on the command line contains a link, because an earlier box may have changed the
/// link's target.
pub(super) fn linked(args: &RunArgs, shares: &[HostShare]) -> impl Iterator<Item = String> {
    let is_named = |share: &&HostShare| {
        let mut directories = args.given.skill_dirs.iter();
        named(args).any(|it| it == share.named())
            || directories.any(|it| share.named().parent() == Some(it.as_path()))
    };
    shares.iter().filter(is_named).filter_map(link_notice)
}

/// Returns the directories that the command line names.
fn named(args: &RunArgs) -> impl Iterator<Item = &Path> {
    let shares = args.given.shares.iter().filter_map(|it| match it {
        ShareArg::Declared { host, .. } => host.as_deref(),
        ShareArg::Own { host, .. } => Some(host.as_path()),
    });
    shares.chain(args.given.skills.iter().map(|(_, host)| host.as_path()))
}

fn link_notice(share: &HostShare) -> Option<String> {
    let (host, real) = (share.named(), share.host());
    (real != plain(host)?).then(|| {
        let (host, real) = (host.display(), real.display());
        let text = format!("boxlaunch: {host} is a link to {real}, which the box sees");
        shown(&text) + "\n"
    })
}

/// Returns a notice for each read-only share that the box can move away, because a directory around it is writable. For example,
/// if `outer` is a writable share and `outer/a/b` a read-only one, the box can move `outer/a`.
pub(super) fn movable(shares: &[HostShare]) -> impl Iterator<Item = String> {
    shares.iter().filter_map(|share| {
        let (host, around) = (share.host().display(), share.movable_ancestor(shares)?);
        let text = format!(
            "boxlaunch: the box can move {host} together with its parent directory; to prevent that, share {} read-only",
            around.display()
        );
        Some(shown(&text) + "\n")
    })
}

/// Returns the absolute path without `.` and `..`, as if no component were a link. In `/x`, `./a/../b` becomes `/x/b`.
fn plain(path: &Path) -> Option<PathBuf> {
    Some(host_fs::plain(&env::current_dir().ok()?.join(path)))
}

/// Returns whether the error is that the directory does not exist.
fn is_absent(error: &ShareError) -> bool {
    [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.source.kind())
}

/// Opens the directory of a skill, and checks that it contains `SKILL.md`. The check uses the opened directory, because a box may
/// replace the path meanwhile.
fn skill(name: &str, host: &Path) -> Result<HostShare, Failure> {
    let none = || {
        let message = format!("{} is not the directory of a skill", host.display());
        let help = not_expanded(host).filter(|_| !host.is_dir());
        usage(&message, help.as_deref().unwrap_or("name a directory that has a file SKILL.md"))
    };
    let guest = format!("{SKILLS_PATH}/{name}");
    let share = HostShare::new(host, &guest, Access::ReadOnly, Scope::Both);
    let share = share.map_err(|error| if is_absent(&error) { none() } else { error.into() })?;
    if share.has_file(SKILL_DEFINITION) { Ok(share) } else { Err(none()) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn own(host: &str, guest: &str, access: Access) -> ShareArg {
        ShareArg::Own { host: host.into(), guest: guest.into(), access }
    }

    #[test]
    fn a_path_without_links_is_itself() {
        let here = env::current_dir().unwrap();
        for (path, expected) in [("./a/../b", here.join("b")), ("/x/./y/..", "/x".into())] {
            assert_eq!(plain(Path::new(path)), Some(expected), "{path}");
        }
    }

    #[test]
    fn each_form_is_read() {
        use Access::{ReadOnly, ReadWrite};
        for (text, expected) in [
            (".:/a3s/workspace", own(".", "/a3s/workspace", ReadOnly)),
            ("./a:/b:ro", own("./a", "/b", ReadOnly)),
            ("./a:/b/", own("./a", "/b", ReadOnly)),
            ("./a:/b/:rw", own("./a", "/b", ReadWrite)),
            ("/a:b:/c:rw", own("/a:b", "/c", ReadWrite)),
            ("./a=b:/c", own("./a=b", "/c", ReadOnly)),
            ("../x:/c:/d", own("../x:/c", "/d", ReadOnly)),
            ("work", ShareArg::Declared { name: "work".into(), host: None }),
            ("work=.", ShareArg::Declared { name: "work".into(), host: Some(".".into()) }),
            ("work=/a:b", ShareArg::Declared { name: "work".into(), host: Some("/a:b".into()) }),
        ] {
            assert_eq!(ShareArg::parse(text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_form_is_refused_with_the_way_out() {
        for (text, reason) in [
            ("", "write HOST:GUEST"),
            (":/a", "write HOST:GUEST"),
            ("./a", "GUEST is an absolute path"),
            ("Work=.", "a name has lower-case letters"),
            ("./a:b", "GUEST is an absolute path"),
            ("data:/a", "--volume data:/a"),
            (".:/", "absolute path without"),
            (".:/a/../b", "absolute path without"),
            (".:/a//", "absolute path without"),
            (
                ".:/a:z",
                "`z` is not an option of a share: write `rw`, or `ro`, which is the default",
            ),
            (".:/a:rw,z", "`rw,z` is not an option"),
            (".:/a:RW", "`RW` is not an option"),
            (".:/a:rw:ro", "`rw:ro` is not an option"),
            (".:/proc/x", "a box has its own /proc"),
            (".:/a3s/skills/x", "a box has its own /a3s/skills"),
        ] {
            let error = ShareArg::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    fn declared(name: &str) -> SharePlan {
        SharePlan {
            name: name.to_owned(),
            guest: "/data".to_owned(),
            access: Access::ReadOnly,
            scope: Scope::Both,
            host: None,
        }
    }

    #[test]
    fn a_box_proposes_directories_of_the_current_one_alone() {
        let proposed = |host: &str| {
            let share = SharePlan { host: Some(host.to_owned()), ..declared("input") };
            super::proposed(&share).map_err(|error| error.text())
        };
        // Cargo runs the tests of a package in its directory.
        for host in ["src", "./src/cli", "src/../src"] {
            assert!(proposed(host).is_ok(), "{host}");
        }
        let here = env::current_dir().unwrap().join("src").display().to_string();
        for host in ["/etc", "..", "../builder", "src/../..", &here] {
            let error = proposed(host).unwrap_err();
            assert!(
                error.contains("which the box proposes for its share input, leads to"),
                "{error}"
            );
            assert!(error.contains("if you mean that directory: `--share input="), "{error}");
        }
        assert!(proposed("").is_err());
    }

    /// Imitates a box that has the parent directory as a writable share.
    #[test]
    fn what_is_shown_as_a_skill_is_what_was_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let at = |path: &str| real.join(path);
        for path in ["project/notes", "project/linked", "keys"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        fs::write(at("project/notes/SKILL.md"), "").unwrap();
        symlink("../notes/SKILL.md", at("project/linked/SKILL.md")).unwrap();
        let share = skill("notes", &at("project/notes")).unwrap();
        fs::rename(at("project/notes"), at("project/moved")).unwrap();
        symlink("../keys", at("project/notes")).unwrap();
        assert!(share.has_file(SKILL_DEFINITION) && share.is_inside(&at("project/moved")));
        assert_eq!(link_notice(&share), None, "no other one is looked at again");
        for path in ["project/linked", "project/notes", "none", "project/moved/SKILL.md"] {
            let error = skill("notes", &at(path)).unwrap_err().text();
            assert!(error.contains(" is not the directory of a skill"), "{path}: {error}");
        }
        let error = skill("notes", Path::new("~/notes")).unwrap_err().text();
        assert!(error.contains("the shell did not expand `~`"), "{error}");
        symlink("moved", at("project/other")).unwrap();
        let linked = skill("notes", &at("project/other")).unwrap();
        let output = link_notice(&linked).unwrap().replace(&real.display().to_string(), "HERE");
        let expected = "HERE/project/other is a link to HERE/project/moved, which the box sees";
        assert_eq!(output, format!("boxlaunch: {expected}\n"));
    }

    /// Imitates a box that has a project as a writable share.
    #[test]
    fn a_file_is_copied_through_no_link_that_leads_to_another_directory() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        for path in ["project/src", "keys"] {
            fs::create_dir_all(real.join(path)).unwrap();
        }
        for path in ["project/settings", "keys/id"] {
            fs::write(real.join(path), path).unwrap();
        }
        symlink("../keys/id", real.join("project/link")).unwrap();
        symlink("../keys", real.join("project/directory")).unwrap();
        symlink("settings", real.join("project/own")).unwrap();
        let opened = |path: &str| {
            Opened::new(&real.join(path), "/x", Access::ReadOnly, Scope::Both)
                .map(|it| it.host().to_owned())
                .map_err(|error| error.text().replace(&real.display().to_string(), "HERE"))
        };
        for path in ["project/settings", "project/own"] {
            assert_eq!(opened(path), Ok(real.join("project/settings")));
        }
        assert!(opened("project/directory/id").is_err());
        insta::assert_snapshot!(opened("project/link").unwrap_err(), @"
        error: HERE/project/link is a link: the path leads to HERE/keys/id, which is not among the files of HERE/project
          = help: a box may have put it there; if you mean that file, name it: HERE/keys/id
        ");
    }

    #[test]
    fn a_socket_is_found_as_a_file_is_and_named_with_what_it_gives() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        for path in ["own", "other"] {
            fs::create_dir(real.join(path)).unwrap();
        }
        let _listener = UnixListener::bind(real.join("other/docker.sock")).unwrap();
        drop(UnixListener::bind(real.join("own/socket")).unwrap());
        symlink("../other/docker.sock", real.join("own/link")).unwrap();
        let here = |text: String| text.replace(&real.display().to_string(), "HERE");
        let opened = |path: &str, access| {
            let opened = Opened::new(&real.join(path), "/s", access, Scope::Both);
            opened.map_err(|error| here(error.text()))
        };
        let sockets: Vec<_> = ["other/docker.sock", "own/socket"]
            .into_iter()
            .map(|path| match opened(path, Access::ReadOnly) {
                Ok(Opened::Socket(socket)) => socket,
                other => panic!("{other:?}"),
            })
            .collect();
        let output: String = powerful(&sockets).chain(socket_notices(&sockets)).collect();
        let agent = sockets[1].clone().of_ssh_agent();
        assert_eq!(
            here(socket_notices(&[agent]).collect()),
            "boxlaunch: the box can log in and sign with the keys of the SSH agent at HERE/own/socket\n"
        );
        insta::assert_snapshot!(here(output), @"
        boxlaunch: warning: whoever connects to HERE/other/docker.sock can start any program on this host as root, and the box can connect to it
        boxlaunch: /s leads to the socket HERE/other/docker.sock
        boxlaunch: /s leads to the socket HERE/own/socket, where no program of this host listens now
        ");
        let refused = [("own/link", Access::ReadOnly), ("own/socket", Access::ReadWrite)];
        let refused = refused.map(|(path, access)| opened(path, access).unwrap_err());
        insta::assert_snapshot!(refused.concat(), @"
        error: HERE/own/link is a link: the path leads to HERE/other/docker.sock, which is not among the files of HERE/own
          = help: a box may have put it there; if you mean that file, name it: HERE/other/docker.sock
        error: HERE/own/socket is a socket, which is neither read-only nor writable
          = help: share it without `rw`: a box sends and receives through it
        ");
    }

    #[test]
    fn each_directory_is_named_with_what_the_box_may_do() {
        let here = env::current_dir().unwrap();
        let share =
            |access| HostShare::new(Path::new("src"), "/data", access, Scope::Both).unwrap();
        let shares = [share(Access::ReadOnly), share(Access::ReadWrite)];
        let output: String = notices(&shares).collect();
        let at = here.join("src").display().to_string();
        let expected = format!(
            "boxlaunch: {at} is shared at /data, read-only\nboxlaunch: {at} is shared at /data, read-write\n"
        );
        assert_eq!(output, expected);
    }

    #[test]
    fn a_name_that_the_box_does_not_declare_may_be_a_directory() {
        let refused = |text: &str, declared: &[SharePlan]| {
            check_shares(&[ShareArg::parse(text).unwrap()], declared).unwrap_err().text()
        };
        insta::assert_snapshot!(refused("project", &[]), @"
        error: the box declares no share project
          = help: write `-v ./project:/PATH` for a directory of your own
        ");
        insta::assert_snapshot!(refused("other=.", &[declared("input")]), @"
        error: the box declares no share other
          = help: it declares input; or write `-v .:/PATH` for a directory of your own
        ");
    }

    #[test]
    fn a_skill_that_is_not_mounted_cannot_be_given() {
        let mut plan = testkit::test_box::config().plan;
        plan.skills = vec![serde_json::from_str(r#"{"name":"greet","mode":"baked"}"#).unwrap()];
        let refused = |name, mounted: &[&str]| not_mounted(&plan, name, mounted).text();
        let errors = [refused("greet", &[]), refused("other", &["notes"]), refused("other", &[])];
        insta::assert_snapshot!(errors.concat(), @"
        error: the skill greet is baked into the box, and cannot be given
          = help: leave `--skill greet` out
        error: the box declares no skill other
          = help: the box takes notes
        error: the box declares no skill other
          = help: leave `--skill other` out; `--skills DIR` mounts skills that the box does not declare
        ");
    }

    #[test]
    fn a_file_system_of_the_kernel_is_not_shared() {
        let error = HostShare::new(Path::new("/proc"), "/p", Access::ReadOnly, Scope::Both);
        insta::assert_snapshot!(Failure::from(error.unwrap_err()).text(), @"
        error: cannot share /proc: /proc is a file system of the kernel
          = help: share a directory that has no file system of the kernel, such as /proc, in it
        ");
    }

    #[test]
    fn who_may_write_to_a_declared_share_is_no_option() {
        let refused = |host: &str| {
            let host = Path::new(host);
            let error = HostShare::new(host, "/data", Access::ReadOnly, Scope::Both).unwrap_err();
            not_found(host, error).text()
        };
        insta::assert_snapshot!(refused("./none:rw") + &refused("./none"), @"
        error: cannot share ./none:rw: No such file or directory (os error 2)
          = help: leave `:rw` out: the Boxfile's `access` decides who may write
        error: cannot share ./none: No such file or directory (os error 2)
          = help: create it first, or share another
        ");
    }
}

//! The rows of the table: how each fact is judged, and what mends it.

use box_image::text::shown;
use boxlaunch::host::isolation::{Cgroups, Landlock};
use boxlaunch::host::kvm_error::KvmError;
use boxlaunch::host::namespaces::{Namespaces, Switch};
use boxlaunch::host::programs::Tool;
use boxlaunch::host::{EMULATOR, Facts, NETWORK, is_supported};
use serde::Serialize;

use crate::cli::explain::kvm_help;

const STARTS: &str = "to start boxes";
const EMULATION: &str = "to start boxes without KVM, slowly (`boxlaunch run --emulated`)";
const JAIL: &str = "for the jail of the process that runs a box (`boxlaunch run --jail`)";
const NETWORKS: &str = "for the networks of a later version; no box needs it today";

/// One thing that a host can offer.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Its stable name.
    name: &'static str,
    /// Its name for people.
    #[serde(skip)]
    pub(super) title: &'static str,
    pub(super) state: State,
    /// The finding, in one line.
    pub(super) fact: String,
    /// The command or setting that mends it; `None` where nothing has to be mended.
    pub(super) help: Option<String>,
    pub(super) needed_for: &'static str,
}

/// How much there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// It works.
    Ok,
    /// It works in part, or it is not known.
    Limited,
    /// It does not work.
    Missing,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// A judged fact.
struct Finding {
    state: State,
    fact: String,
    help: Option<String>,
}

impl Finding {
    fn ok(fact: impl Into<String>) -> Self {
        Self { state: State::Ok, fact: fact.into(), help: None }
    }

    fn limited(fact: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Limited, fact: fact.into(), help: Some(help.into()) }
    }

    fn missing(fact: impl Into<String>, help: impl Into<String>) -> Self {
        Self { state: State::Missing, fact: fact.into(), help: Some(help.into()) }
    }

    fn row(self, name: &'static str, title: &'static str, needed_for: &'static str) -> Row {
        let Self { state, fact, help } = self;
        Row { name, title, state, fact, help, needed_for }
    }
}

/// Judges the facts, those first without which no box starts.
pub(super) fn of(facts: &Facts) -> Vec<Row> {
    let qemu = "`sudo apt-get install qemu-system-x86` (Debian, Ubuntu) or `sudo dnf install \
                qemu-system-x86` (Fedora)";
    let passt =
        "`sudo apt-get install passt` (Debian, Ubuntu) or `sudo dnf install passt` (Fedora)";
    vec![
        kvm(&facts.kvm).row("kvm", "KVM", STARTS),
        emulator(facts.emulator.as_ref(), qemu).row("qemu", "QEMU", EMULATION),
        landlock(facts.landlock).row("landlock", "Landlock", JAIL),
        cgroups(&facts.cgroups).row("cgroups", "cgroups", JAIL),
        namespaces(&facts.namespaces).row("user-namespaces", "user namespaces", JAIL),
        tool(NETWORK, facts.network.as_ref(), passt).row("passt", "passt", NETWORKS),
    ]
}

fn kvm(found: &Result<(), KvmError>) -> Finding {
    match found {
        Ok(()) => Finding::ok("a test guest ran to its end"),
        Err(error @ KvmError::Unknown(_)) => Finding::limited(error.to_string(), kvm_help(error)),
        Err(error) => Finding::missing(shown(&error.to_string()), kvm_help(error)),
    }
}

fn emulator(found: Option<&Tool>, install: &str) -> Finding {
    let version = found.and_then(|tool| tool.version.as_deref());
    match version.filter(|line| !is_supported(line)) {
        Some(old) => Finding::missing(format!("{old}; version 7.2 or later is needed"), install),
        None => tool(EMULATOR, found, install),
    }
}

fn tool(name: &str, found: Option<&Tool>, install: &str) -> Finding {
    let Some(tool) = found else {
        return Finding::missing(format!("there is no {name} in PATH"), install);
    };
    let path = shown(&tool.path.display().to_string());
    match &tool.version {
        Some(version) => Finding::ok(format!("{version}, at {path}")),
        None => Finding::limited(format!("`{path} --version` fails"), install),
    }
}

fn landlock(found: Landlock) -> Finding {
    let reason = match found.version() {
        Ok(version) => return Finding::ok(format!("its ABI is version {version}")),
        Err(reason) => reason,
    };
    let help = if found == Landlock::Disabled {
        "put `landlock` first in the kernel's parameter `lsm=`, and boot again"
    } else {
        "use a kernel from 5.13 on, built with CONFIG_SECURITY_LANDLOCK"
    };
    Finding::missing(reason, help)
}

fn cgroups(found: &Cgroups) -> Finding {
    match found {
        Cgroups::Unified { controllers, delegated: true } => Finding::ok(format!(
            "version 2, delegated to this user; controllers: {}",
            list(controllers)
        )),
        Cgroups::Unified { delegated: false, .. } => Finding::limited(
            "version 2, not delegated to this user",
            "start in a group of your own: `systemd-run --user --scope -p Delegate=yes boxlaunch ...`",
        ),
        Cgroups::Legacy => Finding::limited(
            "version 1",
            "boot the host with the kernel's parameter `systemd.unified_cgroup_hierarchy=1`",
        ),
        Cgroups::Missing => Finding::missing(
            "none are mounted at /sys/fs/cgroup",
            "`sudo mount -t cgroup2 none /sys/fs/cgroup`",
        ),
    }
}

fn list(controllers: &[String]) -> String {
    if controllers.is_empty() { "none".to_owned() } else { shown(&controllers.join(", ")) }
}

fn namespaces(found: &Namespaces) -> Finding {
    let settings: Vec<_> =
        found.forbidden_by.iter().map(|it| format!("{} is {}", it.name, it.forbids)).collect();
    let settings = settings.join(", ");
    match &found.refused {
        None if settings.is_empty() => Finding::ok("made one, and a mount namespace in it"),
        None => Finding::limited(
            format!("this user may make them; others may not, as {settings}"),
            allow(found),
        ),
        Some(reason) if settings.is_empty() => Finding::missing(
            reason,
            "in a container, allow them in its seccomp profile: `docker run --security-opt \
             seccomp=FILE`",
        ),
        Some(reason) => Finding::missing(format!("{reason}; {settings}"), allow(found)),
    }
}

/// Returns the commands that change the settings, until the next boot.
fn allow(found: &Namespaces) -> String {
    let command = |it: &Switch| format!("`sudo sysctl {}={}`", it.name, it.allows);
    found.forbidden_by.iter().map(command).collect::<Vec<_>>().join(", ")
}

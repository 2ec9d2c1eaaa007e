//! The rows of the jail: one for the whole jail, one for each missing layer, and one for a supervisor without limits.

use boxlaunch::host::Facts;
use vmm::jail::isolation::{Cgroups, Switch};
use vmm::jail::{Layer, Missing, Report};

use super::row::{Finding, Row};

const JAIL: &str = "for the jail of the process that runs a box (`boxlaunch run --jail`)";
/// The help for layers that the seccomp profile of a container may forbid.
const ALLOW: &str = "in a container, allow it in the seccomp profile: `docker run --security-opt \
                     seccomp=FILE`";

/// Returns the rows of the jail. If no jail could be tried, they include the layers that can be examined without KVM.
pub(super) fn of(facts: &Facts) -> Vec<Row> {
    let missing = facts.jail.as_ref().map_or(&[][..], |report| &report.missing);
    let mut rows = vec![whole(facts).row("jail", "jail", JAIL)];
    rows.extend(missing.iter().map(|it| layer(it, facts)));
    rows.extend(supervisor(facts).map(|it| it.row("supervisor", "supervisor", JAIL)));
    if facts.jail.is_err() {
        rows.extend(
            parts(facts).map(|(layer, finding)| finding.row(layer.name(), layer.name(), JAIL)),
        );
    }
    rows
}

/// Returns the finding that the supervisor has no control group, although the VM has one. `None` otherwise.
fn supervisor(facts: &Facts) -> Option<Finding> {
    let missing = &facts.jail.as_ref().ok()?.missing;
    let has_group = missing.iter().all(|it| it.layer != Layer::ControlGroup);
    (has_group && !facts.bounds_supervisor).then(|| {
        Finding::limited(
            "it has no control group of its own, and stays in the one of its service",
            "start in a group that is handed over: `systemd-run --scope -p Delegate=yes boxlaunch ...`",
        )
    })
}

/// Judges the layers that can be examined without KVM, for a host on which no jail can be tried.
fn parts(facts: &Facts) -> [(Layer, Finding); 3] {
    let judged = |layer, fault: Option<&str>, works: &str| {
        let finding = match fault {
            Some(fault) => Finding::missing(fault, help(layer, facts)),
            None => Finding::ok(works),
        };
        (layer, finding)
    };
    let group = facts.cgroups.fault(facts.is_root);
    let forbidden = (!facts.is_root).then(|| facts.forbidden_by.first()).flatten();
    let forbidden = forbidden.map(|it| format!("forbidden by {}={}", it.name, it.forbids));
    let landlock = (!facts.has_landlock).then_some("the kernel does not offer it");
    [
        judged(Layer::ControlGroup, group, "version 2, with a group that this user may divide"),
        judged(Layer::UserNamespace, forbidden.as_deref(), "no setting forbids it"),
        judged(Layer::Landlock, landlock, "the kernel offers it"),
    ]
}

fn whole(facts: &Facts) -> Finding {
    let all = Layer::ALL.len();
    match &facts.jail {
        Err(reason) if facts.kvm.is_err() => {
            Finding::missing(format!("not tried: {reason}"), "repair KVM first")
        }
        Err(reason) => Finding::missing(reason, "repair this first: no box starts"),
        Ok(Report { missing, landlock_abi, .. }) if missing.is_empty() => {
            let abi = landlock_abi.unwrap_or_default();
            Finding::ok(format!("all {all} layers work; Landlock's ABI is version {abi}"))
        }
        Ok(Report { missing, .. }) => Finding::limited(
            format!("{} of {all} layers work; missing: {}", all - missing.len(), names(missing)),
            "for a box that you trust: `boxlaunch run --jail best-effort BOX`",
        ),
    }
}

/// Returns the names of the missing layers.
fn names(missing: &[Missing]) -> String {
    missing.iter().map(|it| it.layer.name()).collect::<Vec<_>>().join(", ")
}

fn layer(Missing { layer, reason }: &Missing, facts: &Facts) -> Row {
    Finding::missing(reason, help(*layer, facts)).row(layer.name(), layer.name(), JAIL)
}

fn help(layer: Layer, facts: &Facts) -> String {
    match layer {
        Layer::ControlGroup => cgroups(facts).to_owned(),
        Layer::UserId => {
            "open the device to a group: `sudo chgrp kvm /dev/kvm`, `sudo chmod 660 /dev/kvm`"
                .to_owned()
        }
        Layer::Landlock => {
            "use a kernel from 5.13 on that has `landlock` in its parameter `lsm=`".to_owned()
        }
        Layer::SystemCalls | Layer::Capabilities | Layer::ResourceLimits => ALLOW.to_owned(),
        Layer::UserNamespace
        | Layer::PidNamespace
        | Layer::IpcNamespace
        | Layer::NetworkNamespace
        | Layer::UtsNamespace
        | Layer::CgroupNamespace
        | Layer::MountNamespace => namespaces(facts),
    }
}

fn cgroups(facts: &Facts) -> &'static str {
    match facts.cgroups {
        Cgroups::Unified { .. } if facts.is_root => {
            "in a container, give it those of the host: `docker run --cgroupns=host --privileged`"
        }
        Cgroups::Unified { .. } => {
            "start in a group of your own: `systemd-run --user --scope -p Delegate=yes boxlaunch ...`"
        }
        Cgroups::Legacy => {
            "boot the host with the kernel's parameter `systemd.unified_cgroup_hierarchy=1`"
        }
        Cgroups::Missing => "`sudo mount -t cgroup2 none /sys/fs/cgroup`",
    }
}

/// Returns the commands that allow ordinary users to create namespaces until the next boot. For root, or if no setting forbids
/// namespaces, returns the help for containers.
fn namespaces(facts: &Facts) -> String {
    let command = |it: &Switch| format!("`sudo sysctl {}={}`", it.name, it.allows);
    let commands: Vec<_> = facts.forbidden_by.iter().map(command).collect();
    if facts.is_root || commands.is_empty() { ALLOW.to_owned() } else { commands.join(", ") }
}

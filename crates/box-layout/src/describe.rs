//! Describes an open box as text and as JSON, for `inspect` of both programs.

use box_contract::permissions;
use box_contract::{
    Capabilities, ComponentName, ComponentPlan, Descriptor, Health, Namespaces, NetworkPlan,
    Permission, Rlimits, RunPlan, SkillPlan, SystemDirectories,
};
use safe_text::secrets::{MASK, looks_secret, mask_words};
use safe_text::{readable, shown};
use serde_json::{Value, json};

use crate::OpenBox;

impl OpenBox {
    /// Returns the digests, the run plan and the blobs of the box as a JSON object. In the plan, values of variables and words
    /// of commands that look like secrets are masked. The field `masked` lists them.
    pub fn report(&self) -> Value {
        let (plan, masked) = masked(self.plan());
        let blob = |blob: &Descriptor| {
            json!({ "name": blob.role(), "digest": blob.digest, "size": blob.size,
                    "media_type": blob.media_type })
        };
        json!({
            "box": self.digest,
            "name": self.plan().name,
            "tree": self.config.tree,
            "epoch": self.config.epoch,
            "kernel_version": self.config.kernel_version,
            "plan": plan,
            "masked": masked,
            "permissions": self.plan().permissions(),
            "unsupported": self.plan().unsupported(),
            "blobs": self.manifest.layers.iter().map(blob).collect::<Vec<_>>(),
        })
    }

    /// Describes the box as text. Each line is safe for a terminal and ends with a newline. Values that look like secrets are
    /// masked.
    pub fn describe(&self) -> String {
        self.describe_with(|_, _| ())
    }

    /// Like [`Self::describe`]. `mark` may change the box's permissions, of which the network's are the first.
    pub fn describe_with(&self, mark: impl FnOnce(&NetworkPlan, &mut [Permission])) -> String {
        let (config, plan) = (&self.config, masked(self.plan()).0);
        let mut permissions = plan.permissions();
        mark(&plan.network, &mut permissions);
        let mut lines = vec![
            format!("name        {}", plan.name),
            format!("box         {}", self.digest),
            format!("tree        {}", config.tree),
            format!("epoch       {}", config.epoch),
            format!("kernel      {}", config.kernel_version.trim_end()),
            format!("vm          {}, {} MiB", permissions::cpus(plan.vm.cpus), plan.vm.memory_mib),
            format!("budget      {}", plan.budget),
        ];
        lines.extend(plan.skills.iter().flat_map(skill));
        lines.extend(under_title(&permissions));
        for (name, plan) in plan.components() {
            lines.extend(component(name, plan));
        }
        let unsupported = plan.unsupported();
        if !unsupported.is_empty() {
            lines.extend([String::new(), "boxlaunch will not start this box".to_owned()]);
            lines.extend(unsupported.iter().map(|it| format!("  {it}")));
        }
        lines.extend([String::new(), "blobs".to_owned()]);
        for blob in &self.manifest.layers {
            let size = readable(blob.size);
            lines.push(format!("  {:<8}{size:>11}  {}", blob.role(), blob.digest));
        }
        lines.iter().map(|line| shown(line) + "\n").collect()
    }
}

/// Lists the permissions of a box with this plan, under a title.
pub fn may_do(plan: &RunPlan) -> Vec<String> {
    under_title(&plan.permissions())
}

fn under_title(permissions: &[Permission]) -> Vec<String> {
    let lines = permissions::lines(permissions).map(|line| format!("  {line}"));
    [String::new(), "may do".to_owned()].into_iter().chain(lines).collect()
}

/// Returns the plan with [`MASK`] instead of each value that looks like a secret, and a JSON object for each masked variable and
/// each masked word of a command.
fn masked(plan: &RunPlan) -> (RunPlan, Vec<Value>) {
    let (mut plan, mut found) = (plan.clone(), Vec::new());
    let business = plan.business.as_mut().map(|it| (ComponentName::Business, it));
    for (component, plan) in [(ComponentName::Agent, &mut plan.agent)].into_iter().chain(business) {
        for entry in &mut plan.env {
            if let Some((name, value)) = entry.split_once('=')
                && looks_secret(name, value)
            {
                found.push(json!({ "component": component.name(), "variable": name }));
                *entry = format!("{name}={MASK}");
            }
        }
        let check = match &mut plan.health {
            Some(Health::Exec { argv }) => mask_words(argv),
            _ => Vec::new(),
        };
        for (field, words) in [("argv", mask_words(&mut plan.argv)), ("health", check)] {
            let word = |at| json!({ "component": component.name(), "command": field, "word": at });
            found.extend(words.into_iter().map(word));
        }
    }
    (plan, found)
}

/// Describes a skill: its name, version, author and description.
fn skill(plan: &SkillPlan) -> impl Iterator<Item = String> {
    let SkillPlan { name, mode, version, description, author } = plan;
    let version = version.as_ref().map_or_else(String::new, |it| format!(" {it}"));
    let author = author.as_ref().map_or_else(String::new, |it| format!(", by {it}"));
    let first = format!("skill       {name}{version}, mode {}{author}", mode.name());
    let second = description.as_ref().map(|it| format!("            {it}"));
    std::iter::once(first).chain(second)
}

fn component(name: ComponentName, plan: &ComponentPlan) -> Vec<String> {
    let mut lines = vec![String::new(), name.name().to_owned()];
    let mut line = |label: &str, value: &str| lines.push(format!("  {label:<12}{value}"));
    line("root", &plan.root);
    line("hostname", &plan.hostname);
    line("program", &format!("{:?} in {}", plan.argv, plan.workdir));
    if plan.autostart {
        let text = format!("once the agent is ready; restart: {}", plan.restart.name());
        line("autostart", &text);
    }
    let env = plan.env.iter().enumerate();
    env.for_each(|(at, it)| line(if at == 0 { "env" } else { "" }, it));
    line("user", &format!("{}:{}", plan.user.uid, plan.user.gid));
    line("namespaces", &namespaces(plan.namespaces));
    let limits = plan.limits;
    let memory = readable(limits.memory_bytes);
    let limits =
        format!("{memory} of memory, CPU weight {}, {} processes", limits.cpu_weight, limits.pids);
    line("limits", &limits);
    if plan.rlimits != Rlimits::default() {
        line("rlimits", &rlimits(plan.rlimits));
    }
    if plan.capabilities != Capabilities::default() {
        let names: Vec<_> = plan.capabilities.iter().map(|it| it.name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(" ") };
        line("root has", &names);
    }
    if plan.system != SystemDirectories::default() {
        line("system", plan.system.name());
    }
    if let Some(port) = plan.port {
        line("port", &port.to_string());
    }
    match &plan.health {
        Some(check) => line("health", &health(check)),
        None if name == ComponentName::Agent => line("health", "none: ready once it is started"),
        None => {}
    }
    lines
}

fn rlimits(plan: Rlimits) -> String {
    let Rlimits { nofile, nproc, as_bytes, cpu_seconds, core_bytes, fsize_bytes } = plan;
    let count = |value: Option<u64>, what: &str| value.map(|value| format!("{value} {what}"));
    let bytes = |value: Option<u64>, what| value.map(|value| format!("{} {what}", readable(value)));
    let all = [
        count(nofile, "open files"),
        count(nproc, "processes of its user"),
        bytes(as_bytes, "of address space"),
        count(cpu_seconds, "s of processor time"),
        bytes(core_bytes, "per core dump"),
        bytes(fsize_bytes, "per file"),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ") + " (each process)"
}

fn namespaces(own: Namespaces) -> String {
    let Namespaces { mount, pid, ipc, uts, net } = own;
    let all = [(mount, "mount"), (pid, "pid"), (ipc, "ipc"), (uts, "uts"), (net, "net")];
    let names: Vec<&str> = all.iter().filter(|(own, _)| *own).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn health(check: &Health) -> String {
    match check {
        Health::Tcp { port } => format!("a TCP connection to port {port}"),
        Health::Http { port, path } => format!("GET {path} on port {port}"),
        Health::Grpc { port, service } if service.is_empty() => {
            format!("the health check of gRPC on port {port}")
        }
        Health::Grpc { port, service } => {
            format!("the health check of gRPC for {service} on port {port}")
        }
        Health::A3s { port } => format!("HealthCheck of an A3S agent on port {port}"),
        Health::Exec { argv } => format!("{argv:?} exits with 0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rlimits_have_their_units() {
        let some = Rlimits { nofile: Some(64), as_bytes: Some(1 << 31), ..Rlimits::default() };
        assert_eq!(rlimits(some), "64 open files, 2.0 GiB of address space (each process)");
    }
}

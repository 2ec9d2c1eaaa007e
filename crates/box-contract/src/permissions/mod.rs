//! The permissions of a box on its host, according to its run plan.
//!
//! Both programs show the same list before a box is started, so that users can decide without reading the plan's JSON.

mod changes;

use serde::Serialize;

pub use changes::{Effect, PermissionChange};

use crate::capabilities::CAPABILITIES;
use crate::network::USUAL_PORTS;
use crate::plan::{
    CapPlan, CredentialPlan, HookPlan, LogsPlan, McpPlan, NetworkLimits, NetworkMode, NetworkPlan,
    PeerPlan, PublishPlan, SandboxPlan, SkillPlan, TaskPlan, TaskVerification, VerifyPlan,
    VolumePlan,
};
use crate::{
    Access, Capabilities, ComponentName, ComponentPlan, Namespaces, RunPlan, Scope, ScratchPlan,
    SecretDelivery, SecretPlan, ServicePlan, SharePlan, SkillMode, SshAgentPlan, SystemDirectories,
    User,
};
use safe_text::{readable, shown};

/// A permission of a box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permission {
    /// The subject, as the Boxfile names it: `network`, `agent capabilities`, `share data`.
    pub field: String,
    /// The permission: `shared: everything that the host reaches`, `+NET_RAW`.
    pub value: String,
}

impl Permission {
    /// Creates a permission with texts that are safe to print on one line.
    fn new(field: &str, value: &str) -> Self {
        Self { field: shown(field), value: shown(value) }
    }
}

/// Formats each permission as a line without its line end, with the values aligned in one column.
pub fn lines(permissions: &[Permission]) -> impl Iterator<Item = String> {
    let width = permissions.iter().map(|it| it.field.chars().count()).max().unwrap_or_default();
    permissions.iter().map(move |Permission { field, value }| format!("{field:<width$}  {value}"))
}

impl RunPlan {
    /// Lists the permissions of the box. The network, the users of the components and the size of the VM are always
    /// listed, and everything else only if the plan asks for it. The texts are safe for a terminal.
    pub fn permissions(&self) -> Vec<Permission> {
        // The pattern has no `..`, so that a new field of the plan requires a decision here.
        let Self {
            name: _,
            layout: _,
            agent_kind: _,
            tools: _,
            agent: _,
            business: _,
            skills,
            shares,
            scratch,
            volumes,
            disk_bytes,
            network,
            publish,
            secrets,
            services,
            ssh_agent,
            task,
            logs,
            caps,
            sandbox,
            mcp,
            agents: _,
            hooks,
            vm,
            budget: _,
        } = self;
        let mut all = reached(network);
        if network.mode == NetworkMode::None && !services.is_empty() {
            all[0].value = format!("{}: its services alone", network.mode.name());
        }
        all.extend(self.components().flat_map(|(name, plan)| component(name, plan)));
        all.extend(publish.iter().map(self::publish));
        all.extend(shares.iter().map(share));
        all.extend(skills.iter().filter(|it| it.mode == SkillMode::Mounted).map(skill));
        all.extend(services.iter().map(service));
        all.extend(ssh_agent.iter().map(self::ssh_agent));
        all.extend(secrets.iter().map(secret));
        all.extend(scratch.iter().map(disk));
        all.extend(volumes.iter().map(|it| volume(it, &self.host_volume(it))));
        all.extend(disk_bytes.iter().map(|it| Permission::new("disk", &readable(*it))));
        all.extend(task.iter().map(self::task));
        all.extend(task.iter().filter_map(|it| it.verify.as_ref()).map(verify));
        all.extend(logs.iter().map(self::logs));
        all.extend(caps.iter().map(cap));
        all.extend(sandbox.iter().map(self::sandbox));
        all.extend(mcp.iter().map(self::mcp));
        all.extend(hooks.iter().map(hook));
        let size = format!("{}, {} MiB of memory", cpus(vm.cpus), vm.memory_mib);
        all.push(Permission::new("vm", &size));
        all
    }
}

/// Returns the number of virtual CPUs for a message: `1 CPU`, `2 CPUs`.
pub fn cpus(count: u8) -> String {
    safe_text::counted(count.into(), "CPU", "CPUs")
}

/// Lists the permissions of a network: its mode and each of its rules.
pub fn reached(plan: &NetworkPlan) -> Vec<Permission> {
    let NetworkPlan { mode, allow, deny, limits } = plan;
    let about = match mode {
        NetworkMode::None => "nothing",
        NetworkMode::Filtered if allow.is_empty() => "no host is allowed",
        NetworkMode::Filtered => "the hosts that are allowed",
        NetworkMode::Shared => "everything that the host reaches",
        NetworkMode::CapOnly => "the services of the box",
    };
    let mut all = vec![Permission::new("network", &format!("{}: {about}", mode.name()))];
    let rule = |field, peer: &PeerPlan, usual: &str| {
        let port = peer.port.map_or_else(|| usual.to_owned(), |port| format!("port {port}"));
        Permission::new(field, &format!("{}, {port}", peer.peer))
    };
    let [one, other] = USUAL_PORTS;
    let usual = format!("ports {one} and {other}");
    all.extend(allow.iter().map(|it| rule("network allow", it, &usual)));
    all.extend(deny.iter().map(|it| rule("network deny", it, "all ports")));
    if *limits != NetworkLimits::default() {
        let NetworkLimits { connections, bytes_per_second, names_per_minute } = limits;
        let rate = readable(*bytes_per_second);
        let text = format!("{connections} connections, {rate}/s, {names_per_minute} names/min");
        all.push(Permission::new("network limits", &text));
    }
    all
}

/// Lists the permissions of a component.
fn component(name: ComponentName, plan: &ComponentPlan) -> Vec<Permission> {
    // The pattern has no `..`, so that a new field of a component requires a decision here.
    let ComponentPlan {
        root: _,
        argv: _,
        env: _,
        launch_env,
        workdir: _,
        user: User { uid, gid, groups },
        hostname: _,
        namespaces,
        limits: _,
        rlimits: _,
        capabilities,
        system,
        autostart,
        restart: _,
        stop_signal: _,
        port,
        health: _,
    } = plan;
    let own = |field: &str, value: &str| {
        Permission::new(format!("{} {field}", name.name()).trim_end(), value)
    };
    let root = if *uid == 0 { ", root of the box" } else { "" };
    let more: String = groups.iter().map(|it| format!(", group {it}")).collect();
    let mut all = vec![own("user", &format!("{uid}:{gid}{root}{more}"))];
    all.extend(capability_changes(*capabilities).map(|it| own("capabilities", &it)));
    if *namespaces != Namespaces::default() {
        all.push(own("namespaces", &namespace_changes(*namespaces)));
    }
    if *system == SystemDirectories::ReadOnly {
        all.push(own("system", "read-only: its programs do not change the system's directories"));
    }
    all.extend(port.map(|it| own("port", &format!("{it}, offered to the host"))));
    all.extend(launch_env.iter().map(|name| {
        let has_default = plan.variable(name).is_some();
        let text = if has_default { "may be given at launch" } else { "has to be given at launch" };
        own(&format!("env {name}"), text)
    }));
    if *autostart {
        all.push(own("autostart", "its program is started once the agent is ready"));
    }
    all
}

/// Returns the differences between `of` and the default capabilities: `+NET_RAW -CHOWN`. Returns `None` if there are
/// none.
pub fn capability_changes(of: Capabilities) -> Option<String> {
    let usual = Capabilities::default();
    let change = |it| match (usual.contains(it), of.contains(it)) {
        (false, true) => Some(format!("+{}", it.name)),
        (true, false) => Some(format!("-{}", it.name)),
        _ => None,
    };
    let changes: Vec<_> = CAPABILITIES.iter().filter_map(change).collect();
    (!changes.is_empty()).then(|| changes.join(" "))
}

/// Returns the differences between `of` and the default namespaces: `-pid +net`.
fn namespace_changes(of: Namespaces) -> String {
    let all = |namespaces: Namespaces| {
        let Namespaces { mount, pid, ipc, uts, net } = namespaces;
        [("mount", mount), ("pid", pid), ("ipc", ipc), ("uts", uts), ("net", net)]
    };
    let pairs = all(Namespaces::default()).into_iter().zip(all(of));
    let changed = pairs.filter(|(usual, own)| usual != own);
    let texts = changed.map(|(_, (name, own))| format!("{}{name}", if own { '+' } else { '-' }));
    texts.collect::<Vec<_>>().join(" ")
}

fn share(SharePlan { name, guest, access, scope, host }: &SharePlan) -> Permission {
    let access = match access {
        Access::ReadOnly => "read",
        Access::ReadWrite => "read and write",
    };
    let host = host.as_ref().map_or_else(String::new, |it| format!(", proposes {it:?}"));
    let text = format!("at {guest}, to {access}, {}{host}", components(*scope));
    Permission::new(&format!("share {name}"), &text)
}

fn skill(plan: &SkillPlan) -> Permission {
    let text = "a directory of the host, to read, for both components";
    Permission::new(&format!("skill {}", plan.name), text)
}

fn secret(SecretPlan { name, scope, delivery }: &SecretPlan) -> Permission {
    let place = match delivery {
        SecretDelivery::Env => "as a variable".to_owned(),
        SecretDelivery::File { path } => format!("at {path}"),
        SecretDelivery::Host => {
            let text = "not in the box: the host adds it to requests";
            return Permission::new(&format!("secret {name}"), text);
        }
    };
    Permission::new(&format!("secret {name}"), &format!("{place}, {}", components(*scope)))
}

fn disk(ScratchPlan { name, guest, size_bytes, scope }: &ScratchPlan) -> Permission {
    let text = format!("at {guest}, {}, {}", readable(*size_bytes), components(*scope));
    Permission::new(&format!("scratch {name}"), &text)
}

fn volume(VolumePlan { name, guest, scope }: &VolumePlan, on_host: &str) -> Permission {
    let text =
        format!("at {guest}, kept on the host as the volume {on_host}, {}", components(*scope));
    Permission::new(&format!("volume {name}"), &text)
}

fn publish(PublishPlan { component, guest, host }: &PublishPlan) -> Permission {
    let host = match host {
        0 => "a free port".to_owned(),
        port => format!("port {port}"),
    };
    let text = format!("of {}, at {host} of the host's loopback", whose(*component));
    Permission::new(&format!("publish {guest}"), &text)
}

fn task(plan: &TaskPlan) -> Permission {
    Permission::new(&format!("task {}", plan.id), &plan.description)
}

fn verify(plan: &VerifyPlan) -> Permission {
    let (command, whose) = (TaskVerification::new(plan).command(), whose(plan.component));
    let text = format!("`{command}` after the agent's end, in a fresh root of {whose}");
    Permission::new("task verify", &text)
}

fn logs(LogsPlan { stdout, stderr, events, atif }: &LogsPlan) -> Permission {
    let all = [(stdout, "stdout"), (stderr, "stderr"), (events, "events"), (atif, "atif")];
    let names: Vec<_> = all.iter().filter(|(on, _)| **on).map(|(_, name)| *name).collect();
    Permission::new("logs", &names.join(", "))
}

fn cap(plan: &CapPlan) -> Permission {
    let text = match plan {
        CapPlan::Ws { max_connections } => format!("{max_connections} connections"),
        CapPlan::Http { timeout_ms } => {
            format!("requests to the services of the box, as files, of at most {timeout_ms} ms")
        }
        CapPlan::Nostr { relays } => relays.join(", "),
        CapPlan::Payments => "invoices".to_owned(),
    };
    Permission::new(&format!("cap {}", plan.name()), &text)
}

fn service(plan: &ServicePlan) -> Permission {
    let ServicePlan { name, to, component, headers, allow, pass, timeout_ms: _, env: _ } = plan;
    let allowed = if allow.is_empty() { "all requests".to_owned() } else { allow.join(", ") };
    let lines: Vec<_> = headers.iter().map(credential).collect();
    let with = match lines.as_slice() {
        [] => String::new(),
        lines => format!(" with {}", lines.join(" and ")),
    };
    let passes =
        if pass.is_empty() { String::new() } else { format!("; passes {}", pass.join(", ")) };
    let text = format!("{to}{with}: {allowed}{passes}, for {}", whose(*component));
    Permission::new(&format!("service {name}"), &text)
}

fn ssh_agent(SshAgentPlan { scope }: &SshAgentPlan) -> Permission {
    let text = format!("signs with the keys of your SSH agent, {}", components(*scope));
    Permission::new("ssh-agent", &text)
}

fn mcp(McpPlan { name, argv, url, env: _, secrets, headers }: &McpPlan) -> Permission {
    let (what, with): (_, Vec<String>) = match url {
        Some(url) => {
            (format!("the agent sends requests to {url}"), headers.iter().map(credential).collect())
        }
        None => (runs(argv), secrets.iter().map(|it| format!("${it}")).collect()),
    };
    let with =
        if with.is_empty() { String::new() } else { format!(" with {}", with.join(" and ")) };
    Permission::new(&format!("mcp {name}"), &format!("{what}{with}"))
}

fn hook(HookPlan { event, argv }: &HookPlan) -> Permission {
    Permission::new(&format!("hook {}", event.name()), &runs(argv))
}

fn runs(argv: &[String]) -> String {
    format!("the agent runs {}", argv.join(" "))
}

/// Describes a header line: `authorization: Bearer $MODEL_KEY`.
fn credential(CredentialPlan { name, secret, prefix }: &CredentialPlan) -> String {
    format!("{name}: {prefix}${secret}")
}

const fn whose(component: ComponentName) -> &'static str {
    match component {
        ComponentName::Agent => "the agent",
        ComponentName::Business => "the business component",
    }
}

fn sandbox(_: &SandboxPlan) -> Permission {
    Permission::new("sandbox", "a policy for commands")
}

const fn components(scope: Scope) -> &'static str {
    match scope {
        Scope::Agent => "for the agent",
        Scope::Business => "for the business component",
        Scope::Both => "for both components",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::grown;

    #[test]
    fn one_processor_is_no_plural() {
        assert_eq!([1, 2].map(cpus), ["1 CPU", "2 CPUs"]);
    }

    fn listed(more: &str) -> Vec<String> {
        lines(&grown(more).permissions()).collect()
    }

    #[test]
    fn a_box_that_asks_for_nothing_reaches_nothing() {
        assert_eq!(
            listed("{}"),
            [
                "network        none: nothing",
                "agent user     7:8, group 9",
                "agent port     4088, offered to the host",
                "business user  0:0, root of the box",
                "vm             1 CPU, 512 MiB of memory",
            ]
        );
    }

    #[test]
    fn everything_that_a_box_asks_for_is_listed() {
        let expected = [
            "network              filtered: the hosts that are allowed",
            "network allow        example.org, ports 80 and 443",
            "network allow        example.org, port 8443",
            "network deny         *.example.net, port 80",
            "network limits       64 connections, 1.0 MiB/s, 100 names/min",
            "agent user           7:8, group 9",
            "agent port           4088, offered to the host",
            "business user        0:0, root of the box",
            "publish 80           of the agent, at a free port of the host's loopback",
            "publish 3000         of the business component, at port 8080 of the host's loopback",
            "share data           at /data, to read, for both components",
            "share work           at /a3s/workspace, to read and write, for the agent, proposes \"src\"",
            "skill hot            a directory of the host, to read, for both components",
            "service model        https://api.example.org/v1 with authorization: Bearer $MODEL: POST /messages*, for the agent",
            "ssh-agent            signs with the keys of your SSH agent, for both components",
            "secret KEY           as a variable, for the agent",
            "secret CERT          at /run/cert, for both components",
            "secret MODEL         not in the box: the host adds it to requests",
            "scratch tmp          at /scratch, 4.0 KiB, for the business component",
            "volume home          at /root, kept on the host as the volume demo.home, for the business component",
            "task t1              Look.",
            "task verify          `npm test` after the agent's end, in a fresh root of the agent",
            "logs                 stdout, stderr, atif",
            "cap ws               16 connections",
            "cap http             requests to the services of the box, as files, of at most 30000 ms",
            "cap nostr            wss://relay.example.org",
            "cap payments         invoices",
            "sandbox              a policy for commands",
            "mcp github           the agent runs /usr/bin/github-mcp --stdio with $CERT and $KEY",
            "mcp remote           the agent sends requests to https://mcp.example.org/v1 with authorization: Bearer $KEY",
            "hook before-command  the agent runs /usr/bin/guard --strict",
            "vm                   1 CPU, 512 MiB of memory",
        ];
        assert_eq!(listed(crate::plan::tests::GROWN), expected);
    }

    #[test]
    fn the_whole_network_of_the_host_is_called_so() {
        let lines = listed(r#"{"network": {"mode": "shared"}}"#);
        assert_eq!(lines[0], "network        shared: everything that the host reaches");
    }

    #[test]
    fn what_a_component_has_beyond_the_default_is_listed() {
        let mut plan = grown("{}");
        plan.agent.capabilities = serde_json::from_str(r#"["CHOWN","NET_RAW"]"#).unwrap();
        plan.agent.namespaces.pid = false;
        plan.agent.namespaces.net = true;
        plan.business.as_mut().unwrap().autostart = true;
        plan.business.as_mut().unwrap().system = SystemDirectories::ReadOnly;
        let all = plan.permissions();
        let of = |field: &str| all.iter().find(|it| it.field == field).unwrap().value.as_str();
        assert_eq!(
            of("agent capabilities"),
            "-DAC_OVERRIDE -FOWNER -FSETID -KILL -SETGID -SETUID -NET_BIND_SERVICE +NET_RAW"
        );
        assert_eq!(of("agent namespaces"), "-pid +net");
        assert!(of("business autostart").starts_with("its program is started"));
        assert!(of("business system").starts_with("read-only: "));
        assert!(!all.iter().any(|it| it.field == "agent system"));
        assert_eq!(capability_changes(Capabilities::default()), None);
    }

    #[test]
    fn no_terminal_obeys_a_foreign_text() {
        let mut plan = grown(crate::plan::tests::GROWN);
        plan.shares[0].name = "a\nnetwork  none".to_owned();
        plan.shares[0].host = Some("\u{202e}x".to_owned());
        plan.network.allow[0].peer = "\u{1b}[2J".to_owned();
        plan.task.as_mut().unwrap().description = "two\nlines".to_owned();
        for line in lines(&plan.permissions()) {
            assert_eq!(shown(&line), line);
        }
    }
}

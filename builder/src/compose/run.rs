//! What a run is given: from the words of the Boxfile to those of the plan.

use box_image::plan as run;
use boxfile_spec as declared;

/// Says what the plan says of shares.
pub(super) fn shares(boxfile: &declared::Boxfile) -> Vec<run::SharePlan> {
    let share = |share: &declared::Share| run::SharePlan {
        name: share.name.clone(),
        guest: share.guest.value.clone(),
        access: match share.access {
            declared::Access::Ro => run::Access::ReadOnly,
            declared::Access::Rw => run::Access::ReadWrite,
        },
        scope: scope(share.component),
        host: share.host.as_ref().map(|host| host.value.clone()),
    };
    boxfile.shares.iter().map(share).collect()
}

/// Says what the plan says of scratch disks.
pub(super) fn scratch(boxfile: &declared::Boxfile) -> Vec<run::ScratchPlan> {
    let disk = |disk: &declared::Scratch| run::ScratchPlan {
        name: disk.name.clone(),
        guest: disk.guest.value.clone(),
        size_bytes: disk.size,
        scope: scope(disk.component),
    };
    boxfile.scratch.iter().map(disk).collect()
}

const fn scope(scope: declared::Scope) -> run::Scope {
    match scope {
        declared::Scope::Agent => run::Scope::Agent,
        declared::Scope::Business => run::Scope::Business,
        declared::Scope::Both => run::Scope::Both,
    }
}

/// Says what the plan says of the network.
pub(super) fn network(network: &declared::Network) -> run::NetworkPlan {
    run::NetworkPlan {
        mode: match network.mode {
            declared::NetworkMode::None => run::NetworkMode::None,
            declared::NetworkMode::Filtered => run::NetworkMode::Filtered,
            declared::NetworkMode::Shared => run::NetworkMode::Shared,
            declared::NetworkMode::CapOnly => run::NetworkMode::CapOnly,
        },
        allow: network.allow.clone(),
        deny: network.deny.clone(),
    }
}

/// Says what the plan says of secrets.
pub(super) fn secrets(boxfile: &declared::Boxfile) -> Vec<run::SecretPlan> {
    let secret = |secret: &declared::Secret| run::SecretPlan {
        name: secret.name.value.clone(),
        scope: scope(secret.component),
        delivery: match &secret.delivery {
            declared::Delivery::Env => run::SecretDelivery::Env,
            declared::Delivery::File { path } => run::SecretDelivery::File { path: path.clone() },
        },
    };
    boxfile.secrets.iter().map(secret).collect()
}

/// Says what the plan says of the task.
pub(super) fn task(task: &declared::Task) -> run::TaskPlan {
    let mut tags = task.tags.clone();
    tags.sort_unstable();
    run::TaskPlan {
        id: task.id.clone(),
        kind: task.kind.clone(),
        description: task.description.clone(),
        input: task.input.clone(),
        tags,
        timeout_seconds: task.timeout.map(|ms| ms.div_ceil(1000)),
    }
}

/// Says what the plan says of logs.
pub(super) const fn logs(logs: &declared::Logs) -> run::LogsPlan {
    let declared::Logs { stdout, stderr, events, atif } = *logs;
    run::LogsPlan { stdout, stderr, events, atif }
}

/// Says what the plan says of a capability.
pub(super) fn cap(cap: &declared::Cap) -> run::CapPlan {
    match cap {
        declared::Cap::Http { timeout } => run::CapPlan::Http { timeout_ms: *timeout },
        declared::Cap::Nostr { relays } => run::CapPlan::Nostr { relays: relays.clone() },
        declared::Cap::Payments => run::CapPlan::Payments,
        declared::Cap::Ws { max_connections } => {
            run::CapPlan::Ws { max_connections: u32::from(*max_connections) }
        }
    }
}

/// Says what the plan says of the policy for commands.
pub(super) fn sandbox(sandbox: &declared::Sandbox) -> run::SandboxPlan {
    run::SandboxPlan {
        preset: match sandbox.preset {
            declared::Preset::Default => run::SandboxPreset::Default,
            declared::Preset::Development => run::SandboxPreset::Development,
            declared::Preset::Ci => run::SandboxPreset::Ci,
        },
        fallback: match sandbox.fallback {
            declared::Fallback::Strict => run::SandboxFallback::Strict,
            declared::Fallback::Warn => run::SandboxFallback::Warn,
        },
        max_output_bytes: sandbox.max_output,
        writable: sandbox.writable.clone(),
        deny_read: sandbox.deny_read.clone(),
        deny_write: sandbox.deny_write.clone(),
        allow: sandbox.allow.clone(),
        ask: sandbox.ask.clone(),
        forbid: sandbox.forbid.clone(),
    }
}

/// Says what the plan says of the agent's kind.
pub(super) const fn agent_kind(kind: declared::AgentKind) -> run::AgentKind {
    match kind {
        declared::AgentKind::OciImage => run::AgentKind::OciImage,
        declared::AgentKind::A3sCode => run::AgentKind::A3sCode,
        declared::AgentKind::Opencode => run::AgentKind::Opencode,
        declared::AgentKind::LocalBinary => run::AgentKind::LocalBinary,
        declared::AgentKind::RemoteBinary => run::AgentKind::RemoteBinary,
    }
}

/// Says what the plan says of what each process may take.
pub(super) const fn rlimits(limits: &declared::ResourceLimits) -> run::Rlimits {
    run::Rlimits {
        nofile: limits.nofile,
        nproc: limits.nproc,
        as_bytes: limits.address_space,
        cpu_seconds: limits.cpu,
        core_bytes: limits.core,
        fsize_bytes: limits.file_size,
    }
}

//! A file like `examples/hello/Boxfile`, compared with every field and span of its model.

use std::collections::{BTreeMap, BTreeSet};

use box_contract::{
    AgentKind, Budget, Capabilities, Layout, Limits, Namespaces, NetworkPlan, Restart, Rlimits,
    SkillMode, SystemDirectories, Vm,
};
use box_contract::{ImageRef, Platform};
use box_digest::Digest;
use boxfile_spec::{Agent, Boxfile, Business, Component, Health, Kernel, Skill, parse};
use diagnostics::{Span, Spanned};

use super::{MIB, strings};

const EXAMPLE: &str = r#"box "hello"

agent {
    image "oci:images/agent"
    entrypoint "/agent/bin/agent"
    args "--greeting" "hello"
    env RUST_LOG="info" GREETING="hi"
    workdir "/agent"
    port 4088
    health "http" path="/health"
    namespaces net=#false hostname="agent-host"
    limits memory="64MiB" pids=32 cpu-weight=100
}

business {
    image "oci:images/business"
    limits memory="64MiB" pids=16
}

skill "greet" path="skills/greet"

vm cpus=1 memory="256MiB"
layout "split"
budget total="700ms" kernel="400ms"
kernel "vendor/libkrunfw.so.5" sha256="3854ef0000000000000000000000000000000000000000000000000000000001"
"#;

/// Returns `value` with the span of the first occurrence of `text` in the example.
fn at<T>(value: T, text: &str) -> Spanned<T> {
    let offset = EXAMPLE.find(text).expect("the example has the text");
    Spanned { value, span: Span::at(offset, text.len()) }
}

fn layout(path: &str) -> ImageRef {
    ImageRef::OciLayout { path: path.to_owned(), tag: None, digest: None }
}

/// A component that declares only an image. All other fields have their defaults.
fn component(image: &str, hostname: &str, limits: Limits) -> Component {
    Component {
        image: Some(at(layout(image), &format!("\"oci:{image}\""))),
        entrypoint: None,
        args: None,
        env_files: Vec::new(),
        env: BTreeMap::new(),
        launch_env: BTreeSet::new(),
        files: Vec::new(),
        workdir: None,
        user: None,
        namespaces: Namespaces { mount: true, pid: true, ipc: true, uts: true, net: false },
        hostname: hostname.to_owned(),
        limits,
        rlimits: Rlimits::default(),
        capabilities: Capabilities::default(),
        system: SystemDirectories::Writable,
    }
}

fn example_agent() -> Agent {
    let limits = Limits { memory_bytes: 64 * MIB, cpu_weight: 100, pids: 32 };
    let env = [("GREETING", "hi"), ("RUST_LOG", "info")];
    Agent {
        kind: AgentKind::OciImage,
        binary: None,
        port: Some(4088),
        health: Some(Health::Http { port: None, path: "/health".to_owned() }),
        declares_health: true,
        tools: None,
        component: Component {
            entrypoint: Some(at(strings(&["/agent/bin/agent"]), "\"/agent/bin/agent\"")),
            args: Some(strings(&["--greeting", "hello"])),
            env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            workdir: Some(at("/agent".to_owned(), "\"/agent\"")),
            ..component("images/agent", "agent-host", limits)
        },
    }
}

fn example_business() -> Business {
    let limits = Limits { memory_bytes: 64 * MIB, cpu_weight: 39, pids: 16 };
    let component = component("images/business", "business-host", limits);
    Business { autostart: false, restart: Restart::Never, health: None, component }
}

fn example_kernel() -> Kernel {
    let mut sha256 = [0; 32];
    sha256[..3].copy_from_slice(&[0x38, 0x54, 0xef]);
    sha256[31] = 1;
    let path = at("vendor/libkrunfw.so.5".to_owned(), "\"vendor/libkrunfw.so.5\"");
    Kernel { path: Some(path), sha256: Some(Digest::from_bytes(sha256)) }
}

#[test]
fn the_example_in_full() {
    let skill = at("skills/greet".to_owned(), "\"skills/greet\"");
    let skill = Skill { name: "greet".to_owned(), path: skill, mode: SkillMode::Baked };
    let expected = Boxfile {
        name: "hello".to_owned(),
        platforms: vec![Spanned { value: Platform::LinuxAmd64, span: Span::default() }],
        agent: example_agent(),
        business: Some(example_business()),
        skills_dir: None,
        skills: vec![skill],
        vm: Vm { cpus: 1, memory_mib: 256 },
        layout: Layout::Split,
        conflicts: Vec::new(),
        shares: Vec::new(),
        volumes: Vec::new(),
        scratch: Vec::new(),
        disk_bytes: None,
        network: NetworkPlan::default(),
        publish: Vec::new(),
        services: Vec::new(),
        ssh_agent: None,
        secrets: Vec::new(),
        task: None,
        logs: None,
        caps: Vec::new(),
        sandbox: None,
        agents_dir: None,
        mcp: Vec::new(),
        hooks: Vec::new(),
        budget: Budget {
            vmm: None,
            jail: None,
            kernel: Some(400),
            init: None,
            ready: None,
            total: Some(700),
        },
        kernel: Some(example_kernel()),
    };
    assert_eq!(parse(EXAMPLE), Ok(expected));
}

#[test]
fn the_files_that_newcomers_read_are_right() {
    for text in [
        include_str!("../../../../Boxfile.example"),
        include_str!("../../../../examples/hello/Boxfile"),
    ] {
        super::good(text);
    }
}

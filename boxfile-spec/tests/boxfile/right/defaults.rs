//! Defaults.

use box_contract::Platform;
use box_contract::defaults::{AGENT_PORT, MAX_OUTPUT_BYTES, SEARCH_PATH};
use box_contract::{
    AgentKind, Capabilities, Layout, Limits, Namespaces, NetworkMode, NetworkPlan, Restart,
    Rlimits, SandboxPlan, Vm,
};
use boxfile_spec::{Health, json_schema, reference};

use super::{MIB, file, good};

/// An agent is all that a box needs. It has default limits.
#[test]
fn an_agent_with_an_image_alone() {
    let boxfile = file("");
    let agent = &boxfile.agent;
    assert_eq!((agent.kind, &agent.binary, &agent.tools), (AgentKind::OciImage, &None, &None));
    assert_eq!((agent.port, &agent.health), (None, &Some(Health::Tcp { port: None })));
    let component = &agent.component;
    assert_eq!(component.limits, Limits { memory_bytes: 512 * MIB, cpu_weight: 20, pids: 100 });
    assert_eq!(component.rlimits, Rlimits::default());
    assert_eq!(component.capabilities, Capabilities::default());
    assert_eq!((&component.entrypoint, &component.args), (&None, &None));
    assert_eq!((&component.workdir, &component.user), (&None, &None));
    assert!(
        component.env.is_empty() && component.env_files.is_empty() && component.files.is_empty()
    );
}

#[test]
fn a_box_with_an_agent_alone() {
    let boxfile = file("");
    assert_eq!(
        boxfile.platforms.iter().map(|it| it.value).collect::<Vec<_>>(),
        [Platform::LinuxAmd64]
    );
    assert_eq!((boxfile.layout, boxfile.conflicts.len()), (Layout::Split, 0));
    assert_eq!((boxfile.skills.len(), &boxfile.skills_dir), (0, &None));
    assert_eq!((boxfile.shares.len(), boxfile.scratch.len(), boxfile.secrets.len()), (0, 0, 0));
    assert_eq!((&boxfile.task, boxfile.logs, &boxfile.sandbox), (&None, None, &None));
    assert_eq!((boxfile.business, boxfile.kernel, boxfile.caps.len()), (None, None, 0));
}

#[test]
fn the_components_share_their_network_and_nothing_else() {
    let own = Namespaces { mount: true, pid: true, ipc: true, uts: true, net: false };
    let boxfile = file("business { image \"oci:i\"; }");
    let business = boxfile.business.unwrap().component;
    assert_eq!((boxfile.agent.component.namespaces, business.namespaces), (own, own));
    assert_eq!(boxfile.agent.component.hostname, "agent-host");
    assert_eq!(business.hostname, "business-host");
}

/// The default limits of a business application. Its CPU weight corresponds to 1024 shares.
#[test]
fn a_business_application_with_an_image_alone() {
    let business = file("business { image \"oci:i\"; }").business.unwrap();
    let limits = Limits { memory_bytes: 1024 * MIB, cpu_weight: 39, pids: 200 };
    assert_eq!((business.component.limits, business.autostart), (limits, false));
    assert_eq!(business.restart, Restart::Never);
}

#[test]
fn the_machine_has_room_for_the_components_and_256_mib_more() {
    assert_eq!(file("").vm, Vm { cpus: 2, memory_mib: 512 + 256 });
    assert_eq!(file("business { image \"oci:i\"; }").vm.memory_mib, 512 + 1024 + 256);
    let odd = good(
        "box b; agent { image \"oci:i\"; limits memory=\"5000001B\"; }
         business { image \"oci:i\"; limits cpu-shares=1024; }",
    );
    assert_eq!(odd.vm.memory_mib, 1024 + 5 + 256);
    assert_eq!(file("vm cpus=4").vm, Vm { cpus: 4, memory_mib: 768 });
}

#[test]
fn the_start_may_take_5_seconds_or_3_without_an_image() {
    assert_eq!(file("").budget.total, Some(5000));
    assert_eq!(file("budget kernel=\"1s\"").budget.total, Some(5000));
    let small = |rest| good(&format!("box b\nagent {{ binary \"a\"; }}\n{rest}\n")).budget;
    assert_eq!((small("").total, small("").ready), (Some(3000), None));
    assert_eq!(small("business { image \"oci:i\"; }").total, Some(3000));
    let both = good("box b\nagent { image \"oci:i\"; binary \"a\"; }\n");
    assert_eq!(both.budget.total, Some(5000));
}

#[test]
fn nothing_can_be_reached() {
    let nothing = NetworkPlan { mode: NetworkMode::None, ..NetworkPlan::default() };
    assert!(nothing.allow.is_empty() && nothing.deny.is_empty());
    assert_eq!(file("").network, nothing);
    assert_eq!(file("network \"none\"").network, nothing);
}

#[test]
fn the_generated_documents_state_the_shared_defaults() {
    let output = format!("{}MB", MAX_OUTPUT_BYTES / 1_000_000);
    assert_eq!(MAX_OUTPUT_BYTES % 1_000_000, 0);
    let row = format!("| `max-output` | property | a size from 1B to 1GiB | {output} |");
    let port = format!("label `a3s.port`. Without the label, it is {AGENT_PORT}, or");
    let path = format!("If neither image nor Boxfile sets `PATH`, it is `{SEARCH_PATH}`.");
    let reference = reference();
    for text in [&row, &port, &path] {
        assert!(reference.contains(text), "{text}");
    }
    let schema = json_schema();
    for text in [&format!("From 1B to 1GiB. By default {output}."), &port, &path] {
        assert!(schema.contains(text), "{text}");
    }
    assert_eq!(AgentKind::OciImage.default_port(), AGENT_PORT);
    let sandbox = file("sandbox \"default\"").sandbox.unwrap();
    assert_eq!(sandbox.max_output_bytes, MAX_OUTPUT_BYTES);
    assert_eq!(SandboxPlan::default().max_output_bytes, MAX_OUTPUT_BYTES);
}

use super::*;

/// A plan of the version before the language grew, byte for byte.
pub(super) const BEFORE: &str = concat!(
    r#"{"name":"demo","layout":"split","agent":{"root":"/roots/agent","argv":["/bin/agent"],"#,
    r#""env":["PATH=/bin"],"workdir":"/","user":{"uid":7,"gid":8,"groups":[9]},"#,
    r#""hostname":"agent-host","namespaces":{"mount":true,"pid":true,"ipc":true,"uts":true,"#,
    r#""net":false},"limits":{"memory-bytes":1048576,"cpu-weight":100,"pids":10},"port":4088,"#,
    r#""health":{"kind":"tcp","port":4088}},"business":{"root":"/roots/business","argv":[],"#,
    r#""env":[],"workdir":"/","user":{"uid":0,"gid":0},"hostname":"business-host","#,
    r#""namespaces":{"mount":true,"pid":true,"ipc":true,"uts":true,"net":false},"#,
    r#""limits":{"memory-bytes":1048576,"cpu-weight":100,"pids":10}},"#,
    r#""skills":[{"name":"greet"}],"vm":{"cpus":1,"memory-mib":512},"budget":{"total":900}}"#,
);

/// The declarations that were added since [`BEFORE`].
pub(crate) const GROWN: &str = r#"{
    "layout": "merged", "agent-kind": "a3s_code", "tools": ["bash", "read"],
    "skills": [{"name": "baked"}, {"name": "hot", "mode": "mounted"}],
    "shares": [
        {"name": "data", "guest": "/data", "scope": "both"},
        {"name": "work", "guest": "/a3s/workspace", "access": "rw", "scope": "agent", "host": "src"}
    ],
    "scratch": [{"name": "tmp", "guest": "/scratch", "size-bytes": 4096, "scope": "business"}],
    "volumes": [{"name": "home", "guest": "/root", "scope": "business"}],
    "publish": [
        {"component": "agent", "guest": 80, "host": 0},
        {"component": "business", "guest": 3000, "host": 8080}
    ],
    "network": {
        "mode": "filtered",
        "allow": [{"peer": "example.org"}, {"peer": "example.org", "port": 8443}],
        "deny": [{"peer": "*.example.net", "port": 80}],
        "limits": {"connections": 64, "bytes-per-second": 1048576, "names-per-minute": 100}
    },
    "secrets": [
        {"name": "KEY", "scope": "agent", "delivery": "env"},
        {"name": "CERT", "scope": "both", "delivery": {"file": {"path": "/run/cert"}}},
        {"name": "MODEL", "scope": "agent", "delivery": "host"}
    ],
    "services": [
        {
            "name": "model", "to": "https://api.example.org/v1", "component": "agent",
            "headers": [{"name": "authorization", "secret": "MODEL", "prefix": "Bearer "}],
            "allow": ["POST /messages*"], "timeout-ms": 600000, "env": "MODEL_URL"
        }
    ],
    "ssh-agent": {"scope": "both"},
    "task": {
        "id": "t1", "type": "review", "description": "Look.", "input": "{\"n\":1}",
        "tags": ["a"], "timeout-seconds": 60,
        "verify": {"argv": ["npm", "test"], "component": "agent", "timeout-seconds": 600}
    },
    "logs": {"stdout": true, "stderr": true, "events": false, "atif": true},
    "caps": [
        {"ws": {"max-connections": 16}}, {"http": {"timeout-ms": 30000}},
        {"nostr": {"relays": ["wss://relay.example.org"]}}, "payments"
    ],
    "sandbox": {
        "preset": "ci", "fallback": "warn", "max-output-bytes": 10485760, "ask-timeout-seconds": 30,
        "writable": ["/work"],
        "deny-read": ["/etc/shadow"], "deny-write": ["/etc"], "allow": ["ls"], "ask": ["sudo"],
        "forbid": ["mkfs*"]
    },
    "mcp": [
        {
            "name": "github", "argv": ["/usr/bin/github-mcp", "--stdio"], "env": ["LOG_LEVEL=info"],
            "secrets": ["CERT", "KEY"]
        },
        {
            "name": "remote", "url": "https://mcp.example.org/v1",
            "headers": [{"name": "authorization", "secret": "KEY", "prefix": "Bearer "}]
        }
    ],
    "agents": [
        {"name": "reviewer", "description": "Reviews.", "tools": ["Read", "Grep"], "model": "opus"}
    ],
    "hooks": [{"event": "before-command", "argv": ["/usr/bin/guard", "--strict"]}]
}"#;

fn object(text: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(text).unwrap()
}

/// Returns [`BEFORE`] with the further declarations of `more`.
pub(crate) fn grown(more: &str) -> RunPlan {
    let mut all = object(BEFORE);
    all.append(&mut object(more));
    serde_json::from_value(all.into()).unwrap()
}

fn declared(plan: &RunPlan) -> Vec<String> {
    plan.unsupported().into_iter().map(|it| it.declaration).collect()
}

#[test]
fn a_plan_without_the_new_declarations_keeps_its_bytes() {
    let plan: RunPlan = serde_json::from_str(BEFORE).unwrap();
    assert_eq!(serde_json::to_string(&plan).unwrap(), BEFORE);
    assert_eq!(plan.unsupported(), []);
}

#[test]
fn a_read_only_system_is_a_field_of_its_component() {
    let mut plan = grown("{}");
    plan.agent.system = SystemDirectories::ReadOnly;
    let written = serde_json::to_value(&plan).unwrap();
    assert_eq!(written["agent"]["system"], "read-only");
    assert!(written["business"].get("system").is_none());
    assert_eq!(serde_json::from_value::<RunPlan>(written).unwrap(), plan);
    assert_eq!(plan.unsupported(), []);
}

#[test]
fn every_declaration_reads_back() {
    let plan = grown(GROWN);
    let written = serde_json::to_value(&plan).unwrap();
    for (name, value) in object(GROWN) {
        assert_eq!(written[&name], value, "{name}");
    }
    assert_eq!(serde_json::from_value::<RunPlan>(written).unwrap(), plan);
}

#[test]
fn every_declaration_that_is_not_enforced_is_named() {
    let plan = grown(GROWN);
    assert_eq!(declared(&plan), ["cap \"ws\"", "cap \"nostr\"", "cap \"payments\""]);
}

#[test]
fn each_declaration_is_refused_by_itself() {
    for (name, value) in object(GROWN) {
        let plan = grown(&serde_json::json!({ &name: value }).to_string());
        // The kind of the agent is informative, and the layout is already applied at build time.
        let enforced = [
            "agent-kind",
            "layout",
            "skills",
            "shares",
            "scratch",
            "volumes",
            "publish",
            "network",
            "secrets",
            "services",
            "ssh-agent",
            "task",
            "tools",
            "logs",
            "sandbox",
            "mcp",
            "agents",
            "hooks",
        ]
        .contains(&name.as_str());
        assert_eq!(plan.unsupported().is_empty(), enforced, "{name}");
    }
}

#[test]
fn a_network_is_enforced_unless_it_has_rules_and_no_filter() {
    for (network, expected) in [
        (r#"{"mode":"filtered","allow":[{"peer":"a.example"}]}"#, None),
        (r#"{"mode":"cap-only"}"#, None),
        (
            r#"{"mode":"none","deny":[{"peer":"a.example"}]}"#,
            Some("network \"none\": it has rules, and no filter for them"),
        ),
    ] {
        let plan = grown(&format!("{{\"network\": {network}}}"));
        let found = plan.unsupported().first().map(ToString::to_string);
        assert_eq!(found.as_deref(), expected, "{network}");
    }
}

#[test]
fn what_init_enforces_is_not_refused() {
    let mut plan = grown("{}");
    let rlimits =
        r#"{"nofile":1,"nproc":2,"as-bytes":3,"cpu-seconds":4,"core-bytes":5,"fsize-bytes":6}"#;
    plan.agent.rlimits = serde_json::from_str(rlimits).unwrap();
    assert_eq!(serde_json::to_string(&plan.agent.rlimits).unwrap(), rlimits);
    assert_eq!(plan.unsupported(), []);
    assert!(serde_json::to_string(&plan).unwrap().contains(rlimits));
}

#[test]
fn capabilities_are_roots() {
    let mut plan = grown("{}");
    let text = r#"["CHOWN","NET_RAW"]"#;
    plan.agent.capabilities = serde_json::from_str(text).unwrap();
    assert!(serde_json::to_string(&plan).unwrap().contains(&format!("\"capabilities\":{text}")));
    plan.agent.user.uid = 0;
    assert_eq!(plan.unsupported(), []);
    plan.agent.user.uid = 1;
    assert_eq!(declared(&plan), ["agent capabilities add \"NET_RAW\""]);
    plan.agent.capabilities = serde_json::from_str("[]").unwrap();
    assert_eq!(plan.unsupported(), [], "what is dropped nobody has");
}

#[test]
fn a_network_of_its_own_is_not_the_shared_one() {
    let mut plan = grown(r#"{"network": {"mode": "shared"}}"#);
    assert_eq!(plan.unsupported(), []);
    plan.business.as_mut().unwrap().namespaces.net = true;
    assert_eq!(
        plan.unsupported()[0].to_string(),
        "business namespaces net=true: the network \"shared\" does not reach a network namespace of its own; remove \
         it, or use `network \"filtered\"`"
    );
    plan.network.mode = NetworkMode::None;
    assert_eq!(plan.unsupported(), []);
    let allow = r#"{"network": {"mode": "shared", "allow": [{"peer": "example.org"}]}}"#;
    assert_eq!(declared(&grown(allow)), ["network \"shared\""], "nothing filters it");
}

#[test]
fn the_kernel_does_not_hold_root_to_a_number_of_processes() {
    let mut plan = grown("{}");
    let business = plan.business.as_mut().unwrap();
    (business.user, business.rlimits.nproc) = (User::ROOT, Some(64));
    plan.agent.rlimits.nproc = Some(64);
    assert_eq!(declared(&plan), ["business rlimits nproc"], "the agent is not root");
    plan.agent.user.uid = 0;
    assert_eq!(declared(&plan), ["agent rlimits nproc", "business rlimits nproc"]);
    assert_eq!(
        plan.unsupported()[0].to_string(),
        "agent rlimits nproc: it has no effect on root, and the component runs as root; use \
         `limits pids`, or another `user`"
    );
}

#[test]
fn what_no_version_knows_is_an_error() {
    for more in [
        r#""mystery": 1"#,
        r#""network": {"mode": "none", "mystery": 1}"#,
        r#""network": {"mode": "open"}"#,
        r#""network": {"mode": "filtered", "allow": ["example.org"]}"#,
        r#""network": {"mode": "filtered", "allow": [{"peer": "example.org", "port": 65536}]}"#,
        r#""network": {"mode": "filtered", "limits": {"connections": 1}}"#,
        r#""secrets": [{"name": "A", "scope": "agent", "delivery": {"file": {"path": "/a", "mode": 7}}}]"#,
        r#""caps": [{"ws": {"max-connections": 1, "mystery": 1}}]"#,
        r#""layout": "stacked""#,
    ] {
        let mut all = object(BEFORE);
        all.append(&mut object(&format!("{{{more}}}")));
        assert!(serde_json::from_value::<RunPlan>(all.into()).is_err(), "{more}");
    }
}

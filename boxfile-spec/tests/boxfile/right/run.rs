//! Declarations for the run of a box, and of the box's parts other than images.

use box_contract::Platform;
use box_contract::{
    Access, CapPlan, ComponentName, Layout, LogsPlan, NetworkLimits, NetworkMode, PeerPlan,
    SandboxFallback, SandboxPlan, SandboxPreset, Scope, SecretDelivery, SkillMode, TaskPlan,
    VerifyPlan,
};
use boxfile_spec::{Conflict, ConflictPolicy};

use super::{MIB, file, strings};

#[test]
fn platforms_keep_their_order() {
    let platforms = file("platform \"linux/arm64\" \"linux/amd64\"").platforms;
    let platforms: Vec<Platform> = platforms.into_iter().map(|it| it.value).collect();
    assert_eq!(platforms, [Platform::LinuxArm64, Platform::LinuxAmd64]);
}

/// A directory of skills and single skills, each baked or mounted.
#[test]
fn skills_are_sorted_and_stand_beside_a_directory_of_them() {
    let boxfile =
        file("skill z path=z mode=mount\nskill a path=\"./a\"\nskills dir=skills mode=mount");
    let skills: Vec<_> =
        boxfile.skills.iter().map(|it| (&*it.name, &*it.path.value, it.mode)).collect();
    assert_eq!(skills, [("a", "a", SkillMode::Baked), ("z", "z", SkillMode::Mounted)]);
    let all = boxfile.skills_dir.unwrap();
    assert_eq!((&*all.dir.value, all.mode), ("skills", SkillMode::Mounted));
}

#[test]
fn conflicts_keep_their_order() {
    let boxfile = file(
        "business { image \"oci:i\"; }
         layout \"merged\"
         conflict \"/usr/**\" policy=\"prefer-business\"
         conflict \"/etc/motd\" policy=\"drop\"
         conflict \"/etc/group\" policy=\"merge\"
         conflict \"/*\" policy=\"prefer-agent\"",
    );
    let shown = |it: &Conflict| (it.pattern.value.clone(), it.policy);
    let expected = [
        ("/usr/**", ConflictPolicy::PreferBusiness),
        ("/etc/motd", ConflictPolicy::Drop),
        ("/etc/group", ConflictPolicy::Merge),
        ("/*", ConflictPolicy::PreferAgent),
    ]
    .map(|(pattern, policy)| (pattern.to_owned(), policy));
    assert_eq!(boxfile.layout, Layout::Merged);
    assert_eq!(boxfile.conflicts.iter().map(shown).collect::<Vec<_>>(), expected);
}

/// A share is read-only by default.
#[test]
fn shares() {
    let boxfile = file(
        "share workspace guest=\"/a3s/workspace\" access=rw over=#true host=\"work\" component=business
         share data guest=\"/data\"
         business { image \"oci:i\"; }",
    );
    let [data, workspace] = &*boxfile.shares else { panic!("two shares") };
    assert!(!data.value.over && workspace.value.over);
    let [data, workspace] = [&data.value.plan, &workspace.value.plan];
    assert_eq!((&*data.name, &*data.guest, &data.host), ("data", "/data", &None));
    assert_eq!((data.access, data.scope), (Access::ReadOnly, Scope::Both));
    assert_eq!(workspace.host.as_deref(), Some("work"));
    assert_eq!((workspace.access, workspace.scope), (Access::ReadWrite, Scope::Business));
}

#[test]
fn volumes_are_of_all_components_unless_it_is_said() {
    let boxfile = file(
        "volume home guest=\"/root\" component=business
         volume data guest=\"/data\"
         business { image \"oci:i\"; }",
    );
    let volumes = boxfile.volumes.iter().map(|it| &it.value);
    let volumes: Vec<_> = volumes.map(|it| (&*it.name, &*it.guest, it.scope)).collect();
    assert_eq!(volumes, [("data", "/data", Scope::Both), ("home", "/root", Scope::Business)]);
}

#[test]
fn published_ports_are_sorted_and_have_their_own_number_on_the_host() {
    let boxfile = file(
        "publish 5173 3000
         publish 80 host=8080 component=business
         publish 81 82 host=0
         business { image \"oci:i\"; }",
    );
    let ports = boxfile.publish.iter().map(|it| (it.component.name(), it.guest, it.host));
    let expected = [
        ("agent", 81, 0),
        ("agent", 82, 0),
        ("agent", 3000, 3000),
        ("agent", 5173, 5173),
        ("business", 80, 8080),
    ];
    assert_eq!(ports.collect::<Vec<_>>(), expected);
}

#[test]
fn the_disk_has_a_size() {
    assert_eq!(file("disk \"20GiB\"").disk_bytes, Some(20 << 30));
    assert_eq!(file("").disk_bytes, None);
}

#[test]
fn scratch_disks_and_shares_of_different_components_may_have_one_place() {
    let boxfile = file(
        "scratch b guest=\"/var/cache\" size=\"2GiB\" component=agent
         scratch a guest=\"/var/cache\" size=\"1MiB\" component=business
         share c guest=\"/var/cached\"
         business { image \"oci:i\"; }",
    );
    let disks = boxfile.scratch.iter().map(|it| &it.value);
    let disks: Vec<_> = disks.map(|it| (&*it.name, it.size_bytes, it.scope)).collect();
    assert_eq!(disks, [("a", MIB, Scope::Business), ("b", 2048 * MIB, Scope::Agent)]);
}

#[test]
fn what_can_be_reached_is_sorted_and_in_lower_case() {
    let network = file(
        "network \"filtered\" {
             allow \"*.Example.org\" \"api.example.com\" \"10.1.0.0/16\" \"::1\" \"api.example.com\"
             deny \"uploads.example.com\"
         }",
    )
    .network;
    assert_eq!(network.mode, NetworkMode::Filtered);
    let peers = |list: &[PeerPlan]| list.iter().map(|it| it.peer.clone()).collect::<Vec<_>>();
    assert_eq!(peers(&network.allow), ["*.example.org", "10.1.0.0/16", "::1", "api.example.com"]);
    assert_eq!(peers(&network.deny), ["uploads.example.com"]);
    assert!(network.allow.iter().chain(&network.deny).all(|it| it.port.is_none()));
    assert_eq!(network.limits, NetworkLimits::default());
    for (word, mode) in [("shared", NetworkMode::Shared), ("cap-only", NetworkMode::CapOnly)] {
        assert_eq!(
            file(&format!("network \"{word}\"\nservice a to=\"https://a.example\"")).network.mode,
            mode
        );
    }
}

#[test]
fn ports_are_of_single_declarations_and_each_counts_once() {
    let network = file(
        "network \"filtered\" {
             allow \"b.example\" \"a.example\" port=5432
             deny \"c.example\" port=65535
             allow \"a.example\"
             allow \"a.example\" port=22
             allow \"A.example\" port=5432
             deny \"c.example\" \"c.example\"
         }",
    )
    .network;
    let peers =
        |list: &[PeerPlan]| list.iter().map(|it| (it.peer.clone(), it.port)).collect::<Vec<_>>();
    let [a, b, c] = ["a.example", "b.example", "c.example"].map(str::to_owned);
    assert_eq!(
        peers(&network.allow),
        [(a.clone(), None), (a.clone(), Some(22)), (a, Some(5432)), (b, Some(5432))]
    );
    assert_eq!(peers(&network.deny), [(c.clone(), None), (c, Some(65535))]);
}

#[test]
fn limits_that_are_not_named_are_the_usual_ones() {
    let limits = |line: &str| {
        file(&format!("network filtered {{ allow \"a.example\"; limits {line}; }}")).network.limits
    };
    let usual = NetworkLimits::default();
    let all = "connections=64 rate=\"10MiB\" names=100";
    let own = NetworkLimits { connections: 64, bytes_per_second: 10 * MIB, names_per_minute: 100 };
    assert_eq!(limits(all), own);
    assert_eq!(limits("connections=1"), NetworkLimits { connections: 1, ..usual });
    let rate = NetworkLimits { bytes_per_second: 64 << 10, ..usual };
    assert_eq!(limits("rate=\"64KiB\""), rate);
    assert_eq!(limits("names=100000"), NetworkLimits { names_per_minute: 100_000, ..usual });
}

#[test]
fn secrets_are_handed_over_by_name() {
    let boxfile = file("secret B path=\"/run/b\" component=both\nsecret A");
    let secrets: Vec<_> =
        boxfile.secrets.iter().map(|it| (&*it.name, &it.delivery, it.scope)).collect();
    let path = "/run/b".to_owned();
    assert_eq!(
        secrets,
        [
            ("A", &SecretDelivery::Env, Scope::Agent),
            ("B", &SecretDelivery::File { path }, Scope::Both)
        ]
    );
}

#[test]
fn services_have_their_secrets_on_the_host() {
    let boxfile = file(
        r#"service b to="https://b.example:8443/v1" timeout="5s" {
            header "X-Key" secret="KEY"
            header "authorization" secret="TOKEN" prefix="Bearer "
            allow "POST /b" "GET /*"
            allow "GET /a"
        }
        service a to="https://a.example" env="A_URL" { header "x-key" secret="KEY"; }
        secret OWN"#,
    );
    let names: Vec<_> = boxfile.services.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let [a, b] = boxfile.services.as_slice() else { panic!() };
    assert_eq!((a.timeout_ms, b.timeout_ms), (600_000, 5_000));
    assert_eq!((a.env.as_deref(), &b.env), (Some("A_URL"), &None));
    let headers: Vec<_> = b.headers.iter().map(|it| (&*it.name, &*it.prefix)).collect();
    assert_eq!(headers, [("authorization", "Bearer "), ("x-key", "")]);
    assert_eq!(b.allow, ["GET /*", "GET /a", "POST /b"]);
    let secrets: Vec<_> =
        boxfile.secrets.iter().map(|it| (&*it.name, &it.delivery, it.scope)).collect();
    assert_eq!(
        secrets,
        [
            ("KEY", &SecretDelivery::Host, Scope::Agent),
            ("OWN", &SecretDelivery::Env, Scope::Agent),
            ("TOKEN", &SecretDelivery::Host, Scope::Agent)
        ]
    );
}

#[test]
fn the_agent_has_a_configuration() {
    let boxfile = file(
        r#"mcp remote {
            url "https://MCP.example.com/v1/"
            header "X-Key" secret="KEY"
            header "authorization" secret="KEY" prefix="Bearer "
        }
        mcp github {
            command "/usr/bin/github-mcp" "--stdio"
            env LOG_LEVEL="info" A="${HOME}"
            secret "KEY" "CERT"
            secret "KEY"
        }
        mcp local { url "http://localhost:8931/mcp"; }
        hook session-end "/h"
        hook before-command "guard" "--strict"
        agents dir="./team/agents/"
        secret KEY
        secret CERT path="/run/cert" component="both"
        network filtered { allow "*.example.com"; }"#,
    );
    let names: Vec<_> = boxfile.mcp.iter().map(|it| it.value.name.as_str()).collect();
    assert_eq!(names, ["github", "local", "remote"]);
    let [github, local, remote] = [0, 1, 2].map(|at| &boxfile.mcp[at].value);
    assert_eq!(github.argv, ["/usr/bin/github-mcp", "--stdio"]);
    assert_eq!(github.env, ["A=${HOME}", "LOG_LEVEL=info"]);
    assert_eq!(github.secrets, ["CERT", "KEY"]);
    assert_eq!((local.url.as_deref(), local.argv.len()), (Some("http://localhost:8931/mcp"), 0));
    assert_eq!(remote.url.as_deref(), Some("https://MCP.example.com/v1/"));
    let headers: Vec<_> = remote.headers.iter().map(|it| (&*it.name, &*it.prefix)).collect();
    assert_eq!(headers, [("authorization", "Bearer "), ("x-key", "")]);
    let hooks: Vec<_> =
        boxfile.hooks.iter().map(|it| (it.value.event.name(), it.value.argv.len())).collect();
    assert_eq!(hooks, [("before-command", 2), ("session-end", 1)]);
    assert_eq!(boxfile.agents_dir.as_ref().map(|it| it.value.as_str()), Some("team/agents"));
    let [definitions] = boxfile.agent.component.files.as_slice() else { panic!() };
    assert_eq!((&*definitions.path.value, &*definitions.to.value), ("team/agents", "/a3s/agents"));
    assert_eq!((definitions.mode, &*definitions.owner.value), (Some(0o644), "0:0"));
    assert!(boxfile.has_agent_config() && !file("").has_agent_config());
}

#[test]
fn a_server_is_reached_by_each_network_that_allows_it() {
    let private = "network filtered { allow \"10.0.0.0/8\" port=8443; }";
    for (network, url) in [
        ("network shared", "https://a.example:1"),
        (private, "https://10.0.0.7:8443/mcp"),
        ("", "http://127.0.0.1:8931/mcp"),
        ("network none", "https://[::1]:8931/mcp"),
    ] {
        let boxfile = file(&format!("{network}\nmcp m {{ url \"{url}\"; }}"));
        assert_eq!(boxfile.mcp[0].value.url.as_deref(), Some(url), "{network}");
    }
}

#[test]
fn a_later_file_overrides_a_server_and_a_hook_of_the_same_name() {
    let base = "agent { image \"oci:i\"; }\nmcp m { command \"/old\" \"x\"; env A=\"1\" B=\"1\"; }\n\
                mcp other { command \"/o\"; }\nhook session-end \"/old\"\nhook before-tool \"/t\"\n";
    let main = "extends \"base\"\nbox b\nmcp m { command \"/new\"; env B=\"2\"; }\nhook session-end \"/new\" \"y\"\n";
    let document = crate::read(&[("Boxfile", main), ("base", base)], None);
    let boxfile = document.into_result().unwrap();
    let servers: Vec<_> = boxfile.mcp.iter().map(|it| (&it.value.argv, &it.value.env)).collect();
    let (m, o) = (strings(&["/new"]), strings(&["/o"]));
    assert_eq!(servers, [(&m, &strings(&["A=1", "B=2"])), (&o, &Vec::new())]);
    let hooks: Vec<_> = boxfile.hooks.iter().map(|it| it.value.argv.join(" ")).collect();
    assert_eq!(hooks, ["/t", "/new y"]);
}

#[test]
fn the_ssh_agent_is_for_the_agent_unless_the_boxfile_says_otherwise() {
    let both = "business { image \"oci:i\"; }\n";
    for (lines, scope) in [
        ("", None),
        ("ssh-agent", Some(Scope::Agent)),
        ("ssh-agent component=\"agent\"", Some(Scope::Agent)),
        ("ssh-agent component=\"business\"", Some(Scope::Business)),
        ("ssh-agent component=\"both\"", Some(Scope::Both)),
        // Another component may have such a variable and such a path.
        ("ssh-agent\nsecret \"SSH_AUTH_SOCK\" component=\"business\"", Some(Scope::Agent)),
        ("ssh-agent\nshare s guest=\"/run\" component=\"business\"", Some(Scope::Agent)),
    ] {
        let agent = file(&format!("{both}{lines}")).ssh_agent;
        assert_eq!(agent.map(|it| it.scope), scope, "{lines}");
    }
}

#[test]
fn a_task() {
    let task = file(
        "task \"t-1\" type=\"code\" description=\"Split it\" timeout=\"1.5s\" input=\"{ \\\"b\\\": [1.50, 2],\\n \\\"a b\\\": 1 }\" { tags x y; }",
    )
    .task;
    let expected = TaskPlan {
        id: "t-1".to_owned(),
        kind: "code".to_owned(),
        description: "Split it".to_owned(),
        input: Some("{\"b\":[1.50,2],\"a b\":1}".to_owned()),
        tags: strings(&["x", "y"]),
        timeout_seconds: Some(2),
        verify: None,
    };
    assert_eq!(task, Some(expected));
}

#[test]
fn a_task_has_a_verification() {
    let verified = |more: &str, lines: &str| {
        let task = "task \"t\" type=\"code\" description=\"Split it\"";
        file(&format!("{task} {{ {lines}; }}\n{more}")).task.unwrap().verify
    };
    let business = "business { image \"oci:images/business\"; }";
    let (in_agent, in_business) = (ComponentName::Agent, ComponentName::Business);
    for (more, line, argv, component, timeout_seconds) in [
        ("", "verify \"npm\" \"test\"", strings(&["npm", "test"]), in_agent, 600),
        (business, "verify make", strings(&["make"]), in_business, 600),
        (business, "verify make component=agent timeout=\"1.5s\"", strings(&["make"]), in_agent, 2),
    ] {
        let expected = VerifyPlan { argv, component, timeout_seconds };
        assert_eq!(verified(more, line), Some(expected), "{line}");
    }
    assert_eq!(verified("", "tags x"), None);
}

#[test]
fn logs_are_all_on_but_for_those_that_are_off() {
    let logs = |lines: &str| file(lines).logs;
    assert_eq!(
        logs("logs"),
        Some(LogsPlan { stdout: true, stderr: true, events: true, atif: true })
    );
    assert_eq!(
        logs("logs stderr=#false atif=#false events=#true"),
        Some(LogsPlan { stdout: true, stderr: false, events: true, atif: false })
    );
}

#[test]
fn every_capability() {
    let service = "service s to=\"https://s.example\"\n";
    let file = |lines: &str| file(&format!("{service}{lines}"));
    let caps = file(
        "cap ws\ncap payments\ncap http\ncap nostr { relays \"wss://b.example\" \"ws://a.example/x\" \"wss://b.example\"; }",
    )
    .caps;
    let relays = strings(&["ws://a.example/x", "wss://b.example"]);
    let expected = [
        CapPlan::Http { timeout_ms: 600_000 },
        CapPlan::Nostr { relays },
        CapPlan::Payments,
        CapPlan::Ws { max_connections: 16 },
    ];
    assert_eq!(caps, expected);
    assert_eq!(file("cap http timeout=\"1ms\"").caps, [CapPlan::Http { timeout_ms: 1 }]);
    assert_eq!(file("cap ws max-connections=1024").caps, [CapPlan::Ws { max_connections: 1024 }]);
}

#[test]
fn every_preset_of_the_command_policy() {
    for (word, preset, fallback) in [
        ("default", SandboxPreset::Default, SandboxFallback::Strict),
        ("development", SandboxPreset::Development, SandboxFallback::Warn),
        ("ci", SandboxPreset::Ci, SandboxFallback::Strict),
    ] {
        let sandbox = file(&format!("sandbox {word}")).sandbox.unwrap();
        assert_eq!((sandbox.preset, sandbox.fallback), (preset, fallback));
        assert_eq!((sandbox.max_output_bytes, sandbox.ask_timeout_seconds), (10_000_000, 120));
    }
}

#[test]
fn a_command_policy_in_full() {
    let sandbox = file(
        "sandbox ci fallback=warn max-output=\"1MiB\" ask-timeout=\"30s\" {
             writable \"/workspace\" \"/tmp\" \"/tmp\"
             deny-read \"/root\"
             deny-write \"/workspace/.git\"
             allow \"cargo *\" \"ls\"
             ask \"git push\"
             forbid \"rm -rf *\"
         }",
    );
    let expected = SandboxPlan {
        preset: SandboxPreset::Ci,
        fallback: SandboxFallback::Warn,
        max_output_bytes: MIB,
        ask_timeout_seconds: 30,
        writable: strings(&["/tmp", "/workspace"]),
        deny_read: strings(&["/root"]),
        deny_write: strings(&["/workspace/.git"]),
        allow: strings(&["cargo *", "ls"]),
        ask: strings(&["git push"]),
        forbid: strings(&["rm -rf *"]),
    };
    assert_eq!(sandbox.sandbox, Some(expected));
}

#[test]
fn a_tiny_budget_is_legal() {
    let budget = file("budget total=\"1ms\" init=\"1ms\" vmm=\"1ms\"").budget;
    assert_eq!((budget.total, budget.init, budget.vmm), (Some(1), Some(1), Some(1)));
}

#[test]
fn a_kernel_may_be_known_by_its_digest_alone() {
    let kernel = file(&format!("kernel sha256=\"{}\"", "00".repeat(32))).kernel.unwrap();
    assert_eq!((kernel.path, kernel.sha256.unwrap().as_bytes()), (None, &[0; 32]));
}

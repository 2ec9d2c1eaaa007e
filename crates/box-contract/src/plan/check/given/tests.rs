use super::super::tests::{agent_refusal, refusal};
use super::*;
use crate::plan::tests::grown;
use crate::plan::{
    ComponentName, NetworkMode, ScratchPlan, SharePlan, SkillPlan, SshAgentPlan, TaskPlan,
    VerifyPlan, VolumePlan,
};
use crate::task::MAX_TASK;

#[test]
fn a_secret_has_a_name_and_a_place_of_its_own() {
    let secret = |name: &str, path: Option<&str>| SecretPlan {
        name: name.to_owned(),
        scope: Scope::Both,
        delivery: path
            .map_or(SecretDelivery::Env, |it| SecretDelivery::File { path: it.to_owned() }),
    };
    let refusal = |secrets: &[SecretPlan]| refusal(|plan| plan.secrets = secrets.to_vec());
    for (name, path, reason) in [
        ("\u{1b}[2J", None, "its secret \"\\u{1b}[2J\": its name is not that of a variable"),
        ("A", Some("run/key"), "its secret \"A\": its path is not absolute and normalized"),
        ("A", Some("/run/../key"), "its secret \"A\": its path is not absolute and normalized"),
        ("A", Some("/"), "its secret \"A\": its path is not absolute and normalized"),
        ("A", Some("/run/\0"), "its secret \"A\": its path is not absolute and normalized"),
        (
            "A",
            Some("/proc/self/key"),
            "its secret \"A\": its path is reserved for the guest, as /proc and /a3s/skills are",
        ),
        (
            "A",
            Some("/task/spec.json"),
            "its secret \"A\": its path is reserved for the guest, as /proc and /a3s/skills are",
        ),
    ] {
        assert_eq!(refusal(&[secret(name, path)]), reason);
    }
    let twice = [secret("A", None), secret("A", Some("/run/key"))];
    assert_eq!(refusal(&twice), "its secret \"A\": there are two of this name");
    let many: Vec<_> = (0..=256).map(|it| secret(&format!("S{it}"), None)).collect();
    assert_eq!(refusal(&many), "its secret \"S256\": a box has at most 256 secrets");
    let mut plan = grown("{}");
    plan.secrets = many[..256].to_vec();
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_scratch_disk_has_a_place_and_a_size() {
    let disk = |guest: &str, size_bytes| ScratchPlan {
        name: "tmp".to_owned(),
        guest: guest.to_owned(),
        size_bytes,
        scope: Scope::Both,
    };
    let refusal = |disks: &[ScratchPlan]| refusal(|plan| plan.scratch = disks.to_vec());
    for (guest, size, reason) in [
        ("var", 1 << 20, "its path is not absolute and normalized"),
        ("/sys/x", 1 << 20, "its path is reserved for the guest, as /proc and /a3s/skills are"),
        (
            "/a3s/bin/box-exec",
            1 << 20,
            "its path is reserved for the guest, as /proc and /a3s/skills are",
        ),
        ("/var", (1 << 20) - 1, "its size is not between 1 MiB and 1 TiB"),
        ("/var", (1 << 40) + 1, "its size is not between 1 MiB and 1 TiB"),
        ("/var", (1 << 20) + 1, "its size is not a whole number of MiB"),
    ] {
        assert_eq!(refusal(&[disk(guest, size)]), format!("its scratch disk \"tmp\": {reason}"));
    }
    let four = ["/a", "/b", "/c", "/d"]
        .map(|guest| ScratchPlan { name: guest[1..].to_owned(), ..disk(guest, 1 << 20) });
    assert!(refusal(&four).ends_with("a box has at most 3 scratch disks"));
    let mut plan = grown("{}");
    plan.scratch = four[..3].to_vec();
    assert_eq!(plan.check(), Ok(()));
    plan.network.mode = NetworkMode::Shared;
    assert_eq!(plan.check(), Ok(()));
    plan.skills = vec![skill("hot", SkillMode::Mounted)];
    assert_eq!(plan.check(), Err(PlanError::Devices(5)), "a network is a device, too");
}

#[test]
fn a_volume_has_a_place_and_a_name_on_the_host() {
    let volume = |name: &str, guest: &str| VolumePlan {
        name: name.to_owned(),
        guest: guest.to_owned(),
        scope: Scope::Both,
    };
    let refusal = |volumes: &[VolumePlan]| refusal(|plan| plan.volumes = volumes.to_vec());
    let long = "v".repeat(62);
    for (name, guest, reason) in [
        ("Home", "/root", NAME_FORM),
        ("home", "root", "its path is not absolute and normalized"),
        ("home", "/proc/x", "its path is reserved for the guest, as /proc and /a3s/skills are"),
        (&long, "/root", LONG_VOLUME),
    ] {
        let expected = format!("its volume {name:?}: {reason}");
        assert_eq!(refusal(&[volume(name, guest)]), expected);
    }
    let twice = [volume("a", "/a"), volume("a", "/b")];
    assert_eq!(refusal(&twice), "its volume \"a\": there are two of this name");
    let same = [volume("a", "/a"), volume("b", "/a")];
    assert!(refusal(&same).starts_with("agent uses \"/a\" twice"));
    let five = ["/a", "/b", "/c", "/d", "/e"].map(|guest| volume(&guest[1..], guest));
    assert!(refusal(&five).contains("take 5 devices"));
    let mut plan = grown("{}");
    plan.volumes = vec![volume("a", "/a"), volume("b", "/a/b")];
    assert_eq!(plan.check(), Ok(()), "a volume may be inside another");
    assert_eq!(plan.host_volume(&plan.volumes[1]), format!("{}.b", plan.name));
}

#[test]
fn a_published_port_is_the_hosts_own_and_no_port_of_root() {
    let port = |component, guest, host| PublishPlan { component, guest, host };
    let refusal = |ports: &[PublishPlan]| refusal(|plan| plan.publish = ports.to_vec());
    let (agent, business) = (ComponentName::Agent, ComponentName::Business);
    for (ports, reason) in [
        (vec![port(agent, 0, 0)], "its `publish 0`: a port is from 1 to 65535"),
        (vec![port(agent, 80, 80)], "its `publish 80`: a box publishes no port of the host below"),
        (
            vec![port(agent, 90, 0), port(agent, 80, 0)],
            "its `publish 80`: the ports are not sorted",
        ),
        (
            vec![port(agent, 80, 0), port(agent, 80, 0)],
            "its `publish 80`: the ports are not sorted",
        ),
        (
            vec![port(agent, 80, 8080), port(business, 80, 8080)],
            "its `publish 80`: another port has the same port of the host",
        ),
    ] {
        assert!(refusal(&ports).starts_with(reason), "{ports:?}");
    }
    let mut plan = grown("{}");
    plan.publish = vec![port(agent, 80, 0), port(agent, 90, 0), port(business, 80, 8080)];
    assert_eq!(plan.check(), Ok(()));
    plan.business = None;
    assert!(plan.check().unwrap_err().to_string().ends_with(NOBODY));
}

#[test]
fn the_ssh_agent_is_for_a_component_that_exists_and_has_a_path_of_its_own() {
    let share = |guest: &str, scope| SharePlan {
        name: "s".to_owned(),
        guest: guest.to_owned(),
        access: Access::ReadOnly,
        scope,
        host: None,
    };
    let with = |plan: &mut RunPlan, scope, shares: Vec<SharePlan>| {
        (plan.ssh_agent, plan.shares) = (Some(SshAgentPlan { scope }), shares);
    };
    let refused = refusal(|plan| {
        with(plan, Scope::Business, Vec::new());
        plan.business = None;
    });
    assert_eq!(refused, format!("its ssh-agent: {NOBODY}"));
    for guest in ["/run", "/run/ssh-agent.sock", "/run/ssh-agent.sock/x"] {
        let refused = refusal(|plan| with(plan, Scope::Agent, vec![share(guest, Scope::Both)]));
        assert!(refused.starts_with("agent uses \"/run/ssh-agent.sock"), "{guest}: {refused}");
    }
    let mut plan = grown("{}");
    with(&mut plan, Scope::Agent, vec![share("/run", Scope::Business)]);
    assert_eq!(plan.check(), Ok(()), "the business component has no such socket");
    with(&mut plan, Scope::Both, vec![share("/run/ssh", Scope::Both)]);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_variable_that_is_given_at_launch_has_a_name_and_a_place() {
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    let refused = |given: &[&str]| agent_refusal(|plan| plan.launch_env = names(given));
    let form = "its name is not that of a variable";
    assert_eq!(refused(&["A=B"]), format!("agent env \"A=B\": {form}"));
    assert_eq!(refused(&["\u{1b}[2J"]), format!("agent env \"\\u{{1b}}[2J\": {form}"));
    let order = "the variables that are given at launch are not sorted, or one is there twice";
    assert_eq!(refused(&["B", "A"]), format!("agent env \"A\": {order}"));
    assert_eq!(refused(&["A", "A"]), format!("agent env \"A\": {order}"));
    let many: Vec<_> = (1000..1257).map(|it| format!("V{it}")).collect();
    let refusal_of_many = agent_refusal(|plan| plan.launch_env = many.clone());
    let most = "a box has at most 256 variables that are given at launch";
    assert_eq!(refusal_of_many, format!("agent env \"V1256\": {most}"));
    let secret =
        SecretPlan { name: "A".to_owned(), scope: Scope::Agent, delivery: SecretDelivery::Env };
    let both = refusal(|plan| {
        plan.agent.launch_env = names(&["A"]);
        plan.secrets = vec![secret.clone()];
    });
    assert_eq!(both, "agent env \"A\": it is a secret of the component, too");
    let mut plan = grown("{}");
    plan.secrets = vec![secret];
    plan.agent.launch_env = many[..254].to_vec();
    // Both components can have a variable of the same name.
    plan.business.as_mut().unwrap().launch_env = names(&["A", "V1000"]);
    assert_eq!(plan.check(), Ok(()));
    let all: Vec<_> = plan.launch_variables().collect();
    assert_eq!(all.len(), 256);
    assert_eq!(
        (all[0], all[254]),
        ((ComponentName::Agent, "V1000"), (ComponentName::Business, "A"))
    );
}

fn skill(name: &str, mode: SkillMode) -> SkillPlan {
    SkillPlan { name: name.to_owned(), mode, ..SkillPlan::default() }
}

fn share(name: &str, guest: &str, host: Option<&str>) -> SharePlan {
    SharePlan {
        name: name.to_owned(),
        guest: guest.to_owned(),
        access: Access::ReadWrite,
        scope: Scope::Both,
        host: host.map(str::to_owned),
    }
}

#[test]
fn a_share_proposes_a_directory_below_and_no_other() {
    let long = "a/".repeat(2049);
    for (host, fault) in [
        ("/etc", "an absolute path"),
        ("../..", "`..` leads out of it"),
        ("a/../../b", "`..` leads out of it"),
        ("", "an empty path"),
        ("a\0b", "an invisible character"),
        ("a\u{202e}b", "an invisible character"),
        (&long, "longer than 4096 bytes"),
    ] {
        assert_eq!(
            refusal(|plan| plan.shares = vec![share("work", "/work", Some(host))]),
            format!(
                "its share \"work\" proposes {host:?}: {fault}; a share proposes a directory below the one in which the box \
                 is launched, or none"
            )
        );
    }
    let mut plan = grown("{}");
    plan.shares = vec![share("work", "/work", Some("./src")), share("work-2", "/work/2", None)];
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_share_has_a_name_a_place_and_somebody_who_sees_it() {
    let refusal = |shares: &[SharePlan]| refusal(|plan| plan.shares = shares.to_vec());
    let form = crate::rules::NAME_FORM;
    assert_eq!(refusal(&[share("a=b", "/a", None)]), format!("its share \"a=b\": {form}"));
    let place = "its path is reserved for the guest, as /proc and /a3s/skills are";
    assert_eq!(refusal(&[share("a", "/task/x", None)]), format!("its share \"a\": {place}"));
    let twice = [share("a", "/a", None), share("a", "/b", None)];
    assert_eq!(refusal(&twice), "its share \"a\": there are two of this name");
    let mut plan = grown("{}");
    plan.business = None;
    plan.shares = vec![SharePlan { scope: Scope::Business, ..share("a", "/a", None) }];
    let nobody = "its share \"a\": it is for a business application, and the box has none";
    assert_eq!(plan.check().unwrap_err().to_string(), nobody);
}

#[test]
fn what_is_mounted_hides_nothing_else() {
    let disk = |guest: &str| ScratchPlan {
        name: "disk".to_owned(),
        guest: guest.to_owned(),
        size_bytes: 1 << 20,
        scope: Scope::Business,
    };
    let secret = |path: &str, scope| SecretPlan {
        name: "KEY".to_owned(),
        scope,
        delivery: SecretDelivery::File { path: path.to_owned() },
    };
    let set = |share: SharePlan, disk: ScratchPlan, secret: SecretPlan| {
        move |plan: &mut RunPlan| {
            plan.shares = vec![share];
            plan.scratch = vec![disk];
            plan.secrets = vec![secret];
        }
    };
    let key = || secret("/run/key", Scope::Both);
    for (component, place, change) in [
        ("business", "/a/b", set(share("s", "/a", None), disk("/a/b"), key())),
        ("business", "/a", set(share("s", "/a", None), disk("/a"), key())),
        ("agent", "/run/key", set(share("s", "/run", None), disk("/b"), key())),
        ("agent", "/run/key/a", set(share("s", "/run/key/a", None), disk("/b"), key())),
    ] {
        let rest = "twice, or a path inside another: only a directory may be inside another, or on a scratch disk";
        assert_eq!(refusal(change), format!("{component} uses {place:?} {rest}"));
    }
    let apart = [
        set(share("s", "/disk/a", None), disk("/disk"), key()),
        set(share("s", "/a", None), disk("/run"), secret("/run/key", Scope::Agent)),
    ];
    for change in apart {
        let mut plan = grown("{}");
        change(&mut plan);
        assert_eq!(plan.check(), Ok(()));
    }
}

#[test]
fn a_skill_has_a_name_of_a_directory_and_texts_of_one_line() {
    let refusal = |skills: &[SkillPlan]| refusal(|plan| plan.skills = skills.to_vec());
    let baked = |name: &str| skill(name, SkillMode::Baked);
    let form = crate::rules::NAME_FORM;
    for name in ["", "..", "../../proc", "a/b", "A"] {
        assert_eq!(refusal(&[baked(name)]), format!("its skill {name:?}: {form}"));
    }
    let text = "its description, version or author is too long, or not of one line";
    for description in ["a\u{1b}[2J".to_owned(), "a".repeat(1025)] {
        let long = SkillPlan { description: Some(description), ..baked("a") };
        assert_eq!(refusal(&[long]), format!("its skill \"a\": {text}"));
    }
    let twice = refusal(&[baked("a"), skill("a", SkillMode::Mounted)]);
    assert_eq!(twice, "its skill \"a\": there are two of this name");
    let many: Vec<_> = (0..=MAX_SKILLS).map(|number| baked(&format!("s{number}"))).collect();
    assert_eq!(
        refusal(&many),
        format!("its skill \"s1000\": a box has at most {MAX_SKILLS} skills")
    );
    let mut plan = grown("{}");
    plan.skills = many[..MAX_SKILLS].to_vec();
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn the_rules_of_a_network_are_those_of_a_filter() {
    let peer = |peer: &str, port| PeerPlan { peer: peer.to_owned(), port };
    let allowed = |it| move |plan: &mut RunPlan| plan.network.allow = vec![it];
    for text in ["", "*", "com", "https://a.example", "a.example:80", "10.0.0.0/33", "1.2.3.0x7"] {
        let reason = "it is neither a domain nor an address";
        let refused = refusal(allowed(peer(text, None)));
        assert_eq!(refused, format!("its network allow {text:?}: {reason}"));
    }
    let port = "its network allow \"a.example\": a port is from 1 to 65535";
    assert_eq!(refusal(allowed(peer("a.example", Some(0)))), port);
    let denied = refusal(|plan| plan.network.deny = vec![peer("\u{1b}[2J", None)]);
    assert!(denied.starts_with("its network deny \"\\u{1b}[2J\": "), "{denied}");
    for (connections, rate, names, refused) in [
        (0, 1 << 20, 1, "limits connections=0: it is not from 1 to 512"),
        (513, 1 << 20, 1, "limits connections=513: it is not from 1 to 512"),
        (1, 65_535, 1, "limits rate=65535: it is not from 64KiB to 16GiB"),
        (1, u64::MAX, 1, "limits rate=18446744073709551615: it is not from 64KiB to 16GiB"),
        (1, 1 << 20, 0, "limits names=0: it is not from 1 to 100000"),
        (1, 1 << 20, 100_001, "limits names=100001: it is not from 1 to 100000"),
    ] {
        let set = |plan: &mut RunPlan| {
            plan.network.limits.connections = connections;
            plan.network.limits.bytes_per_second = rate;
            plan.network.limits.names_per_minute = names;
        };
        assert_eq!(refusal(set), format!("its network {refused}"));
    }
    for text in ["a.example", "*.a.example", "10.0.0.0/8", "::1"] {
        let mut plan = grown("{}");
        allowed(peer(text, Some(1)))(&mut plan);
        assert_eq!(plan.check(), Ok(()), "{text}");
    }
}

#[test]
fn a_task_is_one_that_can_be_given() {
    let task = TaskPlan {
        id: "t".to_owned(),
        kind: "review".to_owned(),
        description: "Look.".to_owned(),
        input: Some("{\"a\":1}".to_owned()),
        tags: Vec::new(),
        timeout_seconds: Some(60),
        verify: None,
    };
    let input = |text: &str| TaskPlan { input: Some(text.to_owned()), ..task.clone() };
    for (changed, why) in [
        (TaskPlan { id: " ".to_owned(), ..task.clone() }, "its task: its `id` is empty"),
        (
            TaskPlan { tags: vec!["a\0".to_owned()], ..task.clone() },
            "its task: its `tags` has a zero",
        ),
        (
            TaskPlan { timeout_seconds: Some(0), ..task.clone() },
            "its task: its `timeout_seconds` is 0",
        ),
        (input("1,\"tags\":[]"), "its task: its `input` is not JSON: trailing characters"),
        (input(""), "its task: its `input` is not JSON: EOF"),
        (input(&format!("\"{}\"", "a".repeat(MAX_TASK))), "its task: it has 49"),
    ] {
        let refused = refusal(|plan| plan.task = Some(changed));
        assert!(refused.starts_with(why), "{refused}");
    }
    let mut plan = grown("{}");
    plan.task = Some(task);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn a_verification_takes_over_no_directory_of_the_system() {
    let refused = |component, workdir: &str, path: &str, program: &str| {
        let mut plan = grown("{}");
        let argv = vec![program.to_owned()];
        let verify = VerifyPlan { argv, component, timeout_seconds: 60 };
        let task = r#"{"id":"t","type":"x","description":"y"}"#;
        plan.task = Some(TaskPlan { verify: Some(verify), ..TaskPlan::read(task).unwrap() });
        let data = r#"{"name": "data", "guest": "/data", "access": "rw", "scope": "both"}"#;
        plan.shares = vec![serde_json::from_str(data).unwrap()];
        let cache =
            r#"{"name": "cache", "guest": "/srv/cache", "size-bytes": 1048576, "scope": "both"}"#;
        plan.scratch = vec![serde_json::from_str(cache).unwrap()];
        for it in [&mut plan.agent, plan.business.as_mut().unwrap()] {
            (it.workdir, it.env) = (workdir.to_owned(), vec![format!("PATH={path}")]);
        }
        plan.check().err().map(|error| error.to_string())
    };
    let agent = ComponentName::Agent;
    for (workdir, path, program) in [
        ("/work", "/usr/bin:/bin", "npm"),
        ("/usr/src/app/", "/bin", "npm"),
        // A mount has its own files.
        ("/data", "/bin", "npm"),
        ("/data/inner", "/bin", "npm"),
        ("/work", "/work/bin:/bin", "/bin/npm"),
        ("/work", "/work/bin:/bin", "./run"),
    ] {
        assert_eq!(refused(agent, workdir, path, program), None, "{workdir} {path} {program}");
    }
    for (workdir, path, reason) in [
        ("/", "/bin", "\"/\" is a directory of the system; declare another `workdir`"),
        ("/usr", "/bin", "\"/usr\" is a directory of the system"),
        ("/etc/app", "/bin", "\"/etc/app\" is a directory of the system"),
        ("/task", "/bin", "\"/task\" is a directory of the system"),
        ("/work", "/work/bin:/bin", "can change the directory \"/work/bin\" in the PATH of agent"),
        ("/work", "/bin:/data/bin", "can change the directory \"/data/bin\" in the PATH of agent"),
        ("/srv", "/bin", "the scratch disk \"cache\" is inside the working directory of agent"),
    ] {
        let fault = refused(agent, workdir, path, "npm").unwrap_or_default();
        assert!(fault.starts_with("its task: its `verify`") && fault.contains(reason), "{fault}");
    }
    assert_eq!(refused(ComponentName::Business, "/work", "/bin", "npm"), None);
    let mut plan = grown("{}");
    plan.business = None;
    let task = r#"{"id":"t","type":"x","description":"y"}"#;
    let argv = vec!["npm".to_owned()];
    let verify = VerifyPlan { argv, component: ComponentName::Business, timeout_seconds: 60 };
    plan.task = Some(TaskPlan { verify: Some(verify), ..TaskPlan::read(task).unwrap() });
    let fault = plan.check().unwrap_err().to_string();
    assert!(fault.contains("it is for a business application"), "{fault}");
}

use super::*;
use crate::plan::tests::{BEFORE, grown};
use crate::plan::{NetworkMode, Scope, ScratchPlan, SecretPlan, SkillMode, SkillPlan};

fn refusal(change: impl FnOnce(&mut RunPlan)) -> String {
    let mut plan = grown("{}");
    plan.check().unwrap();
    change(&mut plan);
    plan.check().unwrap_err().to_string()
}

fn agent_refusal(change: impl FnOnce(&mut ComponentPlan)) -> String {
    refusal(|plan| change(&mut plan.agent))
}

#[test]
fn a_machine_that_cannot_be_is_refused() {
    assert_eq!(
        refusal(|plan| plan.agent.argv.clear()),
        "its agent has no program to run; name one with `entrypoint`"
    );
    assert_eq!(refusal(|plan| plan.vm.cpus = 0), "it asks for 0 CPUs; 1 to 16 are possible");
    assert_eq!(refusal(|plan| plan.vm.cpus = 17), "it asks for 17 CPUs; 1 to 16 are possible");
    assert_eq!(refusal(|plan| plan.vm.memory_mib = 0), "it asks for no memory");
    assert_eq!(
        refusal(|plan| plan.agent.port = Some(1024)),
        "its agent's port is 1024, which init itself uses; choose another"
    );
}

#[test]
fn a_machine_has_more_memory_than_its_components_may_take() {
    let of_agent = |bytes| move |plan: &mut RunPlan| plan.agent.limits.memory_bytes = bytes;
    let others = 1 << 20;
    let most = (512 << 20) - others;
    assert_eq!(
        refusal(of_agent(most)),
        "its components may take 512.0 MiB of memory, and the machine has 512 MiB; it needs more than they"
    );
    assert!(refusal(of_agent(u64::MAX)).contains("may take 17179869183.9 GiB"));
    let mut plan = grown("{}");
    of_agent(most - 1)(&mut plan);
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn both_components_are_checked() {
    let workdir = |plan: &mut ComponentPlan| plan.workdir = "srv".to_owned();
    let reason = "workdir \"srv\": it is not an absolute path; begin it with `/`";
    assert_eq!(agent_refusal(workdir), format!("agent {reason}"));
    let business = refusal(|plan| workdir(plan.business.as_mut().unwrap()));
    assert_eq!(business, format!("business {reason}"));
}

#[test]
fn each_component_has_a_port_of_its_own() {
    let set = |port| move |plan: &mut RunPlan| plan.business.as_mut().unwrap().port = port;
    let shared = "business port=4088: the agent has the same; choose another";
    assert_eq!(refusal(set(Some(4088))), shared);
    for other in [None, Some(4089)] {
        let mut plan = grown("{}");
        set(other)(&mut plan);
        assert_eq!(plan.check(), Ok(()), "{other:?}");
    }
}

#[test]
fn the_kernels_directories_are_known_by_any_spelling() {
    for path in ["/proc", "/proc/self/fd/5", "//sys/", "/srv/../dev/shm", "/./../proc"] {
        assert_eq!(
            agent_refusal(|plan| plan.workdir = path.to_owned()),
            format!(
                "agent workdir {path:?}: it is in /proc, /sys or /dev, which are the kernel's; \
                 choose another directory"
            )
        );
    }
    for path in ["/", "/work", "/processes", "/dev/..", "/home/dev", "/sys/../work"] {
        let mut plan = grown("{}");
        plan.agent.workdir = path.to_owned();
        assert_eq!(plan.check(), Ok(()), "{path}");
    }
}

#[test]
fn a_component_without_mounts_of_its_own_cannot_change_its_root() {
    let chroot = |plan: &mut ComponentPlan| {
        plan.capabilities = serde_json::from_str(r#"["SYS_CHROOT"]"#).unwrap();
    };
    let mut plan = grown("{}");
    chroot(&mut plan.agent);
    assert_eq!(plan.check(), Ok(()));
    let shared = |plan: &mut ComponentPlan| {
        chroot(plan);
        plan.namespaces.mount = false;
    };
    assert_eq!(
        agent_refusal(shared),
        "agent capabilities add \"SYS_CHROOT\": it needs a component with mounts of its own \
         (`namespaces mount`)"
    );
}

#[test]
fn a_request_path_can_stand_in_a_request() {
    for path in ["", "ready", "/bereit/für", "/ready HTTP/1.1\r\nX: y", "/\u{1b}[2J"] {
        let check = Health::Http { port: 80, path: path.to_owned() };
        assert_eq!(
            agent_refusal(|plan| plan.health = Some(check)),
            format!(
                "agent health \"http\" path={path:?}: it is not an absolute path of visible ASCII \
                 characters; write others as `%` and two hexadecimal digits per byte"
            )
        );
    }
    let mut plan = grown("{}");
    plan.agent.health = Some(Health::Http { port: 80, path: "/f%C3%BCr?a=b".to_owned() });
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn what_the_kernel_always_refuses_is_refused() {
    let refused = [
        agent_refusal(|plan| plan.argv[0].clear()),
        agent_refusal(|plan| plan.root = "/roots/agent,upperdir=/x".to_owned()),
        agent_refusal(|plan| plan.root = "/./roots/agent".to_owned()),
        agent_refusal(|plan| plan.root = "/a".repeat(3000)),
        agent_refusal(|plan| plan.hostname = "h".repeat(65)).replace(&"h".repeat(65), "…"),
        agent_refusal(|plan| plan.limits.cpu_weight = 0),
        agent_refusal(|plan| plan.limits.cpu_weight = 10_001),
        agent_refusal(|plan| plan.limits.pids = 0),
        agent_refusal(|plan| plan.limits.pids = (4 << 20) + 1),
        agent_refusal(|plan| plan.rlimits.nofile = Some((1 << 20) + 1)),
        agent_refusal(|plan| plan.health = Some(Health::Exec { argv: Vec::new() })),
    ];
    assert_eq!(
        refused,
        [
            "agent entrypoint: it names no program",
            "agent root \"/roots/agent,upperdir=/x\": it is not an absolute path without `,`, `:` \
             and `\\`",
            "agent root \"/./roots/agent\": it is not normalized: it has an empty name, `.` or `..`",
            "agent root: it has more than 4096 bytes",
            "agent namespaces hostname=\"…\": it is longer than 64 bytes, and the kernel takes no \
             more",
            "agent limits cpu-weight=0: it is not between 1 and 10000",
            "agent limits cpu-weight=10001: it is not between 1 and 10000",
            "agent limits pids=0: it is not between 1 and 4194304",
            "agent limits pids=4194305: it is not between 1 and 4194304",
            "agent rlimits nofile=1048577: the kernel takes at most 1048576",
            "agent health \"exec\": it names no program",
        ]
    );
}

#[test]
fn a_user_that_the_kernel_cannot_set_is_refused() {
    let none = "agent user: no user and no group has the number 4294967295";
    for user in [(NO_ID, 0, vec![]), (0, NO_ID, vec![]), (0, 0, vec![7, NO_ID])] {
        let (uid, gid, groups) = user;
        assert_eq!(agent_refusal(|plan| plan.user = User { uid, gid, groups }), none);
    }
    let many = agent_refusal(|plan| plan.user.groups = vec![7; MAX_GROUPS + 1]);
    assert_eq!(many, "agent user: it has more than 65536 groups, and the kernel takes no more");
    let mut plan = grown("{}");
    plan.agent.user.groups = vec![7; MAX_GROUPS];
    assert_eq!(plan.check(), Ok(()));
}

#[test]
fn no_string_for_the_kernel_has_a_nul_byte() {
    let nul = || "/a\0b".to_owned();
    let refused = [
        agent_refusal(|plan| plan.argv.push(nul())),
        agent_refusal(|plan| plan.env.push(nul())),
        agent_refusal(|plan| plan.workdir = nul()),
        agent_refusal(|plan| plan.root = nul()),
        agent_refusal(|plan| plan.hostname = nul()),
        agent_refusal(|plan| plan.health = Some(Health::Exec { argv: vec![nul()] })),
    ];
    let settings =
        ["entrypoint and args", "env", "workdir", "root", "namespaces hostname", "health \"exec\""];
    let reason = "it has a NUL byte, and the kernel takes none; remove it";
    assert_eq!(refused, settings.map(|setting| format!("agent {setting}: {reason}")));
}

#[test]
fn a_working_directory_is_no_longer_than_a_path() {
    let longer = agent_refusal(|plan| plan.workdir = format!("/{}", "a/".repeat(2048)));
    assert_eq!(longer, "agent workdir: it has more than 4096 bytes");
}

#[test]
fn a_plan_is_as_long_as_init_reads_and_no_longer() {
    let mut plan = grown("{}");
    let limit = usize::try_from(PLAN_MAX).unwrap();
    plan.agent.argv[0] = "x".repeat(limit - BEFORE.len() + plan.agent.argv[0].len());
    assert_eq!(serde_json::to_vec(&plan).unwrap().len(), limit);
    assert_eq!(plan.check(), Ok(()));
    plan.agent.argv[0].push('x');
    assert_eq!(plan.check(), Err(PlanError::TooLong(PLAN_MAX + 1)));
    assert_eq!(plan.check_values(), Ok(()));
}

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
            "its secret \"A\": its path is in /proc, /sys or /dev, which are the kernel's",
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
        ("var", 1 << 20, "its place is not absolute and normalized"),
        ("/sys/x", 1 << 20, "its place is one of the guest's own, as /proc and /a3s/skills are"),
        (
            "/a3s/bin/box-exec",
            1 << 20,
            "its place is one of the guest's own, as /proc and /a3s/skills are",
        ),
        ("/var", (1 << 20) - 1, "its size is not between 1 MiB and 1 TiB"),
        ("/var", (1 << 40) + 1, "its size is not between 1 MiB and 1 TiB"),
    ] {
        assert_eq!(refusal(&[disk(guest, size)]), format!("its scratch disk \"tmp\": {reason}"));
    }
    let four = ["/a", "/b", "/c", "/d"].map(|guest| disk(guest, 1 << 20));
    assert!(refusal(&four).ends_with("a box has at most 3 scratch disks"));
    let mut plan = grown("{}");
    plan.scratch = four[..3].to_vec();
    assert_eq!(plan.check(), Ok(()));
    plan.network.mode = NetworkMode::Shared;
    assert_eq!(plan.check(), Ok(()));
    plan.skills = vec![SkillPlan { mode: SkillMode::Mounted, ..SkillPlan::default() }];
    assert_eq!(plan.check(), Err(PlanError::Devices(5)), "a network is a device, too");
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
    // The names of the components may be the same.
    plan.business.as_mut().unwrap().launch_env = names(&["A", "V1000"]);
    assert_eq!(plan.check(), Ok(()));
    let all: Vec<_> = plan.launch_variables().collect();
    assert_eq!(all.len(), 256);
    assert_eq!(
        (all[0], all[254]),
        ((ComponentName::Agent, "V1000"), (ComponentName::Business, "A"))
    );
}

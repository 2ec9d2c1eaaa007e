use super::*;
use crate::plan::tests::{BEFORE, grown};

pub(super) fn refusal(change: impl FnOnce(&mut RunPlan)) -> String {
    let mut plan = grown("{}");
    plan.check().unwrap();
    change(&mut plan);
    plan.check().unwrap_err().to_string()
}

pub(super) fn agent_refusal(change: impl FnOnce(&mut ComponentPlan)) -> String {
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
    for memory in [0, 63, 65_537, u32::MAX] {
        let refused = refusal(|plan| plan.vm.memory_mib = memory);
        assert_eq!(
            refused,
            format!("it asks for {memory} MiB of memory; 64 to 65536 are possible")
        );
    }
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
        "its components may take 512.0 MiB of memory, but the VM has only 512 MiB; it needs more than its components"
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
fn a_component_can_write_in_its_working_directory() {
    let read_only = |plan: &mut ComponentPlan, workdir: &str| {
        plan.system = SystemDirectories::ReadOnly;
        plan.workdir = workdir.to_owned();
    };
    for workdir in ["/", "/opt/app", "/etc", "/var/lib/dpkg"] {
        assert_eq!(
            agent_refusal(|plan| read_only(plan, workdir)),
            format!(
                "agent workdir {workdir:?}: it is in the component's system, which is read-only; choose another \
                 directory, such as \"/work\", or mount a share or a volume there"
            )
        );
    }
    let share = r#"{"shares": [{"name": "app", "guest": "/opt/app", "scope": "agent"}]}"#;
    for (more, workdir) in [("{}", "/work"), ("{}", "/var/lib"), (share, "/opt/app/src")] {
        let mut plan = grown(more);
        read_only(&mut plan.agent, workdir);
        assert_eq!(plan.check(), Ok(()), "{workdir}");
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
        agent_refusal(|plan| plan.hostname = "h".repeat(64)).replace(&"h".repeat(64), "…"),
        agent_refusal(|plan| plan.hostname = "a\n127.0.0.1 b".to_owned()),
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
            "agent namespaces hostname=\"…\": a host name has letters, digits and inner hyphens, at \
             most 63",
            "agent namespaces hostname=\"a\\n127.0.0.1 b\": a host name has letters, digits and inner \
             hyphens, at most 63",
            "agent limits cpu-weight=0: it is not between 1 and 10000",
            "agent limits cpu-weight=10001: it is not between 1 and 10000",
            "agent limits pids=0: it is not between 1 and 4194304",
            "agent limits pids=4194305: it is not between 1 and 4194304",
            "agent rlimits nofile=1048577: it is not between 1 and 1048576",
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
    let limit = usize::try_from(MAX_PLAN).unwrap();
    plan.agent.argv[0] = "x".repeat(limit - BEFORE.len() + plan.agent.argv[0].len());
    assert_eq!(serde_json::to_vec(&plan).unwrap().len(), limit);
    assert_eq!(plan.check(), Ok(()));
    plan.agent.argv[0].push('x');
    assert_eq!(plan.check(), Err(PlanError::TooLong(MAX_PLAN + 1)));
    assert_eq!(plan.check_values(), Ok(()));
}

#[test]
fn a_box_has_a_name() {
    for name in ["", "../up", "Demo", "a b", "\u{1b}[2J", &"x".repeat(65)] {
        let form = crate::rules::NAME_FORM;
        let refused = refusal(|plan| name.clone_into(&mut plan.name));
        assert_eq!(refused, format!("its name {name:?}: {form}"));
    }
}

#[test]
fn limits_of_processes_and_ports_are_those_of_the_language() {
    let mut plan = grown("{}");
    plan.agent.rlimits =
        Rlimits { core_bytes: Some(0), as_bytes: Some(1 << 20), ..Rlimits::default() };
    assert_eq!(plan.check(), Ok(()));
    let set = |change: fn(&mut Rlimits)| agent_refusal(|plan| change(&mut plan.rlimits));
    for (refused, reason) in [
        (set(|it| it.nofile = Some(0)), "nofile=0: it is not between 1 and 1048576"),
        (set(|it| it.nproc = Some(0)), "nproc=0: it is not between 1 and 4194304"),
        (set(|it| it.cpu_seconds = Some(0)), "cpu=0: it is zero"),
        (
            set(|it| it.as_bytes = Some(7)),
            "address-space=7: it is more than 1 PiB, or no program could start",
        ),
        (
            set(|it| it.core_bytes = Some((1 << 50) + 1)),
            "core=1125899906842625: it is more than 1 PiB, or no program could start",
        ),
    ] {
        assert_eq!(refused, format!("agent rlimits {reason}"));
    }
    assert_eq!(
        agent_refusal(|plan| plan.port = Some(0)),
        "agent port=0: a port is from 1 to 65535"
    );
    let check = |plan: &mut ComponentPlan| plan.health = Some(Health::Tcp { port: 0 });
    assert_eq!(agent_refusal(check), "agent health port=0: a port is from 1 to 65535");
    let none = Some(Health::Exec { argv: vec![String::new()] });
    let refused = agent_refusal(|plan| plan.health = none);
    assert_eq!(refused, "agent health \"exec\": it names no program");
}

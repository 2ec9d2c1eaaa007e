//! Declarations of the agent and of the business application.

use box_contract::{AgentKind, Limits, Namespaces, Restart, Rlimits, SystemDirectories};
use boxfile_spec::{Agent, Binary, Health};

use super::{MIB, agent, file, good, strings};

fn made_of(kind: &str, lines: &str) -> Agent {
    good(&format!("box b\nagent {kind} {{ {lines}; }}\n")).agent
}

#[test]
fn every_kind_of_agent() {
    let digest = "ab".repeat(32);
    let url = format!("binary \"https://example.com/agent\" sha256=\"{digest}\"");
    for (word, kind, lines) in [
        ("oci_image", AgentKind::OciImage, "image \"oci:i\""),
        ("a3s_code", AgentKind::A3sCode, "image \"oci:i\""),
        ("opencode", AgentKind::Opencode, "image \"oci:i\""),
        ("local_binary", AgentKind::LocalBinary, "binary \"bin/agent\""),
        ("remote_binary", AgentKind::RemoteBinary, &url),
    ] {
        assert_eq!(made_of(&format!("kind=\"{word}\""), lines).kind, kind, "{word}");
    }
    assert_eq!(made_of("", "binary \"bin/agent\"").kind, AgentKind::LocalBinary);
    assert_eq!(made_of("", "image \"oci:i\"; binary \"bin/agent\"").kind, AgentKind::LocalBinary);
    let remote = made_of("", &url);
    assert_eq!(remote.kind, AgentKind::RemoteBinary);
    let Some(Binary::Remote { url, sha256 }) = remote.binary else { panic!("not a URL") };
    assert_eq!((&*url.value, sha256.hex()), ("https://example.com/agent", digest));
}

#[test]
fn a_program_of_the_checkout_may_be_fixed_by_its_digest() {
    let binary =
        made_of("", &format!("binary \"./bin/agent\" sha256=\"{}\"", "01".repeat(32))).binary;
    let Some(Binary::Local { path, sha256: Some(digest) }) = binary else { panic!("no digest") };
    assert_eq!((&*path.value, *digest.as_bytes()), ("bin/agent", [1; 32]));
}

#[test]
fn opencode_listens_on_its_own_port_and_says_itself_how_it_is() {
    let path = "/global/health".to_owned();
    let opencode = made_of("kind=\"opencode\"", "image \"oci:i\"");
    let check = Some(Health::Http { port: None, path });
    assert_eq!((opencode.kind.default_port(), &opencode.health), (4096, &check));
    let moved = made_of("kind=\"opencode\"", "image \"oci:i\"; port 80");
    assert_eq!((moved.port, moved.health), (Some(80), check));
}

#[test]
fn every_kind_of_health_check() {
    let health = |line: &str| agent(&format!("port 9\n{line}")).health;
    let argv = strings(&["/bin/check", "-q", ""]);
    assert_eq!(health("health \"tcp\""), Some(Health::Tcp { port: None }));
    assert_eq!(health("health \"tcp\" port=9000"), Some(Health::Tcp { port: Some(9000) }));
    assert_eq!(
        health("health \"http\" path=\"/h\" port=80"),
        Some(Health::Http { port: Some(80), path: "/h".to_owned() })
    );
    match health("health \"exec\" \"/bin/check\" \"-q\" \"\"") {
        Some(Health::Exec { argv: found }) => assert_eq!(found.value, argv),
        other => panic!("{other:?}"),
    }
    let grpc = |service: &str, port| Some(Health::Grpc { port, service: service.to_owned() });
    assert_eq!(health("health \"grpc\""), grpc("", None));
    assert_eq!(health("health \"grpc\" port=1 service=\"a.v1.B\""), grpc("a.v1.B", Some(1)));
    assert_eq!(health("health \"a3s\""), Some(Health::A3s { port: None }));
    assert_eq!(health("health \"a3s\" port=7"), Some(Health::A3s { port: Some(7) }));
    assert_eq!(health("health \"none\""), None);
    let of_a3s = good("box b\nagent kind=\"a3s_code\" { image \"oci:i\"; }").agent;
    assert_eq!(of_a3s.health, Some(Health::A3s { port: None }));
}

#[test]
fn argv_is_a_list_and_may_be_empty() {
    let component = agent("entrypoint \"/bin/a b\" \"\"\nargs").component;
    assert_eq!(component.entrypoint.map(|it| it.value), Some(strings(&["/bin/a b", ""])));
    assert_eq!(component.args, Some(Vec::new()));
}

#[test]
fn environments_are_joined_and_files_keep_their_order() {
    let component = agent(
        "env A=\"1\"\nenv B=\"2\" C=\"\"\nplain-env API_TOKEN=\"none\" GITHUB=\"ghp_0123456789abcdef0123\"
         env TOKEN_FILE=\"/run/token\" API_TOKEN_PATH=\"/x\" USE_AUTH=\"true\" PASSWORD=\"\"
         env-file \"b.env\" \"a.env\"",
    )
    .component;
    let names: Vec<&str> = component.env.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "A",
            "API_TOKEN",
            "API_TOKEN_PATH",
            "B",
            "C",
            "GITHUB",
            "PASSWORD",
            "TOKEN_FILE",
            "USE_AUTH"
        ]
    );
    assert_eq!((&*component.env["B"], &*component.env["C"]), ("2", ""));
    let files: Vec<&str> = component.env_files.iter().map(|file| &*file.value).collect();
    assert_eq!(files, ["b.env", "a.env"]);
}

#[test]
fn user_and_working_directory() {
    let component = agent("workdir \"/work/./x\"\nuser \"app:1000\"").component;
    assert_eq!(component.workdir.unwrap().value, "/work/./x");
    assert_eq!(component.user.map(|user| user.value).as_deref(), Some("app:1000"));
}

#[test]
fn a_system_is_writable_unless_it_is_declared_read_only() {
    let system = |lines: &str| agent(lines).component.system;
    assert_eq!(system(""), SystemDirectories::Writable);
    assert_eq!(system("system \"writable\""), SystemDirectories::Writable);
    assert_eq!(system("system \"read-only\"\nworkdir \"/work\""), SystemDirectories::ReadOnly);
    let workdir = |access: &str, mount: &str| {
        let agent =
            format!("agent {{ image \"oci:i\"; system \"{access}\"; workdir \"/opt/app/src\"; }}");
        good(&format!("box b\n{agent}\n{mount}\n"));
    };
    workdir("writable", "");
    workdir("read-only", "share \"s\" guest=\"/opt/app\"");
    workdir("read-only", "volume \"v\" guest=\"/opt/app\"");
}

#[test]
fn each_namespace_is_switched_by_itself() {
    let component = agent("namespaces mount=#false net=#true hostname=\"Host-1\"").component;
    let expected = Namespaces { mount: false, pid: true, ipc: true, uts: true, net: true };
    assert_eq!((component.namespaces, &*component.hostname), (expected, "Host-1"));
    let component = agent("namespaces pid=#false ipc=#false uts=#false").component;
    let expected = Namespaces { mount: true, pid: false, ipc: false, uts: false, net: false };
    assert_eq!((component.namespaces, &*component.hostname), (expected, "agent-host"));
}

#[test]
fn limits_have_units_and_shares_become_weights() {
    let limits = |line: &str| agent(line).component.limits;
    let given = Limits { memory_bytes: 2048 * MIB, cpu_weight: 10_000, pids: 1 };
    assert_eq!(limits("limits memory=\"2GiB\" cpu-weight=10000 pids=1"), given);
    assert_eq!(
        limits("limits cpu-shares=1024"),
        Limits { memory_bytes: 512 * MIB, cpu_weight: 39, pids: 100 }
    );
    assert_eq!(limits("limits memory=\"100MB\"").memory_bytes, 100_000_000);
}

#[test]
fn the_limits_of_a_process() {
    let rlimits = agent(
        "rlimits nofile=1024 nproc=512 address-space=\"2GiB\" cpu=\"90s\" core=\"0B\" file-size=\"1GiB\"",
    )
    .component
    .rlimits;
    let expected = Rlimits {
        nofile: Some(1024),
        nproc: Some(512),
        as_bytes: Some(2048 * MIB),
        cpu_seconds: Some(90),
        core_bytes: Some(0),
        fsize_bytes: Some(1024 * MIB),
    };
    assert_eq!(rlimits, expected);
}

#[test]
fn capabilities_are_added_to_the_usual_ones_and_dropped() {
    let usual = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE";
    for (line, expected) in [
        ("add=\"NET_RAW\"", format!("{usual} NET_RAW")),
        ("add=\"cap_net_raw  CAP_CHOWN NET_RAW\"", format!("{usual} NET_RAW")),
        ("drop=\"CHOWN SYS_ADMIN\"", usual.replace("CHOWN ", "")),
        ("drop=all", String::new()),
        ("drop=ALL add=\"NET_RAW CHOWN\"", "CHOWN NET_RAW".to_owned()),
    ] {
        let component = agent(&format!("user root; capabilities {line}")).component;
        let names: Vec<_> = component.capabilities.iter().map(|it| it.name).collect();
        assert_eq!(names.join(" "), expected, "{line}");
    }
}

#[test]
fn tools_are_known_by_one_name() {
    let tools = agent("tools \"Shell\" \"read\" \"bash\" \"grep\"").tools;
    assert_eq!(tools, Some(strings(&["bash", "grep", "read_file"])));
}

/// A business application is a component like the agent, and can be started with the box.
#[test]
fn a_business_application() {
    let business = file(
        "business {\n image \"oci:b\"\n autostart #true restart=\"on-failure\"\n user \"web\"\n workdir \"/workspace\"\n}",
    );
    let business = business.business.unwrap();
    assert_eq!((business.autostart, business.restart), (true, Restart::OnFailure));
    assert_eq!(business.component.image.unwrap().value.to_string(), "oci:b");
    assert_eq!(business.component.workdir.unwrap().value, "/workspace");
}

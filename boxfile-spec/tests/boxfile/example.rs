//! Valid files and the models that they make.

use std::collections::BTreeMap;

use boxfile_spec::{
    Boxfile, Budget, Component, Health, ImageRef, Kernel, Layout, Limits, Namespaces, Skill, Span,
    Spanned, Vm, parse,
};

const MIB: u64 = 1 << 20;

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

/// Puts `value` at the place where `text` is first written in the example.
fn at<T>(value: T, text: &str) -> Spanned<T> {
    let span =
        Span { offset: EXAMPLE.find(text).expect("the example has the text"), len: text.len() };
    Spanned { value, span }
}

fn layout(path: &str) -> ImageRef {
    ImageRef::OciLayout { path: path.to_owned(), tag: None }
}

fn strings(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn example_agent() -> Component {
    let env = [("GREETING", "hi"), ("RUST_LOG", "info")];
    Component {
        image: at(layout("images/agent"), "\"oci:images/agent\""),
        entrypoint: strings(&["/agent/bin/agent"]),
        args: strings(&["--greeting", "hello"]),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        workdir: Some("/agent".to_owned()),
        port: Some(4088),
        health: Some(Health::Http { port: 4088, path: "/health".to_owned() }),
        namespaces: Namespaces { mount: true, pid: true, ipc: true, uts: true, net: false },
        hostname: "agent-host".to_owned(),
        limits: Limits { memory: 64 * MIB, cpu_weight: 100, pids: 32 },
    }
}

fn example_business() -> Component {
    Component {
        image: at(layout("images/business"), "\"oci:images/business\""),
        entrypoint: None,
        args: None,
        env: BTreeMap::new(),
        workdir: None,
        port: None,
        health: None,
        namespaces: Namespaces::default(),
        hostname: "business-host".to_owned(),
        limits: Limits { memory: 64 * MIB, cpu_weight: 39, pids: 16 },
    }
}

#[test]
fn the_example_in_full() {
    let mut sha256 = [0; 32];
    sha256[..3].copy_from_slice(&[0x38, 0x54, 0xef]);
    sha256[31] = 1;
    let path = at("vendor/libkrunfw.so.5".to_owned(), "\"vendor/libkrunfw.so.5\"");
    let skill = at("skills/greet".to_owned(), "\"skills/greet\"");
    let expected = Boxfile {
        name: "hello".to_owned(),
        agent: example_agent(),
        business: Some(example_business()),
        skills: vec![Skill { name: "greet".to_owned(), path: skill }],
        vm: Vm { cpus: 1, memory: 256 * MIB },
        layout: Layout::Split,
        budget: Budget { vmm: None, kernel: Some(400), init: None, ready: None, total: Some(700) },
        kernel: Some(Kernel { path: Some(path), sha256: Some(sha256) }),
    };
    assert_eq!(parse(EXAMPLE), Ok(expected));
}

#[test]
fn what_is_left_out_has_its_default() {
    let parsed = parse("box b; agent { image \"oci:i:v1\"; }").unwrap();
    let agent = &parsed.agent;
    let image = ImageRef::OciLayout { path: "i".to_owned(), tag: Some("v1".to_owned()) };
    assert_eq!(agent.image.value, image);
    assert_eq!((agent.port, &agent.health), (Some(4088), &Some(Health::Tcp { port: 4088 })));
    assert_eq!(agent.limits, Limits { memory: 512 * MIB, cpu_weight: 20, pids: 100 });
    assert_eq!((agent.namespaces, &*agent.hostname), (Namespaces::default(), "agent-host"));
    assert_eq!((&agent.entrypoint, &agent.args, &agent.workdir), (&None, &None, &None));
    assert_eq!(parsed.vm, Vm { cpus: 2, memory: (512 + 256) * MIB });
    assert_eq!(parsed.budget.total, Some(5000));
    assert_eq!((parsed.business, parsed.kernel, parsed.skills), (None, None, Vec::new()));
}

#[test]
fn the_default_machine_has_room_for_both_components() {
    let parsed = parse(
        "box b; agent { image \"oci:i\"; limits memory=\"5000001B\"; }
         business { image \"oci:i\"; limits cpu-shares=1024; }",
    )
    .unwrap();
    let business = parsed.business.unwrap();
    assert_eq!(business.limits, Limits { memory: 1024 * MIB, cpu_weight: 39, pids: 200 });
    assert_eq!(parsed.vm.memory, (1024 + 5 + 256) * MIB);
}

#[test]
fn every_kind_of_health_check() {
    let health = |line: &str| {
        let source = format!("box b; agent {{ image \"oci:i\"; port 9; {line}; }}");
        parse(&source).unwrap().agent.health
    };
    let argv = vec!["/bin/check".to_owned(), "-q".to_owned()];
    assert_eq!(health("health \"tcp\""), Some(Health::Tcp { port: 9 }));
    assert_eq!(health("health \"tcp\" port=9000"), Some(Health::Tcp { port: 9000 }));
    assert_eq!(
        health("health \"http\" path=\"/h\" port=80"),
        Some(Health::Http { port: 80, path: "/h".to_owned() })
    );
    assert_eq!(health("health \"exec\" \"/bin/check\" \"-q\""), Some(Health::Exec { argv }));
    assert_eq!(health("health \"none\""), None);
}

#[test]
fn skills_are_sorted_and_environments_joined() {
    let parsed = parse(
        "box b\nskill z path=z\nskill a path=\"./a\"\n
         agent { image \"oci:/abs\"; env A=\"1\"; env B=\"2\" C=\"\"; args; }",
    )
    .unwrap();
    let names: Vec<&str> = parsed.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["a", "z"]);
    assert_eq!(parsed.agent.env.into_keys().collect::<String>(), "ABC");
    assert_eq!(parsed.agent.args, Some(Vec::new()));
}

#[test]
fn a_tiny_budget_is_legal() {
    let parsed =
        parse("box b; agent { image \"oci:i\"; }; budget total=\"1ms\" init=\"1ms\"").unwrap();
    assert_eq!((parsed.budget.total, parsed.budget.init), (Some(1), Some(1)));
}

#[test]
fn kdl_comments_texts_and_line_ends_are_understood() {
    let parsed = parse(
        "\u{feff}/- kdl-version 2\r
         // a line { that means nothing\r
         box /* a /* nested */ one { */ \"b\" /-\"c\" /- d=1\r
         /- agent { image \"oci:other\"; }\r
         /-
         // in between
         vm cpus=99
         agent { /- image \"oci:other\"
             image \\ // goes on
                 #\"oci:raw\\path\"#
             args \"\"\"
               two
                 lines }
               \"\"\" \"\\u{1F600}\\t\\\"\" --bare #\"\"\"
               raw \"\"
               \"\"\"#
         } /- { image \"oci:other\"; }
         ;",
    )
    .unwrap();
    let image = ImageRef::OciLayout { path: "raw\\path".to_owned(), tag: None };
    assert_eq!((parsed.name.as_str(), parsed.agent.image.value), ("b", image));
    let args = ["two\n  lines }", "\u{1F600}\t\"", "--bare", "raw \"\""];
    assert_eq!(parsed.agent.args.unwrap(), args);
}

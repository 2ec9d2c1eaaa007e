//! The canonical form is the same for all files with the same declarations.

use boxfile_spec::parse;
use insta::assert_snapshot;
use proptest::prelude::*;

use super::good;

/// Declarations that may be written in any order.
const LINES: [&str; 16] = [
    "box \"b\"",
    "agent {\n    image \"oci:i:v1\"\n    env A=\"1\"\n    env B=\"2\"\n    limits pids=9\n}",
    "business { image \"oci:j\"; autostart #true; }",
    "skill \"a\" path=\"a\"",
    "skill \"z\" path=\"z\"",
    "skills dir=\"skills\"",
    "vm cpus=1",
    "share \"a\" guest=\"/a\"",
    "share \"b\" guest=\"/b\" access=\"rw\"",
    "scratch \"d\" guest=\"/d\" size=\"1GiB\"",
    "network \"filtered\" { allow \"b.example\" \"a.example\"; }",
    "secret \"T\"",
    "cap \"ws\"",
    "cap \"http\"\nservice \"s\" to=\"https://s.example\"",
    "sandbox \"ci\" { writable \"/b\" \"/a\"; }",
    "budget total=\"1s\"",
];

#[test]
fn the_canonical_form_of_a_box() {
    let text =
        good("box b\nagent { image \"oci:i\"; }\nsecret T path=\"/t\"\ncap payments\n").canonical();
    assert_snapshot!(text.replace(",\"", ",\n\""), @r#"
    {"name":"b",
    "platforms":["linux/amd64"],
    "agent":{"kind":"oci_image",
    "binary":null,
    "port":null,
    "health":{"Tcp":{"port":null}},
    "tools":null,
    "component":{"image":{"OciLayout":{"path":"i",
    "tag":null,
    "digest":null}},
    "entrypoint":null,
    "args":null,
    "env_files":[],
    "env":{},
    "files":[],
    "workdir":null,
    "user":null,
    "namespaces":{"mount":true,
    "pid":true,
    "ipc":true,
    "uts":true,
    "net":false},
    "hostname":"agent-host",
    "limits":{"memory-bytes":536870912,
    "cpu-weight":20,
    "pids":100},
    "rlimits":{},
    "capabilities":["CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "NET_BIND_SERVICE"]}},
    "business":null,
    "skills_dir":null,
    "skills":[],
    "vm":{"cpus":2,
    "memory-mib":768},
    "layout":"split",
    "conflicts":[],
    "shares":[],
    "scratch":[],
    "network":{"mode":"none"},
    "secrets":[{"name":"T",
    "scope":"agent",
    "delivery":{"file":{"path":"/t"}}}],
    "task":null,
    "logs":null,
    "caps":["payments"],
    "sandbox":null,
    "budget":{"total":5000},
    "kernel":null}
    "#);
}

#[test]
fn explicit_defaults_have_the_same_form() {
    let short = good("box b\nagent { image debian; }\n");
    let long = good(
        "agent kind=oci_image {
             limits memory=\"512MiB\" cpu-weight=20 pids=100
             image \"docker://docker.io/library/debian:latest\"
             namespaces hostname=agent-host net=#false
         }
         layout split; network none
         budget total=\"5000ms\"
         vm memory=\"768MiB\" cpus=2
         platform \"linux/amd64\"
         box b",
    );
    assert_eq!(long.canonical(), short.canonical());
}

/// The image's label takes precedence over the default check, but not over the same check if it is declared.
#[test]
fn a_declared_health_check_has_another_form() {
    let form =
        |lines: &str| good(&format!("box b\nagent {{ image debian{lines}; }}\n")).canonical();
    let declared = form("; health tcp");
    let field = "\"declares_health\":true,";
    assert!(declared.contains(field), "{declared}");
    assert_eq!(declared.replacen(field, "", 1), form(""));
}

#[test]
fn what_differs_has_another_form() {
    let forms: Vec<String> = [
        "",
        "vm cpus=1",
        "business { image \"oci:i\"; }\nlayout merged",
        "logs",
        "skill a path=a",
        "skill a path=b",
    ]
    .map(|lines| super::file(lines).canonical())
    .into();
    for (index, form) in forms.iter().enumerate() {
        assert!(!forms[..index].contains(form), "{form}");
    }
}

proptest! {
    #[test]
    fn neither_order_nor_place_matters(lines in Just(LINES.to_vec()).prop_shuffle(), gap in "[ \n]{0,3}") {
        let written = parse(&LINES.join("\n")).unwrap().canonical();
        let shuffled = parse(&lines.join(&format!("{gap}\n"))).unwrap().canonical();
        prop_assert_eq!(shuffled, written);
    }
}

#[test]
fn how_a_path_is_spelt_makes_no_difference() {
    let file = |image: &str, skill: &str, host: &str| {
        good(&format!("box b\nagent {{ image \"oci:{image}\"; env-file \"{skill}.env\"; }}\nskill s path=\"{skill}\"\nskills dir=\".\"\nshare w guest=\"/w\" host=\"{host}\"\n"))
            .canonical()
    };
    let plain = file("images/agent:v1", "skills/greet", "work");
    assert_eq!(file("./images//agent:v1", "skills//greet", "./work/"), plain);
    assert!(plain.contains("\"dir\":\".\""), "{plain}");
}

/// Without variables that are given at launch, the canonical form has no field for them. So the
/// cache keys of such files stay the same as before the field existed.
#[test]
fn variables_that_are_given_at_launch_are_in_the_text_where_there_are_some() {
    let text =
        |line: &str| super::good(&format!("box b\nagent {{ image oci:i; {line}; }}\n")).canonical();
    assert!(!text("env A=x").contains("launch"));
    let all = ["env A=x", "env A x launch=#true", "env A"].map(text);
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
    assert_eq!(text("env A launch=#true"), all[2]);
}

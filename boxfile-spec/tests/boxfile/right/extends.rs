//! Merging of a file with its base files.

use box_contract::{NetworkMode, NetworkPlan, PeerPlan};
use boxfile_spec::{Boxfile, ConflictPolicy};

use crate::read;

/// Reads a file `main` that extends the file `base` in the directory above.
fn over(base: &str, main: &str) -> Boxfile {
    files(&[
        ("Boxfile", &format!("extends \"../base.Boxfile\"\n{main}")),
        ("../base.Boxfile", base),
    ])
}

fn files(files: &[(&str, &str)]) -> Boxfile {
    let document = read(files, None);
    let shown = crate::shown(&document);
    document.boxfile.unwrap_or_else(|| panic!("{shown}"))
}

const BASE: &str = "box base
agent {
    image \"oci:images/agent\"
    args a b
    env A=\"1\" B=\"2\"
    limits memory=\"64MiB\" pids=9 cpu-weight=7
    health http path=\"/h\"
}
vm cpus=4
";

#[test]
fn a_declaration_of_one_file_applies_unchanged() {
    let boxfile = over(BASE, "box main\nskill s path=s\n");
    assert_eq!((&*boxfile.name, boxfile.vm.cpus), ("main", 4));
    assert_eq!(boxfile.skills.len(), 1);
}

#[test]
fn arguments_replace_arguments_and_properties_unite() {
    let boxfile = over(BASE, "agent { args; limits pids=1; health tcp; }\nvm memory=\"1GiB\"\n");
    let component = boxfile.agent.component;
    assert_eq!(component.args, Some(Vec::new()));
    assert_eq!((component.limits.pids, component.limits.memory_bytes), (1, 64 << 20));
    assert_eq!(boxfile.agent.health, Some(boxfile_spec::Health::Tcp { port: None }));
    assert_eq!((boxfile.vm.cpus, boxfile.vm.memory_mib), (4, 1 << 10));
}

#[test]
fn the_two_ways_to_give_a_weight_replace_each_other() {
    let weight = |lines: &str| over(BASE, lines).agent.component.limits.cpu_weight;
    assert_eq!(weight("agent { limits cpu-shares=1024; }"), 39);
    assert_eq!(weight("agent { limits memory=\"5MiB\"; }"), 7);
}

#[test]
fn variables_replace_variables_one_by_one() {
    let env = |lines: &str| over(BASE, &format!("agent {{ {lines}; }}\n")).agent.component.env;
    let shown = |lines: &str| {
        env(lines)
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(shown("env B=\"3\" C=\"4\""), "A=1 B=3 C=4");
    assert_eq!(shown("env A=\"0\" B=\"0\""), "A=0 B=0");
    assert_eq!(shown("env A=\"0\"; plain-env B=\"5\""), "A=0 B=5");
}

#[test]
fn a_variable_that_is_given_at_launch_is_fixed_and_opened_again() {
    let agent = |lines: &str| {
        let base = BASE.replace("B=\"2\"", "B=\"2\"\n    env URL\n    env LOG info launch=#true");
        let component = over(&base, &format!("agent {{ {lines}; }}\n")).agent.component;
        let env = component.env.iter().map(|(name, value)| format!("{name}={value}"));
        let launch = component.launch_env.iter().cloned();
        let required = component.required_env().map(|it| format!("{it}!"));
        env.chain(launch).chain(required).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(agent("args"), "A=1 B=2 LOG=info LOG URL URL!");
    assert_eq!(agent("env URL=u LOG=debug"), "A=1 B=2 LOG=debug URL=u");
    assert_eq!(agent("env URL u launch=#true; env LOG"), "A=1 B=2 URL=u LOG URL LOG!");
    assert_eq!(agent("env A; env B x launch=#true"), "B=x LOG=info A B LOG URL A! URL!");
    assert_eq!(agent("plain-env URL=u"), "A=1 B=2 LOG=info URL=u LOG");
}

#[test]
fn keyed_declarations_merge_by_their_keys() {
    let base = format!(
        "{BASE}skill a path=a mode=mount\nskill b path=b\nshare x guest=\"/x\" access=rw\ncap payments\n"
    );
    let boxfile = over(&base, "skill b path=c\nskill c path=d\nshare x guest=\"/y\"\ncap ws\n");
    let skills: Vec<_> =
        boxfile.skills.iter().map(|it| format!("{}={}", it.name, it.path.value)).collect();
    assert_eq!(skills, ["a=../a", "b=c", "c=d"]);
    assert_eq!(boxfile.shares[0].value.plan.guest, "/y");
    assert_eq!(boxfile.shares[0].value.plan.access, box_contract::Access::ReadWrite);
    assert_eq!(boxfile.caps.len(), 2);
}

#[test]
fn new_conflicts_decide_before_those_of_the_base() {
    let base = format!(
        "{BASE}business {{ image \"oci:i\"; }}\nlayout merged\nconflict \"/a\" policy=drop\nconflict \"/b\" policy=drop\n"
    );
    let boxfile = over(&base, "conflict \"/c\" policy=drop\nconflict \"/b\" policy=prefer-agent\n");
    let order: Vec<_> =
        boxfile.conflicts.iter().map(|it| (&*it.pattern.value, it.policy)).collect();
    let drop = ConflictPolicy::Drop;
    assert_eq!(order, [("/c", drop), ("/a", drop), ("/b", ConflictPolicy::PreferAgent)]);
}

#[test]
fn a_network_is_replaced_as_a_whole() {
    let filter = "allow \"a.example\" port=22; allow \"b.example\"; limits names=1";
    let base = format!("{BASE}network filtered {{ {filter}; }}\nsandbox ci {{ ask x; }}\n");
    let boxfile = over(&base, "network shared\nsandbox development {\n allow y\n}\n");
    let shared = NetworkPlan { mode: NetworkMode::Shared, ..NetworkPlan::default() };
    assert_eq!(boxfile.network, shared);
    let own = over(&base, "network filtered {\n allow \"b.example\" port=80\n}\n").network;
    let allow = vec![PeerPlan { peer: "b.example".to_owned(), port: Some(80) }];
    assert_eq!(own, NetworkPlan { mode: NetworkMode::Filtered, allow, ..NetworkPlan::default() });
    let sandbox = boxfile.sandbox.unwrap();
    assert_eq!((sandbox.allow.concat(), sandbox.ask.concat()), ("y".to_owned(), "x".to_owned()));
}

#[test]
fn a_base_may_have_a_base_and_each_path_belongs_to_its_file() {
    let far = "agent {\n image \"oci:images/far\"\n env-file far.env \"other.env\"\n file \"conf/far.yaml\" to=\"/etc/\" mode=\"600\"\n}\nkernel \"k.so\"\nskill far path=\"skills/far\"\n";
    let near = "extends \"../far/Boxfile\"\nbusiness { image \"oci:./images/near:v1\"; }\nskills dir=\"./skills\"\nskill near path=near\n";
    let document = read(
        &[
            (
                "Boxfile",
                "extends \"../near/Boxfile\"\nbox b\nskill here path=here\nagent { env-file \"here.env\"; file \"../far/conf/far.yaml\" to=\"/srv/\"; file \"./here/\" to=\"/srv/x\"; }\n",
            ),
            ("../near/Boxfile", near),
            ("../far/Boxfile", far),
        ],
        None,
    );
    let names: Vec<&str> = document.sources.as_slice().iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["Boxfile", "../near/Boxfile", "../far/Boxfile"]);
    let boxfile = document.boxfile.unwrap();
    let image = |image: Option<diagnostics::Spanned<box_contract::ImageRef>>| {
        image.unwrap().value.to_string()
    };
    assert_eq!(image(boxfile.agent.component.image), "oci:../far/images/far");
    assert_eq!(image(boxfile.business.unwrap().component.image), "oci:../near/images/near:v1");
    assert_eq!(boxfile.kernel.unwrap().path.unwrap().value, "../far/k.so");
    assert_eq!(boxfile.skills_dir.unwrap().dir.value, "../near/skills");
    let paths: Vec<&str> = boxfile.skills.iter().map(|it| &*it.path.value).collect();
    assert_eq!(paths, ["../far/skills/far", "here", "../near/near"]);
    let files: Vec<&str> = boxfile.agent.component.env_files.iter().map(|it| &*it.value).collect();
    assert_eq!(files, ["here.env"]);
    let files = boxfile.agent.component.files;
    let files: Vec<_> = files.iter().map(|it| (&*it.path.value, &*it.to.value, it.mode)).collect();
    let combined = ("../far/conf/far.yaml", "/srv/far.yaml", Some(0o600));
    assert_eq!(files, [combined, ("here", "/srv/x", None)]);
}

#[test]
fn programs_of_a_base_are_files_beside_it_and_urls_are_not() {
    let binary = |binary: &str| {
        over(&format!("agent {{ binary {binary}; }}\n"), "box b\n").agent.binary.unwrap()
    };
    let boxfile_spec::Binary::Local { path, .. } = binary("\"bin/agent\"") else { panic!("a URL") };
    assert_eq!(path.value, "../bin/agent");
    let url = format!("\"http://example.com/a\" sha256=\"{}\"", "0".repeat(64));
    let boxfile_spec::Binary::Remote { url, .. } = binary(&url) else { panic!("a path") };
    assert_eq!(url.value, "http://example.com/a");
}

#[test]
fn a_share_of_a_base_is_relative_to_where_the_box_is_launched() {
    let boxfile = over(&format!("{BASE}share s guest=\"/s\" host=\"data\"\n"), "box b\n");
    assert_eq!(boxfile.shares[0].value.plan.host.as_deref(), Some("data"));
}

#[test]
fn images_of_a_base_without_a_path_stay_as_they_are() {
    let image = |image: &str| {
        let boxfile = over(&format!("agent {{ image \"{image}\"; }}\n"), "box b\n");
        boxfile.agent.component.image.unwrap().value.to_string()
    };
    assert_eq!(image("debian:13"), "docker://docker.io/library/debian:13");
    assert_eq!(image("oci-archive:a.tar:v1"), "oci-archive:../a.tar:v1");
    assert_eq!(image("docker-archive:../a.tar"), "docker-archive:../../a.tar");
    assert_eq!(image("oci:/abs:v1"), "oci:/abs:v1");
}

#[test]
fn a_file_over_a_base_is_the_same_as_one_file() {
    let merged = over(
        "agent { image \"oci:/i\"; env A=\"1\"; }\nvm cpus=1\nprofile ci { vm cpus=3; }\n",
        "box b\nagent { env B=\"2\"; }\nvm memory=\"1GiB\"\n",
    );
    let written = super::good(
        "box b\nagent { image \"oci:/i\"; env A=\"1\" B=\"2\"; }\nvm cpus=1 memory=\"1GiB\"\n",
    );
    assert_eq!(merged.canonical(), written.canonical());
}

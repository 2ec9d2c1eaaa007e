//! Profiles: declarations that override the declarations of the file.

use boxfile_spec::Boxfile;

use crate::{read, shown};

const FILE: &str = "box b
agent { image \"oci:i\"; env A=\"1\" B=\"2\"; }
vm cpus=2
profile ci {
    vm cpus=1 memory=\"1GiB\"
    agent { env B=\"3\"; health none; }
    skill s path=s
    budget total=\"9s\"
}
profile dev { share w guest=\"/w\" access=rw; }
";

fn choose(files: &[(&str, &str)], profile: Option<&str>) -> Boxfile {
    let document = read(files, profile);
    let shown = shown(&document);
    document.boxfile.unwrap_or_else(|| panic!("{shown}"))
}

#[test]
fn a_profile_applies_only_if_chosen() {
    let plain = choose(&[("Boxfile", FILE)], None);
    assert_eq!((plain.vm.cpus, plain.skills.len(), plain.shares.len()), (2, 0, 0));
    let dev = choose(&[("Boxfile", FILE)], Some("dev"));
    assert_eq!((dev.vm.cpus, dev.skills.len(), dev.shares.len()), (2, 0, 1));
}

#[test]
fn a_profile_is_the_same_as_its_declarations_written_out() {
    let written = super::good(
        "box b\nagent { image \"oci:i\"; env A=\"1\" B=\"3\"; health none; }\nvm cpus=1 memory=\"1GiB\"
         skill s path=s\nbudget total=\"9s\"\n",
    );
    let chosen = choose(&[("Boxfile", FILE)], Some("ci"));
    assert_eq!(chosen.canonical(), written.canonical());
}

#[test]
fn a_port_of_a_profile_replaces_the_same_port_of_the_file() {
    let file =
        "box b\nagent { image \"oci:i\"; }\nbusiness { image \"oci:i\"; }\npublish 80 host=8080
publish 8100 8200\npublish 80 host=8081 component=business
profile p { publish 80 host=9090 component=agent; publish 8200 host=0; }
profile q { publish 8100 8200 host=0; }\n";
    let ports = |profile| {
        let boxfile = choose(&[("Boxfile", file)], profile);
        let port = |it: &box_contract::PublishPlan| (it.component.name(), it.guest, it.host);
        boxfile.publish.iter().map(port).collect::<Vec<_>>()
    };
    let (other, business) = (("agent", 80, 8080), ("business", 80, 8081));
    assert_eq!(ports(None), [other, ("agent", 8100, 8100), ("agent", 8200, 8200), business]);
    let changed = [("agent", 80, 9090), ("agent", 8100, 8100), ("agent", 8200, 0), business];
    assert_eq!(ports(Some("p")), changed);
    assert_eq!(ports(Some("q")), [other, ("agent", 8100, 0), ("agent", 8200, 0), business]);
}

#[test]
fn the_profiles_are_named() {
    assert_eq!(read(&[("Boxfile", FILE)], None).profiles, ["ci", "dev"]);
}

#[test]
fn a_profile_of_the_base_is_completed_by_that_of_the_file() {
    let main = "extends \"base\"\nvm cpus=3\nprofile ci { vm memory=\"2GiB\"; }\n";
    let files = [("Boxfile", main), ("base", FILE)];
    let chosen = choose(&files, Some("ci"));
    // The base's profile overrides even the main file: it sets one CPU, and the main file three.
    assert_eq!((chosen.vm.cpus, chosen.vm.memory_mib), (1, 2048));
    assert_eq!(choose(&files, None).vm.cpus, 3);
}

#[test]
fn conflicts_of_a_profile_decide_first() {
    let file = "box b\nagent { image \"oci:i\"; }\nbusiness { image \"oci:i\"; }\nlayout merged\nconflict \"/a\" policy=drop
        profile p { conflict \"/b\" policy=drop; }\n";
    let order: Vec<String> = choose(&[("Boxfile", file)], Some("p"))
        .conflicts
        .into_iter()
        .map(|it| it.pattern.value)
        .collect();
    assert_eq!(order, ["/b", "/a"]);
}

#[test]
fn the_models_of_all_profiles_are_there_whichever_is_chosen() {
    for chosen in [None, Some("dev"), Some("nothing")] {
        let document = read(&[("Boxfile", FILE)], chosen);
        let names: Vec<&str> = document.variants.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["ci", "dev"]);
        for (name, boxfile) in &document.variants {
            assert_eq!(*boxfile, choose(&[("Boxfile", FILE)], Some(name)));
        }
    }
}

#[test]
fn there_are_no_models_of_a_file_in_which_anything_is_wrong() {
    let file = format!("{FILE}profile bad {{ vm cpus=0; }}\n");
    let document = read(&[("Boxfile", &file)], Some("dev"));
    assert!(document.boxfile.is_none() && document.variants.is_empty());
}

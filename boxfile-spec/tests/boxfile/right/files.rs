//! Files of the checkout that are baked into a component.

use boxfile_spec::BakedFile;

use super::{agent, good};

/// Formats the files of the model.
fn shown(files: &[BakedFile]) -> Vec<String> {
    let mode = |it: &BakedFile| it.mode.map_or("-".to_owned(), |mode| format!("{mode:o}"));
    let line = |it: &BakedFile| {
        format!("{} {} {} {}", it.path.value, it.to.value, mode(it), it.owner.value)
    };
    files.iter().map(line).collect()
}

#[test]
fn a_slash_at_the_end_of_a_place_stands_for_the_name() {
    let files = agent(
        "file \"conf/app.yaml\" to=\"/etc/app/\" mode=\"0600\" owner=\"1000\"
         file \"motd\" to=\"/etc/motd\"
         file \"./static/\" to=\"/\"
         file \"app\" to=\"/srv/app\" owner=\"app:app\"",
    )
    .component
    .files;
    let expected = [
        "conf/app.yaml /etc/app/app.yaml 600 1000",
        "motd /etc/motd - 0:0",
        "app /srv/app - app:app",
        "static /static - 0:0",
    ];
    assert_eq!(shown(&files), expected, "sorted by their places");
}

#[test]
fn each_component_has_its_own() {
    let text = "box b
agent {
    image \"oci:i\"
    file \"a\" to=\"/x\"
}
business {
    image \"oci:j\"
    file \"a\" to=\"/x\"
    file \"b\" to=\"/x/y\"
}
";
    let business = good(text).business.unwrap();
    assert_eq!(shown(&business.component.files), ["a /x - 0:0", "b /x/y - 0:0"]);
}

#[test]
fn what_only_the_other_component_sees_hides_no_file() {
    let with = |scope: &str| {
        format!(
            "box b\nagent {{\nimage \"oci:i\"\nfile \"a\" to=\"/x/a\"\n}}\nbusiness {{ image \"oci:j\"; }}\nshare \"s\" guest=\"/x\" component=\"{scope}\"\n"
        )
    };
    good(&with("business"));
    assert!(boxfile_spec::parse(&with("agent")).is_err());
    assert!(boxfile_spec::parse(&with("both")).is_err());
}

#[test]
fn a_directory_may_have_a_mount_in_it() {
    let text = "box b\nagent {\nimage \"oci:i\"\nfile \"app\" to=\"/app\"\n}\nscratch \"s\" guest=\"/app/cache\" size=\"1MiB\"\n";
    assert_eq!(good(text).agent.component.files.len(), 1);
}

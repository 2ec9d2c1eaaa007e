//! Tests which Boxfile is read, and which files it may extend.

use std::fs;

use crate::checkout::{BOXFILE, Checkout, Ran};

#[test]
fn no_boxfile() {
    let checkout = Checkout::new();
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    for command in ["check", "build", "lock", "update", "fmt"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(checkout.fails(&[command]), @"
            error: there is no Boxfile in this directory or above it
              = help: go to the directory that has one, name it with `-f PATH`, or make one with `boxbuild init`
            ");
        }
    }
}

#[test]
fn a_boxfile_that_cannot_be_read() {
    let checkout = Checkout::new();
    insta::assert_snapshot!(checkout.fails(&["check", "-f", "nofile"]), @"
    error: cannot read nofile: No such file or directory (os error 2)
      = help: `boxbuild init` makes a Boxfile
    ");
    insta::assert_snapshot!(checkout.fails(&["check", "-f", "skills"]), @"error: cannot read skills: it is not a regular file");
    insta::assert_snapshot!(checkout.fails(&["fmt", "."]), @"
    error: cannot read .: it is not a regular file
      = help: name the file in it: ./Boxfile
    ");
    checkout.write("Boxfile", b"box \"\xff\"");
    insta::assert_snapshot!(checkout.fails(&["check"]), @"error: cannot read Boxfile: not valid UTF-8 at line 1, column 6");
}

#[test]
fn the_first_of_several_and_a_warning() {
    let checkout = Checkout::new();
    checkout.write("Boxfile.kdl", "no Boxfile at all");
    let notes = checkout.notes(&["check"]);
    insta::assert_snapshot!(notes, @"
    warning: Boxfile.kdl is not read: Boxfile comes first
    Boxfile: ok
    ");
    fs::rename(checkout.path("Boxfile"), checkout.path("Boxfile.kdl")).unwrap();
    assert_eq!(checkout.notes(&["check"]), "Boxfile.kdl: ok\n");
}

#[test]
fn a_directory_whose_name_is_not_text_is_shown_as_far_as_it_is() {
    use std::os::unix::ffi::OsStrExt;
    let checkout = Checkout::new();
    let output = checkout.root().join(std::ffi::OsStr::from_bytes(b"x\xff.box"));
    let built = checkout.built(&["--output", "x.box"]);
    fs::rename(checkout.path("x.box"), &output).unwrap();
    let ran = checkout.boxbuild(&["build", "--json", "--output"]).arg(&output).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["box"], built["box"]);
    assert!(report["output"].as_str().unwrap().ends_with("x\u{fffd}.box"), "{report}");
}

const TOML: &str = r#"box = "test"
vm = { cpus = 1, memory = "256MiB" }

[agent]
image = "oci:images/agent"
health = "tcp"
limits = { memory = "64MiB", pids = 32 }

[business]
image = "oci:images/business"
limits = { memory = "64MiB", pids = 32 }

[skill.greet]
path = "skills/greet"
"#;

#[test]
fn the_same_box_in_toml() {
    let checkout = Checkout::new();
    let kdl = checkout.built(&[])["box"].clone();
    let (lock, form) = (checkout.read("Boxfile.lock"), checkout.result(&["check", "--canonical"]));
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    checkout.write("Boxfile.toml", TOML);
    assert_eq!(checkout.built(&["--locked"])["box"], kdl);
    assert_eq!(checkout.read("Boxfile.lock"), lock, "both have one lock");
    assert_eq!(checkout.result(&["check", "--canonical"]), form);
    checkout.edit("Boxfile.toml", "oci:images/agent", "oci:images/agnet");
    let message = checkout.fails(&["build"]);
    assert!(message.contains("--> Boxfile.toml:5:9"), "{message}");
    let message = checkout.fails(&["build", "--platform", "linux/arm64"]);
    assert!(message.contains("boxes for linux/amd64 only, not for linux/arm64"), "{message}");
}

/// The paths in a base are relative to the base's directory.
#[test]
fn paths_of_a_base_start_from_the_base() {
    let checkout = Checkout::new();
    checkout.write(".git/HEAD", "");
    let expected = checkout.built(&[])["box"].clone();
    fs::rename(checkout.path("Boxfile"), checkout.path("base.Boxfile")).unwrap();
    checkout.write("team/Boxfile", "extends \"../base.Boxfile\"\n");
    checkout.result(&["check", "-f", "team/Boxfile"]);
    assert_eq!(checkout.built(&["-f", "team/Boxfile"])["box"], expected);
    let lock = checkout.read("team/Boxfile.lock");
    assert!(lock.contains("source = \"oci:../images/agent\""), "{lock}");
    assert!(lock.contains("source = \"../skills/greet\""), "{lock}");
    let mut inside = checkout.boxbuild(&["build", "--locked", "--json"]);
    let ran = crate::checkout::Ran::of(inside.current_dir(checkout.path("team")));
    assert_eq!((ran.code, &ran.json()["box"]), (0, &expected), "{}", ran.notes);
}

#[test]
fn a_base_that_is_wrong_is_shown() {
    let checkout = Checkout::new();
    checkout.write("base.Boxfile", BOXFILE.replace("skill", "skil"));
    checkout.write("Boxfile", "extends \"base.Boxfile\"\nvm cpus=0\n");
    let message = checkout.fails(&["check"]);
    assert!(
        message.contains("--> base.Boxfile:11:1") && message.contains("--> Boxfile:2:9"),
        "{message}"
    );
    checkout.write("Boxfile", "extends \"nobase\"\n");
    let message = checkout.fails(&["check"]);
    assert!(message.contains("cannot extend `nobase`: No such file or directory"), "{message}");
}

#[test]
fn a_file_that_leads_out_of_the_checkout() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "path=\"skills/greet\"", "path=\"../skills/greet\"");
    let message = checkout.fails(&["check"]);
    assert!(message.contains("--> Boxfile:11:20"), "{message}");
    checkout.edit("Boxfile", "path=\"../skills/greet\"", "path=\"skills/link\"");
    std::os::unix::fs::symlink("/usr", checkout.path("skills/link")).unwrap();
    let message = checkout.fails(&["check"]);
    assert!(message.contains("skills/link leads out of the checkout"), "{message}");
}

/// A checkout may come from a stranger, and a message shows lines of the files that are read.
#[test]
fn a_boxfile_or_lock_that_is_a_link_out_of_the_checkout() {
    /// A text that formatting would change.
    const PRECIOUS: &str = "    password = \"canary\"\n";

    let checkout = Checkout::new();
    checkout.write("precious", PRECIOUS);
    checkout.write("inner/Boxfile.kdl", BOXFILE);
    let link = |name: &str| std::os::unix::fs::symlink("../precious", checkout.path(name)).unwrap();
    let run = |args: &[&str]| checkout.run(&[&["-C", "inner"], args].concat());
    let refused = |args: &[&str]| {
        let ran = run(args);
        let message = format!("{}{}", ran.result, ran.notes);
        assert_eq!(ran.code, 1, "{args:?}: {message}");
        assert!(
            message.contains("leads out of the checkout") && !message.contains("canary"),
            "{message}"
        );
    };
    link("inner/Boxfile.lock");
    for args in [&["build"][..], &["lock"], &["update"], &["fetch"], &["plan", "--json"]] {
        refused(args);
    }
    fs::remove_file(checkout.path("inner/Boxfile.kdl")).unwrap();
    link("inner/Boxfile");
    for args in [&["check"][..], &["check", "--json"], &["fmt"], &["fmt", "Boxfile"], &["build"]] {
        refused(args);
    }
    refused(&["init", "--force", "oci:../images/agent"]);
    assert_eq!(checkout.read("precious"), PRECIOUS);
    let named = run(&["check", "-f", "Boxfile"]);
    assert!(!named.notes.contains("leads out"), "{}", named.notes);
}

#[test]
fn a_boxfile_that_is_no_file_is_not_passed_over() {
    let checkout = Checkout::new();
    fs::create_dir(checkout.path("inner")).unwrap();
    let check = || checkout.run(&["check", "-C", "inner"]);
    std::os::unix::fs::symlink("nothing", checkout.path("inner/Boxfile")).unwrap();
    let message = check().notes;
    insta::assert_snapshot!(message, @"
    error: cannot read Boxfile: it is a symbolic link that leads nowhere
      = help: name the Boxfile to use with `-f PATH`
    ");
    fs::remove_file(checkout.path("inner/Boxfile")).unwrap();
    fs::create_dir(checkout.path("inner/Boxfile")).unwrap();
    insta::assert_snapshot!(check().notes, @"error: cannot read Boxfile: it is not a regular file");
}

#[test]
fn a_store_that_cannot_be_made() {
    let checkout = Checkout::new();
    checkout.write("store", "a file");
    let message = checkout.fails(&["build"]);
    assert!(message.starts_with("error: ") && message.contains("store"), "{message}");
    assert!(!message.contains("defect"), "{message}");
    let mut homeless = checkout.boxbuild(&["build"]);
    let ran = crate::checkout::Ran::of(homeless.env_remove("BOXBUILD_STORE"));
    insta::assert_snapshot!(ran.notes, @"
    error: no directory for the store
      = help: name one with --store, or set HOME
    ");
    // The XDG Base Directory specification says to ignore a relative path.
    homeless.env("XDG_CACHE_HOME", "cache");
    assert_eq!(crate::checkout::Ran::of(&mut homeless).notes, ran.notes);
    assert!(!checkout.path("cache").exists());
}

#[test]
fn threads() {
    let checkout = Checkout::new();
    let one = checkout.built(&["--jobs", "1"])["box"].clone();
    fs::remove_dir_all(checkout.path("store")).unwrap();
    assert_eq!(checkout.built(&["--jobs", "9", "-o", "nine.box"])["box"], one);
    for jobs in ["0", "1025", "many"] {
        assert_eq!(checkout.run(&["build", "--jobs", jobs]).code, 2);
    }
}

#[test]
fn the_boxfile_that_is_to_have_a_budget_is_read_before_anything_is_measured() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    checkout.write("other.Boxfile", BOXFILE.replace("box \"test\"", "box \"other\""));
    // A measurement would fail, because the virtual host's kernel is missing. The error must come before it.
    let mut budget = checkout.boxbuild(&["budget", "test.box", "--write", "20%", "--offline"]);
    budget.args(["-f", "other.Boxfile"]).env("XDG_CACHE_HOME", checkout.path("none"));
    insta::assert_snapshot!(Ran::of(&mut budget).notes, @r#"
    error: other.Boxfile is not a Boxfile of the box "test", or declares its budget in a form that cannot be replaced
      = help: name the box's Boxfile with --file; or measure without --write, and write the budget yourself
    "#);
}

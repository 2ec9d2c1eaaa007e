//! Tests of `boxbuild check`, which reports all errors at once without building.

use std::fs;

use serde_json::json;

use crate::checkout::{BOXFILE, Checkout};

#[test]
fn a_boxfile_that_is_right() {
    let checkout = Checkout::new();
    assert_eq!(checkout.notes(&["check"]), "Boxfile: ok\n");
    let report = checkout.run(&["check", "--json"]).json();
    let nothing = json!([]);
    let fields = [("profiles", &nothing), ("warnings", &nothing), ("unsupported", &nothing)];
    assert_eq!(report["name"], "test");
    assert!(fields.iter().all(|(name, value)| report[name] == **value), "{report}");
    assert!(!checkout.path("store").exists() && !checkout.path("Boxfile.lock").exists());
}

#[test]
fn images_the_kernel_and_the_init_are_not_looked_at() {
    let checkout = Checkout::new();
    fs::remove_dir_all(checkout.path("images")).unwrap();
    let mut check = checkout.boxbuild(&["check"]);
    check.env("BOXBUILD_KERNEL", "/nonexistent").env("BOXBUILD_INIT", "/nonexistent");
    assert!(check.output().unwrap().status.success());
}

#[test]
fn more_disks_than_a_vm_has_devices() {
    let checkout = Checkout::new();
    let volume = |name: &str| format!("volume \"{name}\" guest=\"/{name}\"\n");
    let text = checkout.read("Boxfile");
    let profile = format!("profile \"ci\" {{\n    {}}}\n", volume("e"));
    checkout.write("Boxfile", text + &["a", "b", "c", "d"].map(volume).concat() + &profile);
    let refused = checkout.fails(&["check"]);
    assert!(refused.contains("take 5 devices, and a VM has 4"), "{refused}");
    assert_eq!(checkout.fails(&["plan", "--profile", "ci"]), refused);
    assert!(checkout.run(&["plan"]).code == 0);
}

/// Makes a checkout with errors in several files and in a profile.
fn wrong() -> Checkout {
    let checkout = Checkout::new();
    checkout.edit(
        "Boxfile",
        "    health \"tcp\"\n",
        "    health \"tcp\"\n    env-file \"a.env\"\n",
    );
    checkout.write("a.env", "2A=1\n");
    checkout.write("skills/greet/SKILL.md", "---\nname: 1.0\ndescription: x\n---\n");
    checkout.write("skills/other/SKILL.md", "---\nname: wrong\ndescription: x\n---\n");
    let text = checkout.read("Boxfile");
    let more = "skill \"other\" path=\"skills/other\"\nprofile \"ci\" {\n    skill \"ci\" path=\"skills/ci\"\n}\n";
    checkout.write("Boxfile", text + more);
    checkout
}

#[test]
fn all_errors_of_all_files_in_one_go() {
    let checkout = wrong();
    insta::assert_snapshot!(checkout.fails(&["check"]), @r#"
    error: `name` must be a string, not `1.0`
      --> skills/greet/SKILL.md:2:7
       |
     2 | name: 1.0
       |       ^^^ expected a string
       |
       = help: put it in quotes: "1.0"

    error: the skill's name `wrong` differs from its directory's, `other`
      --> skills/other/SKILL.md:2:7
       |
     2 | name: wrong
       |       ^^^^^ not the directory's name
       |
       = help: write `name: other`, or rename the directory

    error: this cannot name an environment variable
      --> a.env:1:1
       |
     1 | **=*
       | ^^ not a variable's name
       |
       = help: a variable's name has letters, digits and `_`, and does not begin with a digit

    error: the skill `ci` cannot be read: skills/ci is not a directory
       --> Boxfile:16:21
        |
     16 |     skill "ci" path="skills/ci"
        |                     ^^^^^^^^^^^ named here
        |
        = help: a skill is a directory of the checkout with a file SKILL.md in it: docs/skills.md
    "#);
    let ran = checkout.run(&["check", "--json"]);
    assert_eq!((ran.code, ran.notes.as_str()), (1, ""));
    let errors = ran.json()["errors"].as_array().unwrap().clone();
    let files: Vec<&str> =
        errors.iter().filter_map(|it| it["labels"][0]["file"].as_str()).collect();
    assert_eq!(files, ["skills/greet/SKILL.md", "skills/other/SKILL.md", "a.env", "Boxfile"]);
    assert_eq!(errors.len(), 4, "each once, although two variants have it: {errors:?}");
}

#[test]
fn profiles_are_named() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}profile \"ci\" {{\n    vm cpus=2\n}}\n"));
    checkout.result(&["check"]);
    assert_eq!(checkout.run(&["check", "--json"]).json()["profiles"], json!(["ci"]));
}

#[test]
fn all_errors_of_a_boxfile_in_one_go() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", "box \"Test\"\nagent {\n    imag \"oci:x\"\n    port 0\n}\n");
    let ran = checkout.run(&["check", "--json"]);
    assert_eq!(ran.code, 1);
    let errors = ran.json()["errors"].as_array().unwrap().clone();
    let lines: Vec<u64> =
        errors.iter().map(|it| it["labels"][0]["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 3, 4]);
    let label = &errors[1]["labels"][0];
    assert_eq!((&label["column"], &label["end_column"]), (&json!(5), &json!(9)));
    assert_eq!((&label["offset"], &label["length"]), (&json!(23), &json!(4)));
    assert_eq!(errors[1]["help"], "did you mean `image`?");
}

#[test]
fn the_canonical_form() {
    let checkout = Checkout::new();
    let form: serde_json::Value =
        serde_json::from_str(&checkout.result(&["check", "--canonical"])).unwrap();
    assert!(form.is_object());
    let reordered: Vec<&str> = BOXFILE.split_inclusive("}\n").collect();
    let [agent, business, rest] = reordered[..] else { panic!("{reordered:?}") };
    let (name, agent) = agent.split_once('\n').unwrap();
    checkout.write("Boxfile", format!("// other\n{rest}{business}{name}\n{agent}"));
    let again = checkout.result(&["check", "--canonical"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again).unwrap(), form);
}

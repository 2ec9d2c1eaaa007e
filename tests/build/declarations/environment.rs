//! Tests of environment variables, users and working directories. The Boxfile takes precedence over its files of variables,
//! and these over the image.

use std::os::unix::fs::symlink;

use serde_json::json;
use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout, shown};

/// Makes a checkout whose agent image sets all of these, and whose `agent` declaration contains `lines`.
fn checkout(lines: &str) -> Checkout {
    let checkout = Checkout::new();
    let config = Config {
        entrypoint: vec!["/bin/agent".to_owned()],
        cmd: vec!["--image".to_owned()],
        env: vec!["A=image".to_owned(), "B=image".to_owned(), "C=image".to_owned()],
        working_dir: "/image".to_owned(),
        user: "app".to_owned(),
        ..Config::default()
    };
    let passwd = "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n";
    let layer = Layer::new()
        .file("/bin/agent", 0o755, "agent")
        .file("/bin/other", 0o755, "other")
        .file("/etc/passwd", 0o644, passwd)
        .file("/etc/group", 0o644, "root:x:0:\napp:x:1000:\nwheel:x:10:app\n");
    checkout.image("agent", &Image::new(config).with(layer.to_tar()));
    checkout.edit("Boxfile", "    health \"tcp\"\n", &format!("    health \"tcp\"\n    {lines}\n"));
    checkout
}

/// Returns the agent's variables in a plan, without `PATH`.
fn variables(plan: &serde_json::Value) -> Vec<&str> {
    let all = plan["agent"]["env"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    all.filter(|it| !it.starts_with("PATH=")).collect()
}

#[test]
fn files_count_over_the_image_and_under_the_boxfile() {
    let checkout = checkout("env-file \"one.env\" \"two.env\"\n    env C=\"boxfile\"");
    checkout.write("one.env", "# first\nB=one\nC=one\nD=one\nE='a # b'\n");
    checkout.write("two.env", "export D=\"two\\n2\"\n");
    let plan = checkout.built_plan();
    assert_eq!(
        variables(&plan),
        ["A=image", "B=one", "C=boxfile", "D=two\n2", "E=a # b", "HOME=/home/app"]
    );
    checkout.edit("Boxfile", "\"one.env\" \"two.env\"", "\"two.env\" \"one.env\"");
    assert!(variables(&checkout.built_plan()).contains(&"D=one"), "the later file counts");
}

/// Moving a file of variables to the other component changes the box, although the file's content stays.
#[test]
fn a_file_that_goes_over_to_the_other_component() {
    let checkout = Checkout::new();
    checkout.write("a.env", "A=1\n");
    let line = "    limits memory=\"64MiB\" pids=32\n";
    let with = |agent: &str, business: &str| {
        let text = BOXFILE.replacen(line, &format!("{line}{agent}"), 1);
        let (agent, last) = text.rsplit_once(line).unwrap();
        checkout.write("Boxfile", format!("{agent}{line}{business}{last}"));
        checkout.built_plan()
    };
    let file = "    env-file \"a.env\"\n";
    let has = |plan: &serde_json::Value, component: &str| {
        plan[component]["env"].as_array().unwrap().contains(&json!("A=1"))
    };
    let plan = with(file, "");
    assert!(has(&plan, "agent") && !has(&plan, "business"), "{plan}");
    let plan = with("", file);
    assert!(!has(&plan, "agent") && has(&plan, "business"), "{plan}");
    let plan = with(file, file);
    assert!(has(&plan, "agent") && has(&plan, "business"), "{plan}");
}

#[test]
fn a_file_that_is_wrong() {
    let wrong = checkout("env-file \"a.env\"");
    wrong.write("a.env", "A=1\n2B=2\nC\n");
    let output = wrong.fails(&["check"]);
    assert_eq!(wrong.fails(&["build"]), output);
    insta::assert_snapshot!(output, @r"
    error: this cannot name an environment variable
      --> a.env:2:1
       |
     2 | **=*
       | ^^ not a variable's name
       |
       = help: a variable's name has letters, digits and `_`, and does not begin with a digit

    error: a line has no `=`
      --> a.env:3:1
       |
     3 | *
       | ^ no `=`
       |
       = help: write `NAME=value`; nothing is taken from the environment
    ");
    let missing = checkout("env-file \"a.env\"");
    insta::assert_snapshot!(missing.fails(&["check"]), @r#"
    error: cannot read a.env: No such file or directory (os error 2)
      --> Boxfile:5:14
       |
     5 |     env-file "a.env"
       |              ^^^^^^^ named here
    "#);
    let outside = checkout("env-file \"a.env\"");
    symlink("/etc/passwd", outside.path("a.env")).unwrap();
    let output = outside.fails(&["check"]);
    assert!(output.contains("it leads out of the checkout, through a symbolic link"), "{output}");
    let bytes = checkout("env-file \"a.env\"");
    bytes.write("a.env", b"A=\xff\n");
    assert_eq!(
        bytes.fails(&["check"]),
        "error: cannot read a.env: not valid UTF-8 at line 1, column 3\n"
    );
}

/// A file of variables is checked in, and its values are baked. So it must not contain a secret, and no message shows one.
#[test]
fn a_secret_in_a_file() {
    let checkout = checkout("env-file \"a.env\"\n    plain-env CSRF_TOKEN=\"kept\"");
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    checkout
        .write("a.env", format!("PLAIN=1\nGITHUB={secret}\nCSRF_TOKEN=not-this-one\nPIN=1234\n"));
    checkout.edit("Boxfile", "vm cpus=1", "secret \"PIN\"\nvm cpus=1");
    let output = checkout.fails(&["check"]);
    assert_eq!(checkout.fails(&["build"]), output);
    assert!(!output.contains("0123") && !output.contains("1234"), "{output}");
    insta::assert_snapshot!(output, @r"
    error: `GITHUB` looks like a secret written as a plain value
      --> a.env:2:1
       |
     2 | GITHUB=****************************************
       | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ it would be in every box
       |
       = help: take it out of this file, and declare it by name alone in the Boxfile, as the secret `GITHUB` (`boxlaunch run --secret` gives its value); if it is not a secret, write it there as `plain-env`

    error: `PIN` is declared as a secret, and has a value here
      --> a.env:4:1
       |
     4 | PIN=****
       | ^^^^^^^^ it would be in every box
       |
       = help: take it out of this file, and declare it by name alone in the Boxfile, as the secret `PIN` (`boxlaunch run --secret` gives its value); if it is not a secret, write it there as `plain-env`
    ");
}

/// A secret in an image is only a warning, because the image may be somebody else's.
#[test]
fn a_secret_of_an_image_is_a_warning() {
    let checkout = Checkout::new();
    let env = vec!["API_KEY=abc123".to_owned(), "LOG=info".to_owned()];
    let entrypoint = vec!["/bin/agent".to_owned()];
    let layer = Layer::new().file("/bin/agent", 0o755, "agent").to_tar();
    let config = Config { entrypoint, env, ..Config::default() };
    std::fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &Image::new(config).with(layer));
    let output = checkout.notes(&["plan"]);
    insta::assert_snapshot!(output, @r#"
    warning: the image of `agent` sets `API_KEY`, which looks like a secret
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ its value is in the image, and will be in the box
       |
       = help: build the image without it, and declare the secret `API_KEY` in the Boxfile; if it is no secret, `plain-env` with `API_KEY` says so
    "#);
    assert!(checkout.notes(&["build"]).starts_with(&output));
    checkout.edit("Boxfile", "    health", "    plain-env API_KEY=\"x\"\n    health");
    assert_eq!(checkout.notes(&["plan"]), "");
}

/// The name of an agent's secret may be a plain variable of the business application, in the Boxfile and in a file.
#[test]
fn another_components_secret_is_no_secret() {
    let checkout = Checkout::new();
    checkout.write("b.env", "REGION=x\n");
    checkout.edit("Boxfile", "vm cpus=1", "secret \"REGION\"\nvm cpus=1");
    checkout.edit("Boxfile", "business {", "business {\n    env-file \"b.env\"");
    checkout.result(&["check"]);
    checkout.edit("Boxfile", "secret \"REGION\"", "secret \"REGION\" component=\"both\"");
    let output = checkout.fails(&["check"]);
    assert!(output.contains("`REGION` is declared as a secret"), "{output}");
}

#[test]
fn the_boxfile_overrides_the_image() {
    let plan = checkout("").built_plan();
    let agent = &plan["agent"];
    assert_eq!(agent["argv"], json!(["/bin/agent", "--image"]));
    assert_eq!(agent["workdir"], "/image");
    assert_eq!(agent["user"], json!({ "uid": 1000, "gid": 1000, "groups": [10] }));
    let plan = checkout("args \"--own\"; workdir \"/own\"; user \"0:10\"").built_plan();
    let agent = &plan["agent"];
    assert_eq!(agent["argv"], json!(["/bin/agent", "--own"]));
    assert_eq!(agent["workdir"], "/own");
    assert_eq!(agent["user"], json!({ "uid": 0, "gid": 10 }));
    let plan = checkout("entrypoint \"/bin/other\" \"x\"").built_plan();
    assert_eq!(plan["agent"]["argv"], json!(["/bin/other", "x"]), "the image's CMD is not for it");
}

#[test]
fn a_user_that_the_image_lacks() {
    let checkout = checkout("user \"nobody\"");
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r#"
    error: the agent component runs as "nobody", but the image's /etc/passwd has no such name
      --> Boxfile:5:10
       |
     5 |     user "nobody"
       |          ^^^^^^^^ named here
       |
       = help: name a user that the image has, or one by number, such as "1000:1000"
    "#);
    let config = Config { user: "nobody".to_owned(), ..Config::default() };
    let layer = Layer::new().file("/bin/agent", 0o755, "agent");
    checkout.image("agent", &Image::new(config).with(layer.to_tar()));
    checkout.edit("Boxfile", "    user \"nobody\"\n", "");
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r#"
    error: the agent component runs as "nobody", but the image's /etc/passwd has no such name
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: name a user that the image has, or one by number, such as "1000:1000"
    "#);
}

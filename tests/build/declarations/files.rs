//! Tests of `file`, which copies files of the checkout into the components' roots.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use serde_json::{Value, json};
use testkit::images::{Config, Image, Layer};

use crate::checkout::{BOXFILE, Checkout, Ran, shown};
use crate::reproducible::under_umask;

/// Returns a Boxfile with these lines in the agent's and in the business application's declaration.
fn boxfile(agent: &str, business: &str) -> String {
    let of = |image: &str| format!("    image \"oci:images/{image}\"\n");
    BOXFILE
        .replace(&of("agent"), &format!("{}{agent}\n", of("agent")))
        .replace(&of("business"), &format!("{}{business}\n", of("business")))
}

/// Makes a checkout with the file `conf.yaml`, and the directory `static` that has a program, a link and a directory.
fn with_files(agent: &str, business: &str) -> Checkout {
    let checkout = Checkout::new();
    checkout.write("conf.yaml", "colour: red\n");
    checkout.write("static/index.html", "<p>");
    checkout.write("static/bin/run.sh", "#!/bin/sh\n");
    fs::set_permissions(checkout.path("static/bin/run.sh"), Permissions::from_mode(0o755)).unwrap();
    symlink("index.html", checkout.path("static/home")).unwrap();
    fs::create_dir(checkout.path("static/none")).unwrap();
    checkout.write("Boxfile", boxfile(agent, business));
    checkout
}

const AGENT: &str = r#"    file "conf.yaml" to="/etc/app/" mode="0600" owner="1000:50"
    file "static" to="/srv/www""#;
const BUSINESS: &str = r#"    file "conf.yaml" to="/app/conf.yaml"
    file "static" to="/opt/" owner="7""#;

/// Returns a line for each entry of the built box that is from the checkout: path, type, mode, owner, time and source.
fn baked(checkout: &Checkout) -> Vec<String> {
    let ran = checkout.run(&["ls", "test.box", "--json"]).json();
    let line = |entry: &Value| {
        format!(
            "{} {} {} {}:{} {} {}",
            entry["path"].as_str().unwrap(),
            entry["type"].as_str().unwrap(),
            entry["mode"].as_str().unwrap(),
            entry["uid"],
            entry["gid"],
            entry["mtime"],
            entry["origin"]["path"].as_str().unwrap(),
        )
    };
    let entries = ran["entries"].as_array().unwrap().iter();
    entries.filter(|it| it["origin"]["kind"] == "file").map(line).collect()
}

#[test]
fn files_and_directories_are_in_both_components() {
    let checkout = with_files(AGENT, BUSINESS);
    let first = checkout.built(&[])["box"].clone();
    insta::assert_snapshot!(baked(&checkout).join("\n"), @"
    /roots/agent/etc/app/conf.yaml file 0600 1000:50 0 conf.yaml
    /roots/agent/srv/www directory 0755 0:0 0 static
    /roots/agent/srv/www/bin directory 0755 0:0 0 static
    /roots/agent/srv/www/bin/run.sh file 0755 0:0 0 static
    /roots/agent/srv/www/home symlink 0777 0:0 0 static
    /roots/agent/srv/www/index.html file 0644 0:0 0 static
    /roots/business/app/conf.yaml file 0644 0:0 0 conf.yaml
    /roots/business/opt/static directory 0755 7:0 0 static
    /roots/business/opt/static/bin directory 0755 7:0 0 static
    /roots/business/opt/static/bin/run.sh file 0755 7:0 0 static
    /roots/business/opt/static/home symlink 0777 7:0 0 static
    /roots/business/opt/static/index.html file 0644 7:0 0 static
    ");
    let cat = |path: &str| checkout.result(&["cat", "test.box", path]);
    assert_eq!(cat("/roots/agent/etc/app/conf.yaml"), "colour: red\n");
    assert_eq!(cat("/roots/business/opt/static/bin/run.sh"), "#!/bin/sh\n");
    checkout.result(&["verify", "test.box"]);
    assert_eq!(checkout.built(&[])["cached"], true);
    checkout.write("conf.yaml", "colour: blue\n");
    let changed = checkout.built(&[]);
    assert_ne!(changed["box"], first);
    assert_eq!(cat("/roots/business/app/conf.yaml"), "colour: blue\n");
    checkout.write("conf.yaml", "colour: red\n");
    let again = checkout.built(&[]);
    assert_eq!((&again["box"], &again["cached"]), (&first, &json!(true)), "nothing is built again");
}

#[test]
fn one_root_has_the_files_of_both() {
    let checkout = with_files(AGENT, BUSINESS);
    let text = format!("{}layout \"merged\"\n", boxfile(AGENT, BUSINESS));
    checkout.write("Boxfile", &text);
    checkout.built(&[]);
    insta::assert_snapshot!(baked(&checkout).join("\n"), @"
    /roots/merged/app/conf.yaml file 0644 0:0 0 conf.yaml
    /roots/merged/etc/app/conf.yaml file 0600 1000:50 0 conf.yaml
    /roots/merged/opt/static directory 0755 7:0 0 static
    /roots/merged/opt/static/bin directory 0755 7:0 0 static
    /roots/merged/opt/static/bin/run.sh file 0755 7:0 0 static
    /roots/merged/opt/static/home symlink 0777 7:0 0 static
    /roots/merged/opt/static/index.html file 0644 7:0 0 static
    /roots/merged/srv/www directory 0755 0:0 0 static
    /roots/merged/srv/www/bin directory 0755 0:0 0 static
    /roots/merged/srv/www/bin/run.sh file 0755 0:0 0 static
    /roots/merged/srv/www/home symlink 0777 0:0 0 static
    /roots/merged/srv/www/index.html file 0644 0:0 0 static
    ");
}

#[test]
fn a_file_that_differs_from_the_other_image_is_a_conflict_of_one_root() {
    let checkout = with_files("    file \"conf.yaml\" to=\"/app/main\"", "");
    let text = format!("{}layout \"merged\"\n", checkout.read("Boxfile"));
    checkout.write("Boxfile", &text);
    insta::assert_snapshot!(shown(&checkout.fails(&["build"])), @r#"
    error: the images conflict at 1 path
      --> Boxfile:3:11
       |
     3 |     image "oci:images/agent"
       |           ^^^^^^^^^^^^^^^^^^ the agent's files
    ...
     9 |     image "oci:images/business"
       |           --------------------- the business component's files

    /app/main: mode is 0644 and 0755
        agent     file of 12 bytes, file conf.yaml
        business  file of 3 bytes, layer 2 DIG

      = help: layout "merged" has each path once. Decide in the Boxfile: these lines are enough, and
        each policy is yours to choose: prefer-agent, prefer-business or drop; `merge` combines
        both files (passwd, group, shadow and gshadow only). The first pattern that matches
        decides, so put them above other `conflict`s:
          conflict "/app/main" policy="prefer-agent"
        or keep each image whole: `layout "split"`
    "#);
    checkout.write("Boxfile", format!("{text}conflict \"/app/main\" policy=\"prefer-agent\"\n"));
    checkout.built(&[]);
    assert_eq!(baked(&checkout), ["/roots/merged/app/main file 0644 0:0 0 conf.yaml"]);
}

#[test]
fn neither_the_directory_nor_what_a_checkout_does_not_keep_makes_another_box() {
    let build = |checkout: &Checkout| checkout.built(&["--output", "out.box"])["box"].clone();
    let one = build(&with_files(AGENT, BUSINESS));
    let other = with_files(AGENT, BUSINESS);
    for (path, mode) in [("conf.yaml", 0o600), ("static/index.html", 0o666), ("static/bin", 0o700)]
    {
        fs::set_permissions(other.path(path), Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(other.path("static/bin/run.sh"), Permissions::from_mode(0o700)).unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    let file = fs::File::options().write(true).open(other.path("conf.yaml")).unwrap();
    file.set_modified(past).unwrap();
    fs::create_dir(other.path("static/more")).unwrap();
    let toml = with_files("", "");
    toml.write("Boxfile.toml", TOML);
    let mut masked = under_umask(other.command().args(["--output", "masked.box", "--json"]), "077");
    assert_eq!(Ran::of(&mut masked).json()["box"], one);
    let built = toml.built(&["--file", "Boxfile.toml", "--output", "out.box"]);
    assert_eq!(built["box"], one, "in TOML");
    let plain = build(&with_files("", ""));
    let mut seen = vec![one, plain];
    for (from, to) in [
        ("mode=\"0600\"", "mode=\"0640\""),
        ("owner=\"1000:50\"", "owner=\"1000:51\""),
        ("to=\"/srv/www\"", "to=\"/srv/htdocs\""),
    ] {
        seen.push(build(&with_files(&AGENT.replace(from, to), BUSINESS)));
    }
    let changes: [fn(&Checkout); 3] = [
        |it| it.write("static/index.html", "<b>"),
        |it| it.write("static/more", ""),
        |it| {
            fs::set_permissions(it.path("static/index.html"), Permissions::from_mode(0o755))
                .unwrap();
        },
    ];
    for change in changes {
        let checkout = with_files(AGENT, BUSINESS);
        change(&checkout);
        seen.push(build(&checkout));
    }
    for (at, digest) in seen.iter().enumerate() {
        assert!(!seen[..at].contains(digest), "change {at} went unnoticed");
    }
}

const TOML: &str = r#"box = "test"
vm = { cpus = 1, memory = "256MiB" }

[agent]
image = "oci:images/agent"
health = "tcp"
limits = { memory = "64MiB", pids = 32 }

[agent.file]
"conf.yaml" = { to = "/etc/app/conf.yaml", mode = "600", owner = "1000:50" }
static.to = "/srv/www"

[business]
image = "oci:images/business"
limits = { memory = "64MiB", pids = 32 }

[business.file]
static = { to = "/opt/static", owner = "7" }
"conf.yaml".to = "/app/"

[skill.greet]
path = "skills/greet"
"#;

#[test]
fn what_cannot_be_read_is_named_where_it_is_declared() {
    let lines = "    file \"none\" to=\"/a\"\n    file \"out/x\" to=\"/b\"\n    file \"pipes\" to=\"/c\"\n    file \"static/none\" to=\"/d\"";
    let checkout = with_files(lines, "");
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x"), "secret").unwrap();
    symlink(outside.path(), checkout.path("out")).unwrap();
    fs::create_dir(checkout.path("pipes")).unwrap();
    let _socket = UnixListener::bind(checkout.path("pipes/socket")).unwrap();
    let output = checkout.fails(&["check"]);
    insta::assert_snapshot!(output, @r#"
    error: cannot read none: No such file or directory (os error 2)
      --> Boxfile:4:10
       |
     4 |     file "none" to="/a"
       |          ^^^^^^ named here

    error: cannot read out/x: it leads out of the checkout, through a symbolic link
      --> Boxfile:5:10
       |
     5 |     file "out/x" to="/b"
       |          ^^^^^^^ named here
       |
       = help: copy what the box needs into the checkout: the target of a link must be inside it

    error: pipes/socket is neither a file nor a directory nor a link
      --> Boxfile:6:10
       |
     6 |     file "pipes" to="/c"
       |          ^^^^^^^ named here
       |
       = help: remove it, or name the files one by one

    error: static/none has no file in it
      --> Boxfile:7:10
       |
     7 |     file "static/none" to="/d"
       |          ^^^^^^^^^^^^^ named here
       |
       = help: correct the path, or remove it
    "#);
    let first = checkout.run(&["build"]).notes;
    assert!(output.starts_with(first.trim_end()), "{first}");
}

#[test]
fn what_is_in_the_way_is_named_where_it_is_declared() {
    let output = |agent: &str| with_files(agent, "").fails(&["build"]);
    insta::assert_snapshot!(output("    file \"conf.yaml\" to=\"/usr\""), @r#"
    error: conf.yaml cannot be at /usr of the agent component: there is a directory
      --> Boxfile:4:25
       |
     4 |     file "conf.yaml" to="/usr"
       |                         ^^^^^^ named here
       |
       = help: end `to` with a slash to put a file into that directory, or choose another path
    "#);
    insta::assert_snapshot!(output("    file \"static\" to=\"/agent/bin/agent\""), @r#"
    error: static cannot be at /agent/bin/agent of the agent component: "/agent/bin/agent" is not a directory
      --> Boxfile:4:22
       |
     4 |     file "static" to="/agent/bin/agent"
       |                      ^^^^^^^^^^^^^^^^^^ named here
       |
       = help: choose another path, or remove what is there
    "#);
    insta::assert_snapshot!(
        output("    file \"static\" to=\"/srv\"\n    file \"conf.yaml\" to=\"/srv/index.html\""), @r#"
    error: conf.yaml cannot be at /srv/index.html of the agent component: static is there
      --> Boxfile:5:25
       |
     4 |     file "static" to="/srv"
       |                      ------ and named here
     5 |     file "conf.yaml" to="/srv/index.html"
       |                         ^^^^^^^^^^^^^^^^^ named here
       |
       = help: give one of them another path, or remove it
    "#
    );
    insta::assert_snapshot!(output("    file \"conf.yaml\" to=\"/etc/hosts\""), @r#"
    error: conf.yaml cannot be at /etc/hosts of the agent component: the box has its own file there
      --> Boxfile:4:25
       |
     4 |     file "conf.yaml" to="/etc/hosts"
       |                         ^^^^^^^^^^^^ named here
       |
       = help: remove it: the names in a box follow from `hostname`, and it has no resolver
    "#);
    insta::assert_snapshot!(output("    file \"conf.yaml\" to=\"/x\" owner=\"nobody\""), @r#"
    error: the agent component's conf.yaml belongs to "nobody", but the image's /etc/passwd has no such name
      --> Boxfile:4:36
       |
     4 |     file "conf.yaml" to="/x" owner="nobody"
       |                                    ^^^^^^^^ named here
       |
       = help: name a user that the image has, or one by number, such as "1000:1000"
    "#);
}

#[test]
fn a_mount_hides_no_file_of_a_directory() {
    let checkout = with_files("    file \"static\" to=\"/srv/www\"", "");
    let text = checkout.read("Boxfile");
    checkout
        .write("Boxfile", format!("{text}scratch \"s\" guest=\"/srv/www/bin\" size=\"1MiB\"\n"));
    insta::assert_snapshot!(checkout.fails(&["build"]), @r#"
    error: the agent component has files (run.sh) at /srv/www/bin, in the way of the scratch `s`
       --> Boxfile:15:19
        |
     15 | scratch "s" guest="/srv/www/bin" size="1MiB"
        |                   ^^^^^^^^^^^^^^ named here
        |
        = help: choose another path, or remove what is there
    "#);
    checkout
        .write("Boxfile", format!("{text}scratch \"s\" guest=\"/srv/www/tmp\" size=\"1MiB\"\n"));
    checkout.built(&[]);
}

#[test]
fn an_image_leads_to_nothing_outside_of_its_root() {
    // The directory is not below `/dev`, where a box has the kernel's devices.
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    let target = format!("../../../..{}", outside.path().display());
    let checkout = with_files("    file \"conf.yaml\" to=\"/escape/\"", "");
    let layer = Layer::new().file("/agent", 0o755, "agent").symlink("/escape", &target);
    let config = Config { entrypoint: vec!["/agent".to_owned()], ..Config::default() };
    fs::remove_dir_all(checkout.path("images/agent")).unwrap();
    checkout.image("agent", &Image::new(config).with(layer.to_tar()));
    checkout.built(&[]);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let within = format!("/roots/agent{}/conf.yaml", outside.path().display());
    assert_eq!(checkout.result(&["cat", "test.box", &within]), "colour: red\n");
}

#[test]
fn the_lock_pins_files_as_it_does_skills() {
    let checkout = with_files(AGENT, BUSINESS);
    checkout.built(&[]);
    let lock = checkout.read("Boxfile.lock");
    for name in ["file:conf.yaml", "file:static"] {
        assert_eq!(
            lock.matches(&format!("name = \"{name}\"\nkind = \"file\"")).count(),
            1,
            "{lock}"
        );
    }
    checkout.built(&["--locked"]);
    checkout.write("conf.yaml", "colour: blue\n");
    let ran = checkout.run(&["build", "--locked"]);
    assert_eq!(ran.code, 3);
    assert!(ran.notes.contains("file:conf.yaml: locked blake3:"), "{}", ran.notes);
    checkout.result(&["lock"]);
    checkout.built(&["--locked"]);
}

#[test]
fn a_profile_changes_where_a_file_is() {
    let checkout = with_files("    file \"conf.yaml\" to=\"/etc/\" mode=\"0600\"", "");
    let text = checkout.read("Boxfile");
    let profile = "profile \"ci\" {\n    agent { file \"conf.yaml\" to=\"/srv/\"; }\n}\n";
    checkout.write("Boxfile", format!("{text}{profile}"));
    checkout.built(&["--profile", "ci"]);
    assert_eq!(baked(&checkout), ["/roots/agent/srv/conf.yaml file 0600 0:0 0 conf.yaml"]);
}

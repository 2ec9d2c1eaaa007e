//! Tests that the box contains all declarations about a run, even those that the current launcher refuses.

use serde_json::json;
use testkit::small_kernel;

use crate::checkout::{BOXFILE, Checkout, krunfw};

const LATER: &str = r##"
share "workspace" guest="/a3s/workspace" host="workspace" access="rw"
share "docs" guest="/docs" component="agent"
scratch "cache" guest="/var/cache" size="2GiB" component="business"
network "filtered" {
    allow "api.example.com" "10.1.0.0/16"
    allow "db.example.com" port=5432
    deny "uploads.example.com"
    limits connections=64
}
secret "API_KEY" path="/run/secrets/api-key" component="agent"
secret "TOKEN"
task "refactor-1" type="code" description="Split the parser" input=#"{"files":["a.rs"]}"# timeout="600s" {
    tags "parser" "cleanup"
}
logs stdout=#true stderr=#true events=#false atif=#true
service "model" to="https://model.example.com"
cap "http" timeout="30s"
cap "nostr" { relays "wss://relay.example.com"; }
cap "payments"
cap "ws" max-connections=16
sandbox "ci" fallback="warn" max-output="10MB" {
    writable "/a3s/workspace"
    deny-read "/etc/shadow"
    deny-write "/a3s/workspace/.git"
    allow "cargo test *"
    ask "git commit *"
    forbid "git push *"
}
"##;

#[test]
fn everything_is_in_the_plan() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}{LATER}"));
    let plan = checkout.built_plan();
    let notes = checkout.notes(&["build"]);
    for declared in ["cap \"nostr\"", "cap \"payments\""] {
        let warning = format!("warning: boxlaunch will not start this box: {declared}: ");
        assert!(notes.contains(&warning), "{notes}");
    }
    assert!(!notes.contains("cap \"http\"") && !notes.contains("sandbox"), "{notes}");
    let part = |names: &[&str]| {
        let fields = names.iter().map(|name| ((*name).to_owned(), plan[name].clone()));
        serde_json::to_string_pretty(&fields.collect::<serde_json::Map<_, _>>()).unwrap()
    };
    insta::assert_snapshot!(part(&["shares", "scratch", "network", "secrets"]), @r#"
    {
      "network": {
        "allow": [
          {
            "peer": "10.1.0.0/16"
          },
          {
            "peer": "api.example.com"
          },
          {
            "peer": "db.example.com",
            "port": 5432
          }
        ],
        "deny": [
          {
            "peer": "uploads.example.com"
          }
        ],
        "limits": {
          "bytes-per-second": 67108864,
          "connections": 64,
          "names-per-minute": 300
        },
        "mode": "filtered"
      },
      "scratch": [
        {
          "guest": "/var/cache",
          "name": "cache",
          "scope": "business",
          "size-bytes": 2147483648
        }
      ],
      "secrets": [
        {
          "delivery": {
            "file": {
              "path": "/run/secrets/api-key"
            }
          },
          "name": "API_KEY",
          "scope": "agent"
        },
        {
          "delivery": "env",
          "name": "TOKEN",
          "scope": "agent"
        }
      ],
      "shares": [
        {
          "guest": "/docs",
          "name": "docs",
          "scope": "agent"
        },
        {
          "access": "rw",
          "guest": "/a3s/workspace",
          "host": "workspace",
          "name": "workspace",
          "scope": "both"
        }
      ]
    }
    "#);
    insta::assert_snapshot!(part(&["task", "logs", "caps", "sandbox"]), @r#"
    {
      "caps": [
        {
          "http": {
            "timeout-ms": 30000
          }
        },
        {
          "nostr": {
            "relays": [
              "wss://relay.example.com"
            ]
          }
        },
        "payments",
        {
          "ws": {
            "max-connections": 16
          }
        }
      ],
      "logs": {
        "atif": true,
        "events": false,
        "stderr": true,
        "stdout": true
      },
      "sandbox": {
        "allow": [
          "cargo test *"
        ],
        "ask": [
          "git commit *"
        ],
        "deny-read": [
          "/etc/shadow"
        ],
        "deny-write": [
          "/a3s/workspace/.git"
        ],
        "fallback": "warn",
        "forbid": [
          "git push *"
        ],
        "max-output-bytes": 10000000,
        "preset": "ci",
        "writable": [
          "/a3s/workspace"
        ]
      },
      "task": {
        "description": "Split the parser",
        "id": "refactor-1",
        "input": "{\"files\":[\"a.rs\"]}",
        "tags": [
          "cleanup",
          "parser"
        ],
        "timeout-seconds": 600,
        "type": "code"
      }
    }
    "#);
}

#[test]
fn the_verification_of_a_task_is_in_the_plan() {
    let checkout = Checkout::new();
    let boxfile = BOXFILE.replacen("business {", "business {\n    workdir \"/work\"", 1);
    let task = "task \"t\" type=\"code\" description=\"Split it\" { verify \"npm\" \"test\"; }";
    checkout.write("Boxfile", format!("{boxfile}\n{task}\n"));
    let expected =
        json!({"argv": ["npm", "test"], "component": "business", "timeout-seconds": 600});
    assert_eq!(checkout.built_plan()["task"]["verify"], expected);
    checkout.edit("Boxfile", "\"/work\"", "\"/usr/lib\"");
    let refused = checkout.fails(&["check"]);
    assert!(refused.contains("cannot take over the working directory `/usr/lib`"), "{refused}");
    // The working directory of the image, which only a build reads.
    checkout.edit("Boxfile", "    workdir \"/usr/lib\"\n", "");
    let refused = checkout.fails(&["build"]);
    assert!(refused.contains("\"/\" is a directory of the system; declare another"), "{refused}");
}

#[test]
fn limits_and_namespaces_of_each_component() {
    let checkout = Checkout::new();
    let business = "business {\n    autostart #true restart=\"always\"\n    entrypoint \"/app/main\"\n    \
                    namespaces net=#true hostname=\"shop\"\n    \
                    rlimits nofile=1024 cpu=\"60s\" core=\"0B\" file-size=\"1GiB\"";
    checkout.edit("Boxfile", "business {", business);
    let plan = checkout.built_plan();
    let business = &plan["business"];
    assert_eq!((&business["autostart"], &business["hostname"]), (&json!(true), &json!("shop")));
    assert_eq!(business["restart"], "always");
    assert_eq!(business["namespaces"]["net"], true);
    assert_eq!(
        business["rlimits"],
        json!({ "nofile": 1024, "cpu-seconds": 60, "core-bytes": 0, "fsize-bytes": 1 << 30 })
    );
    assert_eq!(plan["agent"]["namespaces"]["net"], false);
}

#[test]
fn without_a_health_check_a_running_agent_is_ready() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "health \"tcp\"", "health \"none\"");
    assert_eq!(checkout.built_plan()["agent"].get("health"), None);
}

#[test]
fn the_kernel_that_the_boxfile_names() {
    let checkout = Checkout::new();
    std::fs::copy(krunfw(), checkout.path("kernel.so")).unwrap();
    let plain = checkout.run(&["build", "--kernel", "kernel.so", "--json"]).json()["box"].clone();
    checkout.write("Boxfile", format!("{BOXFILE}kernel \"kernel.so\"\n"));
    let mut named = checkout.boxbuild(&["build", "--json"]);
    named.env("BOXBUILD_KERNEL", "/nonexistent");
    let ran = crate::checkout::Ran::of(&mut named);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    assert_eq!(ran.json()["box"], plain);
    let zeros = "0".repeat(64);
    checkout.write("Boxfile", format!("{BOXFILE}kernel \"kernel.so\" sha256=\"{zeros}\"\n"));
    let output = checkout.fails(&["build"]);
    assert!(output.contains("the kernel kernel.so is sha256:"), "{output}");
}

/// Returns a kernel with all options that a box needs except `option`.
fn kernel_without(option: &str, release: &str) -> Vec<u8> {
    let plan = testkit::test_box::config().plan;
    let needs = box_contract::kernel::needs(&plan).into_iter().map(|need| need.option);
    small_kernel::configured(release, needs.chain(["SMP"]).filter(|it| *it != option)).unwrap()
}

#[test]
fn a_kernel_without_what_a_box_needs_is_refused_by_name() {
    let checkout = Checkout::new();
    checkout.write("Boxfile", format!("{BOXFILE}kernel \"vmlinux\"\n"));
    checkout.write("vmlinux", kernel_without("none", "6.12.1"));
    let whole = checkout.built(&[])["box"].clone();
    checkout.write("vmlinux", kernel_without("EROFS_FS", "6.12.1"));
    let output = checkout.fails(&["build"]);
    let reason = "it was compiled without CONFIG_EROFS_FS, which the root needs";
    assert!(output.contains(reason) && output.contains("kernel \"lean\""), "{output}");
    assert!(!whole.is_null());
}

/// The fallback of a policy decides whether the kernel must have Landlock.
#[test]
fn a_strict_policy_needs_a_kernel_with_landlock() {
    let checkout = Checkout::new();
    checkout.write("vmlinux", kernel_without("SECURITY_LANDLOCK", "6.12.1"));
    let sandbox = "kernel \"vmlinux\"\nsandbox \"default\" fallback=\"strict\"\n";
    checkout.write("Boxfile", format!("{BOXFILE}{sandbox}"));
    let refused = checkout.fails(&["build"]);
    let reason = "it was compiled without CONFIG_SECURITY_LANDLOCK, which `sandbox`";
    assert!(refused.contains(reason), "{refused}");
    checkout.edit("Boxfile", "\"strict\"", "\"warn\"");
    assert_eq!(checkout.built_plan()["sandbox"]["fallback"], "warn");
}

#[test]
fn the_lean_kernel_is_taken_where_it_is_named_and_nowhere_else() {
    let checkout = Checkout::new();
    let run = |args: &[&str]| {
        let mut command = checkout.boxbuild(args);
        command.env_remove("BOXBUILD_KERNEL").env("XDG_DATA_HOME", checkout.path("data"));
        crate::checkout::Ran::of(&mut command)
    };
    checkout.write("other", kernel_without("none", "6.12.1"));
    checkout.write("vmlinux", kernel_without("none", "6.12.1-boxbuild"));
    let refused = run(&["setup", "--kernel", "lean", "--from", "other"]);
    assert!(refused.notes.contains("it is not the kernel \"lean\""), "{}", refused.notes);
    checkout.write("Boxfile", format!("{BOXFILE}kernel \"lean\"\n"));
    let missing = run(&["build"]);
    assert!(missing.notes.contains("the lean kernel is not installed"), "{}", missing.notes);
    assert_eq!(run(&["setup", "--kernel", "lean", "--from", "vmlinux"]).code, 0);
    assert_eq!(run(&["build"]).code, 0);
    assert!(checkout.read("Boxfile.lock").contains("source = \"lean\""));
    // `./lean` is a path, although the file has the name of a kernel.
    checkout.write("Boxfile", format!("{BOXFILE}kernel \"./lean\"\n"));
    let path = run(&["build"]);
    assert!(path.notes.contains("cannot read the kernel ./lean"), "{}", path.notes);
    // Without a `kernel` declaration the build uses libkrunfw's kernel, which is not installed here.
    checkout.write("Boxfile", BOXFILE);
    let other = run(&["build"]);
    assert!(other.code != 0 || !checkout.read("Boxfile.lock").contains("lean"), "{}", other.notes);
}

#[test]
fn a_program_that_nothing_names_cannot_be_started() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "business {", "business {\n    autostart #true");
    let failed = checkout.run(&["build"]);
    assert_eq!(failed.code, 1);
    let message = "error: the business image names no program\n";
    assert!(failed.notes.contains(message), "{}", failed.notes);
    assert!(failed.notes.contains("in `business`"), "{}", failed.notes);
}

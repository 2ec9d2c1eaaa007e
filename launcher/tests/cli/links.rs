//! Files that the command line names, and that an earlier box may have replaced by links.

use std::fs;
use std::os::unix::fs::symlink;

use box_contract::{Scope, SecretDelivery, SecretPlan};
use testkit::test_box::config;

use crate::{Scene, boxlaunch, ended};

#[test]
fn no_link_of_a_box_leads_to_a_key_of_its_user() {
    let mut config = config();
    let plain = Scene::new(&config);
    let (name, scope, delivery) = ("KEY".to_owned(), Scope::Agent, SecretDelivery::Env);
    config.plan.secrets = vec![SecretPlan { name, scope, delivery }];
    let secretive = Scene::new(&config);
    let home = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.path().join("project/.git")).unwrap();
    fs::write(home.path().join("key"), "canary").unwrap();
    let link = home.path().join("project/link");
    symlink("../key", &link).unwrap();
    let link = link.display().to_string();
    let secret = format!("KEY=file:{link}");
    let refused = |scene: &Scene, options: &[&str]| {
        let ended = scene.run(&[&["run"], options].concat());
        assert!(ended.code == Some(2) && !ended.stderr.contains("canary"), "{ended:?}");
        ended.stderr.replace(&home.path().canonicalize().unwrap().display().to_string(), "HOME")
    };
    let expected = "error: HOME/project/link is a link: the path leads to HOME/key, which is not among the files of HOME/project\n  \
                    = help: a box may have put it there; if you mean that file, name it: HOME/key\n";
    assert_eq!(refused(&plain, &["--env-file", &link]), expected);
    assert_eq!(refused(&plain, &["--task", &link]), expected);
    assert_eq!(refused(&secretive, &["--secret", &secret]), expected);
    assert_eq!(refused(&plain, &["--emulated", "--host-kernel", &link]), expected);
    // A directory in the path of an output file is a link.
    symlink("..", home.path().join("project/out")).unwrap();
    let task = home.path().join("task.json").display().to_string();
    fs::write(&task, r#"{"id":"1","type":"x","description":"x"}"#).unwrap();
    let written = home.path().join("project/out/key").display().to_string();
    let expected = expected.replace("project/link is", "project/out is");
    assert_eq!(refused(&plain, &["--task", &task, "--result", &written]), expected);
    assert_eq!(refused(&plain, &["--console", &written]), expected);
    assert_eq!(refused(&plain, &["--agent-socket", &written]), expected);
    assert_eq!(fs::read_to_string(home.path().join("key")).unwrap(), "canary");
}

/// There is no box `hello`: a copy checks the links before it looks for the box.
#[test]
fn no_link_of_a_box_leads_a_copy_out_of_its_repository() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().canonicalize().unwrap();
    let at = |path: &str| real.join(path).display().to_string();
    for path in ["project/.git", "project/inner", "keys"] {
        fs::create_dir_all(at(path)).unwrap();
    }
    fs::write(at("keys/key"), "canary").unwrap();
    symlink("../keys", at("project/out")).unwrap();
    symlink("inner", at("project/in")).unwrap();
    let copied = |from: &str, to: &str| {
        let mut command = boxlaunch(&["cp", from, to]);
        command.env("BOXLAUNCH_STATE", at("state")).current_dir(at("project"));
        let ended = ended(command);
        assert_eq!(ended.stdout, "");
        (ended.code, ended.stderr.replace(&real.display().to_string(), "HOME"))
    };
    let expected = "error: HOME/project/out is a link: the path leads to HOME/keys, which is not among the files of HOME/project\n  \
                    = help: a box may have put it there; if you mean that directory, name it: HOME/keys\n";
    for path in ["out/key", "out/", "out/.", "inner/../out/key", &at("project/out/none")] {
        assert_eq!(copied("hello:/x", path), (Some(2), expected.to_owned()), "{path}");
    }
    for path in ["out/key", "out/.", &at("project/out/key")] {
        assert_eq!(copied(path, "hello:/x"), (Some(2), expected.to_owned()), "{path}");
    }
    for path in ["in/new", "in/", "inner/.", "/var/run/", "/tmp/new", &at("keys/key")] {
        let (code, output) = copied("hello:/x", path);
        assert!(
            code == Some(1) && output.starts_with("error: no started box has the name"),
            "{output}"
        );
    }
}

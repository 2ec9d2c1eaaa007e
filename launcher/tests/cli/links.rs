//! Files that the command line names, and that an earlier box may have replaced by links.

use std::fs;
use std::os::unix::fs::symlink;

use box_image::{Scope, SecretDelivery, SecretPlan};
use testkit::test_box::config;

use crate::Scene;

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
    let expected = "error: HOME/project/link is a link that leads to HOME/key, and not to a file of HOME/project\n  \
                    = help: a box may have put it there; if you mean that file, name it: HOME/key\n";
    assert_eq!(refused(&plain, &["--env-file", &link]), expected);
    assert_eq!(refused(&plain, &["--task", &link]), expected);
    assert_eq!(refused(&secretive, &["--secret", &secret]), expected);
    // A link on the way to a file that is to be written.
    symlink("..", home.path().join("project/out")).unwrap();
    let task = home.path().join("task.json").display().to_string();
    fs::write(&task, r#"{"id":"1","type":"x","description":"x"}"#).unwrap();
    let written = home.path().join("project/out/key").display().to_string();
    let expected = expected.replace("project/link is", "project/out is");
    assert_eq!(refused(&plain, &["--task", &task, "--result", &written]), expected);
    assert_eq!(refused(&plain, &["--console", &written]), expected);
    assert_eq!(fs::read_to_string(home.path().join("key")).unwrap(), "canary");
}

//! Boxes of a store that are not there, not the expected ones, or could be changed by what they are given.

use std::fs;

use testkit::test_box::config;

use crate::prune::TestStore;
use crate::{Scene, boxlaunch, ended};

#[test]
fn what_is_not_found_is_named() {
    let (place, scene) = (TestStore::new(), Scene::new(&config()));
    place.add(&["hello"], &config());
    let directory = tempfile::tempdir().unwrap();
    let absent = [false, true].map(|exists| {
        if exists {
            fs::create_dir(directory.path().join("project")).unwrap();
        }
        let mut command = boxlaunch(&["run", "project", "--", "echo"]);
        command.env("BOXBUILD_STORE", place.root()).env("BOXLAUNCH_STATE", scene.state.path());
        command.current_dir(directory.path());
        ended(command).stderr.replace(place.root().to_str().unwrap(), "STORE")
    });
    insta::assert_snapshot!(absent.concat(), @"
    error: no box has the name project in the store STORE
      = help: `boxlaunch images` lists the names; a directory is written ./project
    error: no box has the name project in the store STORE
      = help: `boxlaunch images` lists the names; a directory is written ./project
    ");
    fs::remove_file(scene.made.blob_path(&scene.made.manifest().layers[1].digest)).unwrap();
    let missing = scene.run(&["run"]).stderr;
    let path = scene.made.path().display();
    let expected = format!("is neither in {path} nor in the store (/no/store/blobs)");
    assert!(missing.contains(&expected) && missing.contains("boxbuild build"), "{missing}");
}

#[test]
fn a_name_is_refused_with_another_digest_and_with_its_store_to_write_to() {
    let place = TestStore::new();
    let hello = place.add(&["hello"], &config());
    let mut other = config();
    other.plan.vm.cpus += 1;
    place.add(&["other"], &other);
    let pinned = place.run(&["run", &format!("other@{hello}"), "--", "true"]);
    assert!(pinned.stderr.contains("the box has the digest sha256:"), "{pinned:?}");
    let share = format!("{}:/w:rw", place.root().display());
    let store = place.run(&["run", "hello", "-v", &share, "--", "true"]);
    assert!(store.stderr.contains("boxbuild keeps its files in"), "{store:?}");
    assert_eq!((pinned.code, store.code), (Some(1), Some(2)), "{pinned:?} {store:?}");
}

//! Tests of `boxbuild verify --rebuild` with a box and images in a registry.

use std::fs;
use std::path::PathBuf;

use crate::checkout::{Ran, files};
use crate::registry::Scene;

/// The files of the registry that have at least this size in bytes are no documents.
const LARGE: usize = 50_000;

/// Runs a command with the registry, which must leave the store and TMPDIR as they were.
fn rebuild(scene: &Scene, reference: &str, args: &[&str]) -> Ran {
    let store = || files(&scene.checkout.path("store"));
    let (before, temporary) = (store(), tempfile::tempdir().unwrap());
    let mut command = scene.command(&[&["verify", "--rebuild", reference], args].concat());
    let ran = Ran::of(command.env("TMPDIR", temporary.path()));
    assert!(store() == before, "the store was changed");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0, "TMPDIR has leftovers");
    ran
}

/// Returns the paths of the large blobs in the registry.
fn large(scene: &Scene) -> Vec<PathBuf> {
    let data = scene.registry.data();
    let large = files(&data).into_iter().filter(|(_, bytes)| bytes.len() >= LARGE);
    large.map(|(path, _)| data.join(path)).collect()
}

/// Calls `then` while the registry lacks these blobs.
fn without<T>(blobs: &[PathBuf], then: impl FnOnce() -> T) -> T {
    assert!(!blobs.is_empty());
    let aside = |blob: &PathBuf| blob.with_extension("aside");
    blobs.iter().for_each(|it| fs::rename(it, aside(it)).unwrap());
    let value = then();
    blobs.iter().for_each(|it| fs::rename(aside(it), it).unwrap());
    value
}

#[test]
fn a_box_in_a_registry_is_fetched_only_if_it_differs() {
    let scene = Scene::new();
    let reference = format!("{}/team/box:v1", scene.registry.host());
    let digest = scene.reported(&["build", "--json"])["box"].as_str().unwrap().to_owned();
    let images = large(&scene);
    assert_eq!(scene.run(&["push", "test", &reference]).code, 0);
    let pushed: Vec<_> = large(&scene).into_iter().filter(|it| !images.contains(it)).collect();
    let equal = format!("{digest} is what Boxfile and Boxfile.lock make\n");
    let ran = without(&pushed, || rebuild(&scene, &reference, &[]));
    assert_eq!((ran.code, ran.result), (0, equal.clone()), "{}", ran.notes);
    let pinned = format!("{reference}@{digest}");
    assert_eq!(rebuild(&scene, &pinned, &[]).result, equal);
    // The layers of the images are fetched again, although the store has them.
    let ran = without(&images, || rebuild(&scene, &reference, &[]));
    assert_eq!(ran.code, 1, "{}{}", ran.notes, ran.result);
    assert!(ran.notes.contains("/team/agent"), "{}", ran.notes);
    scene.checkout.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more.");
    let other = scene.reported(&["build", "--json"])["box"].as_str().unwrap().to_owned();
    let ran = rebuild(&scene, &reference, &["--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["box"]), (5, &digest.into()), "{report:#}");
    assert_eq!((&report["rebuilt"], &report["ok"]), (&other.into(), &false.into()));
    assert_eq!(report["differences"][0]["path"], "/a3s/skills/greet/SKILL.md");
    let ran = rebuild(&scene, &format!("{reference}@sha256:{}", "7".repeat(64)), &[]);
    assert!(ran.code == 1 && ran.notes.contains("was asked for"), "{}", ran.notes);
}

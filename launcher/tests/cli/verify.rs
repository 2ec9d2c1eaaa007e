//! `boxlaunch verify` hashes everything that the manifest names.

use box_contract::Descriptor;
use box_contract::manifest::METADATA_TYPE;
use serde_json::Value;
use testkit::damage;
use testkit::test_box::{config, set_blocks};

use crate::Scene;

/// The roles of the blobs in a test box, in the order of the manifest. boxlaunch does not know the last one, but verifies it,
/// too.
const ROLES: [&str; 8] = [
    "config",
    "metadata",
    "segment",
    "segment",
    "init",
    "kernel",
    "listing",
    "application/vnd.example.notes",
];

#[test]
fn every_blob_is_named_with_its_role_and_digest() {
    assert_eq!(named_and_found(&Scene::new(&config()), &ROLES, &[]), None);
}

#[test]
fn a_box_of_epoch_3_has_a_plan_in_its_rootfs() {
    let scene = Scene::new(&box_contract::BoxConfig { epoch: 3, ..config() });
    let plan = "plan     ok       the plan in the rootfs, compared with the config";
    let roles = [&["config", "rootfs"], &ROLES[4..]].concat();
    assert_eq!(named_and_found(&scene, &roles, &[plan]), None);
}

/// Verifies an undamaged box. The output must be the manifest, a line for each blob, whose roles are `roles`, and the lines
/// `more`. Returns any other output.
fn named_and_found(scene: &Scene, roles: &[&str], more: &[&str]) -> Option<String> {
    let ended = scene.run(&["verify"]);
    let manifest = scene.made.manifest();
    let blobs = [&manifest.config].into_iter().chain(&manifest.layers);
    let digest = scene.made.index().manifests[0].digest;
    let mut expected = vec![format!("manifest ok       {digest}")];
    expected.extend(
        roles.iter().zip(blobs).map(|(role, blob)| format!("{role:<8} ok       {}", blob.digest)),
    );
    expected.extend(more.iter().map(|it| (*it).to_owned()));
    let is_right = ended.stdout.lines().eq(&expected) && ended.code == Some(0);
    (!is_right || !ended.stderr.is_empty()).then(|| format!("{ended:?}"))
}

/// All digests match. Only the size in the superblock is wrong.
#[test]
fn an_image_of_another_size_than_its_parts_is_damaged() {
    let scene = Scene::new(&config());
    let path = scene.made.blob(METADATA_TYPE);
    let mut metadata = std::fs::read(path).unwrap();
    set_blocks(&mut metadata, 1000);
    let named = serde_json::to_value(scene.made.put(METADATA_TYPE, &metadata)).unwrap();
    damage::edit_layer(&scene.made, METADATA_TYPE, |it| *it = named);
    let error = format!(
        "error: the rootfs image that begins with {} says that it has 1000 blocks of 4096 bytes, but its parts have 259\n",
        scene.made.blob(METADATA_TYPE).display()
    );
    scene.trust_kvm();
    for args in [&["verify"][..], &["run"]] {
        let ended = scene.run(args);
        assert!(ended.stderr.starts_with(&error), "{}", ended.stderr);
        assert_eq!(ended.code, Some(5), "{args:?}");
    }
    let report: Value = serde_json::from_str(&scene.run(&["verify", "--json"]).stdout).unwrap();
    assert_eq!((&report["plan_matches"], &report["ok"]), (&Value::Null, &false.into()));
}

#[test]
fn a_changed_byte_is_found_in_every_blob() {
    let roles = scene_blobs();
    assert_eq!(roles, ROLES[1..]);
    for (at, role) in roles.iter().enumerate() {
        let scene = Scene::new(&config());
        let named = scene.made.manifest().layers[at].clone();
        let path = scene.made.blob_path(&named.digest);
        // Writes a receipt, in spite of which the next verification must find the change.
        assert_eq!(scene.run(&["verify"]).code, Some(0));
        damage::flip(&scene.made, &path);
        let ended = scene.run(&["verify"]);
        let differing: Vec<&str> =
            ended.stdout.lines().filter(|line| line.contains("DIFFERS")).collect();
        assert_eq!(differing, [format!("{role:<8} DIFFERS  {}", named.digest)]);
        let error = format!("error: {} has the digest sha256:", path.display());
        assert!(ended.stderr.starts_with(&error), "{}", ended.stderr);
        assert_eq!(ended.code, Some(5));

        let ended = scene.run(&["verify", "--json"]);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let blobs = report["blobs"].as_array().unwrap();
        let differing: Vec<&Value> = blobs.iter().filter(|blob| blob["ok"] == false).collect();
        assert_eq!((ended.code, blobs.len(), differing.len()), (Some(5), ROLES.len(), 1));
        assert_eq!(report["ok"], false);
        assert_eq!(differing[0]["name"], role.as_str());
        assert_eq!(differing[0]["digest"], named.digest.to_string());
    }
}

fn scene_blobs() -> Vec<String> {
    let manifest = Scene::new(&config()).made.manifest();
    manifest.layers.iter().map(|blob| blob.role().to_owned()).collect()
}

#[test]
fn a_changed_document_is_named() {
    for document in ["manifest", "config"] {
        let scene = Scene::new(&config());
        let path = match document {
            "manifest" => scene.made.manifest_path(),
            _ => scene.made.blob_path(&scene.made.manifest().config.digest),
        };
        damage::flip(&scene.made, &path);
        let ended = scene.run(&["verify"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{document}");
        let error = format!("error: {} has the digest sha256:", path.display());
        assert!(ended.stderr.starts_with(&error), "{}", ended.stderr);
    }
}

#[test]
fn a_missing_blob_hides_no_other_finding() {
    let scene = Scene::new(&config());
    let manifest = scene.made.manifest();
    let blob = |role: &str| {
        let named = manifest.layers.iter().find(|it| it.role() == role).unwrap();
        scene.made.blob_path(&named.digest)
    };
    damage::flip(&scene.made, &blob("metadata"));
    std::fs::remove_file(blob("listing")).unwrap();
    let ended = scene.run(&["verify", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let wrong = report["blobs"].as_array().unwrap().iter().filter(|it| it["ok"] == false);
    let wrong: Vec<_> = wrong.map(|it| (&it["name"], &it["digest"])).collect();
    let [first, second] = report["errors"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    let expected = [(&"metadata".into(), &first["blob"]), (&"listing".into(), &second["blob"])];
    assert_eq!(wrong, expected);
    assert_eq!([&first["code"], &second["code"]], ["box-damaged"; 2]);
    assert!(second["message"].as_str().unwrap().starts_with("the listing sha256:"), "{second}");
    assert_eq!(ended.code, Some(5));
}

#[test]
fn a_missing_blob_that_boots_is_reported_among_the_others() {
    let scene = Scene::new(&config());
    let manifest = scene.made.manifest();
    let kernel = manifest.layers.iter().find(|it| it.role() == "kernel").unwrap();
    std::fs::remove_file(scene.made.blob_path(&kernel.digest)).unwrap();
    let ended = scene.run(&["verify"]);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 1 + ROLES.len());
    let missing: Vec<&&str> = lines.iter().filter(|line| !line.contains(" ok ")).collect();
    assert_eq!(missing, [&format!("kernel   MISSING  {}", kernel.digest)]);
    assert!(ended.stderr.starts_with("error: the kernel sha256:"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(5));
}

#[test]
fn a_blob_that_is_named_often_is_hashed_once() {
    let scene = Scene::new(&config());
    let mut manifest = scene.made.manifest();
    let metadata = manifest.layers[0].clone();
    manifest.layers.extend(vec![Descriptor { media_type: "a/b".to_owned(), ..metadata }; 1000]);
    scene.made.seal(&manifest);
    let ended = scene.run(&["verify"]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 1 + ROLES.len()));
}

#[test]
fn a_blob_that_is_a_link_or_a_pipe_is_damaged() {
    for of in ["ln -s /etc/passwd", "mkfifo"] {
        let scene = Scene::new(&config());
        let path = scene.made.blob(box_contract::manifest::KERNEL_TYPE);
        std::fs::remove_file(&path).unwrap();
        let mut words = of.split(' ');
        let mut make = std::process::Command::new(words.next().unwrap());
        assert!(make.args(words).arg(&path).status().unwrap().success());
        let ended = scene.run(&["verify"]);
        assert!(ended.stderr.contains(" is not a regular file; "), "{}", ended.stderr);
        assert_eq!(ended.code, Some(5), "{of}");
    }
}

/// The plan in the config, which `inspect` shows, must equal the plan in the rootfs, which the init of epoch 3 reads.
#[test]
fn a_config_with_another_plan_is_found_in_spite_of_receipts() {
    let scene = Scene::new(&box_contract::BoxConfig { epoch: 3, ..config() });
    assert_eq!(scene.run(&["verify"]).code, Some(0));
    scene.made.edit_config(|config| config["plan"]["name"] = "harmless".into());
    let error = "error: /boxbuild/plan.json in the rootfs ";
    let verified = scene.run(&["verify"]);
    assert!(verified.stderr.starts_with(error), "{}", verified.stderr);
    let line = "plan     DIFFERS  the plan in the rootfs, compared with the config";
    assert_eq!(verified.stdout.lines().last(), Some(line));
    let report: Value = serde_json::from_str(&scene.run(&["verify", "--json"]).stdout).unwrap();
    assert_eq!((&report["plan_matches"], &report["ok"]), (&false.into(), &false.into()));
    scene.trust_kvm();
    let started = scene.run(&["run"]);
    assert!(started.stderr.starts_with(error), "{}", started.stderr);
    assert_eq!((verified.code, started.code), (Some(5), Some(5)));
}

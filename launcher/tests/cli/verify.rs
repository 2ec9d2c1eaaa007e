//! `boxlaunch verify` hashes everything that the manifest names.

use box_image::Descriptor;
use serde_json::Value;
use testkit::damage;
use testkit::test_box::config;

use crate::Scene;

/// A blob that no version of boxlaunch knows is verified all the same.
const ROLES: [&str; 6] =
    ["config", "rootfs", "init", "kernel", "listing", "application/vnd.example.notes"];

#[test]
fn every_blob_is_named_with_its_role_and_digest() {
    let scene = Scene::new(&config());
    let ended = scene.run(&["verify"]);
    let manifest = scene.made.manifest();
    let blobs = [&manifest.config].into_iter().chain(&manifest.layers);
    let digest = scene.made.index().manifests[0].digest;
    let mut expected = vec![format!("manifest ok       {digest}")];
    expected.extend(
        ROLES.iter().zip(blobs).map(|(role, blob)| format!("{role:<8} ok       {}", blob.digest)),
    );
    expected.push("plan     ok       the plan in the rootfs, compared with the config".to_owned());
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), expected);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_changed_byte_is_found_in_every_blob() {
    let roles = scene_blobs();
    assert_eq!(roles, ROLES[1..]);
    for (at, role) in roles.iter().enumerate() {
        let scene = Scene::new(&config());
        let named = scene.made.manifest().layers[at].clone();
        let path = scene.made.blob_path(&named.digest);
        // With a receipt, too.
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
    damage::flip(&scene.made, &blob("rootfs"));
    std::fs::remove_file(blob("listing")).unwrap();
    let ended = scene.run(&["verify", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    let wrong = report["blobs"].as_array().unwrap().iter().filter(|it| it["ok"] == false);
    let wrong: Vec<_> = wrong.map(|it| (&it["name"], &it["digest"])).collect();
    let [first, second] = report["errors"].as_array().unwrap().as_slice() else {
        panic!("{report}");
    };
    assert_eq!(wrong, [(&"rootfs".into(), &first["blob"]), (&"listing".into(), &second["blob"])]);
    assert_eq!([&first["code"], &second["code"]], ["box-damaged"; 2]);
    assert!(second["message"].as_str().unwrap().starts_with("cannot open "), "{second}");
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
    assert!(ended.stderr.starts_with("error: cannot open "), "{}", ended.stderr);
    assert_eq!(ended.code, Some(5));
}

#[test]
fn a_blob_that_is_named_often_is_hashed_once() {
    let scene = Scene::new(&config());
    let mut manifest = scene.made.manifest();
    let rootfs = manifest.layers[0].clone();
    manifest.layers.extend(vec![Descriptor { media_type: "a/b".to_owned(), ..rootfs }; 1000]);
    scene.made.seal(&manifest);
    let ended = scene.run(&["verify"]);
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 2 + ROLES.len()));
}

#[test]
fn a_blob_that_is_a_link_or_a_pipe_is_damaged() {
    for of in ["ln -s /etc/passwd", "mkfifo"] {
        let scene = Scene::new(&config());
        let path = scene.made.blob(box_image::manifest::KERNEL_TYPE);
        std::fs::remove_file(&path).unwrap();
        let mut words = of.split(' ');
        let mut make = std::process::Command::new(words.next().unwrap());
        assert!(make.args(words).arg(&path).status().unwrap().success());
        let ended = scene.run(&["verify"]);
        assert!(ended.stderr.contains(" is not a regular file; "), "{}", ended.stderr);
        assert_eq!(ended.code, Some(5), "{of}");
    }
}

/// The config is what `inspect` shows, and the plan in the rootfs is what init reads.
#[test]
fn a_config_with_another_plan_is_found_in_spite_of_receipts() {
    let scene = Scene::new(&config());
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

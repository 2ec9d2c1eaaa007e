use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use box_image::Health;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;
use crate::testing::{TestBox, config};

fn refusal(made: &TestBox) -> LaunchError {
    Bundle::open(made.path()).unwrap_err()
}

fn refused_plan(change: impl FnOnce(&mut BoxConfig)) -> String {
    let mut config = config();
    change(&mut config);
    refusal(&TestBox::new(&config)).to_string()
}

#[test]
fn a_good_box_opens() {
    let made = TestBox::new(&config());
    let bundle = Bundle::open(made.path()).unwrap();
    assert_eq!(bundle.config, config());
    assert_eq!(bundle.manifest, made.manifest);
    assert_eq!(bundle.digest, made.read_index().manifests[0].digest);
    assert_eq!(bundle.blobs().map(|blob| blob.name), ["rootfs", "init", "kernel"]);
}

#[test]
fn a_changed_document_is_named_with_both_digests() {
    let made = TestBox::new(&config());
    let digest = made.manifest.config.digest;
    let path = made.blob_path(&digest);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("agent-host", "other-host")).unwrap();
    match refusal(&made) {
        LaunchError::Digest { path: named, expected, found } => {
            assert_eq!((named, expected), (path, digest));
            assert_ne!(found, digest);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_truncated_document_is_named_with_both_sizes() {
    let made = TestBox::new(&config());
    let path = made.blob_path(&made.read_index().manifests[0].digest);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = refusal(&made);
    assert!(error.is_difference());
    let expected = format!(
        "{} has {} bytes, and the box names {}",
        path.display(),
        bytes.len() - 1,
        bytes.len()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_missing_blob_is_named() {
    let made = TestBox::new(&config());
    let path = made.blob(KERNEL_TYPE);
    fs::remove_file(&path).unwrap();
    assert!(refusal(&made).to_string().starts_with(&format!("cannot open {}", path.display())));
}

#[test]
fn only_regular_files_are_opened() {
    let made = TestBox::new(&config());
    let path = made.blob(ROOTFS_TYPE);
    let elsewhere = made.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(refusal(&made), LaunchError::NotRegular(named) if named == path));

    fs::remove_file(&path).unwrap();
    mkfifo(&path, Mode::S_IRWXU).unwrap();
    assert!(matches!(refusal(&made), LaunchError::NotRegular(named) if named == path));

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(refusal(&made), LaunchError::NotRegular(named) if named == path));
}

#[test]
fn a_blob_that_others_may_write_is_refused() {
    let made = TestBox::new(&config());
    let path = made.blob(KERNEL_TYPE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    assert!(matches!(refusal(&made), LaunchError::Writable(named) if named == path));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    Bundle::open(made.path()).unwrap();
}

#[test]
fn an_index_names_one_manifest() {
    let made = TestBox::new(&config());
    let mut index = made.read_index();
    index.manifests.push(index.manifests[0].clone());
    made.write_index(&index);
    assert!(refusal(&made).to_string().contains("it names 2 manifests, and a box has one"));
    index.manifests.clear();
    made.write_index(&index);
    assert!(refusal(&made).to_string().contains("it names 0 manifests"));
}

#[test]
fn a_blob_is_named_once() {
    let mut made = TestBox::new(&config());
    let init = made.manifest.blob(INIT_TYPE).unwrap().clone();
    made.manifest.layers.push(init);
    made.seal(&made.manifest);
    assert!(refusal(&made).to_string().contains("it does not name exactly one init"));
}

#[test]
fn an_image_of_another_kind_is_no_box() {
    let mut made = TestBox::new(&config());
    made.manifest.artifact_type = "application/vnd.example".into();
    made.seal(&made.manifest);
    let error = refusal(&made).to_string();
    assert!(error.contains("its artifactType is \"application/vnd.example\""), "{error}");
}

#[test]
fn a_directory_that_is_no_box_says_which_file_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let error = Bundle::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("oci-layout"), "{error}");
}

#[test]
fn an_overlong_document_is_not_read() {
    let made = TestBox::new(&config());
    let index = File::create(made.path().join("index.json")).unwrap();
    index.set_len(1 << 40).unwrap();
    match refusal(&made) {
        LaunchError::TooLong { limit, found, .. } => assert_eq!((limit, found), (1 << 20, 1 << 40)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_plan_that_cannot_run_is_refused() {
    assert!(refused_plan(|config| config.epoch = 9).contains("its format epoch is 9"));
    let no_program = refused_plan(|config| config.plan.agent.argv.clear());
    assert_eq!(
        no_program,
        "the box cannot be run: its agent has no program to run; name one with `entrypoint`"
    );
    let path = "/bereit/für".to_owned();
    let check = Health::Http { port: 80, path };
    let unheard = refused_plan(|config| config.plan.agent.health = Some(check));
    assert!(unheard.contains("agent health \"http\" path=\"/bereit/für\": "), "{unheard}");
    let kernels = refused_plan(|config| {
        config.plan.business.as_mut().unwrap().workdir = "/proc/1".to_owned();
    });
    assert!(kernels.contains("business workdir \"/proc/1\": it is in /proc"), "{kernels}");
    let endless = refused_plan(|config| config.plan.agent.env.push("x".repeat(1 << 20)));
    assert!(endless.contains("init reads at most 1048576"), "{endless}");
}

//! Tests that the store saves work, and never serves damaged or outdated content.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use box_digest::Digest;
use testkit::images::Layer;

use crate::checkout::{BOXFILE, Checkout, WHOLE, agent_with, business_with, files};
use crate::traced::leftovers;

#[test]
fn a_second_build_of_the_same_input_reads_no_layer() {
    let checkout = Checkout::new();
    let first = checkout.built(WHOLE);
    assert_eq!(first["cached"], false);
    // Removes the layers, so that only the store can have the box.
    for name in ["agent", "business"] {
        for (path, bytes) in files(&checkout.path(&format!("images/{name}/blobs"))) {
            if bytes.starts_with(&[0x1f, 0x8b]) {
                let path = checkout.path(&format!("images/{name}/blobs")).join(path);
                fs::remove_file(path).unwrap();
            }
        }
    }
    let second = checkout.built(&["--output", "second.box"]);
    assert_eq!(second["cached"], true);
    assert_eq!(second["box"], first["box"]);
    assert!(files(&checkout.path("test.box")) == files(&checkout.path("second.box")));
}

#[test]
fn a_store_that_another_user_can_change_is_refused() {
    let checkout = Checkout::new();
    let actions = checkout.path("store/actions");
    fs::create_dir_all(&actions).unwrap();
    fs::set_permissions(actions, fs::Permissions::from_mode(0o777)).unwrap();
    let errors = checkout.refused();
    assert!(errors.contains("another user can write to store/actions"), "{errors}");
    assert!(
        errors.contains("make sure that only you own it and can write to it (chown, chmod go-w)"),
        "{errors}"
    );
}

/// A box with a writable share may find other boxes in it, and change their files, which belong to the same user.
#[test]
fn who_writes_to_a_box_changes_neither_the_store_nor_another_box() {
    let checkout = Checkout::new();
    for bundle in ["one.box", "two.box"] {
        checkout.built(&["--output", bundle]);
    }
    for blob in fs::read_dir(checkout.path("one.box/blobs/sha256")).unwrap() {
        damage(&blob.unwrap().path());
    }
    assert_whole(&checkout.path("two.box"));
    for bundle in ["one.box", "three.box"] {
        assert_eq!(checkout.built(&["--output", bundle])["cached"], true, "{bundle}");
        assert_whole(&checkout.path(bundle));
    }
}

/// The blobs of boxes that earlier versions wrote are hard links to the store's blobs.
#[test]
fn a_file_of_a_box_that_has_another_name_is_replaced() {
    let checkout = Checkout::new();
    checkout.built(WHOLE);
    let blobs = checkout.path("test.box/blobs/sha256");
    for (name, _) in files(&blobs) {
        fs::remove_file(blobs.join(&name)).unwrap();
        fs::hard_link(checkout.path("store/blobs").join(&name), blobs.join(&name)).unwrap();
        assert_eq!(checkout.built(WHOLE)["cached"], true);
        assert_eq!(fs::metadata(blobs.join(&name)).unwrap().nlink(), 1);
    }
    assert_whole(&checkout.path("test.box"));
}

#[test]
fn a_damaged_blob_is_refused_where_it_is_read_and_not_read_where_its_content_is_stored() {
    let checkout = Checkout::new();
    let first = checkout.built(&[]);
    for (path, bytes) in files(&checkout.path("images/agent/blobs")) {
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let path = checkout.path("images/agent/blobs").join(path);
            fs::write(path, vec![0; bytes.len()]).unwrap();
        }
    }
    assert_eq!(checkout.built(&["--output", "warm.box"])["box"], first["box"]);
    // A box that the store does not have is also made from the stored content.
    checkout.edit("Boxfile", "cpus=1", "cpus=2");
    assert_eq!(checkout.built(&["--output", "other.box"])["cached"], false);
    let cold = checkout.run(&["build", "--json", "--store", "cold", "--output", "cold.box"]);
    let error = &cold.json()["errors"][0];
    assert_eq!((cold.code, &error["code"]), (1, &"digest-mismatch".into()), "{error}");
    assert!(!checkout.path("cold.box").exists());
}

#[test]
fn what_both_images_share_is_stored_once() {
    let checkout = Checkout::new();
    let shared = Layer::new().file("/srv/shared", 0o644, vec![7; 3 << 20]).to_tar();
    for (name, image) in [("agent", agent_with("agent")), ("business", business_with("app"))] {
        checkout.image(name, &image.with(shared.clone()));
    }
    // The shared layer's segment has 3 MiB, and the metadata are padded to 1 MiB.
    assert_eq!(checkout.built(&[])["rootfs_bytes"], 4 << 20);
}

#[test]
fn a_changed_declaration_decodes_no_layer_again() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    for name in ["agent", "business"] {
        for (path, bytes) in files(&checkout.path(&format!("images/{name}/blobs"))) {
            if bytes.starts_with(&[0x1f, 0x8b]) {
                let path = checkout.path(&format!("images/{name}/blobs")).join(path);
                fs::remove_file(path).unwrap();
            }
        }
    }
    let before = stored(&checkout);
    checkout.write("Boxfile", BOXFILE.replace("\"test\"", "\"renamed\""));
    assert_eq!(checkout.built(&[])["cached"], false);
    let new = stored(&checkout).into_iter().filter(|it| !before.contains(it)).count();
    assert_eq!(new, 2, "the config and the manifest, and no other blob");
}

/// Flips a bit in the middle of a file.
fn damage(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let middle = file.metadata().unwrap().len() / 2;
    let mut byte = [0];
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 1], middle).unwrap();
}

/// Asserts that every blob of a whole box matches its digest.
fn assert_whole(directory: &Path) {
    let blobs = files(&directory.join("blobs/sha256"));
    assert!(blobs.len() >= 6, "manifest, config, metadata, init, kernel, listing");
    for (name, bytes) in blobs {
        assert_eq!(Digest::of(&bytes).hex(), name.to_str().unwrap());
    }
}

/// Asserts that the next build either writes an intact box, or fails with an error that names the damaged blob.
fn assert_whole_or_refused(checkout: &Checkout, output: &str, damaged: &str) {
    let built = checkout.build(&["--output", output]);
    if built.status.success() {
        return assert_whole(&checkout.path(output));
    }
    let errors = String::from_utf8(built.stderr).unwrap();
    assert_eq!(built.status.code(), Some(1), "{errors}");
    assert!(errors.contains("damaged") && errors.contains(damaged), "{errors}");
    assert!(!checkout.path(output).exists());
}

/// Returns the names of the store's blobs.
fn stored(checkout: &Checkout) -> Vec<String> {
    let blobs = files(&checkout.path("store/blobs")).into_iter();
    blobs.map(|(name, _)| name.to_str().unwrap().to_owned()).collect()
}

/// Damages each blob of an otherwise intact store in turn, and checks the following build of the Boxfile `after` to `output`.
fn damage_each(after: &str, output: &str) {
    let checkout = Checkout::new();
    checkout.built(&[]);
    let names = stored(&checkout);
    assert!(names.len() > 5, "five blobs of the box, and packs");
    for name in names {
        damage(&checkout.path(&format!("store/blobs/{name}")));
        checkout.write("Boxfile", after);
        assert_whole_or_refused(&checkout, output, &name);
        for directory in ["store", "test.box", output] {
            fs::remove_dir_all(checkout.path(directory)).ok();
        }
        checkout.write("Boxfile", BOXFILE);
        checkout.built(&[]);
    }
}

#[test]
fn a_blob_damaged_in_the_store_is_never_exported() {
    damage_each(BOXFILE, "second.box");
}

#[test]
fn a_blob_damaged_in_the_store_is_never_sealed() {
    damage_each(&BOXFILE.replace("\"test\"", "\"renamed\""), "renamed.box");
}

/// Asserts that a build and a plan decode all layers again whose stored data are damaged.
fn assert_healing(layout: &str) {
    let checkout = Checkout::new();
    let boxfile = format!("{BOXFILE}\n{layout}\n");
    // Another skill makes the build write the metadata again, which reads the data of all layers.
    let write = |name: &str| {
        checkout.write("Boxfile", boxfile.replace("\"test\"", &format!("\"{name}\"")));
        checkout.write("skills/greet/tools/greet.sh", name);
    };
    write("test");
    checkout.built(&[]);
    let data = files(&checkout.path("store/data"));
    assert!(data.len() >= 2, "the layers of two images");
    let damage_all = |zeros: fn(usize) -> usize| {
        for (name, bytes) in &data {
            fs::write(checkout.path("store/data").join(name), vec![0; zeros(bytes.len())]).unwrap();
        }
    };
    write("renamed");
    for zeros in [|length| length, |length: usize| length / 2] {
        damage_all(zeros);
        checkout.result(&["plan"]);
        damage_all(zeros);
        assert_eq!(checkout.built(&["--output", "renamed.box"])["cached"], false);
        assert_whole(&checkout.path("renamed.box"));
        assert!(files(&checkout.path("store/data")) == data, "the data is as it was");
        for directory in ["store/actions", "renamed.box"] {
            fs::remove_dir_all(checkout.path(directory)).unwrap();
        }
        write("test");
        checkout.built(&[]);
        write("renamed");
    }
}

/// Makes a checkout whose agent has a large layer, and returns its segment's path in the store after a build.
fn with_segment() -> (Checkout, PathBuf) {
    let checkout = Checkout::new();
    let large: Vec<u8> = (0u32..500_000).flat_map(u32::to_le_bytes).collect();
    let files = Layer::new().file("/srv/large", 0o644, large.clone());
    let files = files.file("/srv/again", 0o644, large.clone()).file("/srv/small", 0o644, "small");
    checkout.image("agent", &agent_with("agent").with(files.to_tar()));
    checkout.built(&[]);
    let segment = [large.as_slice(), &[0; 4096 - 2_000_000 % 4096]].concat();
    let path = checkout.path(&format!("store/blobs/{}", Digest::of(&segment).hex()));
    assert!(fs::read(&path).unwrap() == segment, "the content once, and filled up");
    (checkout, path)
}

#[test]
fn damaged_segments_of_layers_heal() {
    let (checkout, path) = with_segment();
    let whole = fs::read(&path).unwrap();
    let cut = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::write(path, [7; 4096]).unwrap();
    };
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    for (number, harm) in [damage, cut, remove].into_iter().enumerate() {
        let name = format!("name-{number}");
        checkout.write("Boxfile", BOXFILE.replace("\"test\"", &format!("\"{name}\"")));
        harm(&path);
        let output = format!("{name}.box");
        assert_eq!(checkout.built(&["--output", &output])["cached"], false);
        assert_whole(&checkout.path(&output));
        assert!(fs::read(&path).unwrap() == whole, "the segment is as it was");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
    }
}

#[test]
fn damaged_data_of_layers_heals() {
    assert_healing("");
}

#[test]
fn damaged_data_of_layers_heals_where_images_are_merged() {
    assert_healing("layout \"merged\"\nconflict \"/**\" policy=\"prefer-agent\"");
}

#[test]
fn a_damaged_box_is_repaired_in_place() {
    let checkout = Checkout::new();
    checkout.built(WHOLE);
    let mut reported = 0;
    for (name, _) in files(&checkout.path("test.box/blobs/sha256")) {
        damage(&checkout.path("test.box/blobs/sha256").join(name));
        let built = checkout.run(&["build", "--output", "test.box"]);
        assert_whole(&checkout.path("test.box"));
        // If the manifest or the config is damaged, the build cannot tell which box it replaces.
        let is_told = built.notes.contains("note: replaced test.box, which was this box with");
        reported += usize::from(is_told);
    }
    assert_eq!(reported, 4, "rootfs, init, kernel and listing");
}

#[test]
fn a_box_with_something_else_beside_it_is_not_replaced() {
    let foreign = ["notes.txt", "blobs/notes.txt", "blobs/sha256/notes.txt", "src/main.rs"];
    for foreign in foreign {
        let checkout = Checkout::new();
        checkout.built(WHOLE);
        checkout.write(&format!("test.box/{foreign}"), "precious");
        let before = files(&checkout.path("test.box"));
        checkout.write("Boxfile", BOXFILE.replace("cpus=1", "cpus=2"));
        let built = checkout.build(&[]);
        let errors = String::from_utf8(built.stderr).unwrap();
        assert_eq!(built.status.code(), Some(1), "{errors}");
        let named = foreign.strip_suffix("/main.rs").unwrap_or(foreign);
        assert!(errors.contains(&format!("holds {named}, which is no part of a box")), "{errors}");
        assert!(files(&checkout.path("test.box")) == before, "something was lost");
    }
}

#[test]
fn a_link_is_not_replaced() {
    let checkout = Checkout::new();
    checkout.built(WHOLE);
    symlink("test.box", checkout.path("link")).unwrap();
    for link in ["link", "link/"] {
        let built = checkout.build(&["--output", link]);
        let errors = String::from_utf8(built.stderr).unwrap();
        assert_eq!(built.status.code(), Some(1), "{errors}");
        assert!(errors.contains("symbolic link"), "{errors}");
    }
    assert_eq!(fs::read_link(checkout.path("link")).unwrap(), Path::new("test.box"));
    assert_whole(&checkout.path("test.box"));
}

#[test]
fn many_first_builds_may_share_a_new_store() {
    let checkout = Checkout::new();
    for _ in 0..5 {
        let start = |n: u32| {
            let mut command = checkout.command();
            // Two builds share each output.
            command.args(["--output", &format!("{}.box", n / 2)]).stdout(Stdio::null());
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        let builds: Vec<_> = (0..8).map(start).collect();
        for build in builds {
            let output = build.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        for n in 0..4 {
            assert_whole(&checkout.path(&format!("{n}.box")));
            fs::remove_dir_all(checkout.path(&format!("{n}.box"))).unwrap();
        }
        assert_eq!(leftovers(checkout.root()), Vec::<PathBuf>::new());
        fs::remove_dir_all(checkout.path("store")).unwrap();
    }
}

#[test]
fn a_refused_build_takes_nothing_from_others() {
    let checkout = Checkout::new();
    let large = Layer::new().file("/etc/passwd", 0o644, vec![b'x'; 40 << 20]);
    checkout.image("large", &agent_with("agent").with(large.to_tar()));
    checkout.write("large.Boxfile", BOXFILE.replace("images/agent", "images/large"));
    for _ in 0..4 {
        let start = |n: u32| {
            let mut command = checkout.command();
            command.args(["--output", &format!("{n}.box")]).stdout(Stdio::null());
            // Every second build fails, after it has decoded layers that the others also need.
            command.args(["-f", "large.Boxfile"].iter().filter(|_| n % 2 == 1));
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        let builds: Vec<_> = (0..8).map(start).collect();
        for (n, build) in builds.into_iter().enumerate() {
            let output = build.wait_with_output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.success(), n % 2 == 0, "{message}");
            assert_eq!(message.contains("cannot read /etc/passwd"), n % 2 == 1, "{message}");
        }
        for n in [0, 2, 4, 6] {
            assert_whole(&checkout.path(&format!("{n}.box")));
            fs::remove_dir_all(checkout.path(&format!("{n}.box"))).unwrap();
        }
        fs::remove_dir_all(checkout.path("store")).unwrap();
    }
}

#[test]
fn what_a_refused_build_decoded_is_gone_and_what_was_there_before_is_not() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    let stored = || [files(&checkout.path("store/data")), files(&checkout.path("store/actions"))];
    let before = stored();
    let large = Layer::new().file("/etc/passwd", 0o644, vec![b'x'; 40 << 20]);
    checkout.image("agent", &agent_with("agent").with(large.to_tar()));
    fs::remove_file(checkout.path("Boxfile.lock")).unwrap();
    assert!(checkout.fails(&["build"]).contains("cannot read /etc/passwd"));
    assert!(stored() == before);
    let blobs = files(&checkout.path("store/blobs"));
    assert!(blobs.iter().all(|(_, bytes)| bytes.len() < 40 << 20), "its segment is gone");
    // A build that fails because of the Boxfile keeps its decoded layers.
    checkout.image("agent", &agent_with("another"));
    checkout.edit(
        "Boxfile",
        "    health \"tcp\"",
        "    health \"tcp\"\n    entrypoint \"/missing\"",
    );
    checkout.fails(&["build"]);
    assert_eq!(stored()[0].len(), before[0].len() + 1);
}

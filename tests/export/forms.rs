//! Tests that an export has the tree digest of the box in every form.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use box_contract::ComponentName;
use box_inspect::export::{LeftOut, OciImage, Ownership, copy_rootfs};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use testbed::promises::EXPORT_MEMORY;
use testkit::images::{Config, Image, Layer};

use crate::command::{shell, stderr_text};
use crate::made::Made;
use crate::readers::{assert_same, of_directory, of_erofs, of_oci, of_tar};
use crate::specimens::{Specimen, large, small};

/// Exports a whole box in every form, reads each export, and compares the trees.
fn whole(specimen: &Specimen) {
    let made = Made::of(specimen);
    let export = made.whole();
    assert_eq!(export.tree().digest(), made.opened().config.tree);
    let (mut image, mut archive) = (Vec::new(), Vec::new());
    let written = copy_rootfs(&made.opened(), &mut image).unwrap();
    assert_eq!((written.size, written.digest), (image.len() as u64, digest(&image)));
    assert_same(&of_erofs(&image), export.tree());
    let written = export.tar(&mut archive).unwrap();
    assert_eq!((written.size, written.digest), (archive.len() as u64, digest(&archive)));
    assert_same(&of_tar(&archive), export.tree());
    let directory = made.path("directory");
    let left_out = export.directory(&directory, Ownership::Box).unwrap();
    assert_eq!(left_out, LeftOut::default());
    assert_same(&of_directory(&directory), export.tree());
}

fn digest(bytes: &[u8]) -> box_digest::Digest {
    box_digest::Digest::of(bytes)
}

/// Exports a component's root in every form for components, reads each export, and compares the trees.
fn component(specimen: &Specimen, name: ComponentName) {
    let made = Made::of(specimen);
    let export = made.component(name);
    let mut archive = Vec::new();
    export.tar(&mut archive).unwrap();
    assert_same(&of_tar(&archive), export.tree());
    let directory = made.path("directory");
    export.directory(&directory, Ownership::Box).unwrap();
    assert_same(&of_directory(&directory), export.tree());
    let whole = made.path("whole");
    made.whole().directory(&whole, Ownership::Box).unwrap();
    assert_same(&of_directory(&whole.join("roots").join(name.name())), export.tree());
    let image = OciImage::of(&export).unwrap();
    let layout = made.path("layout");
    image.write_directory(&layout).unwrap();
    assert_same(&of_oci(&layout), export.tree());
}

#[test]
fn a_small_box_with_every_kind_of_entry() {
    whole(&small());
}

#[test]
fn a_larger_box() {
    whole(&large());
}

#[test]
fn the_components_of_a_box() {
    component(&small(), ComponentName::Agent);
    component(&small(), ComponentName::Business);
    component(&large(), ComponentName::Agent);
}

#[test]
fn links_lead_nothing_out_of_the_directory() {
    let made = Made::of(&small());
    let directory = made.path("directory");
    made.component(ComponentName::Agent).directory(&directory, Ownership::Box).unwrap();
    let read = |name: &str| fs::read_link(directory.join("srv").join(name)).unwrap();
    assert_eq!(read("absolute").to_str(), Some("/etc/passwd"));
    assert_eq!(read("the-same-link").to_str(), Some("/etc/passwd"));
    assert_eq!(read("up").to_str(), Some("../../../../../../etc"));
}

/// Replaces a directory of an export by a link out of it, as another program of the same user can.
#[test]
fn whoever_exchanges_a_directory_leads_no_file_out() {
    let made = Made::of(&small());
    let at = |path: &str| made.path(path);
    fs::create_dir(at("race")).unwrap();
    fs::create_dir(at("outside")).unwrap();
    let done = AtomicBool::new(false);
    let exchanged = AtomicUsize::new(0);
    let exchange = || {
        while !done.load(Ordering::Relaxed) {
            let drafts = fs::read_dir(at("race")).unwrap().flatten();
            for draft in drafts.filter(|it| it.file_name() != "directory") {
                let link = at("link");
                drop(symlink(at("outside"), &link));
                let flags = RenameFlags::EXCHANGE;
                if renameat_with(CWD, &link, CWD, draft.path().join("srv"), flags).is_ok() {
                    exchanged.fetch_add(1, Ordering::Relaxed);
                }
                drop(fs::remove_file(&link).or_else(|_| fs::remove_dir_all(&link)));
            }
        }
    };
    let deadline = Instant::now() + Duration::from_secs(2);
    thread::scope(|scope| {
        scope.spawn(exchange);
        for _ in (0..20_000).take_while(|_| Instant::now() < deadline) {
            let directory = at("race/directory");
            // An export fails if it meets the link.
            drop(made.component(ComponentName::Agent).directory(&directory, Ownership::Box));
            drop(fs::remove_dir_all(&directory));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(exchanged.into_inner() > 0, "no directory was exchanged");
    assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 0, "an export has left its directory");
}

#[test]
fn memory_does_not_grow_with_the_data() {
    let layer = Layer::new().file("/large", 0o755, vec![7; 128 << 20]);
    let config = Config { entrypoint: vec!["/large".to_owned()], ..Config::default() };
    let made = Made::of(&Specimen {
        boxfile: "box \"large\"\nagent { image \"oci:agent\"; }\n",
        images: vec![("agent", Image::new(config).with(layer.to_tar()))],
    });
    // The limit allows a few dozen MiB of address space: the program, its stack and its buffers, but not the large file.
    let kib = EXPORT_MEMORY.number * 1024.0;
    let script = format!(
        "ulimit -v {kib} || exit; for form in erofs tar dir oci; do \
         \"$0\" export made.box --format $form || exit; done; \
         \"$0\" export made.box --format container --launcher program"
    );
    let output = shell(&made.path(""), &script, &[]).output().unwrap();
    assert!(output.status.success(), "{}", stderr_text(&output));
    let exported = fs::metadata(made.path("made.dir/roots/agent/large")).unwrap();
    assert_eq!(exported.len(), 128 << 20);
}

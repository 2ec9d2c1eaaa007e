//! The directory that a box is written to, when others write there too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::checkout::{BOXFILE, Checkout, Ran, files};
use crate::traced::{assert_success, injected, leftovers};

/// Makes a checkout with a box of one CPU, whose Boxfile asks for two.
fn changed() -> Checkout {
    let checkout = Checkout::new();
    checkout.built(&[]);
    checkout.write("Boxfile", BOXFILE.replace("cpus=1", "cpus=2"));
    checkout
}

#[test]
fn profiles_share_a_box_and_a_build_names_the_one_that_it_replaces() {
    let checkout = Checkout::new();
    let profiles = "profile \"ci\" { vm memory=\"512MiB\"; }\n";
    checkout.write("Boxfile", format!("{BOXFILE}{profiles}"));
    let first = checkout.result(&["build"]);
    let note =
        format!("note: replaced test.box, which was {}; each profile is written", first.trim());
    let notes = checkout.notes(&["build", "--profile", "ci"]);
    assert!(notes.contains(&note), "{notes}");
    for args in [&["build", "--profile", "ci"][..], &["build", "-o", "test.box"]] {
        let notes = checkout.notes(args);
        assert!(!notes.contains("replaced"), "{notes}");
    }
    checkout.write("Boxfile", BOXFILE.replace("box \"test\"", "box \"two\""));
    let notes = checkout.notes(&["build", "-o", "test.box"]);
    assert!(
        notes.contains("note: replaced test.box, which was the box \"test\", sha256:"),
        "{notes}"
    );
}

#[test]
fn two_builds_to_one_output_both_succeed() {
    for (first, second) in [
        ("renameat2:delay_enter=300ms", "renameat2:delay_exit=200ms"),
        ("renameat2:delay_exit=300ms", "renameat2:delay_exit=300ms"),
        ("renameat2:delay_enter=300ms", "renameat2:delay_enter=300ms"),
    ] {
        for there in [false, true] {
            let checkout = changed();
            checkout.write("other.Boxfile", BOXFILE.replace("cpus=1", "cpus=3"));
            checkout.built(&["--output", "one.box"]);
            checkout.built(&["-f", "other.Boxfile", "--output", "two.box"]);
            if !there {
                fs::remove_dir_all(checkout.path("test.box")).unwrap();
            }
            let start = |inject: &str, args: &[&str]| {
                let mut build = injected(&checkout, inject);
                build.args(args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
            };
            let builds = [start(first, &[]), start(second, &["-f", "other.Boxfile"])];
            for build in builds {
                assert_success(&build.wait_with_output().unwrap());
            }
            let found = files(&checkout.path("test.box"));
            let is_one_of_them =
                ["one.box", "two.box"].map(|it| files(&checkout.path(it)) == found);
            assert!(is_one_of_them[0] != is_one_of_them[1], "{first}, {second}: neither box");
            assert!(leftovers(checkout.root()).is_empty());
        }
    }
}

#[test]
fn a_file_that_comes_during_the_build_is_kept() {
    for inject in ["renameat2:delay_enter=1s", "renameat2:error=EINVAL:delay_enter=1s"] {
        let checkout = changed();
        let before = files(&checkout.path("test.box"));
        let mut build = injected(&checkout, inject);
        let build = build.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The new box is filled, so that the old one has been looked at; it is not renamed yet.
        wait_for_draft(checkout.root());
        checkout.write("test.box/notes.txt", "precious");
        let output = build.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("test.box exists and holds notes.txt"), "{errors}");
        assert_eq!(checkout.read("test.box/notes.txt"), "precious");
        fs::remove_file(checkout.path("test.box/notes.txt")).unwrap();
        assert!(files(&checkout.path("test.box")) == before);
        assert!(leftovers(checkout.root()).is_empty());
    }
}

/// Waits until a build has written a box's index under another name.
fn wait_for_draft(directory: &Path) {
    let start = Instant::now();
    while !leftovers(directory).iter().any(|it| it.join("index.json").exists()) {
        assert!(start.elapsed() < Duration::from_secs(60), "the build has written no box");
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_file_system_that_exchanges_nothing_gets_the_box_with_a_warning() {
    for error in ["EINVAL", "ENOSYS"] {
        let checkout = changed();
        let inject = format!("renameat2:error={error}");
        let ran = Ran::of(&mut injected(&checkout, &inject));
        assert_eq!(ran.code, 0, "{}", ran.notes);
        let warning = "warning: the file system of test.box cannot exchange two directories";
        assert!(ran.notes.contains(warning), "{}", ran.notes);
        let found = files(&checkout.path("test.box"));
        fs::remove_dir_all(checkout.path("test.box")).unwrap();
        let ran = Ran::of(&mut injected(&checkout, &inject));
        assert_eq!(ran.code, 0, "{}", ran.notes);
        assert!(!ran.notes.contains("warning: the file system"), "{}", ran.notes);
        assert!(files(&checkout.path("test.box")) == found);
        assert!(leftovers(checkout.root()).is_empty());
    }
}

/// Builds to an output that is no box, which must be refused at once.
fn assert_refused_at_once(checkout: &Checkout) {
    let build = checkout.command();
    // Whoever reads on in what is there never ends.
    let mut limited = Command::new("timeout");
    limited.current_dir(checkout.root()).env_clear().arg("60");
    let ran = Ran::of(limited.arg(build.get_program()).args(build.get_args()));
    assert_eq!(ran.code, 1, "{}", ran.notes);
    assert!(ran.notes.contains("test.box exists and is not a box"), "{}", ran.notes);
}

#[test]
fn an_index_that_has_no_end_is_no_box() {
    let checkout = Checkout::new();
    let index = checkout.path("test.box/index.json");
    fs::create_dir(checkout.path("test.box")).unwrap();
    symlink("/dev/zero", &index).unwrap();
    assert_refused_at_once(&checkout);
    fs::remove_file(&index).unwrap();
    assert!(Command::new("mkfifo").arg(&index).status().unwrap().success());
    assert_refused_at_once(&checkout);
    fs::remove_file(&index).unwrap();
    fs::File::create(&index).unwrap().set_len(1 << 40).unwrap();
    assert_refused_at_once(&checkout);
}

#[test]
fn a_blob_of_another_length_is_replaced_unread() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    let whole = files(&checkout.path("test.box"));
    let (name, _) = &files(&checkout.path("test.box/blobs/sha256"))[0];
    let blob = checkout.path("test.box/blobs/sha256").join(name);
    fs::remove_file(&blob).unwrap();
    fs::File::create(&blob).unwrap().set_len(1 << 43).unwrap();
    checkout.built(&[]);
    assert!(files(&checkout.path("test.box")) == whole);
}

#[test]
fn a_box_is_not_built_into_another() {
    let checkout = changed();
    let before = files(&checkout.path("test.box"));
    symlink("test.box/blobs", checkout.path("link")).unwrap();
    for output in ["test.box/inner", "test.box/blobs/new/inner", "link/inner"] {
        let ran = checkout.run(&["build", "--json", "-o", output]);
        let error = &ran.json()["errors"][0];
        assert_eq!((ran.code, &error["code"]), (1, &"output-exists".into()), "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{output} is in ")), "{message}");
        assert!(message.ends_with("test.box, an OCI image layout, which holds nothing else"));
        assert_eq!(files(&checkout.path("test.box")), before);
    }
}

#[test]
fn an_output_that_is_meant_to_be_a_file_is_refused() {
    let checkout = Checkout::new();
    for (output, meant) in [("-", "standard output"), ("out.tar", "an archive")] {
        let ran = checkout.run(&["build", "-o", output]);
        let message = format!("error: a box is a directory, and cannot be written to {meant}\n");
        assert!(ran.code == 2 && ran.notes.starts_with(&message), "{}", ran.notes);
        assert!(!checkout.path(output).exists());
    }
}

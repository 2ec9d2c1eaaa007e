//! Tests of a build's output directory, also while other processes write to it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::checkout::{BOXFILE, Checkout, Ran, files};
use crate::traced::{assert_success, injected, leftovers};

/// Makes a checkout with a box of one CPU, whose Boxfile now declares two.
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

/// `boxlaunch up` builds the Boxfile of a project so, which a box may have changed.
#[test]
fn a_box_for_a_start_has_no_name_and_nothing_of_outside_the_project() {
    let checkout = Checkout::new();
    let path = |it: &Path| it.to_str().unwrap().to_owned();
    let (file, root) = (path(&checkout.path("Boxfile")), path(checkout.root()));
    let args = ["build", "--for-start", "--file", &file, "--checkout", &root];
    let digest = checkout.result(&args);
    assert!(digest.starts_with("sha256:"), "{digest}");
    assert!(checkout.path("Boxfile.lock").exists() && !checkout.path("test.box").exists());
    // Another directory builds a box of the same name.
    let directory = tempfile::tempdir().unwrap();
    let other = checkout.copied(directory.path());
    let (file, root) = (path(&other.path("Boxfile")), path(other.root()));
    let args = ["build", "--for-start", "--file", &file, "--checkout", &root];
    assert_eq!(other.result(&args), digest);
    fs::write(directory.path().join("key"), "key").unwrap();
    let outside = "file \"../key\" to=\"/key\"\n    limits";
    other.write("Boxfile", BOXFILE.replacen("limits", outside, 1));
    let error = other.fails(&args);
    assert!(error.contains("../key"), "{error}");
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
            let output = ["--output", "test.box"];
            let other = ["-f", "other.Boxfile", "--output", "test.box"];
            let builds = [start(first, &output), start(second, &other)];
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
        // Now the build has examined the old box and written the new one, but not renamed it yet.
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

/// Waits until a build has written a box's index into a temporary directory.
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

/// Builds to an output that is not a box, which must be refused without reading all of it.
fn assert_refused_at_once(checkout: &Checkout) {
    let build = checkout.command();
    // The index is endless, so the build would run into the timeout if it read all of it.
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
fn a_box_is_not_built_into_a_store() {
    let checkout = changed();
    for output in ["store/inner.box", "store/blobs/inner.box"] {
        let ran = checkout.run(&["build", "--json", "-o", output]);
        let error = &ran.json()["errors"][0];
        assert_eq!((ran.code, &error["code"]), (1, &"output-exists".into()), "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{output} is in ")), "{message}");
        assert!(message.ends_with("store, a store, which holds nothing else"), "{message}");
        assert_eq!(error["help"], "name another path with --output");
        assert!(!checkout.path(output).exists());
    }
}

#[test]
fn a_box_is_not_exported_into_a_store() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    for output in ["store/test.tar", "store/blobs/test.tar"] {
        let ran = checkout.run(&["export", "--json", "--format", "tar", "-o", output, "test.box"]);
        let error = &ran.json()["errors"][0];
        assert_eq!((ran.code, &error["code"]), (1, &"output-exists".into()), "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with("store, a store, which holds nothing else"), "{message}");
        assert!(!checkout.path(output).exists());
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

/// Returns the paths of the files below a directory.
fn names(checkout: &Checkout, directory: &str) -> Vec<String> {
    let files = files(&checkout.path(directory)).into_iter();
    files.map(|(path, _)| path.to_str().unwrap().to_owned()).collect()
}

#[test]
fn a_box_is_named_in_the_store_and_its_directory_is_small() {
    let checkout = Checkout::new();
    let built = checkout.built(&[]);
    let digest = built["box"].as_str().unwrap();
    assert_eq!((&built["whole"], &built["stored_as"]), (&false.into(), &"test".into()));
    let thin = files(&checkout.path("test.box"));
    assert!(thin.len() == 4 && thin.iter().map(|it| it.1.len()).sum::<usize>() < 8 << 10);
    for word in ["test", digest, "test.box", "./test.box", &format!("test@{digest}")] {
        let shown = checkout.run(&["inspect", word, "--json"]).json();
        assert_eq!(shown["box"], digest, "{word}");
        assert!(checkout.result(&["cat", word, "/roots/agent/agent/notes"]) == "notes", "{word}");
    }
    let owner = checkout.path("Boxfile").canonicalize().unwrap();
    let named = format!("{digest}\n{}", owner.display());
    assert_eq!(checkout.read("store/names/test"), named);
    assert_eq!(
        names(&checkout, "store/boxes"),
        ["built", "index.json", "oci-layout"].map(|it| format!("{}/{it}", &digest[7..]))
    );
    let roots = files(&checkout.path("store/roots"));
    let thin = checkout.path("test.box").canonicalize().unwrap();
    let mode = || fs::metadata(thin.join("index.json")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o644, "whatever the umask");
    fs::set_permissions(thin.join("index.json"), fs::Permissions::from_mode(0o664)).unwrap();
    checkout.built(&[]);
    assert_eq!(mode(), 0o644, "no other user decides which box is started");
    assert_eq!(roots[0].1, thin.to_str().unwrap().as_bytes());
    assert_eq!(checkout.built(&[])["cached"], true);
}

#[test]
fn a_whole_box_needs_no_store_and_gets_no_name() {
    let checkout = Checkout::new();
    let built = checkout.built(&["--output", "out.box"]);
    assert_eq!((&built["whole"], &built["stored_as"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(names(&checkout, "store/names"), [""; 0]);
    assert_eq!(names(&checkout, "store/roots"), [""; 0]);
    checkout.result(&["verify", built["box"].as_str().unwrap()]);
    let named = checkout.built(&["--output", "out.box", "--name", "other"]);
    assert_eq!((&named["stored_as"], &named["box"]), (&"other".into(), &built["box"]));
    checkout.result(&["verify", "other"]);
    fs::remove_dir_all(checkout.path("store")).unwrap();
    checkout.result(&["verify", "out.box"]);
}

#[test]
fn a_thin_box_takes_the_place_of_a_whole_one_and_back() {
    let checkout = Checkout::new();
    checkout.built(&["--output", "test.box"]);
    let whole = files(&checkout.path("test.box"));
    let notes = checkout.notes(&["build"]);
    let note = "note: test.box points to the store now; to write the whole box there, use `--output test.box`\n";
    assert!(notes.contains(note), "{notes}");
    assert_eq!(files(&checkout.path("test.box")).len(), 4);
    checkout.built(&["--output", "test.box"]);
    assert!(files(&checkout.path("test.box")) == whole);
}

#[test]
fn a_missing_blob_is_named_with_what_to_do() {
    let checkout = Checkout::new();
    let built = checkout.built(&[]);
    fs::remove_dir_all(checkout.path("store")).unwrap();
    let error = checkout.fails(&["cat", "test.box", "/roots/agent/agent/notes"]);
    let text = "error: the metadata sha256:";
    assert!(error.starts_with(text) && error.contains("`boxbuild build`"), "{error}");
    let error = checkout.fails(&["cat", "test", "/x"]);
    assert!(error.starts_with("error: no box has the name test in the store "), "{error}");
    assert!(error.contains("./test"), "{error}");
    let error = checkout.fails(&["cat", built["box"].as_str().unwrap(), "/x"]);
    assert!(error.starts_with("error: the store has no box sha256:"), "{error}");
    checkout.built(&[]);
    checkout.result(&["verify", "test.box"]);
}

#[test]
fn a_name_of_another_boxfile_is_refused_before_a_box_or_a_lock_is_written() {
    let checkout = Checkout::new();
    let first = checkout.built(&[])["box"].clone();
    checkout.write("elsewhere/Boxfile", checkout.read("Boxfile").replace("\"oci:", "\"oci:../"));
    checkout.write("elsewhere/skills/greet/SKILL.md", checkout.read("skills/greet/SKILL.md"));
    let build = ["build", "-f", "elsewhere/Boxfile"];
    let error = checkout.fails(&build);
    let owner = checkout.path("Boxfile").canonicalize().unwrap();
    let expected = format!("error: the name test belongs to the box of {}\n", owner.display());
    assert!(error.starts_with(&expected) && error.contains("--name NAME"), "{error}");
    assert!(!checkout.path("elsewhere/Boxfile.lock").exists());
    assert_eq!(checkout.run(&["inspect", "test.box", "--json"]).json()["box"], first);
    checkout.result(&["build", "-f", "elsewhere/Boxfile", "--name", "second"]);
    assert!(checkout.path("second.box").is_dir());
    checkout.result(&["verify", "second"]);
    assert_eq!(checkout.run(&["inspect", "test", "--json"]).json()["box"], first);
    // The second Boxfile gets the name once the first Boxfile is removed.
    fs::remove_file(checkout.path("Boxfile")).unwrap();
    let ran = checkout.run(&build);
    let note = format!(
        "warning: the name test belongs to this box now; before, it named {}, the box of {}, which is gone\n",
        first.as_str().unwrap(),
        owner.display()
    );
    assert!(ran.code == 0 && ran.notes.contains(&note), "{}", ran.notes);
    assert_eq!(checkout.run(&["inspect", "test", "--json"]).json()["box"], ran.result.trim());
}

#[test]
fn a_build_warns_only_if_its_name_belonged_to_another_box() {
    let checkout = Checkout::new();
    let first = checkout.built(&[])["box"].clone();
    checkout.result(&["save", "test", "--output", "test.tar"]);
    let load = || {
        fs::remove_dir_all(checkout.path("store")).unwrap();
        checkout.result(&["load", "test.tar"]);
    };
    load();
    let same = checkout.notes(&["build"]);
    assert!(!same.contains("the name test"), "{same}");
    load();
    checkout.write("skills/greet/more", "changed");
    let error = checkout.fails(&["build"]);
    let expected = "error: the name test belongs to a box that was loaded from a file\n";
    assert!(error.starts_with(expected) && error.contains("--name NAME"), "{error}");
    assert_eq!(checkout.run(&["inspect", "test", "--json"]).json()["box"], first);
}

#[test]
fn a_second_clone_of_a_project_builds_the_same_box_under_its_name() {
    let checkout = Checkout::new();
    let first = checkout.built(&[])["box"].clone();
    for path in ["Boxfile", "Boxfile.lock", "skills/greet/SKILL.md", "skills/greet/tools/greet.sh"]
    {
        let text = checkout.read(path).replace("\"oci:", "\"oci:../");
        checkout.write(&format!("clone/{path}"), text);
    }
    let build = ["build", "-f", "clone/Boxfile", "--json"];
    let second = checkout.run(&build);
    assert_eq!((second.code, &second.json()["box"]), (0, &first), "{}", second.notes);
    // The first clone keeps the name: the second clone may not use it for another box.
    checkout.write("clone/skills/greet/SKILL.md", "---\nname: greet\ndescription: Other.\n---\n");
    let error = &checkout.run(&build).json()["errors"][0];
    assert_eq!(error["code"], "name-taken", "{error}");
    checkout.built(&[]);
}

#[test]
fn a_boxfile_that_is_a_link_is_another_boxfile() {
    let checkout = Checkout::new();
    checkout.built(&[]);
    let (theirs, owner) = (checkout.path("theirs"), checkout.path("Boxfile"));
    fs::create_dir_all(theirs.join("images")).unwrap();
    checkout.write("theirs/skills/greet/SKILL.md", "---\nname: greet\ndescription: Theirs.\n---\n");
    for name in ["agent", "business"] {
        symlink(checkout.path("images").join(name), theirs.join("images").join(name)).unwrap();
    }
    symlink(&owner, theirs.join("Boxfile")).unwrap();
    let error = checkout.fails(&["build", "-f", "theirs/Boxfile"]);
    assert!(error.contains("the name test belongs to the box of"), "{error}");
}

#[test]
fn a_damaged_entry_of_the_store_is_made_again() {
    let checkout = Checkout::new();
    let digest = checkout.built(&[])["box"].as_str().unwrap().to_owned();
    let entry = checkout.path("store/boxes").join(&digest[7..]);
    for harm in [
        |entry: &Path| fs::write(entry.join("index.json"), "").unwrap(),
        |entry: &Path| fs::write(entry.join("stray"), "").unwrap(),
        |entry: &Path| {
            fs::remove_dir_all(entry).unwrap();
            fs::create_dir(entry).unwrap();
        },
    ] {
        harm(&entry);
        checkout.built(&[]);
        checkout.result(&["verify", &digest]);
    }
}

#[test]
fn a_name_that_is_none_is_refused() {
    let checkout = Checkout::new();
    for name in ["", "../x", "A", "a/b", "a.box"] {
        let ran = checkout.run(&["build", "--name", name]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.notes);
    }
}

//! Tests that pipes, devices and directories instead of files are refused at once. Reading a pipe or `/dev/zero` never ends.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::damage::pipe;

use crate::checkout::{BOXFILE, Checkout, Ran};

/// The exit code of timeout(1) if the program did not end in time.
const HUNG: i32 = 124;

/// Runs a command with a timeout of 60 s.
fn patiently(command: &Command) -> Ran {
    let mut patient = Command::new("timeout");
    patient.arg("60").arg(command.get_program()).args(command.get_args()).env_clear();
    patient.current_dir(command.get_current_dir().unwrap());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    patient.envs(set);
    Ran::of(&mut patient)
}

/// Puts a pipe, a link to `/dev/zero` and a directory at `path` in turn, and checks that the command refuses each.
fn refused(path: &Path, command: &Command) {
    let clear = || {
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path).unwrap();
        } else if path.symlink_metadata().is_ok() {
            fs::remove_file(path).unwrap();
        }
    };
    let places: [(&str, &dyn Fn()); 3] = [
        ("pipe", &|| pipe(path)),
        ("device", &|| symlink("/dev/zero", path).unwrap()),
        ("directory", &|| fs::create_dir(path).unwrap()),
    ];
    for (kind, make) in places {
        clear();
        make();
        let ran = patiently(command);
        let what = format!("{kind} as {}: {}{}", path.display(), ran.result, ran.notes);
        assert_ne!(ran.code, HUNG, "{what}");
        assert_eq!(ran.code, 1, "{what}");
        // If the file must be in the checkout, the link to the device is refused because it leaves the checkout.
        let reasons = ["is not a regular file", "leads out of the checkout"];
        assert!(reasons.iter().any(|reason| ran.notes.contains(reason)), "{what}");
    }
    clear();
}

/// Returns the path of an image's largest blob, which is a layer.
fn layer(checkout: &Checkout, image: &str) -> PathBuf {
    let blobs = fs::read_dir(checkout.path(&format!("images/{image}/blobs/sha256"))).unwrap();
    blobs.map(|blob| blob.unwrap().path()).max_by_key(|it| it.metadata().unwrap().len()).unwrap()
}

#[test]
fn a_boxfile_and_what_it_extends() {
    let checkout = Checkout::new();
    refused(&checkout.path("Boxfile"), checkout.command().args(["-f", "Boxfile"]));
    checkout.write("Boxfile", format!("extends \"base\"\n{BOXFILE}"));
    refused(&checkout.path("base"), &checkout.command());
}

#[test]
fn a_lock() {
    let checkout = Checkout::new();
    refused(&checkout.path("Boxfile.lock"), &checkout.command());
}

#[test]
fn a_file_with_variables() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "    health \"tcp\"\n", "    health \"tcp\"\n    env-file \"env\"\n");
    refused(&checkout.path("env"), &checkout.command());
}

#[test]
fn a_program_of_the_checkout() {
    let checkout = Checkout::new();
    checkout.edit("Boxfile", "    image \"oci:images/agent\"\n", "    binary \"agent\"\n");
    // Only the pipe is tested: a link to a device is refused earlier, because it leaves the checkout.
    pipe(&checkout.path("agent"));
    let ran = patiently(&checkout.command());
    assert_eq!(ran.code, 1, "{}", ran.notes);
    assert!(ran.notes.contains("is not a regular file"), "{}", ran.notes);
}

#[test]
fn an_image() {
    let checkout = Checkout::new();
    for file in ["index.json", "oci-layout"] {
        let path = checkout.path("images/agent").join(file);
        let whole = fs::read(&path).unwrap();
        refused(&path, &checkout.command());
        fs::write(path, whole).unwrap();
    }
    refused(&layer(&checkout, "agent"), &checkout.command());
}

#[test]
fn init_and_kernel() {
    let checkout = Checkout::new();
    for option in ["--init", "--kernel"] {
        let mut command = checkout.boxbuild(&["build", option, "tool"]);
        command.args(["--store", "store"]);
        refused(&checkout.path("tool"), &command);
    }
}

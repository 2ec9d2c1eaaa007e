//! Tests that the same input gives the same box, whatever the user, the directory, the time and the umask of the build.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use testbed::prerequisites::{Package, packages};

use crate::checkout::{Checkout, files};

/// Changes the modification time and the permissions of every file in the checkout.
fn disturb(checkout: &Checkout) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 365 * 20);
    for (path, _) in files(checkout.root()) {
        let path = checkout.root().join(path);
        let mode = if path.extension().is_some_and(|it| it == "sh") { 0o700 } else { 0o600 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    }
}

/// Returns a command that sets the umask and then runs `command`.
pub(crate) fn under_umask(command: &Command, umask: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap()).env_clear();
    shell
}

#[test]
fn two_bakes_of_the_same_input_are_the_same_bytes() {
    let tidy = Checkout::new();
    fs::set_permissions(
        tidy.path("skills/greet/tools/greet.sh"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let mut first = under_umask(&tidy.command(), "022");
    first.args(["--jobs", "1", "--output", "test.box"]).env("TZ", "UTC").env("LC_ALL", "C");
    let wild = Checkout::new();
    disturb(&wild);
    let mut second = under_umask(&wild.command(), "077");
    second
        .args(["--jobs", "7", "--output", "test.box"])
        .env("TZ", "Asia/Tokyo")
        .env("LC_ALL", "tr_TR.UTF-8");
    second.env("SOURCE_DATE_EPOCH", "1234567890").env("HOME", wild.path("images"));
    let (first, second) = (first.output().unwrap(), second.output().unwrap());
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    assert_eq!(first.stdout, second.stdout, "the box digests differ");
    let (first, second) = (files(&tidy.path("test.box")), files(&wild.path("test.box")));
    let names = |files: &[(std::path::PathBuf, Vec<u8>)]| {
        files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&first), names(&second));
    assert!(first == second, "a blob differs");
    assert_eq!(first.len(), 8, "six blobs, index.json, oci-layout");
}

/// Returns a command that runs `command` with the clock in 2001. faketime replaces functions of the C library, so the program
/// must be linked dynamically.
fn by_an_old_clock(command: &Command) -> Command {
    packages(&[Package::Faketime], &mut |line| println!("{line}")).unwrap();
    let program = fs::read(command.get_program()).unwrap();
    assert!(program[..4096].windows(8).any(|it| it == b"ld-linux"), "it has the kernel's clock");
    let mut old = Command::new(Package::Faketime.path().unwrap());
    old.env_clear().arg("2001-02-03 04:05:06").arg(command.get_program());
    old.args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    old
}

#[test]
fn neither_the_order_of_directories_nor_the_clock_is_in_a_box() {
    const FILES: u32 = 64;
    let first = Checkout::new();
    (0..FILES).for_each(|number| first.write(&format!("skills/greet/{number}.md"), "text"));
    // `/dev/shm`, if it exists, lists names in another order than most file systems.
    let memory = Some(Path::new("/dev/shm")).filter(|it| it.is_dir());
    let second = first.copied(memory.unwrap_or(&env::temp_dir()));
    let listed = |checkout: &Checkout| -> Vec<_> {
        let entries = fs::read_dir(checkout.path("skills/greet")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_ne!(listed(&first), listed(&second), "both are listed in one order");
    let built = [first.command(), by_an_old_clock(&second.command())].map(|mut it| it.output());
    let [built, again] = built.map(|output| {
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    });
    assert_eq!(built, again, "the box digests differ");
    assert!(files(&first.path("test.box")) == files(&second.path("test.box")), "a blob differs");
}

#[test]
fn whatever_changes_the_box_changes_its_digest() {
    let base = Checkout::new().built(&[])["box"].clone();
    let changes: [fn(&Checkout); 4] = [
        |it| it.edit("skills/greet/SKILL.md", "\nGreets.", "\nGreets more."),
        |it| it.write("Boxfile", crate::checkout::BOXFILE.replace("pids=32", "pids=33")),
        |it| it.write("Boxfile", crate::checkout::BOXFILE.replace("\"test\"", "\"other\"")),
        |it| it.agent_of(testkit::images::Layer::new().file("/agent", 0o755, "new").to_tar()),
    ];
    let mut digests = vec![base];
    for change in changes {
        let checkout = Checkout::new();
        change(&checkout);
        let digest = checkout.built(&["--output", "out"])["box"].clone();
        assert!(!digests.contains(&digest), "a change went unnoticed");
        digests.push(digest);
    }
}

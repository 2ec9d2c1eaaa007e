//! The same input gives the same bytes, whoever builds it, where, when and how.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::checkout::{Checkout, files};

/// Gives every source another time and other permissions than a fresh checkout has.
fn disturb(checkout: &Checkout) {
    let past = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400 * 365 * 20);
    for (path, _) in files(checkout.root()) {
        let path = checkout.root().join(path);
        let mode = if path.extension().is_some_and(|it| it == "sh") { 0o700 } else { 0o600 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(past).unwrap();
    }
}

/// Runs the build under a shell that sets the umask first.
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
    first.args(["--jobs", "1"]).env("TZ", "UTC").env("LC_ALL", "C");
    let wild = Checkout::new();
    disturb(&wild);
    let mut second = under_umask(&wild.command(), "077");
    second.args(["--jobs", "7"]).env("TZ", "Asia/Tokyo").env("LC_ALL", "tr_TR.UTF-8");
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

//! Tests which files of the host a Boxfile may refer to: those of its checkout, and those that the command line allows.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::checkout::{BOXFILE, Checkout, Ran};

/// A text of the host's files that no message and no box may contain.
const CANARY: &str = "hunter2canary";

/// A user's home directory `home` with the clones `clone` and `sibling`, and other files.
struct Host {
    checkout: Checkout,
    /// A directory on another file system.
    other_device: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let checkout = Checkout::new();
        for place in ["home/.aws", "home/sibling", "home"] {
            checkout.write(&format!("{place}/secret"), format!("KEY={CANARY}\n"));
            checkout.write(&format!("{place}/empty"), "");
            checkout.write(&format!("{place}/skill/SKILL.md"), CANARY);
        }
        checkout.write("home/sibling/.git/HEAD", "");
        checkout.write("home/clone/inner/Boxfile", BOXFILE);
        let other_device = tempfile::tempdir_in("/dev/shm").unwrap();
        for (name, text) in [("secret", CANARY), ("empty", "")] {
            fs::write(other_device.path().join(name), text).unwrap();
        }
        fs::create_dir(other_device.path().join("skill")).unwrap();
        fs::write(other_device.path().join("skill/SKILL.md"), CANARY).unwrap();
        Self { checkout, other_device }
    }

    /// Returns directories outside the clone as paths relative to `from`, which is in the clone.
    fn outside(&self, from: &str) -> Vec<PathBuf> {
        let home = ["home/.aws", "home/sibling", "home"].map(|it| self.checkout.path(it));
        let other = [Path::new("/etc"), Path::new("/proc/self"), self.other_device.path()];
        let from = self.checkout.path(from).canonicalize().unwrap();
        let up = "../".repeat(from.iter().count() - 1);
        let all = home.iter().map(|it| &**it).chain(other);
        all.map(|it| Path::new(&up).join(it.strip_prefix("/").unwrap())).collect()
    }

    /// Runs `boxbuild` in a directory, with `home` as the home directory.
    fn run(&self, directory: &str, args: &[&str]) -> Ran {
        let mut command = self.checkout.boxbuild(args);
        command.env("HOME", self.checkout.path("home")).env("CI_SECRET", CANARY);
        Ran::of(command.current_dir(self.checkout.path(directory)))
    }

    /// Checks that a Boxfile with this text is refused, and that its errors show nothing of the files that it refers to.
    fn refuses(&self, directory: &str, text: &str) {
        self.checkout.write(&format!("{directory}/Boxfile"), text);
        let ran = self.run(directory, &["check"]);
        let output = format!("{}{}", ran.result, ran.notes);
        assert_eq!(ran.code, 1, "{text}: {output}");
        let is_named = output.contains("must be inside the checkout")
            || output.contains("leads out of the checkout")
            || output.contains("is a file system of the kernel")
            || output.contains("is not checked in");
        assert!(is_named, "{text}: {output}");
        assert!(!output.contains(CANARY) && !output.contains("root:"), "{text}: {output}");
    }
}

/// Returns one Boxfile for each declaration that can refer to a file, with paths in `directory`.
fn declarations(directory: &str) -> Vec<String> {
    let (agent, rest) = BOXFILE.split_once("    health").unwrap();
    let within = |line: &str| format!("{agent}    {line}\n    health{rest}");
    let file = |name: &str| format!("{directory}/{name}");
    vec![
        format!("extends {:?}\n{BOXFILE}", file("secret")),
        format!("extends {:?}\n{BOXFILE}", file("empty")),
        within(&format!("file {:?} to=\"/a\"", file("secret"))),
        within(&format!("file {directory:?} to=\"/a\"")),
        within(&format!("file {:?} to=\"/a\"", file("environ"))),
        within(&format!("env-file {:?}", file("secret"))),
        within(&format!("binary {:?}", file("secret"))),
        format!("{BOXFILE}skill \"s\" path={:?}\n", file("skill")),
        format!("{BOXFILE}skills dir={directory:?}\n"),
    ]
}

#[test]
fn nothing_outside_of_the_checkout_is_read() {
    let host = Host::new();
    for repository in [None, Some("home/clone/.git"), Some("home/clone/inner/.git")] {
        repository.iter().for_each(|it| fs::create_dir(host.checkout.path(it)).unwrap());
        for outside in host.outside("home/clone/inner") {
            let outside = outside.to_str().unwrap();
            for text in declarations(outside) {
                host.refuses("home/clone/inner", &text);
            }
            // A base does not allow more files, not even those in its own directory.
            let widened = declarations(outside).swap_remove(2);
            host.refuses("home/clone/inner", &format!("extends \"{outside}/empty\"\n{widened}"));
        }
    }
}

#[test]
fn a_link_leads_to_nothing_outside_of_the_checkout() {
    let host = Host::new();
    fs::create_dir(host.checkout.path("home/clone/.git")).unwrap();
    fs::write(host.checkout.path("home/clone/.git/config"), CANARY).unwrap();
    for (number, outside) in host.outside("home/clone/inner").iter().enumerate() {
        let name = format!("link{number}");
        symlink(outside, host.checkout.path("home/clone/inner").join(&name)).unwrap();
        for text in declarations(&name) {
            // Skips paths that do not exist.
            let file = text.split('"').find(|it| it.starts_with(&name)).unwrap();
            if host.checkout.path("home/clone/inner").join(file).exists() {
                host.refuses("home/clone/inner", &text);
            }
        }
    }
    let (agent, rest) = BOXFILE.split_once("    health").unwrap();
    symlink("../.git", host.checkout.path("home/clone/inner/git")).unwrap();
    for path in ["../.git/config", "git/config", "../.git"] {
        let text = format!("{agent}file {path:?} to=\"/a\"\n    health{rest}");
        host.refuses("home/clone/inner", &text);
    }
}

#[test]
fn a_home_below_the_checkout_is_not_read() {
    let host = Host::new();
    fs::create_dir(host.checkout.path(".git")).unwrap();
    for from in ["", "ci"] {
        let up = if from.is_empty() { "home" } else { "../home" };
        for place in ["", "/.aws"] {
            for text in declarations(&format!("{up}{place}")) {
                if text.contains("environ") {
                    continue;
                }
                host.checkout.write(&Path::new(from).join("Boxfile").to_string_lossy(), &text);
                for further in [None, Some(host.checkout.path(""))] {
                    let mut args = vec!["check"];
                    if let Some(directory) = &further {
                        args.extend(["--checkout", directory.to_str().unwrap()]);
                    }
                    let ran = host.run(from, &args);
                    let output = format!("{}{}", ran.result, ran.notes);
                    assert_eq!(ran.code, 1, "{text}: {output}");
                    assert!(output.contains("is a home directory"), "{text}: {output}");
                    assert!(!output.contains(CANARY), "{text}: {output}");
                }
            }
        }
    }
    // A checkout that is outside the home directory is read, even if it contains the home, as a CI's workspace can.
    let (agent, rest) = BOXFILE.split_once("    health").unwrap();
    host.checkout.write("own/conf", "a");
    host.checkout.write("Boxfile", format!("{agent}file \"own\" to=\"/a\"\n    health{rest}"));
    let ran = host.run("", &["check"]);
    assert_eq!(ran.code, 0, "{}", ran.notes);
    host.checkout.write("outer/home/secret", CANARY);
    host.checkout.write("Boxfile", format!("{agent}file \"outer\" to=\"/a\"\n    health{rest}"));
    let mut command = host.checkout.boxbuild(&["check"]);
    let ran = Ran::of(command.env("HOME", host.checkout.path("outer/home")));
    assert!(ran.code == 1 && ran.notes.contains("is a home directory"), "{}", ran.notes);
}

#[test]
fn a_repository_is_one_checkout_of_all_that_is_in_it() {
    let host = Host::new();
    let base = BOXFILE.replace("skill \"greet\" path=\"skills/greet\"\n", "");
    host.checkout.write("home/clone/base.Boxfile", base);
    host.checkout.write("home/clone/shared/conf", "a");
    let text = "extends \"../base.Boxfile\"\nagent { file \"../shared/conf\" to=\"/a\"; }\n";
    host.refuses("home/clone/inner", text);
    insta::assert_snapshot!(host.run("home/clone/inner", &["check"]).notes, @r#"
    error: a base file must be inside the checkout
      --> Boxfile:1:9
       |
     1 | extends "../base.Boxfile"
       |         ^^^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the checkout, and write its path there; the checkout is the Boxfile's directory, as none above it has `.git`, `.jj`, `.hg`; `--checkout DIR` names a larger one

    error: a file of the box must be inside the checkout
      --> Boxfile:2:14
       |
     2 | agent { file "../shared/conf" to="/a"; }
       |              ^^^^^^^^^^^^^^^^ `..` leads out of it
       |
       = help: copy it into the Boxfile's directory or below, and write its path from there, without `..`; the checkout is the Boxfile's directory, as none above it has `.git`, `.jj`, `.hg`; `--checkout DIR` names a larger one
    "#);
    for mark in [".git", ".jj", ".hg"] {
        let mark = host.checkout.path("home/clone").join(mark);
        fs::create_dir(&mark).unwrap();
        assert_eq!(host.run("home/clone/inner", &["check"]).notes, "Boxfile: ok\n");
        fs::remove_dir(&mark).unwrap();
        // In worktrees and submodules `.git` is a file.
        fs::write(&mark, "gitdir: /elsewhere\n").unwrap();
        assert_eq!(host.run("home/clone/inner", &["check"]).notes, "Boxfile: ok\n");
        fs::remove_file(&mark).unwrap();
    }
    for directory in ["..", "../../clone", "../.."] {
        let named = ["check", "--checkout", directory];
        assert_eq!(host.run("home/clone/inner", &named).notes, "Boxfile: ok\n", "{directory}");
    }
}

/// In containers and on shared hosts, a repository can belong to another user.
#[test]
fn a_repository_that_others_could_have_made_has_to_be_named() {
    let host = Host::new();
    host.checkout.write("home/clone/empty", "");
    host.checkout.write("home/clone/.git/HEAD", "");
    let mark = host.checkout.path("home/clone/.git");
    let text = format!("extends \"../empty\"\n{BOXFILE}")
        .replace("skill \"greet\" path=\"skills/greet\"\n", "");
    host.checkout.write("home/clone/inner/Boxfile", text);
    let output = || host.run("home/clone/inner", &["check"]).notes;
    assert_eq!(output(), "Boxfile: ok\n");
    fs::set_permissions(&mark, fs::Permissions::from_mode(0o777)).unwrap();
    let clone = host.checkout.path("home/clone").canonicalize().unwrap();
    let refused = output();
    let command = format!("add `--checkout {}`", clone.display());
    assert!(refused.contains("everybody can write to") && refused.contains(&command), "{refused}");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o755)).unwrap();
        let nobody = (rustix::fs::Uid::from_raw(65534), rustix::fs::Gid::from_raw(65534));
        rustix::fs::chown(&mark, Some(nobody.0), Some(nobody.1)).unwrap();
        let refused = output();
        assert!(refused.contains("belongs to another user (uid 65534)"), "{refused}");
        assert!(refused.contains(&command), "{refused}");
    }
    let named = host.run("home/clone/inner", &["check", "--checkout", clone.to_str().unwrap()]);
    assert_eq!(named.notes, "Boxfile: ok\n");
}

#[test]
fn a_home_is_no_checkout_unless_it_is_named() {
    let host = Host::new();
    host.checkout.write("home/.git/HEAD", "");
    // A Boxfile in the home may not refer to the home's files: an archive that was unpacked into the home could contain it.
    for text in declarations(".aws") {
        host.refuses("home", &text);
    }
    // A Boxfile below the home may not refer to them either, although the home is a repository.
    for text in declarations("../../.aws") {
        host.refuses("home/clone/inner", &text);
    }
    let plain = BOXFILE.replace("skill \"greet\" path=\"skills/greet\"\n", "");
    let text = format!("extends empty\n{plain}");
    host.checkout.write("home/Boxfile", text);
    let home = host.checkout.path("home").canonicalize().unwrap();
    let notes = host.run("home", &["check"]).notes;
    insta::assert_snapshot!(notes.replace(home.to_str().unwrap(), "HOME"), @"
    error: a base file must be inside the checkout
      --> Boxfile:1:9
       |
     1 | extends empty
       |         ^^^^^ there is no checkout here
       |
       = help: the Boxfile lies in HOME, which is a home directory: put it into a directory with what it names, or name the checkout: `--checkout HOME`
    ");
    assert_eq!(host.run("home", &["check", "--checkout", "."]).notes, "Boxfile: ok\n");
    host.checkout.write("home/Boxfile", plain);
    assert_eq!(host.run("home", &["check"]).notes, "Boxfile: ok\n", "it names nothing");
}

#[test]
fn a_directory_that_cannot_be_the_checkout() {
    let host = Host::new();
    for (directory, reason) in [
        ("../../sibling", "which is not in "),
        ("Boxfile", "not a directory"),
        ("nothing", "No such file"),
        ("/proc", "is a file system of the kernel"),
    ] {
        for command in ["check", "build", "plan", "lock", "update", "fetch"] {
            let ran = host.run("home/clone/inner", &[command, "--checkout", directory]);
            assert_eq!(ran.code, 2, "{}", ran.notes);
            assert!(ran.notes.contains(reason), "{}", ran.notes);
            assert!(
                ran.notes.contains("name a directory that contains the Boxfile"),
                "{}",
                ran.notes
            );
        }
    }
}

/// An image may be outside the checkout. If the file is not an image, no message shows its content.
/// A Boxfile may name a kernel anywhere on the host. Nothing of another file gets into a message or a box.
#[test]
fn what_is_no_kernel_is_not_shown() {
    let host = Host::new();
    for outside in host.outside("home/clone/inner") {
        for file in ["secret", "environ", "passwd", "empty", ""] {
            let kernel = outside.join(file).display().to_string();
            let text = format!("{BOXFILE}kernel {kernel:?}\n");
            host.checkout.write("home/clone/inner/Boxfile", text);
            let ran = host.run("home/clone/inner", &["build", "--output", "out.box"]);
            let output = format!("{}{}", ran.result, ran.notes);
            assert_eq!(ran.code, 1, "{kernel}: {output}");
            assert!(!output.contains(CANARY) && !output.contains("root:"), "{kernel}: {output}");
            assert!(!host.checkout.path("home/clone/inner/out.box").exists(), "{kernel}");
        }
    }
}

#[test]
fn what_is_no_image_is_not_shown() {
    let host = Host::new();
    for outside in host.outside("home/clone/inner") {
        for kind in ["oci", "oci-archive", "docker-archive"] {
            for file in ["secret", "environ", "passwd", ""] {
                let image = format!("{kind}:{}", outside.join(file).display());
                let text = BOXFILE.replace("oci:images/agent", &image);
                host.checkout.write("home/clone/inner/Boxfile", text);
                let ran = host.run("home/clone/inner", &["lock"]);
                let output = format!("{}{}", ran.result, ran.notes);
                assert_eq!(ran.code, 1, "{image}: {output}");
                assert!(!output.contains(CANARY) && !output.contains("root:"), "{image}: {output}");
            }
        }
    }
}

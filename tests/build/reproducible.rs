//! Tests that the same input gives the same box, whatever the user, the directory, the time and the umask of the build.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use testbed::prerequisites::{Package, packages};
use testbed::{DockerRegistry, Workspace};
use testkit::images::{Compression, Image, Saved, pack};

use crate::checkout::{Checkout, Ran, agent_with, business_with, files, tools};
use crate::traced::calls;

/// Returns a command that sets the umask and then runs `command`.
pub(crate) fn under_umask(command: &Command, umask: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\""));
    shell.arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap()).env_clear();
    shell
}

/// A build that differs from the others in one respect.
struct Variation {
    name: &'static str,
    checkout: Checkout,
    /// The program that runs the build, with its arguments. Empty if the build is run directly.
    wrapper: Vec<String>,
    env: Vec<(&'static str, String)>,
    /// A shell command whose output differs from that in a mere copy of the checkout.
    probe: &'static str,
}

impl Variation {
    /// A copy of a checkout in a new directory below `directory`.
    fn below(directory: &Path, name: &'static str, of: &Checkout) -> Self {
        let (wrapper, env) = (Vec::new(), Vec::new());
        Self { name, checkout: of.copied(directory), wrapper, env, probe: "pwd" }
    }

    fn new(name: &'static str, of: &Checkout) -> Self {
        Self::below(&env::temp_dir(), name, of)
    }

    fn probe(self, probe: &'static str) -> Self {
        Self { probe, ..self }
    }

    fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    fn wrapped(self, wrapper: &[&str]) -> Self {
        Self { wrapper: wrapper.iter().map(|it| (*it).to_owned()).collect(), ..self }
    }

    /// Runs a line of shell script before the build.
    fn after(self, wrapper: &[&str], script: &str) -> Self {
        let script = format!("{script} && exec \"$0\" \"$@\"");
        self.wrapped(&[wrapper, &["sh", "-c", &script]].concat())
    }

    /// Replaces the references of the images.
    fn images(self, reference: impl Fn(&Checkout, &str, &Image) -> String) -> Self {
        for (name, image) in [("agent", agent_with("agent")), ("business", business_with("app"))] {
            let reference = reference(&self.checkout, name, &image);
            self.checkout.edit("Boxfile", &format!("oci:images/{name}"), &reference);
        }
        self.probe("grep image Boxfile")
    }

    /// Returns a command that runs `command` in this variation.
    fn command(&self, command: &Command) -> Command {
        let mut words: Vec<OsString> = self.wrapper.iter().map(OsString::from).collect();
        words.push(self.copy_of(command.get_program()));
        words.extend(command.get_args().map(|word| self.copy_of(word)));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(self.checkout.root()).env_clear();
        command.env("PATH", env::var_os("PATH").unwrap());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the copy of a tool in the checkout, if there is one, because another user cannot read the original.
    fn copy_of(&self, word: &OsStr) -> OsString {
        let is_tool =
            [&tools().boxbuild, &tools().init, &tools().kernel].iter().any(|it| **it == word);
        let copy = Path::new(word).file_name().map(|name| self.checkout.path("tools").join(name));
        copy.filter(|it| is_tool && it.exists()).map_or_else(|| word.to_owned(), Into::into)
    }

    /// Returns what the probe prints.
    fn probed(&self, probe: &str) -> String {
        let ran = Ran::of(&mut self.command(Command::new("sh").args(["-c", probe])));
        assert_eq!(ran.code, 0, "{}: {}", self.name, ran.notes);
        ran.result
    }

    /// Builds, and returns the box digest.
    fn digest(&self) -> String {
        let ran = Ran::of(&mut self.command(&self.checkout.command()));
        assert_eq!(ran.code, 0, "{}: {}", self.name, ran.notes);
        ran.result
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Makes the build run as another user, who owns the checkout. Without root, as root of a user namespace.
fn another_user(of: &Checkout) -> Variation {
    let made = Variation::new("user", of).probe("id -u");
    if !is_root() {
        return made.wrapped(&["unshare", "--map-root-user"]);
    }
    fs::create_dir(made.checkout.path("tools")).unwrap();
    for tool in [&tools().boxbuild, &tools().init, &tools().kernel] {
        fs::copy(tool, made.checkout.path("tools").join(tool.file_name().unwrap())).unwrap();
    }
    let owner =
        Command::new("chown").args(["-R", "65534:65534"]).arg(made.checkout.root()).status();
    assert!(owner.unwrap().success());
    made.wrapped(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
}

/// Makes a store that already has the layers of one image, and no box of this Boxfile.
fn another_store(of: &Checkout) -> Variation {
    let made = Variation::new("store", of).probe("find store/data 2>/dev/null | wc -l");
    let alone = "box \"other\"\nagent { image \"oci:images/agent\"; }\n";
    made.checkout.write("other.Boxfile", alone);
    let mut build = made.checkout.command();
    let ran = Ran::of(build.args(["-f", "other.Boxfile"]));
    assert_eq!(ran.code, 0, "{}", ran.notes);
    fs::remove_dir_all(made.checkout.path("test.box")).unwrap();
    made
}

/// Makes the clock show a time ten years from now. faketime replaces functions of the C library, so the program must be linked
/// dynamically.
fn later(of: &Checkout) -> Variation {
    let program = fs::read(&tools().boxbuild).unwrap();
    assert!(program[..4096].windows(8).any(|it| it == b"ld-linux"), "it has the kernel's clock");
    let faketime = Package::Faketime.path().unwrap();
    let made = Variation::new("clock", of).probe("date +%Y");
    made.wrapped(&[faketime.to_str().unwrap(), "-f", "+10y"])
}

/// Pushes an image to the registry, and returns its reference.
fn pushed(registry: &DockerRegistry, checkout: &Checkout, name: &str) -> String {
    let layout = checkout.path(&format!("images/{name}"));
    registry.push(&layout, "latest", &format!("team/{name}:v1")).unwrap();
    let host = registry.host();
    checkout.write("registries.toml", format!("[registry.\"{host}\"]\nplain-http = true\n"));
    format!("docker://{host}/team/{name}:v1")
}

/// Returns the variations of the build's environment.
fn environments(of: &Checkout, deep: &Path) -> Vec<Variation> {
    let new = |name| Variation::new(name, of);
    let namespace: &[&str] =
        if is_root() { &["unshare", "--uts"] } else { &["unshare", "--uts", "--map-root-user"] };
    // `/dev/shm`, if it exists, lists names in another order than most file systems.
    let memory = Some(Path::new("/dev/shm")).filter(|it| it.is_dir());
    let memory = memory.map_or_else(env::temp_dir, Path::to_owned);
    vec![
        Variation::below(deep, "directory", of),
        another_user(of),
        new("umask").after(&[], "umask 077").probe("umask"),
        new("TZ").env("TZ", "XYZ-14").probe("date +%z"),
        new("locale").env("LC_ALL", "tr_TR.UTF-8").env("LANG", "tr_TR.UTF-8").probe("echo $LC_ALL"),
        new("HOME").env("HOME", "/nonexistent").probe("echo ~"),
        new("host name").after(namespace, "echo other >/proc/sys/kernel/hostname").probe("uname -n"),
        new("epoch").env("SOURCE_DATE_EPOCH", "1234567890").probe("echo $SOURCE_DATE_EPOCH"),
        later(of),
        new("times and modes")
            .after(&[], "find skills -type f ! -name '*.sh' -exec chmod 600 {} + -exec touch -t 200102030405 {} +")
            .probe("stat -c '%a %Y' skills/greet/SKILL.md"),
        Variation::below(&memory, "order", of).probe("ls -U skills/greet"),
        another_store(of),
    ]
}

/// Returns the variations of the images' form.
fn forms(of: &Checkout, registry: &DockerRegistry) -> Vec<Variation> {
    let new = |name| Variation::new(name, of);
    vec![
        new("OCI archive").images(|checkout, name, _| {
            let tar = pack(&checkout.path(&format!("images/{name}"))).unwrap();
            checkout.write(&format!("images/{name}.tar"), tar.bytes());
            format!("oci-archive:images/{name}.tar:latest")
        }),
        new("Docker archive").images(|checkout, name, image| {
            let tar = Image::docker_archive(&[(image, &["app:v1"])], Saved::Legacy);
            checkout.write(&format!("images/{name}.tar"), tar.bytes());
            format!("docker-archive:images/{name}.tar")
        }),
        new("zstd").images(|checkout, name, image| {
            let layout = checkout.path(&format!("images/{name}-zstd"));
            image.write_layout(&layout, "v1", Compression::Zstd).unwrap();
            format!("oci:images/{name}-zstd:v1")
        }),
        new("registry")
            .images(|checkout, name, _| pushed(registry, checkout, name))
            .env("BOXBUILD_REGISTRIES", "registries.toml"),
    ]
}

#[test]
fn one_input_gives_one_box() {
    const FILES: u32 = 64;
    let say = &mut |line: &str| println!("{line}");
    packages(&[Package::Faketime], say).unwrap();
    let registry = DockerRegistry::open(&Workspace::find(), say).unwrap();
    let first = Checkout::new().whole();
    (0..FILES).for_each(|number| first.write(&format!("skills/greet/{number}.md"), "text"));
    let plain = Variation::new("none", &first);
    let digest = plain.digest();
    let expected = files(&plain.checkout.path("test.box"));
    assert_eq!(expected.len(), 8, "six blobs, index.json, oci-layout");
    let again = Variation::new("none", &first);
    let outer = tempfile::tempdir().unwrap();
    let deep = outer.path().join("a directory/Ünïcode");
    fs::create_dir_all(&deep).unwrap();
    for variation in environments(&first, &deep).into_iter().chain(forms(&first, &registry)) {
        let Variation { name, probe, .. } = variation;
        assert_ne!(variation.probed(probe), again.probed(probe), "{name} is the same");
        assert_eq!(variation.digest(), digest, "another {name}, another box");
        assert!(files(&variation.checkout.path("test.box")) == expected, "{name}: a blob differs");
    }
    let threads = |jobs| {
        let made = Variation::new("jobs", &first);
        let started = calls(made.checkout.command().args(["--jobs", jobs]), &["clone", "clone3"]);
        assert!(files(&made.checkout.path("test.box")) == expected, "{jobs} jobs: a blob differs");
        started.len()
    };
    let (one, sixteen) = (threads("1"), threads("16"));
    assert!(one + 15 <= sixteen, "{one} and {sixteen} threads");
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

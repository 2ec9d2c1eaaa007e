//! What a box leaves in a project, and what programs of the host then do. A hostile box prepares the project of its environment. Then
//! programs of this host, which only read a project, run in it under strace: none writes outside of it, and none starts what the
//! box has left, except in the repository that `boxlaunch down` has named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use box_contract::manifest::KERNEL_TYPE;
use testbed::VirtualHost;
use testbed::prerequisites::{Package, packages};

use crate::busy::{BUSY, Busy};
use crate::erofs::{build, replace_blob};
use crate::scenario::{Scenario, Step, tools};

const PREPARE: &str = include_str!("prepare.sh");
const EVERYDAY: &str = include_str!("everyday.sh");
const HOSTILE: &str = include_str!("hostile.py");

/// An environment of the project, in which a person works, and then a hostile program.
const ENVIRONMENT: &str = r#"
exec 2>&1; mkdir -p /home; cp -a /me /home/me; cd /home/me/page; chown -R 0:0 /home; HOME=/home/me
boxlaunch up -q --box /workload; boxlaunch exec -u 0 . -- sh -c "$(cat /everyday)" >/out/everyday 2>&1; boxlaunch down
boxlaunch up; boxlaunch exec -u 0 . -- python3 -c "$(cat /hostile.py)" >/out/hostile 2>/tmp/err; boxlaunch down
tar -cf /out/project.tar -C /home/me page
"#;
/// Starts that are refused before there is a VM.
const REFUSED: &str = r#"
exec 2>&1; HOME=/home/me; cd /home/me/page; name=$(boxlaunch ps -a -n)
ln -s /home/me/.bashrc .git/logs/new; boxlaunch up -q; boxlaunch start $name; boxlaunch exec . true; rm .git/logs/new
cp .git/index /tmp/index; cp /forged .git/index; boxlaunch up -q; boxlaunch down | grep index; cp /tmp/index .git/index
boxlaunch up -q --forget --box /workload -v /home/me:/x:rw; boxlaunch up -q --forget --box /workload -v ./.git/logs:/x:rw
"#;
/// A hostile kernel, to which the project is shown as to every environment.
const KERNEL: &str = r#"
exec 2>&1; mkdir -p /srv/shares/ro/0 /srv/shares/rw/.git/logs; cd /srv/shares/rw; echo canary >/etc/canary
echo 35 35 0 >attacks; echo ref >.git/HEAD
boxlaunch run -d -q --name rw --budget off --startup-timeout 60 --project /srv/shares/rw -v /srv/shares/ro/0:/r /hostile 2>&1 | grep -o all.attacks.*
find . -path './.git*' ! -type f ! -type d -exec ls -l {} + | sed 's/.* \.\//.\//'; find . -path './.git*' -type f | sort; ls .
"#;

/// A project with a submodule, and what is beside it on the host. [`busy`](crate::busy) runs the steps of this module in its start of
/// the virtual host, because the first start of a box with git takes most of the time.
pub(crate) struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    /// Makes the project, and the box of the hostile kernel.
    pub(crate) fn make() -> Self {
        // The name of a branch has this path, and no part of it may begin with a dot.
        let directory = tempfile::Builder::new().prefix("left").tempdir_in("/tmp").unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("me")).unwrap();
        let script = ["-c", PREPARE, "sh"];
        let prepared = plain("sh").args(script).arg(at("me")).output().unwrap();
        assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stderr));
        let programs = &tools().programs;
        build(directory.path(), &programs.box_init, &at("hostile.box"));
        let kernel = fs::read(&programs.hostile_kernel).unwrap();
        replace_blob(&at("hostile.box"), KERNEL_TYPE, &kernel);
        let outside = at("me/outside").display().to_string();
        fs::write(at("hostile.py"), HOSTILE.replace("@OUT@", &outside)).unwrap();
        fs::write(at("everyday"), EVERYDAY).unwrap();
        fs::write(at("forged"), forged_index("../x")).unwrap();
        Self { directory }
    }

    /// Adds the files of the project to a virtual host.
    pub(crate) fn on(&self, host: VirtualHost) -> VirtualHost {
        let at = |name: &str| self.directory.path().join(name);
        let host = host.disk(at("me"), "/me").file(at("hostile.box"), "/hostile");
        host.file(at("hostile.py"), "/hostile.py")
            .file(at("everyday"), "/everyday")
            .file(at("forged"), "/forged")
    }

    /// Adds the steps of this module. The host has the box `/workload`, with git and Python.
    pub(crate) fn steps(scenario: Scenario) -> Scenario {
        let scenario = scenario.script(200, "environment", ENVIRONMENT);
        scenario.script(100, "refused", REFUSED).script(100, "kernel", KERNEL)
    }
}

/// Returns an index of git with one entry, as git refuses to make it and as it reads it.
fn forged_index(path: &str) -> Vec<u8> {
    let mut index = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
    index.extend([0; 24]);
    index.extend(0o100_644_u32.to_be_bytes());
    index.extend([0; 12 + 20 + 1]);
    index.push(u8::try_from(path.len()).unwrap());
    index.extend(path.as_bytes());
    index.resize(12 + (index.len() - 12 + 8) / 8 * 8, 0);
    index.extend([0; 20]);
    index
}

/// Returns a command without the environment of this test, which may have settings of git.
fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command
}

/// A project that a hostile box has prepared.
struct Scene {
    directory: &'static Path,
    steps: &'static BTreeMap<String, Step>,
    files: &'static BTreeMap<PathBuf, Vec<u8>>,
}

static SCENE: LazyLock<Scene> = LazyLock::new(|| {
    let Busy { project, steps, files } = &*BUSY;
    Scene { directory: project.directory.path(), steps, files }
});

impl Scene {
    fn text(&self, file: &str) -> String {
        String::from_utf8_lossy(&self.files[Path::new(file)]).into_owned()
    }

    /// Returns what a step has printed, with the same paths in every run.
    fn printed(&self, step: &str) -> String {
        self.plain(&self.steps[step].stdout)
    }

    fn plain(&self, text: &str) -> String {
        text.replace(&self.directory.display().to_string(), "DIR")
    }
}

fn git_works_in_an_environment_every_day() {
    insta::assert_snapshot!(SCENE.text("everyday"));
}

fn a_box_makes_no_link_in_a_repository() {
    insta::assert_snapshot!("hostile", SCENE.plain(&SCENE.text("hostile")));
    insta::assert_snapshot!("environment", SCENE.printed("environment"));
    insta::assert_snapshot!("refused", SCENE.printed("refused"));
}

fn a_hostile_kernel_makes_no_link_in_a_repository_either() {
    insta::assert_snapshot!("kernel", SCENE.printed("kernel"));
}

/// The commands that people and their tools run in a project, and whether they succeed.
const COMMANDS: &[(&str, bool)] = &[
    ("git status", true),
    ("git status --porcelain --ignored --untracked-files=all", true),
    ("git diff", true),
    ("git diff HEAD~1", true),
    ("git log -p --stat --all", true),
    ("git blame README", true),
    ("git submodule status", true),
    ("git worktree list", true),
    ("git grep -c one", true),
    // `docs` is a link now, and git does not follow it.
    ("git stash", false),
    ("git switch other", false),
    ("git add README", true),
    ("git commit -m mine", true),
    // The file in which a fetch notes its result is the link that leads nowhere.
    ("git fetch", false),
    ("rm .git/FETCH_HEAD && git fetch", true),
    ("git gc", true),
    ("git switch \"$(git branch --list 'fix*' --format '%(refname:short)')\"", true),
    // The box has made a worktree on this branch.
    ("git switch main", false),
    ("rm docs && git checkout docs/x && git stash", true),
    ("git switch other", true),
    ("git stash pop", true),
    ("tar -cf /dev/null .", true),
    ("rg --hidden --no-ignore -c touch", true),
    ("rg --files", true),
    // It refuses settings of the files that could run programs.
    (VIM, false),
    ("editorconfig \"$PWD/modeline.c\"", true),
];
/// Opens files with what Debian's vim leaves off: lines with settings in files, and settings of the directory.
const VIM: &str = "vim.tiny -N -n -u NONE --cmd 'set modeline modelines=5 exrc secure' -es -c 'bufdo doautocmd BufRead' -c 'qa!' \
                   modeline.c modeline2.c README";

fn programs_that_read_a_project_write_nothing_outside_of_it() {
    packages(
        &[Package::Strace, Package::Git, Package::Ripgrep, Package::Vim, Package::Editorconfig],
        &mut |it| println!("{it}"),
    )
    .unwrap();
    let scene = &*SCENE;
    let host = Host::with(scene);
    let (before, mut written) = (host.outside(), BTreeSet::new());
    for (command, succeeds) in COMMANDS {
        let done = host.run(command);
        // The end is enough: a list of files is long.
        let said = String::from_utf8_lossy(&[done.stderr, done.stdout].concat()).into_owned();
        let from = said.len().saturating_sub(1000);
        println!("$ {command}\n{}", said.get(from..).unwrap_or_default());
        assert_eq!(done.status.success(), *succeeds, "{command}: {:?}", done.status.signal());
        assert_ne!(done.status.code(), Some(124), "{command} waits");
        written.extend(host.written());
        assert_eq!(host.outside(), before, "{command}");
    }
    let named = host.directory.join("me/outside/ran/fsmonitor").display().to_string();
    assert_eq!(written, BTreeSet::from([named]), "the command of the repository that was named");
    // git starts the command of the repository that `boxlaunch down` has named. Otherwise this test shows nothing.
    let named = scene.steps["environment"].stdout.contains("evil");
    assert_eq!((host.ran(), named), (vec!["fsmonitor".to_owned()], true));
}

/// This host, with the project of the box.
struct Host<'a> {
    directory: &'a Path,
}

impl<'a> Host<'a> {
    /// Unpacks the project, and adds 100,000 files to it.
    fn with(scene: &'a Scene) -> Self {
        let directory = scene.directory;
        let archive = directory.join("project.tar");
        fs::write(&archive, &scene.files[Path::new("project.tar")]).unwrap();
        let place = directory.join("me");
        fs::remove_dir_all(place.join("page")).unwrap();
        let tar = ["--no-same-owner", "-xf"];
        let unpacked = Command::new("tar").args(tar).arg(&archive).arg("-C").arg(&place).status();
        assert!(unpacked.unwrap().success());
        let host = Self { directory };
        for part in 0..100 {
            let many = host.project().join(format!("many/{part}"));
            fs::create_dir_all(&many).unwrap();
            (0..1000).for_each(|it| fs::write(many.join(it.to_string()), "").unwrap());
        }
        host
    }

    fn project(&self) -> PathBuf {
        self.directory.join("me/page")
    }

    /// Runs a command in the project under strace. A command that waits for something is ended.
    fn run(&self, command: &str) -> Output {
        self.traces().iter().for_each(|it| fs::remove_file(it).unwrap());
        let home = self.directory.join("me/outside/home");
        let traced = "-k 1 600 strace -ff --seccomp-bpf -y -e trace=open,openat,openat2,creat -o";
        let mut strace = plain("timeout");
        strace
            .args(traced.split(' '))
            .arg(self.directory.join("trace"))
            .args(["sh", "-c", command]);
        strace.current_dir(self.project()).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
        strace.env("GIT_PAGER", "cat").env("TERM", "dumb").output().unwrap()
    }

    /// Returns the files with the system calls of the last command, one for each process.
    fn traces(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.directory).unwrap().map(|it| it.unwrap().path());
        all.filter(|it| it.file_stem().is_some_and(|it| it == "trace")).collect()
    }

    /// Returns the files outside of the project that the last command has opened for writing.
    fn written(&self) -> BTreeSet<String> {
        let traces: Vec<_> = self.traces().iter().map(|it| fs::read(it).unwrap()).collect();
        let text = String::from_utf8_lossy(&traces.concat()).into_owned();
        assert!(text.contains("openat(") && text.contains(" = 3<"), "there is a trace: {text}");
        let writes =
            |line: &&str| ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|it| line.contains(it));
        let opened = |line: &str| {
            let path = line.rsplit_once(" = ")?.1.split_once('<')?.1;
            Some(path.split(['<', '>']).next()?.to_owned())
        };
        let is_outside = |it: &String| {
            !Path::new(it).starts_with(self.project())
                && !["/dev/null", "/dev/tty"].contains(&&**it)
        };
        text.lines().filter(writes).filter_map(opened).filter(is_outside).collect()
    }

    /// Returns the content of all files outside of the project that a box has tried to reach.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut found, mut left) = (BTreeMap::new(), vec![self.directory.join("me/outside")]);
        while let Some(next) = left.pop() {
            for entry in fs::read_dir(next).unwrap().map(|it| it.unwrap().path()) {
                if entry.is_dir() && !entry.ends_with("ran") {
                    left.push(entry);
                } else if entry.is_file() {
                    found.insert(entry.clone(), fs::read(entry).unwrap());
                }
            }
        }
        found
    }

    /// Returns the names of the commands of the box that were run.
    fn ran(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory.join("me/outside/ran")).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

tests![
    git_works_in_an_environment_every_day,
    a_box_makes_no_link_in_a_repository,
    a_hostile_kernel_makes_no_link_in_a_repository_either,
    programs_that_read_a_project_write_nothing_outside_of_it
];

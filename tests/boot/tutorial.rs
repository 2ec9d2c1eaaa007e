//! docs/tutorial.md: every command of the page runs, and prints the output that the page shows. Commands that start a box, and
//! requests to it, run in the virtual host; all others run on the host of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testbed::prerequisites::{Package, packages, with_program};

use crate::page::{Shown, assert_shown, blocks, commands};
use crate::scenario::{Scenario, tools};

/// Images of the page that the test does not fetch, and the local image that replaces each.
const IMAGES: [(&str, &str); 2] = [
    ("docker://registry.example.com/team/agent:v1", "agent"),
    ("docker://docker.io/library/busybox:stable", "business"),
];

/// A command of the page that starts its box, and the commands that the page runs meanwhile in another terminal.
struct Start {
    shown: Shown,
    meanwhile: Vec<Shown>,
    /// A copy of the store with the box, made before the page's next command, because later commands change the box.
    bundle: PathBuf,
}

/// A user who runs the commands of the page: the home directory, and the current directory.
struct Reader {
    home: tempfile::TempDir,
    directory: PathBuf,
}

impl Reader {
    /// Installs the programs into `bin` of the home. `boxbuild` finds box-init in its own directory.
    fn new() -> Self {
        packages(&[Package::Skopeo, Package::Curl], &mut |line| println!("{line}")).unwrap();
        let programs = &tools().programs;
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::create_dir(path("bin")).unwrap();
        for program in [&programs.boxbuild, &programs.boxlaunch, &programs.box_init] {
            fs::copy(program, path("bin").join(program.file_name().unwrap())).unwrap();
        }
        testbed::hello::write_images(&programs.hello_agent, &path("images")).unwrap();
        Self { directory: home.path().to_owned(), home }
    }

    /// Runs a command, which must succeed and print the output that the page shows.
    fn run(&mut self, shown: &Shown) {
        let mut command = shown.command.clone();
        for (source, name) in IMAGES {
            let image = self.home.path().join("images").join(name);
            command = command.replace(source, &format!("oci:{}:latest", image.display()));
        }
        assert!(!command.contains("docker://"), "no image for {command}");
        if let Some(directory) = command.strip_prefix("cd ") {
            self.directory.push(directory);
            return;
        }
        let path = format!(
            "{}:{}",
            self.home.path().join("bin").display(),
            std::env::var("PATH").unwrap()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(&self.directory).env_clear();
        shell.env("PATH", path).env("HOME", self.home.path());
        shell.env("BOXBUILD_KERNEL", &tools().kernel);
        let ran = shell.output().unwrap();
        let output =
            String::from_utf8([ran.stdout, ran.stderr].concat()).expect("only text is printed");
        assert!(ran.status.success(), "{command}\n{output}");
        assert_shown(shown, &output);
    }

    /// Copies the store, and returns the path of the copy.
    fn keep_box(&self, number: usize) -> PathBuf {
        let kept = self.home.path().join(format!("box-{number}"));
        let mut copy = Command::new("cp");
        copy.arg("-R").arg(self.home.path().join(".cache/boxbuild")).arg(&kept);
        assert!(copy.status().unwrap().success());
        kept
    }
}

/// Returns a script for the virtual host that starts the box, runs the other commands once it is ready, and stops it.
fn script(start: &Start) -> String {
    let command = &start.shown.command;
    if command.contains(" -- ") {
        assert!(start.meanwhile.is_empty(), "{command} does not run meanwhile");
        return format!("{command}\n");
    }
    let meanwhile: Vec<_> = start.meanwhile.iter().map(|it| it.command.as_str()).collect();
    format!(
        "rm -f log\n{command} 2>log &\nrun=$!\ntrap \"kill $run\" TERM\n\
         until grep -s 'ready after' log; do sleep 0.1; done\n{}\nkill -TERM $run\nwait $run\n\
         [ $? = 143 ]\n",
        meanwhile.join("\n")
    )
}

/// Runs all `starts` in the virtual host, each with its copy of the store.
fn boot(starts: &[Start], home: &Path) {
    let curl = testbed::program::find("curl").unwrap();
    let host = tools().host.clone().memory(2048);
    let mut host = with_program(host, &curl, "/bin/curl").unwrap();
    let mut scenario = Scenario::default();
    for (number, start) in starts.iter().enumerate() {
        let path = home.join(format!("script-{number}"));
        fs::write(
            &path,
            format!("cd /{number}; export BOXBUILD_STORE=/{number}/store\n{}", script(start)),
        )
        .unwrap();
        host = host.disk(&start.bundle, format!("/{number}/store"));
        host = host.file(path, format!("/{number}/script"));
        scenario = scenario.step(&number.to_string(), &format!("sh /{number}/script"));
    }
    let steps = scenario.start(&host);
    for (number, start) in starts.iter().enumerate() {
        let step = &steps[&number.to_string()];
        assert_eq!(step.status, 0, "{}: {step:?}", start.shown.command);
        let shown = std::iter::once(&start.shown).chain(&start.meanwhile);
        shown.for_each(|shown| assert_shown(shown, &step.stdout));
    }
}

fn every_command_of_the_tutorial_does_what_the_page_shows() {
    let page = fs::read_to_string(tools().workspace.path("docs/tutorial.md")).unwrap();
    let mut reader = Reader::new();
    let mut starts: Vec<Start> = Vec::new();
    for shown in commands(&page) {
        if shown.command.starts_with("boxlaunch run ") {
            let bundle = reader.keep_box(starts.len());
            starts.push(Start { shown, meanwhile: Vec::new(), bundle });
        } else if shown.command.starts_with("curl ") {
            starts.last_mut().unwrap().meanwhile.push(shown);
        } else {
            let is_init = shown.command.starts_with("boxbuild init");
            reader.run(&shown);
            if is_init {
                let boxfile = fs::read_to_string(reader.directory.join("Boxfile")).unwrap();
                let output = blocks(&page, "kdl").iter().map(|line| (*line).to_owned()).collect();
                assert_shown(&Shown { command: "cat Boxfile".to_owned(), output }, &boxfile);
            }
        }
    }
    assert_eq!(starts.len(), 2, "the boxes of the page are started");
    boot(&starts, reader.home.path());
}

tests![every_command_of_the_tutorial_does_what_the_page_shows];

//! `boxbuild-bench --ship`: measures the bytes and the time of pushes and pulls of boxes.
//!
//! The registry is Debian's `docker-registry` on the loopback device. A proxy between the registry and boxbuild counts the
//! bytes.

mod line;
mod room;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testbed::debian::{BenchImages, DebianImages};
use testbed::prerequisites::{Package, for_demo, guest_kernel, packages};
use testbed::{Artefacts, DockerRegistry, KitError, Profile, Result, Workspace, program};
use tool_output::say;

use super::peers::gzip_blobs;
use super::{Outcome, promised};
use line::Traffic;
use room::Room;

/// A megabyte, in bytes: 10^6, not 2^20.
const MB: f64 = 1e6;

/// Measures, prints a table and writes `target/bench/ship.json`.
pub(super) fn run() -> Outcome {
    let workspace = Workspace::find();
    say::watch(|| packages(&[Package::Time], &mut say::note))?;
    say::watch(|| for_demo(&workspace, &mut say::note))?;
    let kernel = say::watch(|| guest_kernel(&workspace, &mut say::note))?;
    let large = say::watch(|| BenchImages::make(&workspace, &mut say::note))?;
    let slim = say::watch(|| DebianImages::make(&workspace, &mut say::note))?;
    let registry = say::watch(|| DockerRegistry::open(&workspace, &mut say::note))?;
    let programs = say::step("compiling boxbuild and box-init", || programs(&workspace))?;
    let bench = workspace.target("bench");
    fs::create_dir_all(&bench).map_err(KitError::file("make", &bench))?;
    let scratch = tempfile::tempdir_in(&bench).map_err(KitError::file("make", &bench))?;
    let room = Room::new(programs, kernel, &registry.host(), scratch.path())?;
    let mut report = say::step("pushing and pulling two full-size images", || pair(&room, &large))?;
    let second = say::step("pushing and pulling boxes on one base", || base(&room, &slim))?;
    report["second"] = second;
    let path = bench.join("ship.json");
    fs::write(&path, format!("{report:#}\n")).map_err(KitError::file("write", &path))?;
    say::result(table(&report).trim_end());
    Ok(promised::judge(&promised::of_ships(&report)))
}

/// Builds `boxbuild`, which is measured, and the boxes' init.
fn programs(workspace: &Workspace) -> Result<Artefacts> {
    program::run(&mut Artefacts::init_build(workspace))?;
    program::run(&mut Artefacts::builder_build(workspace, Profile::Release))?;
    Ok(Artefacts::locate(workspace, Profile::Release))
}

/// Pushes and pulls a box of two images, and does both again after small changes.
fn pair(room: &Room, images: &BenchImages) -> Result<Value> {
    let [python, node] = [&images.python, &images.node].map(|it| it.display());
    let boxfile = |level: &str| {
        format!(
            "box \"pair\"\nagent {{ image \"oci:{python}:latest\"; env LOG_LEVEL=\"{level}\"; }}\n\
             business {{ image \"oci:{node}:latest\"; }}\nskill \"greet\" path=\"greet\"\n"
        )
    };
    let skill = |text: &str| room.write("greet/SKILL.md", &skill(text));
    skill("Say hello.")?;
    room.build(&boxfile("info"))?;
    let first_push = room.push("pair")?;
    let first_pull = room.pull("pair", "host")?;
    let again = room.push("pair")?;
    room.build(&boxfile("debug"))?;
    let variable = (room.push("pair")?, room.pull("pair", "host")?);
    skill("Say hello twice.")?;
    room.build(&boxfile("debug"))?;
    let skill = (room.push("pair")?, room.pull("pair", "host")?);
    let gzip = distinct(&[&images.python, &images.node])?;
    Ok(json!({
        "gzip_layers": gzip,
        "first": { "push": first_push.json(), "pull": first_pull.json() },
        "first_over_gzip": first_pull.down as f64 / gzip as f64,
        "again": again.json(),
        "variable": { "push": variable.0.json(), "pull": variable.1.json() },
        "skill": { "push": skill.0.json(), "pull": skill.1.json() },
    }))
}

/// Pulls a box on a base into a store that has another box on the same base.
fn base(room: &Room, images: &DebianImages) -> Result<Value> {
    room.write("main.py", "print('hello')\n")?;
    let boxfile = |image: &Path, more: &str| {
        let image = image.display();
        format!("box \"base\"\nagent {{ image \"oci:{image}:latest\"; {more} }}\n")
    };
    room.build(&boxfile(&images.agent, ""))?;
    room.push("base")?;
    room.pull("base", "second")?;
    let before = room.stored("second")?;
    room.build(&boxfile(&images.python, "file \"main.py\" to=\"/agent/agent.py\";"))?;
    let push = room.push("base")?;
    let pull = room.pull("base", "second")?;
    let stored = room.stored("second")? - before;
    Ok(json!({ "push": push.json(), "pull": pull.json(), "stored": stored }))
}

/// Returns the total size of the distinct gzip layers in some layouts, in bytes.
fn distinct(layouts: &[&Path]) -> Result<u64> {
    let mut layers = std::collections::BTreeMap::new();
    for layout in layouts {
        for layer in gzip_blobs(layout)? {
            let size = fs::metadata(&layer).map_err(KitError::file("read", &layer))?.len();
            layers.insert(layer.file_name().map(ToOwned::to_owned), size);
        }
    }
    Ok(layers.values().sum())
}

fn skill(text: &str) -> String {
    format!(
        "---\nname: greet\ndescription: Greets somebody. Use it for visitors.\n---\n\n# Greet\n\n{text}\n"
    )
}

/// Formats a report as a table.
fn table(report: &Value) -> String {
    let line = |what: &str, pointer: &str| {
        let at = |name: &str| report.pointer(&format!("{pointer}/{name}"));
        let figure = |name: &str| at(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let [up, down, wall, cpu] = ["up", "down", "wall_s", "cpu_s"].map(figure);
        let (up, down, memory) = (up / MB, down / MB, figure("peak_memory_bytes") / MB);
        format!("{what:<34}{up:>9.3} {down:>9.3} {wall:>8.2} {cpu:>8.2} {memory:>8.0}\n")
    };
    let head = ["MB up", "MB down", "wall s", "CPU s", "peak MB"];
    let head = format!(
        "{:<34}{:>9} {:>9} {:>8} {:>8} {:>8}\n",
        "", head[0], head[1], head[2], head[3], head[4]
    );
    head + &line("two images: first push", "/first/push")
        + &line("            first pull", "/first/pull")
        + &line("            push of what is there", "/again")
        + &line("one variable: push", "/variable/push")
        + &line("              pull", "/variable/pull")
        + &line("one skill: push", "/skill/push")
        + &line("           pull", "/skill/pull")
        + &line("second box on a base: push", "/second/push")
        + &line("                      pull", "/second/pull")
}

impl Traffic {
    /// Returns the traffic and the cost of a command as JSON.
    fn json(&self) -> Value {
        json!({
            "up": self.up,
            "down": self.down,
            "requests": self.requests,
            "wall_s": self.took.wall.as_secs_f64(),
            "cpu_s": (self.took.user + self.took.system).as_secs_f64(),
            "peak_memory_bytes": self.took.memory,
        })
    }
}

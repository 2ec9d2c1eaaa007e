//! `boxbuild budget` measures the start of a box, and compares it with the box's budget, without KVM.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::Value;
use testbed::boots::Origin;
use testbed::hello::BUDGET_MS;
use testbed::promises::{START_MEDIAN, START_SPREAD};

use crate::scenario::{bake, hello_checkout, note, tools};
use crate::schema::assert_fits;

/// A checkout of examples/hello, and a cache directory with the virtual host's kernel.
struct Scene {
    directory: tempfile::TempDir,
    boxfile: String,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let boxfile = hello_checkout(directory.path());
        let cache = directory.path().join("cache/boxbuild");
        fs::create_dir_all(&cache).unwrap();
        // `tools` has prepared the virtual host's kernel there.
        let kernels = tools().workspace.target("vmhost");
        std::os::unix::fs::symlink(kernels, cache.join("virtual-host")).unwrap();
        Self { directory, boxfile }
    }

    /// Builds the box with the budget `total_ms` for its whole start.
    fn boxed(&self, name: &str, total_ms: f64) -> PathBuf {
        let old = format!("{}ms", f64::from(BUDGET_MS));
        assert!(self.boxfile.contains(&old));
        let boxfile = self.directory.path().join(name);
        fs::write(&boxfile, self.boxfile.replace(&old, &format!("{total_ms:.0}ms"))).unwrap();
        let bundle = self.directory.path().join(format!("{name}.box"));
        bake(&boxfile, &tools().programs.box_init, &bundle);
        bundle
    }

    /// Measures a box in `runs` starts.
    fn budget(&self, bundle: &Path, runs: u8, options: &[&str]) -> Output {
        let began = Instant::now();
        let output = Command::new(&tools().programs.boxbuild)
            .arg("budget")
            .arg(bundle)
            .args(["--offline", "--runs", &runs.to_string()])
            .args(options)
            .env("XDG_CACHE_HOME", self.directory.path().join("cache"))
            .output()
            .unwrap();
        note(Origin::Made, began);
        output
    }
}

/// Returns the report of a measurement, which must have ended with `status`.
#[track_caller]
fn report(output: &Output, status: i32) -> Value {
    assert_eq!(output.status.code(), Some(status), "{}", String::from_utf8_lossy(&output.stderr));
    let report = serde_json::from_slice(&output.stdout).unwrap();
    assert_fits("budget", &report);
    report
}

/// A box with 4 CPUs is measured, although the virtual host has only one.
fn a_box_with_more_cpus_than_any_host_here_is_measured() {
    let mut scene = Scene::new();
    scene.boxfile = scene.boxfile.replace("cpus=1", "cpus=4");
    let wide = scene.boxed("wide", f64::from(BUDGET_MS));
    let measured = report(&scene.budget(&wide, 1, &["--json"]), 0);
    assert_eq!(measured["runs"], 1, "{measured}");
}

fn a_box_is_held_to_budgets_just_above_and_just_below_what_it_takes() {
    let scene = Scene::new();
    let hello = scene.boxed("hello", f64::from(BUDGET_MS));
    let measured = report(&scene.budget(&hello, 10, &["--json"]), 0);
    println!("{measured:#}");
    let total = |figure: &str| measured["phases_ms"]["total"][figure].as_f64().unwrap();
    let (min, max) = (total("min"), total("max"));
    START_MEDIAN.check((total("median") / min - 1.0) * 100.0);
    START_SPREAD.check((max / min - 1.0) * 100.0);
    assert!(measured["floor_ms"].as_f64().unwrap() < min, "{measured}");
    let differs = 1.0 + START_SPREAD.number / 100.0;
    let under = scene.boxed("under", (max * differs).ceil());
    let over = scene.boxed("over", (min / differs).floor());
    let kept = report(&scene.budget(&under, 1, &["--json"]), 0);
    assert_eq!((&kept["within_budget"], &kept["errors"]), (&true.into(), &Value::Array(vec![])));
    let shown = scene.budget(&over, 1, &[]);
    let table = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.status.code(), Some(4), "{table}");
    assert!(table.lines().any(|it| it.starts_with("total ") && it.contains("over by ")), "{table}");
    let error = String::from_utf8(shown.stderr).unwrap();
    assert!(error.starts_with("error: the start takes longer than the budget allows"), "{error}");
}

/// The new box has eight times the memory, which makes its start at least a tenth slower. `--write` replaces its budget of 2 ms
/// by the measured time plus 10 %. The box that is then built is within this budget.
fn a_box_is_compared_with_an_older_one_and_gets_a_budget_that_it_keeps() {
    let mut scene = Scene::new();
    let old = scene.boxed("old", f64::from(BUDGET_MS));
    scene.boxfile = scene.boxfile.replace("memory=\"256MiB\"", "memory=\"2048MiB\"");
    let new = scene.boxed("new", 2.0);
    let boxfile = scene.directory.path().join("new");
    let before = fs::read_to_string(&boxfile).unwrap();

    let (old_path, boxfile_path) = (old.to_str().unwrap(), boxfile.to_str().unwrap());
    let options = ["--json", "--compare", old_path, "--write", "10%", "--file", boxfile_path];
    let both = report(&scene.budget(&new, 1, &options), 0);
    let alone = report(&scene.budget(&old, 1, &["--json"]), 0);
    assert_eq!(both["compared"]["box"], alone["box"]);
    assert_eq!(both["compared"]["phases_ms"], alone["phases_ms"], "to the last nanosecond");
    let ratio = |phase: &str| both["compared"]["ratio"][phase].as_f64().unwrap();
    assert!(ratio("kernel") > 1.1 && ratio("total") > 1.1, "{both}");

    let after = fs::read_to_string(&boxfile).unwrap();
    let others = |text: &str| -> Vec<String> {
        text.lines().filter(|it| !it.starts_with("budget ")).map(str::to_owned).collect()
    };
    assert_eq!(others(&after), others(&before));
    let total = both["written"]["total"].as_u64().unwrap();
    assert!(after.contains(&format!("total=\"{total}ms\"")), "{after}");
    let kept = scene.directory.path().join("kept.box");
    bake(&boxfile, &tools().programs.box_init, &kept);
    let kept = report(&scene.budget(&kept, 1, &["--json"]), 0);
    assert_eq!(kept["within_budget"], true, "{kept}");
}

tests![
    a_box_with_more_cpus_than_any_host_here_is_measured,
    a_box_is_held_to_budgets_just_above_and_just_below_what_it_takes,
    a_box_is_compared_with_an_older_one_and_gets_a_budget_that_it_keeps
];

//! The boots of a run: the gate, which every change passes, and four parts, of which a landing makes the next one.
//!
//! `tests/boot/part` has the number of the part that the next landing makes. A landing also makes each part whose paths it changes.

use std::fs;
use std::process::Command;

use testbed::boots::{Landing, Tier, module_of};
use testbed::{KitError, Result, Workspace, program};

use super::programs::TestProgram;

/// The file with the number of the next part, below the repository's root.
const NUMBER: &str = "tests/boot/part";

/// The paths whose changes make each part necessary, beside those of its modules, which `tests/boot/main.rs` lists.
const PATHS: [&[&str]; Landing::PARTS as usize] = [
    &[
        "crates/egress-proxy",
        "crates/egress-rules",
        "docs/agents.md",
        "docs/working.md",
        "examples/a3s",
        "examples/agents",
        "examples/assistant",
    ],
    &[
        "crates/ext4-image",
        "docs/files.md",
        "docs/skills.md",
        "docs/volumes.md",
        "launcher/src/cli/environment",
        "launcher/src/cli/shares",
        "launcher/src/cli/skills.rs",
        "launcher/src/cli/volume.rs",
        "launcher/src/mounts",
    ],
    &[
        "crates/command-fence",
        "docs/sdk.md",
        "docs/tasks.md",
        "examples/assistant/project",
        "guest-init/src/serve",
        "launcher/src/client",
        "launcher/src/supervisor",
        "sdk",
    ],
    &[
        "crates/box-delta",
        "crates/box-registry",
        "crates/box-trust",
        "docs/fleet.md",
        "docs/services.md",
        "docs/ssh-agent.md",
        "launcher/src/cli/update",
        "launcher/src/network",
        "launcher/src/project",
    ],
];
/// The directory of the boots. A change there that is not of a module makes all parts necessary.
const BOOTS: &str = "tests/boot/";

/// Which boots a run makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Those that show each line of docs/status.md once.
    Short,
    /// The gate, and the parts of this landing.
    Landing,
    /// All.
    All,
}

/// The boots of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected {
    /// The tests' names, such as `hello::a_box_starts`.
    pub(super) tests: Vec<String>,
    /// The number of the other tests.
    pub(super) left_out: usize,
}

/// A test of the program that boots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) tier: Tier,
    pub(super) name: String,
}

impl Selected {
    /// Selects from the tests of the program that boots.
    ///
    /// # Errors
    /// There is no number of the next part.
    pub(super) fn of(workspace: &Workspace, listed: Vec<Listed>, extent: Extent) -> Result<Self> {
        let parts = match extent {
            Extent::Landing => of_landing(workspace, &listed)?,
            _ => Vec::new(),
        };
        Ok(Self::from(listed, |tier| match (extent, tier.landing) {
            (Extent::Short, _) => tier.is_short,
            (Extent::Landing, Landing::Part(part)) => parts.contains(&part),
            _ => true,
        }))
    }

    fn from(listed: Vec<Listed>, is_selected: impl Fn(Tier) -> bool) -> Self {
        let all = listed.len();
        let tests: Vec<_> = listed
            .into_iter()
            .filter(|test| is_selected(test.tier))
            .map(|test| test.name)
            .collect();
        Self { left_out: all - tests.len(), tests }
    }
}

impl Listed {
    /// Returns the tests of the program that boots.
    ///
    /// # Errors
    /// The program does not list them.
    pub(super) fn all(programs: &[TestProgram]) -> Result<Vec<Self>> {
        let boots = programs.iter().find(|program| program.boots());
        let lines = boots.map_or_else(|| Ok(Vec::new()), TestProgram::list)?;
        lines.iter().map(|line| Self::of(line)).collect()
    }

    /// Reads a line of the list: `[part 1] sdk::a_box_starts`.
    pub(super) fn of(line: &str) -> Result<Self> {
        let (tier, name) = line
            .strip_prefix('[')
            .and_then(|line| line.split_once("] "))
            .ok_or_else(|| KitError::malformed("the list of boots", line))?;
        Ok(Self { tier: tier.parse()?, name: name.to_owned() })
    }
}

/// Returns the number of a part.
fn number(text: &str) -> Option<u8> {
    text.trim().parse().ok().filter(|number| (1..=Landing::PARTS).contains(number))
}

/// Returns the numbers of the parts of this landing: the next one, and those whose paths have changed since the last landing. If the
/// history does not have its commit, all.
fn of_landing(workspace: &Workspace, listed: &[Listed]) -> Result<Vec<u8>> {
    let path = workspace.path(NUMBER);
    let text = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
    let next = number(&text).ok_or_else(|| {
        KitError::malformed(NUMBER, format!("it has no number from 1 to {}", Landing::PARTS))
    })?;
    let Some((last, changed)) = since_last(workspace) else {
        return Ok((1..=Landing::PARTS).collect());
    };
    if next != after(last) {
        let reason = format!(
            "it is {next}, and the last landing had {last}: run `cargo xtask test --next` once for each landing"
        );
        return Err(KitError::malformed(NUMBER, reason));
    }
    let is_of = |part: &u8| *part == next || touches(&changed, *part, listed);
    Ok((1..=Landing::PARTS).filter(is_of).collect())
}

/// Returns the number of the part after a part.
const fn after(part: u8) -> u8 {
    part % Landing::PARTS + 1
}

/// Returns whether a changed path is one of a part.
fn touches(changed: &[String], part: u8, listed: &[Listed]) -> bool {
    let paths = PATHS[usize::from(part) - 1];
    changed.iter().any(|changed| match changed.strip_prefix(BOOTS) {
        None => paths.iter().any(|path| is_below(changed, path)),
        Some(_) if changed == NUMBER => false,
        Some(boot) => {
            let mut modules = listed.iter().map(|test| (test.tier, module_of(&test.name)));
            let is_of_any = modules.clone().any(|(_, module)| is_below(boot, module));
            !is_of_any
                || modules.any(|(tier, module)| {
                    tier.landing == Landing::Part(part) && is_below(boot, module)
                })
        }
    })
}

/// Returns whether `path` is `place`, with or without `.rs`, or below it.
fn is_below(path: &str, place: &str) -> bool {
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

/// Returns the number of the last landing, and the paths that have changed since. Its last commit is the one before the number was
/// changed. `None` if the history does not have it.
fn since_last(workspace: &Workspace) -> Option<(u8, Vec<String>)> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let text = program::run(git.args(arguments).current_dir(workspace.path("."))).ok()?;
        String::from_utf8(text).ok()
    };
    let commits = git(&["log", "--max-count=2", "--format=%H", "--", NUMBER])?;
    let before = commits.lines().nth(1)?;
    // In a shallow clone, the oldest commit seems to add all files.
    git(&["rev-parse", "--is-shallow-repository"]).filter(|answer| answer.trim() == "false")?;
    let last = number(&git(&["show", &format!("{before}:{NUMBER}")])?)?;
    let paths = git(&["diff", "--name-only", "--no-renames", "-z", before])?;
    Some((last, paths.split_terminator('\0').map(str::to_owned).collect()))
}

/// Writes the number of the part after the present one, and returns it.
///
/// # Errors
/// The file cannot be read or written.
pub(super) fn advance(workspace: &Workspace) -> Result<u8> {
    let path = workspace.path(NUMBER);
    let text = fs::read_to_string(&path).map_err(KitError::file("read", &path))?;
    let next = after(number(&text).unwrap_or_default());
    fs::write(&path, format!("{next}\n")).map_err(KitError::file("write", &path))?;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed() -> Vec<Listed> {
        let lines = [
            "[gate, short] hello::a",
            "[gate] jail::b",
            "[part 1] sdk::c",
            "[part 2] disk::d",
            "[part 2] volumes::kills::e",
        ];
        lines.map(|line| Listed::of(line).unwrap()).to_vec()
    }

    #[test]
    fn the_list_has_the_tier_of_each_test() {
        let tier = Tier { landing: Landing::Part(2), is_short: false };
        assert_eq!(listed()[3], Listed { tier, name: "disk::d".to_owned() });
        for wrong in ["hello::a", "[part 5] a::b"] {
            assert!(Listed::of(wrong).is_err(), "{wrong}");
        }
        let gate = Selected::from(listed(), |tier| tier.landing == Landing::Each);
        assert_eq!((gate.tests.join(" "), gate.left_out), ("hello::a jail::b".to_owned(), 3));
    }

    #[test]
    fn a_change_of_a_parts_paths_makes_the_part_necessary() {
        let parts = |path: &str| {
            let changed = [path.to_owned()];
            let touched = (1..=4).filter(|part| touches(&changed, *part, &listed()));
            touched.collect::<Vec<u8>>()
        };
        assert_eq!(parts("examples/agents/python/x.py"), [1]);
        assert_eq!(parts("tests/boot/disk.rs"), [2]);
        assert_eq!(parts("tests/boot/volumes/kills.rs"), [2]);
        assert_eq!(parts("tests/boot/scenario.rs"), [1, 2, 3, 4]);
        for nowhere in ["tests/boot/jail.rs", NUMBER, "examples/agentsx", "docs/errors.md"] {
            assert!(parts(nowhere).is_empty(), "{nowhere}");
        }
    }

    /// A repository in which the number was changed twice.
    fn repository() -> (tempfile::TempDir, Workspace) {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(directory.path());
        fs::create_dir_all(workspace.path("tests/boot")).unwrap();
        fs::create_dir_all(workspace.path("crates/box-delta")).unwrap();
        fs::write(workspace.path("crates/box-delta/a"), "a").unwrap();
        for (number, moved) in [(1, None), (2, Some("mv crates/box-delta/a b"))] {
            fs::write(workspace.path(NUMBER), format!("{number}\n")).unwrap();
            let git = "git -c user.name=a -c user.email=a@b";
            let script = format!(
                "{}; git init -q .; git add -A; {git} commit -qm x",
                moved.unwrap_or("true")
            );
            program::run(
                Command::new("sh").args(["-ec", &script]).current_dir(workspace.path(".")),
            )
            .unwrap();
        }
        (directory, workspace)
    }

    #[test]
    fn a_landing_makes_the_next_part_and_those_that_it_touches() {
        let (directory, workspace) = repository();
        assert_eq!(of_landing(&workspace, &listed()).unwrap(), [2, 4]);
        let shallow = directory.path().join("shallow");
        let url = format!("file://{}", directory.path().display());
        let mut clone = Command::new("git");
        program::run(clone.args(["clone", "-q", "--depth=1", &url]).arg(&shallow)).unwrap();
        assert_eq!(of_landing(&Workspace::at(&shallow), &listed()).unwrap(), [1, 2, 3, 4]);
    }

    #[test]
    fn no_landing_skips_or_repeats_a_part() {
        let (_directory, workspace) = repository();
        for wrong in [1, 3, 4] {
            fs::write(workspace.path(NUMBER), format!("{wrong}\n")).unwrap();
            let error = of_landing(&workspace, &listed()).unwrap_err().to_string();
            assert!(error.contains("xtask test --next"), "{error}");
        }
    }

    /// Returns the paths of pages and examples that the source of a module reads.
    fn read_by(source: &str) -> impl Iterator<Item = &str> {
        let literals = source.split('"').skip(1).step_by(2);
        let paths = literals.map(|text| text.trim_start_matches("../"));
        paths.filter(|path| ["docs/", "examples/", "sdk/"].iter().any(|it| path.starts_with(it)))
    }

    #[test]
    fn what_a_module_reads_makes_its_part_necessary() {
        let workspace = Workspace::find();
        let read = |path: &str| fs::read_to_string(workspace.path(path)).unwrap_or_default();
        let (main, mut checked) = (read("tests/boot/main.rs"), 0);
        for line in main.lines().filter_map(|line| line.trim().strip_prefix("module(\"")) {
            let Some((name, rest)) = line.split_once("\", part(") else { continue };
            let part = usize::from(number(&rest[..1]).unwrap()) - 1;
            let place = name.replace("::", "/");
            let source = read(&format!("tests/boot/{place}.rs"))
                + &read(&format!("tests/boot/{place}/mod.rs"));
            for path in read_by(&source).filter(|path| workspace.path(path).exists()) {
                let is_listed = PATHS[part].iter().any(|place| is_below(path, place));
                assert!(is_listed, "part {} reads {path}, which is not in its paths", part + 1);
                checked += 1;
            }
        }
        assert!(checked >= 8, "only {checked} paths were found");
    }

    #[test]
    fn every_path_of_a_part_exists() {
        let workspace = Workspace::find();
        let missing = PATHS.iter().copied().flatten().find(|path| !workspace.path(path).exists());
        assert_eq!(missing, None);
        assert!(number(&fs::read_to_string(workspace.path(NUMBER)).unwrap()).is_some());
    }

    #[test]
    fn the_number_goes_round() {
        let directory = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(directory.path());
        fs::create_dir_all(workspace.path("tests/boot")).unwrap();
        fs::write(workspace.path(NUMBER), "3\n").unwrap();
        assert_eq!([(); 3].map(|()| advance(&workspace).unwrap()), [4, 1, 2]);
        fs::write(workspace.path(NUMBER), "5\n").unwrap();
        assert!(of_landing(&workspace, &listed()).is_err());
    }
}

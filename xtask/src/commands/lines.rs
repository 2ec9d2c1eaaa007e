//! `cargo xtask lines`: how much code each package has.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use testkit::{Result, Workspace};

use super::Outcome;
use crate::say;
use crate::source::{Crate, Package, code_lines, packages};

/// Files with less code than this are listed by `--small`.
const SMALL: usize = 30;

/// The form of the output.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  cargo xtask lines --small")]
pub(crate) struct Options {
    /// Print data instead of a table.
    #[arg(long)]
    json: bool,
    /// Also list the files of the shipped packages with fewer than 30 lines of code.
    #[arg(long)]
    small: bool,
}

/// The figures of a package, or of several.
#[derive(Debug, Default)]
struct Figures {
    files: usize,
    /// Lines of code without tests.
    code: usize,
    /// Lines of code of tests.
    tests: usize,
    /// The lengths of all functions, in lines.
    functions: Vec<usize>,
    /// The files with little code.
    small: Vec<(PathBuf, usize)>,
}

/// A line of the table.
struct Row {
    name: String,
    shipped: bool,
    figures: Figures,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let workspace = Workspace::find();
    let rows: Result<Vec<_>> = packages(&workspace)?.iter().map(|it| row(&workspace, it)).collect();
    let rows = rows?;
    if options.json {
        say::result(&format!("{:#}", for_machines(&rows)));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = table(&rows);
    if options.small {
        text += &small_files(&rows);
    }
    say::result(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn row(workspace: &Workspace, package: &Package) -> Result<Row> {
    let mut figures = Figures::default();
    for root in package.roots() {
        for file in Crate::read(root)?.files {
            figures.files += 1;
            figures.code += file.code;
            figures.functions.extend(file.functions());
            if file.code < SMALL {
                let name = file.path.strip_prefix(workspace.path("")).unwrap_or(&file.path);
                figures.small.push((name.to_owned(), file.code));
            }
        }
    }
    let all: Result<usize> = package.files()?.iter().map(|path| code_lines(path)).sum();
    figures.tests = all?.saturating_sub(figures.code);
    Ok(Row { name: package.name.clone(), shipped: package.shipped, figures })
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.code += other.code;
        self.tests += other.tests;
        self.functions.extend(&other.functions);
        self.small.extend(other.small.iter().cloned());
    }

    /// Returns the length below or at which this share of the functions is.
    fn function_length(&self, percent: usize) -> usize {
        let mut lengths = self.functions.clone();
        lengths.sort_unstable();
        let rank = (lengths.len() * percent).div_ceil(100).max(1);
        lengths.get(rank - 1).copied().unwrap_or(0)
    }

    fn json(&self) -> Value {
        json!({
            "files": self.files,
            "code": self.code,
            "tests": self.tests,
            "small_files": self.small.len(),
            "function_lines": {
                "median": self.function_length(50),
                "p90": self.function_length(90),
                "max": self.function_length(100),
            },
        })
    }
}

fn total(rows: &[Row], shipped: bool) -> Figures {
    let mut sum = Figures::default();
    rows.iter().filter(|row| row.shipped == shipped).for_each(|row| sum.add(&row.figures));
    sum
}

fn for_machines(rows: &[Row]) -> Value {
    let package = |row: &Row| {
        let mut value = row.figures.json();
        value["name"] = json!(row.name);
        value["shipped"] = json!(row.shipped);
        value["small"] = row
            .figures
            .small
            .iter()
            .map(|(path, code)| json!({ "path": path, "code": code }))
            .collect();
        value
    };
    json!({
        "packages": rows.iter().map(package).collect::<Vec<_>>(),
        "production": total(rows, true).json(),
        "helpers": total(rows, false).json(),
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<20} {:>6} {:>7} {:>7} {:>6}   function lines\n{:<20} {:>6} {:>7} {:>7} {:>6} {:>7} {:>5} {:>5}\n",
        "",
        "",
        "",
        "",
        "< 30",
        "package",
        "files",
        "code",
        "tests",
        "lines",
        "median",
        "p90",
        "max"
    );
    for (shipped, name) in [(true, "production"), (false, "helpers")] {
        for row in rows.iter().filter(|row| row.shipped == shipped) {
            text += &line(&row.name, &row.figures);
        }
        text += &line(name, &total(rows, shipped));
        text += "\n";
    }
    text
}

fn line(name: &str, figures: &Figures) -> String {
    let [median, p90, max] = [50, 90, 100].map(|percent| figures.function_length(percent));
    let Figures { files, code, tests, small, .. } = figures;
    let small = small.len();
    format!("{name:<20} {files:>6} {code:>7} {tests:>7} {small:>6} {median:>7} {p90:>5} {max:>5}\n")
}

/// Lists the small files of the shipped packages, the smallest first.
fn small_files(rows: &[Row]) -> String {
    let mut files = total(rows, true).small;
    files.sort_by(|(left, a), (right, b)| a.cmp(b).then_with(|| left.cmp(right)));
    let line = |(path, code): &(PathBuf, usize)| format!("{code:>4}  {}\n", shown(path));
    files.iter().map(line).collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shipped files with so little code, each with its reason. A crate's root and a folder's `mod.rs` need
    /// none: they say what is there.
    const SMALL_FILES: [(&str, &str); 52] = [
        ("boxfile-spec/src/errors.rs", "used by four folders"),
        ("boxfile-spec/src/parse/overridden.rs", "one rule for a file and its bases"),
        ("boxfile-spec/src/recognize.rs", "used by parsing, formatting and the program"),
        ("builder/src/compose/merged/below.rs", "one count, made once for all conflicts"),
        ("builder/src/pipeline/step.rs", "what both phases report, for the program"),
        ("crates/box-budget/src/write/toml.rs", "one of two syntaxes"),
        (
            "crates/box-image/src/assignment.rs",
            "how variables are written on command lines, of both programs",
        ),
        ("crates/box-image/src/defaults.rs", "one place for the defaults of three programs"),
        (
            "crates/box-image/src/json.rs",
            "faults of documents without their values, for each reader",
        ),
        ("crates/box-image/src/logs.rs", "one place for the names and limits of two programs"),
        ("crates/box-image/src/pace.rs", "one rule for both ends of a connection"),
        ("crates/box-image/src/size.rs", "one rule of sizes with units"),
        ("crates/box-image/src/text/foreign.rs", "a writer of its own, for two programs"),
        ("crates/box-image/src/wire/sizes.rs", "one place for the sizes of all messages"),
        ("crates/box-image/src/wire/usage.rs", "a message of its own"),
        ("crates/box-image/src/wire/variable.rs", "a message of its own"),
        ("crates/box-sbom/src/unread.rs", "one rule, of databases that are only named"),
        ("crates/box-skill/src/archive.rs", "one form of a skill"),
        ("crates/box-tree/src/path.rs", "one meaning of a path for all crates"),
        ("crates/box-tree/src/trail.rs", "used by diff and by the advice of a merge"),
        ("crates/download/src/guard.rs", "the list of the crate's guards"),
        ("crates/download/src/http/error.rs", "one error type in one file"),
        ("crates/egress-proxy/src/own.rs", "used by an attempt and by what watches its connection"),
        ("crates/ext4-image/src/crc.rs", "a checksum with tests of its own"),
        ("crates/ext4-image/src/error.rs", "the crate's errors"),
        ("crates/ext4-image/src/fields.rs", "used by each structure on the disk"),
        ("crates/ext4-image/src/journal.rs", "one structure on the disk, as its neighbours are"),
        ("crates/guest-kernel/src/error.rs", "one error type in one file"),
        ("crates/oci-layer/src/guard.rs", "the list of the crate's guards"),
        ("crates/oci-layer/src/room.rs", "memory that several kinds of work share"),
        ("crates/virtual-host/src/kernel/choice.rs", "takes one of two other files of the folder"),
        ("crates/virtual-host/src/scratch.rs", "the files of a run, which three others make"),
        ("guest-init/src/component/account.rs", "it reads what a workload may have made"),
        ("guest-init/src/component/caps.rs", "one fence of a component"),
        ("guest-init/src/component/rlimits.rs", "one fence of a component"),
        ("guest-init/src/console.rs", "used before and after there is a launcher"),
        (
            "guest-init/src/network/shared.rs",
            "one mode of the network, without the others' process",
        ),
        ("guest-init/src/sys/terminal.rs", "unsafe code, beside the other system calls"),
        ("guest-init/src/variables.rs", "one message, received before a component runs"),
        ("launcher/src/cli/memory.rs", "one message of three subcommands"),
        ("launcher/src/cli/notify.rs", "one protocol, of the service manager's"),
        ("launcher/src/cli/run/modes.rs", "one rule, with a test of every option"),
        ("launcher/src/cli/shares/large.rs", "one warning about shares"),
        ("launcher/src/cli/since.rs", "two commands have the option"),
        ("launcher/src/elf.rs", "used by both of the launcher's own guests"),
        ("launcher/src/health.rs", "used by the start and by a subcommand"),
        ("launcher/src/jail/trace.rs", "a signal handler, which is unsafe code of its own kind"),
        ("launcher/src/network/decisions.rs", "one rule between the filter and two readers"),
        ("launcher/src/open.rs", "used by three subcommands"),
        ("launcher/src/resources.rs", "asks the kernel of the host, and nobody else does"),
        ("launcher/src/variables.rs", "one rule of the run and of the budget"),
        ("launcher/src/volumes/error.rs", "one error type in one file"),
    ];

    #[test]
    fn every_small_file_has_a_reason_and_no_other_file_has_one() {
        let workspace = Workspace::find();
        let packages = packages(&workspace).unwrap();
        let rows: Vec<_> = packages.iter().map(|it| row(&workspace, it).unwrap()).collect();
        let mut small = total(&rows, true).small;
        small.retain(|(path, _)| {
            !["lib.rs", "main.rs", "mod.rs"].iter().any(|name| path.ends_with(name))
        });
        let mut small: Vec<String> = small.iter().map(|(path, _)| shown(path)).collect();
        small.sort();
        let explained = SMALL_FILES.map(|(path, reason)| {
            assert!(!reason.is_empty(), "{path}");
            path.to_owned()
        });
        assert_eq!(small, explained);
    }

    fn rows() -> Vec<Row> {
        let figures = |code: usize| Figures {
            files: 2,
            code,
            tests: 7,
            functions: (1..=code).collect(),
            small: vec![(PathBuf::from(format!("{code}.rs")), 3)],
        };
        let row = |name: &str, shipped, code| Row {
            name: name.to_owned(),
            shipped,
            figures: figures(code),
        };
        vec![row("one", true, 10), row("two", true, 30), row("kit", false, 5)]
    }

    #[test]
    fn the_table_has_totals_for_what_is_shipped_and_for_helpers() {
        let text = table(&rows());
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<_> = text.lines().map(words).collect();
        let expected = [
            "< 30 function lines",
            "package files code tests lines median p90 max",
            "one 2 10 7 1 5 9 10",
            "two 2 30 7 1 15 27 30",
            "production 4 40 14 2 10 26 30",
            "",
            "kit 2 5 7 1 3 5 5",
            "helpers 2 5 7 1 3 5 5",
            "",
        ];
        assert_eq!(lines, expected);
        assert_eq!(small_files(&rows()), "   3  10.rs\n   3  30.rs\n");
    }

    #[test]
    fn machines_get_the_same_figures() {
        let report = for_machines(&rows());
        assert_eq!(report["production"]["code"], 40);
        assert_eq!(report["helpers"]["function_lines"]["max"], 5);
        assert_eq!(report["packages"][0]["small"][0]["path"], "10.rs");
    }

    #[test]
    fn a_package_without_functions_has_figures() {
        assert_eq!(Figures::default().function_length(90), 0);
    }
}

//! `boxbuild budget`: measures the start of a box on the virtual host, and compares it with the box's budget.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use box_contract::assignment::Assignment;
use box_contract::{Budget, ErrorCode, Phases, exit};
use box_layout::OpenBox;
use boxbuild::budget::{Measurement, exceeded};
use boxbuild::project::Project;
use boxfile_spec::MAX_SOURCE;
use diagnostics::Source;
use host_fs::FileError;
use host_fs::checkout::replace;
use host_fs::read::{Links, read_file};
use safe_text::clipped;
use serde_json::json;
use virtual_host::{HostKernel, VirtualHost, kernel};

use super::failure::{Explain, Failure};
use super::options::CheckoutOption;
use super::stages::Stages;
use super::stored;
use super::{installed, locate, search, terminal};
use cli_common::store::BoxArgument;

/// The advice for a box without a budget.
const TO_HAVE_ONE: &str = "`boxbuild budget BOX --write 20%` puts one into its Boxfile";

/// Measures how long a box takes to start, and compares that with its budget. Needs no KVM.
///
/// The box starts on the virtual host, an emulated host whose clock counts the instructions that it executes. So the times do
/// not depend on the host or its load, and can be compared only with each other. Judges the median of the starts by the
/// budget that the box's Boxfile declares. Exits with 4 if a phase exceeds its budget.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs qemu-system-x86_64. The virtual host's kernel, a Debian package, is fetched with \
    apt-get and\nkept in $XDG_CACHE_HOME/boxbuild/virtual-host or ~/.cache/boxbuild/virtual-host.\n\n\
    Examples:\n  \
    boxbuild budget hello.box\n  \
    boxbuild budget hello.box --runs 10 --json | jq .phases_ms.total.median\n  \
    boxbuild budget new.box --compare old.box\n  \
    boxbuild budget hello.box --write 20%                    write the budget into the Boxfile; then build again",
    mut_arg("checkout", |it| it.requires("write"))
)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: BoxArgument,
    /// How many times to start the box
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: u16,
    /// Set a variable that the box declares for launch, as `boxlaunch run -e` does; may be repeated
    #[arg(short, long, value_name = "[COMPONENT/]NAME=VALUE", value_parser = assigned)]
    env: Vec<String>,
    /// Also measure this box, and show both side by side
    #[arg(long, value_name = "OLD.box")]
    compare: Option<OsString>,
    /// Write a budget into the Boxfile: the median of each phase plus this margin, such as 20%. The budget that the Boxfile
    /// has now is not judged
    #[arg(long, value_name = "MARGIN", value_parser = percent)]
    write: Option<f64>,
    /// The Boxfile that --write changes [default: as for `boxbuild build`]
    #[arg(short, long, value_name = "PATH", requires = "write")]
    file: Option<PathBuf>,
    #[command(flatten)]
    checkout: CheckoutOption,
    /// The virtual host's kernel: a Debian package linux-image-*-cloud-amd64
    #[arg(long, value_name = "FILE")]
    host_kernel: Option<PathBuf>,
    /// Use no network: the virtual host's kernel must have been fetched before
    #[arg(long, conflicts_with = "host_kernel")]
    offline: bool,
    /// Print JSON, also for errors (except usage errors)
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let find = |margin| {
        Ok::<_, Failure>((
            search::project(args.file.as_deref(), args.checkout.directory.as_deref())?,
            margin,
        ))
    };
    let boxfile = args.write.map(find).transpose()?;
    let open = |subject: &BoxArgument| -> Result<_, Failure> {
        let opened = stored::open(subject)?;
        stored::check_policy(subject, &opened.digest)?;
        Ok(opened)
    };
    let opened = open(&args.subject)?;
    let old = args.compare.as_ref().map(|old| {
        let store = args.subject.store.clone();
        BoxArgument { reference: old.into(), store }
    });
    let compared = old.as_ref().map(open).transpose()?;
    if let Some((project, _)) = &boxfile {
        // Checks that the budget can be written before the measurement, which takes a while.
        let name = &opened.config.plan.name;
        with_budget(project, name, &boxbuild::budget::with_margin(&Phases::default(), 0.0))?;
    }
    // The launcher is found first, because the kernel may have to be downloaded.
    let launcher = installed::boxlaunch()?;
    let host = VirtualHost::new(&host_kernel(args)?, launcher);
    let new = measure(&host, &opened, &args.subject.reference, (args, &args.env))?;
    let old = args.compare.as_ref().zip(compared).map(|(word, old)| {
        // The old box gets only the variables that it declares: the new box may declare more.
        let env = declared(&args.env, &old);
        measure(&host, &old, Path::new(word), (args, &env))
    });
    let old = old.transpose()?;
    if !args.json {
        terminal::pieces([boxbuild::budget::table(&new, old.as_ref(), TO_HAVE_ONE)]);
    }
    let written = boxfile.map(|(file, margin)| write(&file, &new, margin)).transpose()?;
    let over = exceeded(&new).filter(|_| args.write.is_none());
    if args.json {
        let mut report = boxbuild::budget::json(&new, old.as_ref());
        report["errors"] = json!(over.iter().collect::<Vec<_>>());
        report["written"] = json!(written);
        terminal::json(&report.to_string());
    } else {
        over.iter().for_each(|it| terminal::error(&it.text()));
    }
    if over.is_some() { Err(Failure::reported(exit::OVER_BUDGET)) } else { Ok(()) }
}

/// Parses a variable with its value. The virtual host has no environment to take values from.
fn assigned(text: &str) -> Result<String, &'static str> {
    match Assignment::parse(text) {
        Ok(Assignment { value: Some(_), .. }) => Ok(text.to_owned()),
        _ => Err("write NAME=VALUE, with agent/ or business/ in front for that component alone"),
    }
}

/// Returns the variables in `env` that a box declares for launch.
fn declared(env: &[String], opened: &OpenBox) -> Vec<String> {
    let is_declared = |text: &&String| {
        let Ok(given) = Assignment::parse(text) else { return false };
        let mut declared = opened.config.plan.launch_variables();
        declared.any(|(component, name)| {
            given.name == name && given.component.is_none_or(|it| it == component)
        })
    };
    env.iter().filter(is_declared).cloned().collect()
}

fn measure(
    host: &VirtualHost,
    opened: &OpenBox,
    shown: &Path,
    (args, env): (&Args, &[String]),
) -> Result<Measurement, Failure> {
    let stages = Stages::new(args.json);
    stages.begin(&format!("starting {} on the virtual host", shown.display()));
    boxbuild::budget::measure(host.clone(), opened, args.runs, env).map_err(|error| failed(&error))
}

/// Returns the failure of the virtual host or of a program on it, whose message can have several lines.
fn failed(error: &impl Explain) -> Failure {
    Failure::new(error.explain(), clipped(error.to_string()))
}

/// Writes a budget into a Boxfile, in place of the present one: the measured times plus a margin.
fn write(project: &Project, measured: &Measurement, percent: f64) -> Result<Budget, Failure> {
    let file = &project.file;
    let budget = boxbuild::budget::with_margin(&measured.medians(), percent);
    let new = with_budget(project, &measured.name, &budget)?;
    replace(file, &new).map_err(FileError::of("write", file))?;
    terminal::note(&format!("{} has the budget {budget} now; build the box again", file.display()));
    Ok(budget)
}

/// Returns the text of a box's Boxfile with another budget.
fn with_budget(project: &Project, name: &str, budget: &Budget) -> Result<String, Failure> {
    let file = &project.file;
    let bytes = read_file(file, Links::Follow, MAX_SOURCE as u64);
    let bytes = bytes.map_err(FileError::of("read", file))?;
    let source = Source::new(file.display().to_string(), host_fs::read::text(file, bytes)?);
    let new = boxbuild::budget::rewritten(&source, budget).filter(|text| {
        let source = Source { text: text.clone(), ..source };
        let read = project.read_as(source, None).boxfile;
        read.is_some_and(|it| it.budget == *budget && it.name == name)
    });
    new.ok_or_else(|| {
        let help = "name the box's Boxfile with --file; or measure without --write, and write the \
                    budget yourself";
        let message = format!(
            "{} is not a Boxfile of the box {name:?}, or declares its budget in a form that cannot be \
             replaced",
            file.display()
        );
        Failure::new((ErrorCode::BoxfileInvalid, help), message)
    })
}

/// Parses a margin in percent, with or without the sign: `20%` or `20`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    let number = number.filter(|it| (0.0..=1000.0).contains(it));
    number.ok_or_else(|| "write a number of percent from 0 to 1000, such as 20%".to_owned())
}

/// Returns the kernel of the virtual host: the named one, the one that was used before, or the newest of Debian.
fn host_kernel(args: &Args) -> Result<HostKernel, Failure> {
    let cache = locate::host_kernels()?;
    let kernel = if args.offline {
        HostKernel::find(&cache).transpose().ok_or_else(no_kernel)?
    } else {
        kernel::choose(args.host_kernel.as_deref(), &cache, |command| {
            terminal::note(&format!("fetching the virtual host's kernel: {command}"));
        })
    };
    let kernel = kernel.map_err(|error| failed(&error))?;
    terminal::detail("kernel of the virtual host", kernel.version());
    if let Some(warning) = kernel.warning() {
        terminal::note(&format!("warning: {warning}"));
    }
    Ok(kernel)
}

fn no_kernel() -> Failure {
    let help = "run this command once without --offline, or name one with --host-kernel FILE";
    Failure::new((ErrorCode::Offline, help), "the virtual host's kernel was not fetched yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_its_value_and_perhaps_a_component() {
        for good in ["A=1", "A=", "agent/A=1", "business/A=b=c"] {
            assert_eq!(assigned(good).as_deref(), Ok(good));
        }
        for wrong in ["", "A", "=1", "agent/A", "agent/=1"] {
            assert!(assigned(wrong).unwrap_err().starts_with("write NAME=VALUE"), "{wrong}");
        }
    }

    #[test]
    fn an_older_box_gets_the_variables_that_it_declares() {
        let mut config = testkit::test_box::config();
        config.plan.agent.launch_env = vec!["A".to_owned()];
        config.plan.business.as_mut().unwrap().launch_env = vec!["B".to_owned()];
        let made = testkit::TestBox::new(&config);
        let opened = OpenBox::open(made.path()).unwrap();
        let given = ["A=1", "agent/A=1", "business/A=1", "B=1", "business/B=1", "C=1"];
        let kept = declared(&given.map(str::to_owned), &opened);
        assert_eq!(kept, ["A=1", "agent/A=1", "B=1", "business/B=1"]);
    }
}

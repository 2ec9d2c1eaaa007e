//! Runs the modules of this program in parallel, those that took longest first. The tests of a module run one after the other, because
//! most share one start of the virtual host. libtest-mimic reads the command line and prints the results. Unlike cargo's own harness, it takes
//! one filter, and what tests print is not captured.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use libtest_mimic::{Arguments, Failed, Trial};
use testbed::boots::{Run, Tier, module_of, seconds};
use testbed::{Cache, Workspace};

/// A module with tests. `tests!` declares them. Modules below the same one run one after the other.
pub(crate) struct Module {
    pub(crate) name: &'static str,
    pub(crate) tier: Tier,
    pub(crate) tests: Tests,
}

/// The tests of a module, with their names.
pub(crate) type Tests = &'static [(&'static str, fn())];

/// Declares the tests of a module, as `TESTS`: `tests![one, two]`. A further list of it, for another [`Tier`], has a name:
/// `tests![MEASURED: three]`.
macro_rules! tests {
    [$list:ident: $($name:ident),* $(,)?] => {
        pub(crate) const $list: crate::schedule::Tests =
            &[$((stringify!($name), $name as fn())),*];
    };
    [$($name:ident),* $(,)?] => { tests![TESTS: $($name),*]; };
}

/// The result of a test: the message of its panic if it failed.
type Outcome = Result<(), String>;

/// A test that was selected.
struct Test {
    name: String,
    run: fn(),
    outcome: Sender<Outcome>,
}

/// The selected tests of a module.
type Job = Vec<Test>;

/// Runs the tests that the command line selects, and that the run of `cargo xtask test` selects, if this process is part of one.
pub(crate) fn main(modules: &[Module]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let workspace = Workspace::find();
    let run = Run::of_process(&workspace);
    let chosen = run.as_ref().and_then(Run::chosen);
    let seconds = seconds(&Cache::of_user(&workspace));
    let mut modules: Vec<_> = modules.iter().collect();
    modules.sort_by(|one, other| {
        let by_time = expected(&seconds, other).total_cmp(&expected(&seconds, one));
        by_time.then_with(|| one.name.cmp(other.name))
    });

    let (mut jobs, mut trials): (VecDeque<(&str, Job)>, Vec<Trial>) = Default::default();
    for module in modules {
        let (mut job, of_job) = select(module, &arguments, chosen.as_ref());
        trials.extend(of_job);
        match jobs.back_mut() {
            Some((name, before)) if *name == module_of(module.name) => before.append(&mut job),
            _ => jobs.push_back((module_of(module.name), job)),
        }
    }
    if arguments.list {
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    let lanes = thread::available_parallelism().map_or(1, usize::from);
    let lanes = arguments.test_threads.unwrap_or(lanes);
    // The jobs have threads of their own; the trials only wait for their results, in the order of the jobs.
    arguments.test_threads = Some(1);
    let jobs = Mutex::new(jobs);
    let conclusion = thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                while let Some((module, job)) = next(&jobs) {
                    let failed = job.into_iter().map(Test::run).filter(|passed| !passed).count();
                    if let Some(run) = run.as_ref().filter(|_| failed == 0) {
                        run.keep(module).unwrap();
                    }
                }
            });
        }
        libtest_mimic::run(&arguments, trials)
    });
    conclusion.exit_code()
}

/// Returns the seconds that a module will take. One that never ran comes first.
fn expected(seconds: &BTreeMap<String, f64>, module: &Module) -> f64 {
    seconds.get(module_of(module.name)).copied().unwrap_or(f64::MAX)
}

fn next<'a>(jobs: &Mutex<VecDeque<(&'a str, Job)>>) -> Option<(&'a str, Job)> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Returns the selected tests of a module, and the trials that wait for their results.
fn select(
    module: &Module,
    arguments: &Arguments,
    chosen: Option<&BTreeSet<String>>,
) -> (Job, Vec<Trial>) {
    let test = |(test, run): &(&str, fn())| {
        let (outcome, ended) = channel();
        let name = format!("{}::{test}", module.name);
        let trial =
            Trial::test(name.clone(), move || wait(&ended)).with_kind(module.tier.to_string());
        let is_selected = !arguments.is_filtered_out(&trial)
            && chosen.is_none_or(|chosen| chosen.contains(&name));
        is_selected.then_some((Test { name, run: *run, outcome }, trial))
    };
    module.tests.iter().filter_map(test).unzip()
}

fn wait(ended: &Receiver<Outcome>) -> Result<(), Failed> {
    let outcome = ended.recv().unwrap_or_else(|_| Err("the test has not run".to_owned()));
    outcome.map_err(Failed::from)
}

impl Test {
    /// Runs the test in a thread with its name, which panics and notes of boots then have. Returns whether it has passed.
    fn run(self) -> bool {
        let Self { name, run, outcome } = self;
        let ended = thread::Builder::new().name(name).spawn(run).map(thread::JoinHandle::join);
        let result = match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(panic)) => Err(message(&*panic)),
            Err(error) => Err(error.to_string()),
        };
        let passed = result.is_ok();
        // The trial has ended already if libtest-mimic does not run it.
        drop(outcome.send(result));
        passed
    }
}

/// Returns the message of a panic. The panic has also been printed, with its place.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the test panicked").to_owned()
}

//! The resource limits of a workload: the plan's, over those of every box.

use std::collections::BTreeMap;

use box_contract::Rlimits;
use nix::sys::resource::{Resource, rlim_t, setrlimit};

use crate::error::{InitError, Step as _};

/// A limit: soft and hard.
type Limit = (rlim_t, rlim_t);

/// Limits that differ from the kernel's own where the plan says nothing.
///
/// The kernel's 1024 and 4096 open files are too few for servers; a greater *soft* limit would
/// break programs that use `select`. Memory and processes are the cgroup's business.
const DEFAULTS: [(Resource, Limit); 2] =
    [(Resource::RLIMIT_NOFILE, (1024, 524_288)), (Resource::RLIMIT_CORE, (0, 0))];

/// Sets the limits of this process, and so of the program that it becomes. A hard limit can only be
/// raised with the capability for that, so this comes before the capabilities go.
///
/// # Errors
/// The kernel's, naming the limit and its value.
pub(crate) fn set(plan: Rlimits) -> Result<(), InitError> {
    limits(plan).into_iter().try_for_each(|(resource, (soft, hard))| {
        setrlimit(resource, soft, hard)
            .step_with(|| format!("set the resource limit {resource:?} to {hard}"))
    })
}

/// Returns what is to be set. A value of the plan is soft and hard at once: what a program could
/// raise by itself would not limit it.
fn limits(plan: Rlimits) -> BTreeMap<Resource, Limit> {
    let Rlimits { nofile, nproc, as_bytes, cpu_seconds, core_bytes, fsize_bytes } = plan;
    let planned = [
        (Resource::RLIMIT_NOFILE, nofile),
        (Resource::RLIMIT_NPROC, nproc),
        (Resource::RLIMIT_AS, as_bytes),
        (Resource::RLIMIT_CPU, cpu_seconds),
        (Resource::RLIMIT_CORE, core_bytes),
        (Resource::RLIMIT_FSIZE, fsize_bytes),
    ];
    let planned =
        planned.into_iter().filter_map(|(resource, value)| Some((resource, (value?, value?))));
    DEFAULTS.into_iter().chain(planned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Tells the copy of this test's process to be the workload.
    const INSIDE: &str = "BOX_INIT_TEST_RLIMITS";
    const THIS: &str = "component::rlimits::tests::a_program_meets_the_limits_of_its_plan";

    #[test]
    fn the_plan_goes_over_the_defaults() {
        let every = limits(Rlimits::default());
        assert_eq!(every, BTreeMap::from(DEFAULTS));
        let planned =
            limits(Rlimits { nofile: Some(9), cpu_seconds: Some(7), ..Rlimits::default() });
        assert_eq!(planned[&Resource::RLIMIT_NOFILE], (9, 9));
        assert_eq!(planned[&Resource::RLIMIT_CPU], (7, 7));
        assert_eq!(planned[&Resource::RLIMIT_CORE], (0, 0));
        assert_eq!(planned.len(), 3);
    }

    /// Limits last as long as their process, so the test runs itself once more, as the workload.
    #[test]
    fn a_program_meets_the_limits_of_its_plan() {
        if std::env::var_os(INSIDE).is_some() {
            set(Rlimits {
                nofile: Some(60),
                nproc: Some(70),
                as_bytes: Some(8 << 30),
                cpu_seconds: Some(90),
                core_bytes: Some(1024),
                fsize_bytes: Some(2048),
            })
            .unwrap();
            let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
            limits.lines().for_each(|line| println!("limit {line}"));
            // More open files than `fs.nr_open` are refused to everybody.
            let refused = set(Rlimits { nofile: Some(1 << 40), ..Rlimits::default() });
            return println!("refused {}", refused.unwrap_err());
        }
        let itself = std::env::current_exe().unwrap();
        let output = Command::new(itself)
            .args([THIS, "--exact", "--nocapture", "--test-threads=1"])
            .env(INSIDE, "yes")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        for (name, value) in [
            ("Max open files", 60),
            ("Max processes", 70),
            ("Max address space", 8 << 30),
            ("Max cpu time", 90_u64),
            ("Max core file size", 1024),
            ("Max file size", 2048),
        ] {
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("limit {name}")));
            let words: Vec<_> =
                line.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect();
            assert_eq!(words[..2], [value.to_string(), value.to_string()], "{name}");
        }
        let refused = "refused set the resource limit RLIMIT_NOFILE to 1099511627776: EPERM";
        assert!(text.contains(refused), "{text}");
    }
}

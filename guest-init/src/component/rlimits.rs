//! The resource limits of a workload: the plan's limits, and defaults for the others.

use std::collections::BTreeMap;

use box_contract::Rlimits;
use command_policy::CommandLimits;
use nix::sys::resource::{Resource, rlim_t, setrlimit};

use crate::error::{InitError, Step as _};

/// A soft limit and a hard limit.
type Limit = (rlim_t, rlim_t);

/// The defaults that differ from the kernel's.
///
/// The kernel's hard limit of 4096 open files is too low for servers. A higher *soft* limit than 1024 would break
/// programs that use [select(2)](https://man7.org/linux/man-pages/man2/select.2.html). Memory and processes are limited
/// by the cgroup.
const DEFAULTS: [(Resource, Limit); 2] =
    [(Resource::RLIMIT_NOFILE, (1024, 524_288)), (Resource::RLIMIT_CORE, (0, 0))];

/// Sets the limits of this process, and so of the program that it executes. Raising a hard limit needs a capability, so
/// this must come before the capabilities are dropped.
///
/// # Errors
/// The kernel's error, with the limit and its value.
pub(crate) fn set(plan: Rlimits, policy: Option<CommandLimits>) -> Result<(), InitError> {
    limits(plan, policy).into_iter().try_for_each(|(resource, (soft, hard))| {
        setrlimit(resource, soft, hard)
            .step_with(|| format!("set the resource limit {resource:?} to {hard}"))
    })
}

/// Returns the limits to set: those of the plan, then of the policy, then the defaults. A value of the plan or the policy is
/// both the soft and the hard limit: a program could raise a lower soft limit.
fn limits(plan: Rlimits, policy: Option<CommandLimits>) -> BTreeMap<Resource, Limit> {
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
    let of_policy = policy.into_iter().flat_map(|CommandLimits { processes, open_files }| {
        [(Resource::RLIMIT_NPROC, processes), (Resource::RLIMIT_NOFILE, open_files)]
            .map(|(resource, value)| (resource, (value, value)))
    });
    DEFAULTS.into_iter().chain(of_policy).chain(planned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The environment variable with which this test runs itself as the workload.
    const INSIDE: &str = "BOX_INIT_TEST_RLIMITS";
    const THIS: &str = "component::rlimits::tests::a_program_meets_the_limits_of_its_plan";

    #[test]
    fn the_plan_goes_over_the_defaults() {
        let every = limits(Rlimits::default(), None);
        assert_eq!(every, BTreeMap::from(DEFAULTS));
        let planned =
            limits(Rlimits { nofile: Some(9), cpu_seconds: Some(7), ..Rlimits::default() }, None);
        assert_eq!(planned[&Resource::RLIMIT_NOFILE], (9, 9));
        assert_eq!(planned[&Resource::RLIMIT_CPU], (7, 7));
        assert_eq!(planned[&Resource::RLIMIT_CORE], (0, 0));
        assert_eq!(planned.len(), 3);
        let own = Rlimits { nofile: Some(9), ..Rlimits::default() };
        let both = limits(own, Some(command_policy::COMMAND_LIMITS));
        assert_eq!(both[&Resource::RLIMIT_NOFILE], (9, 9));
        assert_eq!(both[&Resource::RLIMIT_NPROC], (1024, 1024));
    }

    /// Limits last as long as their process, so the test runs itself again as the workload.
    #[test]
    fn a_program_meets_the_limits_of_its_plan() {
        if std::env::var_os(INSIDE).is_some() {
            set(
                Rlimits {
                    nofile: Some(60),
                    nproc: Some(70),
                    as_bytes: Some(8 << 30),
                    cpu_seconds: Some(90),
                    core_bytes: Some(1024),
                    fsize_bytes: Some(2048),
                },
                None,
            )
            .unwrap();
            let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
            limits.lines().for_each(|line| println!("limit {line}"));
            // More open files than `fs.nr_open` are refused even to root.
            let refused = set(Rlimits { nofile: Some(1 << 40), ..Rlimits::default() }, None);
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

//! The filter of system calls: [`CALLS`] as a BPF program
//! ([seccomp(2)](https://man7.org/linux/man-pages/man2/seccomp.2.html)).

use std::collections::BTreeMap;

use nix::libc::{self, c_long};
use nix::unistd::getpid;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use super::calls::{
    CALLS, DISK_CALLS, IDLE_CALLS, LINK_CALLS, MODE_CALLS, MODE_FLAGS, NETWORK_CALLS, Rule, SELF,
    SET_ID_BITS, SHARE_CALLS, WRITABLE_SHARE_CALLS,
};
use super::links::PERMIT;
use super::{Needs, trace};

/// A filter that can be installed.
#[derive(Debug)]
pub(super) struct Filter {
    /// The BPF programs of the filter. The kernel applies the strictest of their results to a call.
    programs: Vec<BpfProgram>,
    trace: bool,
}

impl Filter {
    /// Compiles the filter for a VMM process with these needs. With `trace`, a forbidden call is logged before the
    /// process ends.
    ///
    /// # Errors
    /// If a rule is malformed.
    pub(super) fn new(trace: bool, needs: Needs) -> Result<Self, BackendError> {
        let more = [
            (needs.disks, DISK_CALLS),
            (needs.shares, SHARE_CALLS),
            (needs.writable_shares, WRITABLE_SHARE_CALLS),
            (needs.network, NETWORK_CALLS),
        ];
        let more = more.into_iter().filter(|(is_needed, _)| *is_needed).flat_map(|(_, it)| it);
        let rules = CALLS.iter().chain(more).map(|(call, rule)| Ok((*call, conditions(*rule)?)));
        let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
            rules.collect::<Result<_, BackendError>>()?;
        // The flags of clone3 are in memory, which no filter can read. So clone3 fails, and the C libraries fall back
        // to `clone`.
        rules.insert(libc::SYS_clone3, Vec::new());
        let forbidden = if trace { SeccompAction::Trap } else { SeccompAction::KillProcess };
        let missing = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
        let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
        let mut programs = vec![program(clone3, SeccompAction::Allow, missing)?];
        if needs.writable_shares {
            let idle = IDLE_CALLS.iter().map(|call| (*call, Vec::new())).collect();
            programs.push(program(idle, SeccompAction::Allow, SeccompAction::Errno(0))?);
            let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
            programs.push(program(set_id_rules()?, SeccompAction::Allow, refused.clone())?);
            programs.push(program(link_rules()?, SeccompAction::Allow, refused)?);
        }
        // Must be the last program, because it forbids the call that installs a program.
        programs.push(program(rules, forbidden, SeccompAction::Allow)?);
        Ok(Self { programs, trace })
    }

    /// Applies the filter to this process, which must have one thread.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn install(self) -> Result<(), seccompiler::Error> {
        if self.trace {
            trace::name_forbidden_calls();
        }
        self.programs.iter().try_for_each(|program| apply_filter(program))
    }
}

fn program(
    rules: BTreeMap<c_long, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    then: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, otherwise, then, TargetArch::x86_64)?.try_into()
}

/// Returns the rules that match a call which would set a bit of [`SET_ID_BITS`].
fn set_id_rules() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, BackendError> {
    let has = |index, bits: u32| {
        SeccompCondition::new(index, Dword, SeccompCmpOp::MaskedEq(bits.into()), bits.into())
    };
    let mut found = BTreeMap::new();
    for (call, index) in MODE_CALLS {
        let mut rules = Vec::new();
        for bit in SET_ID_BITS {
            if *call == libc::SYS_openat {
                for flag in MODE_FLAGS {
                    rules.push(SeccompRule::new(vec![has(2, flag)?, has(*index, bit)?])?);
                }
            } else {
                rules.push(SeccompRule::new(vec![has(*index, bit)?])?);
            }
        }
        found.insert(*call, rules);
    }
    Ok(found)
}

/// Returns the rules that match a call of [`LINK_CALLS`] that `links` has not made.
fn link_rules() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, BackendError> {
    let rule = |index| {
        let condition = SeccompCondition::new(index, Qword, SeccompCmpOp::Ne, PERMIT)?;
        Ok(vec![SeccompRule::new(vec![condition])?])
    };
    LINK_CALLS.iter().map(|(call, index)| Ok((*call, rule(*index)?))).collect()
}

/// Converts a rule to the filter's rules, of which a call has to match one. An empty list matches any call.
fn conditions(rule: Rule) -> Result<Vec<SeccompRule>, BackendError> {
    let one = |index, operator, value: u32| {
        let condition = SeccompCondition::new(index, Dword, operator, value.into())?;
        SeccompRule::new(vec![condition])
    };
    let own = |value| if value == SELF { getpid().as_raw().cast_unsigned() } else { value };
    match rule {
        Rule::Any => Ok(Vec::new()),
        Rule::OneOf(index, values) => {
            values.iter().map(|value| one(index, SeccompCmpOp::Eq, own(*value))).collect()
        }
        Rule::Null(index) => {
            let condition = SeccompCondition::new(index, Qword, SeccompCmpOp::Eq, 0)?;
            Ok(vec![SeccompRule::new(vec![condition])?])
        }
        Rule::Without(index, bits) => Ok(vec![one(index, SeccompCmpOp::MaskedEq(bits.into()), 0)?]),
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use nix::errno::Errno;
    use nix::sys::signal::Signal;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};

    use super::*;

    /// A number above the highest call of any current kernel.
    const LAST: c_long = 600;
    /// `uretprobe` and `uprobe`, which the kernel excludes from every filter: they work only from code that the
    /// kernel has placed, and otherwise end the process with SIGILL (`kernel/seccomp.c`).
    const UNFILTERED: [c_long; 2] = [335, 336];
    /// The bit that marks a call of the x32 ABI in the call's number.
    const X32: c_long = 0x4000_0000;

    /// The filter refuses links that other code than `links` makes.
    #[test]
    fn only_one_function_makes_links_and_pipes() {
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("made");
        let new = std::ffi::CString::new(new.to_str().unwrap()).unwrap();
        let (here, target) = (libc::AT_FDCWD, c"target".as_ptr());
        let needs = Needs { shares: true, writable_shares: true, ..Needs::default() };
        // SAFETY: the child makes system calls only, with memory that was made before.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0b10110));
            }
            ForkResult::Child => {
                let filter = Filter::new(false, needs).unwrap();
                nix::sys::prctl::set_no_new_privs().ok();
                filter.install().ok();
                let [link, pipe] = [libc::SYS_symlinkat, libc::SYS_mknodat];
                let (new, kind) = (new.as_ptr(), libc::S_IFIFO | 0o600);
                let made = [
                    // SAFETY: the call affects only the files of this test.
                    unsafe { libc::syscall(link, target, here, new, 0, 0) },
                    // SAFETY: the call affects only the files of this test.
                    c_long::from(unsafe { libc::symlinkat(target, here, new) }),
                    // SAFETY: the call affects only the files of this test.
                    c_long::from(unsafe { libc::unlinkat(here, new, 0) }),
                    // SAFETY: the call affects only the files of this test.
                    unsafe { libc::syscall(pipe, here, new, kind, 0, 0) },
                    // SAFETY: the call affects only the files of this test.
                    c_long::from(unsafe { libc::mknodat(here, new, kind, 0) }),
                ];
                let made = made.map(|it| it == 0);
                let code = (0..).zip(made).map(|(at, made)| i32::from(made) << at).sum();
                // SAFETY: `_exit` runs no code of this program.
                unsafe { libc::_exit(code) }
            }
        }
    }

    /// Makes a call in a child process, with or without the filter.
    fn made(call: c_long, arguments: [u64; 4], filtered: bool) -> WaitStatus {
        made_with(filtered.then(Needs::default), call, arguments)
    }

    /// Makes a call in a child process. The filter for `needs` applies to it, if there is one.
    fn made_with(needs: Option<Needs>, call: c_long, arguments: [u64; 4]) -> WaitStatus {
        // SAFETY: the child makes system calls only, with memory that was made before.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => waitpid(child, None).unwrap(),
            ForkResult::Child => {
                // The filter contains the process's own id, so it is compiled in the child.
                let filter = needs.map(|needs| Filter::new(false, needs).unwrap());
                nix::sys::prctl::set_no_new_privs().ok();
                filter.map(|it| it.install().ok());
                let [a, b, c, d] = arguments;
                // SAFETY: the call affects only this process, which ends.
                let result = unsafe { libc::syscall(call, a, b, c, d, 0, 0) };
                let is_missing = result == -1 && Errno::last() == Errno::ENOSYS;
                // SAFETY: `_exit` runs no code of this program.
                unsafe { libc::_exit(i32::from(is_missing)) }
            }
        }
    }

    fn is_killed(call: c_long, arguments: [u64; 4]) -> bool {
        matches!(made(call, arguments, true), WaitStatus::Signaled(_, Signal::SIGSYS, _))
    }

    fn is_listed(call: c_long) -> bool {
        call == libc::SYS_clone3 || CALLS.iter().any(|(listed, _)| *listed == call)
    }

    /// The guest cannot change the owner of a file, and no program that it makes runs as its owner on the host.
    #[test]
    fn a_machine_with_a_directory_to_write_to_stays_who_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made");
        let new = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let (file, new) = (tempfile::tempfile().unwrap(), new.as_ptr() as u64);
        let fd = u64::from(std::os::fd::AsRawFd::as_raw_fd(&file).cast_unsigned());
        let (here, empty) = (u64::from(libc::AT_FDCWD.cast_unsigned()), c"".as_ptr() as u64);
        let create = u64::from((libc::O_CREAT | libc::O_WRONLY).cast_unsigned());
        let read = u64::from(libc::O_RDONLY.cast_unsigned());
        let answers = [
            (libc::SYS_setresuid, [7, 7, 7, 0], 0),
            (libc::SYS_setresgid, [7, 7, 7, 0], 0),
            (libc::SYS_fchownat, [fd, empty, 7, 7], 0),
            (libc::SYS_fchmod, [fd, 0o4755, 0, 0], libc::EPERM),
            (libc::SYS_fchmod, [fd, 0o2755, 0, 0], libc::EPERM),
            (libc::SYS_fchmod, [fd, 0o1755, 0, 0], 0),
            (libc::SYS_mkdirat, [here, new, 0o2755, 0], libc::EPERM),
            (libc::SYS_mknodat, [here, new, 0o10_4644, 0], libc::EPERM),
            (libc::SYS_openat, [here, new, create, 0o4644], libc::EPERM),
            (libc::SYS_openat, [here, new, read, 0o4644], libc::ENOENT),
            (libc::SYS_openat, [here, new, create, 0o644], 0),
            (libc::SYS_fchmodat, [here, new, 0o6644, 0], libc::EPERM),
        ];
        let needs = Needs { shares: true, writable_shares: true, ..Needs::default() };
        // SAFETY: the child makes system calls only, with memory that was made before.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => {
                let exited = waitpid(child, None).unwrap();
                assert_eq!(exited, WaitStatus::Exited(child, 99), "the call with this number");
                assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o1755);
                assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o644);
            }
            ForkResult::Child => {
                let filter = Filter::new(false, needs).unwrap();
                nix::sys::stat::umask(nix::sys::stat::Mode::empty());
                nix::sys::prctl::set_no_new_privs().ok();
                filter.install().ok();
                let wrong = answers.iter().position(|(call, [a, b, c, d], expected)| {
                    // SAFETY: the call affects only this process or the files of this test.
                    let result = unsafe { libc::syscall(*call, *a, *b, *c, *d, 0, 0) };
                    *expected != if result == -1 { Errno::last_raw() } else { 0 }
                });
                let code = wrong.map_or(99, |it| i32::try_from(it).unwrap_or(98));
                // SAFETY: `_exit` runs no code of this program.
                unsafe { libc::_exit(code) }
            }
        }
    }

    #[test]
    fn a_network_device_sets_the_size_of_its_buffer_alone() {
        let is_killed = |network, option: i32| {
            let needs = Needs { network, ..Needs::default() };
            let arguments = [u64::MAX, 1, u64::from(option.cast_unsigned()), 0];
            let status = made_with(Some(needs), libc::SYS_setsockopt, arguments);
            matches!(status, WaitStatus::Signaled(_, Signal::SIGSYS, _))
        };
        assert!(!is_killed(true, libc::SO_SNDBUF));
        assert!(is_killed(true, libc::SO_ATTACH_FILTER) && is_killed(false, libc::SO_SNDBUF));
    }

    #[test]
    fn every_call_that_is_not_listed_ends_the_process() {
        let others: Vec<c_long> =
            (0..=LAST).filter(|call| !is_listed(*call) && !UNFILTERED.contains(call)).collect();
        assert!(others.len() > 300, "the list is short: {}", others.len());
        for call in others {
            assert!(is_killed(call, [0; 4]), "the call {call}");
        }
        assert!(is_killed(X32 | libc::SYS_getpid, [0; 4]), "a call of x32");
    }

    #[test]
    fn without_the_filter_none_does() {
        for call in [libc::SYS_getuid, libc::SYS_execve, libc::SYS_mount, libc::SYS_ptrace, LAST] {
            assert!(matches!(made(call, [0; 4], false), WaitStatus::Exited(..)), "the call {call}");
        }
    }

    #[test]
    fn arguments_decide_where_the_table_says_so() {
        let [inet, unix] = [libc::AF_INET, libc::AF_UNIX].map(|it| u64::from(it.cast_unsigned()));
        let (executable, writable) = (libc::PROT_EXEC, libc::PROT_READ | libc::PROT_WRITE);
        let [executable, writable] = [executable, writable].map(|it| u64::from(it.cast_unsigned()));
        let (path, create) = (c"/nowhere".as_ptr() as u64, libc::O_CREAT.cast_unsigned().into());
        let oob = libc::MSG_OOB.cast_unsigned().into();
        for (call, refused, allowed) in [
            (libc::SYS_socket, [inet, 1, 0, 0], [unix, 1, 0, 0]),
            (libc::SYS_mmap, [0, 4096, executable, 0], [0, 4096, writable, 0]),
            (libc::SYS_mprotect, [0, 0, executable, 0], [0, 0, writable, 0]),
            (libc::SYS_ioctl, [0, 0x5412, 0, 0], [0, 0xae80, 0, 0]),
            (libc::SYS_fcntl, [0, 8, 0, 0], [0, 3, 0, 0]),
            (libc::SYS_open, [path, create, 0, 0], [path, 0, 0, 0]),
            (libc::SYS_openat, [0, path, create, 0], [0, path, 0, 0]),
            (libc::SYS_prctl, [4, 1, 0, 0], [15, path, 0, 0]),
            (libc::SYS_prlimit64, [0, 7, 1 << 32, 0], [0, 7, 0, 0]),
            (libc::SYS_clone, [0, 0, 0, 0], [0x007d_0f00, 0, 0, 0]),
            (libc::SYS_sendto, [u64::MAX, 0, 0, oob], [u64::MAX, 0, 0, 0]),
            (libc::SYS_recvfrom, [u64::MAX, 0, 0, oob], [u64::MAX, 0, 0, 0]),
        ] {
            assert!(is_killed(call, refused), "the call {call} with {refused:x?}");
            // A thread needs a stack: the process crashes, but the filter does not kill it.
            assert!(!is_killed(call, allowed), "the call {call} with {allowed:x?}");
        }
        let parent = u64::from(nix::unistd::getpid().as_raw().cast_unsigned());
        assert!(is_killed(libc::SYS_tgkill, [parent, parent, 0, 0]), "a signal to another process");
    }

    /// The tests are compiled for glibc. In all other tests, boxes start with musl.
    #[test]
    fn threads_and_memory_of_glibc_need_nothing_else() {
        // SAFETY: the child's memory is usable after fork(3), and the child takes no lock of this program.
        match unsafe { fork() }.unwrap() {
            ForkResult::Parent { child } => {
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 7));
            }
            ForkResult::Child => {
                nix::sys::prctl::set_no_new_privs().ok();
                Filter::new(false, Needs::default()).unwrap().install().ok();
                let work = || -> usize {
                    (0..64).map(|n| vec![n; 1 << (10 + n % 12)]).map(|it| it.len()).sum()
                };
                let threads = [(); 4].map(|()| std::thread::spawn(work));
                let sum: usize = threads.into_iter().map(|it| it.join().unwrap()).sum();
                std::thread::sleep(std::time::Duration::from_millis(1));
                // SAFETY: `_exit` runs no code of this program.
                unsafe { libc::_exit(if sum > 0 { 7 } else { 0 }) }
            }
        }
    }

    #[test]
    fn the_c_libraries_fall_back_from_clone3() {
        assert!(matches!(made(libc::SYS_clone3, [0; 4], true), WaitStatus::Exited(_, 1)));
    }
}

//! Compares the kernel's results with the table. Each call is made, but a second filter (`sys/probe.rs`) fails it
//! before it has an effect.

use nix::errno::Errno;
use nix::libc;

use super::calls::Verdict;
use super::program::PROGRAM;
use super::ranges::verdict;
use super::table::CALLS;
use crate::sys::probe::{Call, PASSED, answers};

/// The bit that the number of an x32 system call has.
const X32_BIT: u32 = 0x4000_0000;
/// The number of tested calls. Linux has not assigned the numbers after the table's last one yet.
const NUMBERS: u32 = 600;
/// `uretprobe` and `uprobe`. Since Linux 6.14 no filter sees them, and the kernel kills a process that makes them
/// outside of a probe.
const NEVER_FILTERED: [u32; 2] = [335, 336];

fn numbers() -> impl Iterator<Item = u32> {
    (0..NUMBERS).filter(|it| !NEVER_FILTERED.contains(it))
}

const fn number(number: u32) -> Call {
    Call::Native { number, arguments: [0, 0] }
}

fn with(number: libc::c_long, arguments: [u64; 2]) -> Call {
    Call::Native { number: u32::try_from(number).unwrap(), arguments }
}

/// Makes each call and returns the calls with an unexpected result.
fn unexpected(expected: &[(Call, Errno)]) -> Vec<(Call, Errno)> {
    let calls: Vec<_> = expected.iter().map(|(call, _)| *call).collect();
    let answers = answers(&PROGRAM, &calls);
    let both = expected.iter().zip(answers);
    both.filter(|((_, expected), answer)| expected != answer)
        .map(|((call, _), answer)| (*call, answer))
        .collect()
}

#[test]
fn the_kernel_answers_every_number_as_the_table_says() {
    let expected = |at| match verdict(at) {
        Verdict::Refused => Errno::EPERM,
        Verdict::Absent => Errno::ENOSYS,
        // No socket has family 0.
        Verdict::ByFamily => Errno::EAFNOSUPPORT,
        _ => PASSED,
    };
    let all: Vec<_> = numbers().map(|at| (number(at), expected(at))).collect();
    assert_eq!(unexpected(&all), []);
}

#[test]
fn the_table_is_in_order_and_leaves_out_no_number_but_the_kernels_own_gap() {
    for pair in CALLS.windows(2) {
        let [row, next] = pair else { unreachable!() };
        let follows = next.first == row.end() || (row.end(), next.first) == (336, 424);
        assert!(follows, "{row:?} is followed by {next:?}");
    }
    assert_eq!((CALLS[0].first, CALLS[CALLS.len() - 1].end()), (0, 467));
}

/// Pairs of a name and the C library's number for it.
macro_rules! numbers {
    ($($name:ident)*) => {
        [$((&stringify!($name)[4..], libc::$name)),*]
    };
}

#[test]
fn names_and_numbers_belong_together() {
    let known = numbers!(
        SYS_read SYS_ioctl SYS_socket SYS_socketpair SYS_clone SYS_ptrace SYS_syslog SYS_personality
        SYS_ustat SYS_vhangup SYS_pivot_root SYS_adjtimex SYS_chroot SYS_acct SYS_settimeofday SYS_mount
        SYS_umount2 SYS_swapon SYS_swapoff SYS_reboot SYS_sethostname SYS_setdomainname SYS_iopl
        SYS_ioperm SYS_init_module SYS_delete_module SYS_quotactl SYS_clock_settime SYS_mbind
        SYS_kexec_load SYS_add_key SYS_request_key SYS_keyctl SYS_unshare SYS_perf_event_open
        SYS_fanotify_init SYS_name_to_handle_at SYS_open_by_handle_at SYS_clock_adjtime SYS_setns
        SYS_process_vm_readv SYS_process_vm_writev SYS_kcmp SYS_finit_module SYS_kexec_file_load
        SYS_bpf SYS_userfaultfd SYS_rseq SYS_pidfd_send_signal SYS_io_uring_setup SYS_io_uring_enter
        SYS_io_uring_register SYS_open_tree SYS_move_mount SYS_fsopen SYS_fsconfig SYS_fsmount
        SYS_fspick SYS_clone3 SYS_pidfd_getfd SYS_process_madvise SYS_mount_setattr SYS_quotactl_fd
        SYS_set_mempolicy_home_node SYS_fchmodat2 SYS_mseal
    );
    for (name, number) in known {
        let here = CALLS.iter().find_map(|row| {
            let at = row.names.split(' ').position(|it| it == name)?;
            Some(libc::c_long::from(row.first) + libc::c_long::try_from(at).unwrap())
        });
        assert_eq!(here, Some(number), "{name}");
    }
}

#[test]
fn what_is_refused_has_a_reason() {
    for row in CALLS {
        assert!(row.verdict == Verdict::Allowed || !row.reason.is_empty(), "{row:?}");
    }
}

#[test]
fn programs_of_other_architectures_find_no_calls() {
    let mut all = vec![(Call::I386Getpid, Errno::ENOSYS)];
    all.extend(numbers().map(|at| (number(X32_BIT | at), Errno::ENOSYS)));
    assert_eq!(unexpected(&all), []);
}

#[test]
fn sockets_are_of_five_families() {
    let usual = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];
    let expected = |family| if usual.contains(&family) { PASSED } else { Errno::EAFNOSUPPORT };
    let calls = (0..64).flat_map(|family: i32| {
        let number = u64::from(family.cast_unsigned());
        // The kernel reads only the low half, and so does the filter.
        [number, number | 1 << 32].into_iter().flat_map(move |it| {
            [libc::SYS_socket, libc::SYS_socketpair]
                .map(|call| (with(call, [it, 1]), expected(family)))
        })
    });
    assert_eq!(unexpected(&calls.collect::<Vec<_>>()), []);
}

#[test]
fn a_new_process_gets_no_namespace_of_its_own() {
    // mount, cgroup, uts, ipc, user, pid, net (`linux/sched.h`)
    let new = [17, 25, 26, 27, 28, 29, 30];
    let expected = |bit| if new.contains(&bit) { Errno::EPERM } else { PASSED };
    let calls = (0..64).map(|bit| (with(libc::SYS_clone, [1 << bit, 0]), expected(bit)));
    assert_eq!(unexpected(&calls.collect::<Vec<_>>()), []);
}

#[test]
fn a_personality_is_one_of_the_harmless() {
    let call = |value| with(libc::SYS_personality, [value, 0]);
    let harmless = [0, 8, 0x2_0000, 0x2_0008, 0xFFFF_FFFF].map(|value| (call(value), PASSED));
    // For example, `ADDR_NO_RANDOMIZE` (0x40000) and `READ_IMPLIES_EXEC` (0x400000).
    let others = [1, 7, 0x4_0000, 0x10_0000, 0x40_0000, 0x2_0009, 0xFFFF_FFFE];
    let others = others.map(|value| (call(value), Errno::EPERM));
    assert_eq!(unexpected(&[&harmless[..], &others].concat()), []);
}

#[test]
fn nothing_is_typed_into_a_terminal_that_others_read() {
    let call = |request| with(libc::SYS_ioctl, [0, request]);
    let refused = [0x5412, 0x541C, 0x5412 | 1 << 32].map(|request| (call(request), Errno::EPERM));
    let passed = [libc::TCGETS, libc::TIOCGWINSZ, libc::FIONREAD].map(|it| (call(it), PASSED));
    assert_eq!(unexpected(&[&refused[..], &passed].concat()), []);
}

#[test]
fn a_process_with_the_filter_lives() {
    let body = || {
        nix::sys::prctl::set_no_new_privs().unwrap();
        super::install().unwrap();
        i32::from(std::fs::read("/proc/self/status").is_err())
    };
    let child = crate::sys::fork(nix::sched::CloneFlags::empty(), None, body).unwrap();
    let status = nix::sys::wait::waitpid(child, None).unwrap();
    assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
}
